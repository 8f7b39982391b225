"""Bound, typed expressions: what every front end makes of its conditions.

Equal expressions compare equal wherever they were written: spans do not count.
`Column.source` is the position of its stream in the query's FROM list.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from compiler.language.types import BOOLEAN, Kind, Type
from hdl.isa import Condition

Value = int | float | str | bool | datetime.date | datetime.time | datetime.datetime | None


@dataclass(frozen=True, slots=True)
class Column:
    source: int
    name: str
    type: Type
    nullable: bool
    alias: str  # of its stream in this query, for showing


@dataclass(frozen=True, slots=True)
class Literal:
    value: Value
    type: Type


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """+ - * / % on numbers, || on texts; operands are of the result's type."""

    operator: str
    left: Expression
    right: Expression
    type: Type


@dataclass(frozen=True, slots=True)
class Compare:
    """`left condition right`, both of type `of`."""

    condition: Condition
    left: Expression
    right: Expression
    of: Type
    type: Type = BOOLEAN


@dataclass(frozen=True, slots=True)
class And:
    terms: tuple[Expression, ...]
    type: Type = BOOLEAN


@dataclass(frozen=True, slots=True)
class Or:
    terms: tuple[Expression, ...]
    type: Type = BOOLEAN


@dataclass(frozen=True, slots=True)
class Not:
    term: Expression
    type: Type = BOOLEAN


@dataclass(frozen=True, slots=True)
class IsNull:
    term: Expression
    negated: bool
    type: Type = BOOLEAN


@dataclass(frozen=True, slots=True)
class Like:
    term: Expression
    pattern: str
    negated: bool
    type: Type = BOOLEAN


@dataclass(frozen=True, slots=True)
class Call:
    function: str
    arguments: tuple[Expression, ...]
    type: Type


@dataclass(frozen=True, slots=True)
class Cast:
    term: Expression
    type: Type


@dataclass(frozen=True, slots=True)
class Aggregate:
    """count, sum, avg, min or max; no argument for count(*)."""

    function: str
    argument: Expression | None
    type: Type


Expression = (
    Column
    | Literal
    | Arithmetic
    | Compare
    | And
    | Or
    | Not
    | IsNull
    | Like
    | Call
    | Cast
    | Aggregate
)

TRUE = Literal(True, BOOLEAN)
FALSE = Literal(False, BOOLEAN)


def children(e: Expression) -> tuple[Expression, ...]:
    match e:
        case Arithmetic() | Compare():
            return (e.left, e.right)
        case And() | Or():
            return e.terms
        case Not() | IsNull() | Like() | Cast():
            return (e.term,)
        case Call():
            return e.arguments
        case Aggregate():
            return () if e.argument is None else (e.argument,)
        case Column() | Literal():
            return ()


def walk(e: Expression) -> Iterator[Expression]:
    """The expression and everything in it."""
    stack = [e]
    while stack:
        top = stack.pop()
        yield top
        stack.extend(reversed(children(top)))


def columns(e: Expression) -> set[Column]:
    return {part for part in walk(e) if isinstance(part, Column)}


def sources(e: Expression) -> frozenset[int]:
    """Positions in FROM of the streams an expression reads."""
    return frozenset(column.source for column in columns(e))


def conjuncts(e: Expression) -> tuple[Expression, ...]:
    """The operands of a conjunction; TRUE has none."""
    if e == TRUE:
        return ()
    return e.terms if isinstance(e, And) else (e,)


def conjunction(terms: tuple[Expression, ...]) -> Expression:
    return terms[0] if len(terms) == 1 else And(terms) if terms else TRUE


def disjunction(terms: tuple[Expression, ...]) -> Expression:
    return terms[0] if len(terms) == 1 else Or(terms) if terms else FALSE


def map_predicate(e: Expression, leaf: Callable[[Expression], Expression]) -> Expression:
    """The same AND/OR structure with every operand below it replaced."""
    match e:
        case And():
            return And(tuple(map_predicate(term, leaf) for term in e.terms))
        case Or():
            return Or(tuple(map_predicate(term, leaf) for term in e.terms))
        case _:
            return leaf(e)


_PRECEDENCE = {Or: 1, And: 2, Not: 3, Compare: 4, IsNull: 4, Like: 4, Arithmetic: 5}


def show(e: Expression) -> str:
    """The expression as X-SQL text."""
    match e:
        case Column():
            return f"{e.alias}.{e.name}"
        case Literal():
            return _show_literal(e)
        case Arithmetic():
            return f"{_inner(e.left, e)} {e.operator} {_inner(e.right, e, right=True)}"
        case Compare():
            return f"{_inner(e.left, e)} {e.condition.symbol} {_inner(e.right, e)}"
        case And():
            return " AND ".join(_inner(term, e) for term in e.terms)
        case Or():
            return " OR ".join(_inner(term, e) for term in e.terms)
        case Not():
            return f"NOT {_inner(e.term, e)}"
        case IsNull():
            return f"{_inner(e.term, e)} IS {'NOT ' if e.negated else ''}NULL"
        case Like():
            pattern = e.pattern.replace("'", "''")
            return f"{_inner(e.term, e)} {'NOT ' if e.negated else ''}LIKE '{pattern}'"
        case Call():
            return f"{e.function}({', '.join(show(argument) for argument in e.arguments)})"
        case Cast():
            return f"CAST({show(e.term)} AS {e.type})"
        case Aggregate():
            return f"{e.function}({'*' if e.argument is None else show(e.argument)})"


def _inner(e: Expression, outer: Expression, right: bool = False) -> str:
    mine, around = _PRECEDENCE.get(type(e), 9), _PRECEDENCE[type(outer)]
    # Arithmetic leans left, comparisons do not chain; AND in AND needs no parentheses.
    flat = mine == around and not isinstance(outer, (And, Or, Not))
    if mine < around or (flat and (right or not isinstance(outer, Arithmetic))):
        return f"({show(e)})"
    if isinstance(e, Arithmetic) and isinstance(outer, Arithmetic) and e.operator != outer.operator:
        return f"({show(e)})"
    return show(e)


def _show_literal(e: Literal) -> str:
    value = e.value
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, (datetime.date, datetime.time)):
        name = e.type.kind.name if e.type.kind in (Kind.DATE, Kind.TIME) else "TIMESTAMP"
        return f"{name} '{value.isoformat(' ') if isinstance(value, datetime.datetime) else value}'"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return repr(value)
