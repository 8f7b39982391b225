"""Bound, typed expressions: the binder's output for every condition and value of all languages.

Equal expressions compare equal wherever they were written: places do not count. A leaf is what a
language's scope resolves a name to: a stream's column, an element of a match, a leaf of an attribute
tree. Everything above leaves is shared.

**NULL and faults.** A strict operation has no value if an operand has none. A strict operation
that has no value although all its operands have one is a *fault*: its value is NULL, and the fault is
counted at the place `at` (`seustream.compiler.language.faults`).
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction

from seustream.compiler.errors import Span
from seustream.compiler.language.types import BOOLEAN, Kind, Type
from seustream.hdl.isa import Condition

Value = (
    int
    | float
    | Decimal
    | str
    | bool
    | datetime.date
    | datetime.time
    | datetime.datetime
    | datetime.timedelta
    | None
)


class Leaf:
    """A name that a scope resolved. Each language has frozen dataclasses of its own."""

    __slots__ = ()
    type: Type

    def show(self) -> str:
        raise NotImplementedError

    @property
    def origin(self) -> Hashable:
        """The row it is read from: a value for each row that a condition knows, or None if it is not
        an attribute of one row."""
        return None

    @property
    def is_time(self) -> bool:
        """Returns whether it is the time of a row."""
        return False


@dataclass(frozen=True, slots=True)
class ColumnReference(Leaf):
    """A stream's column; `source` is the position of its stream in the query's FROM list. `timed`
    marks the time of the stream's rows, as a timestamp or as a number of milliseconds."""

    source: int
    name: str
    type: Type
    nullable: bool
    alias: str  # of its stream in this query, for display
    timed: bool = field(default=False, compare=False)

    def show(self) -> str:
        return f"{self.alias}.{self.name}"

    @property
    def origin(self) -> int:
        return self.source

    @property
    def is_time(self) -> bool:
        return self.timed


@dataclass(frozen=True, slots=True)
class GroupValue(ColumnReference):
    """A column of keys or aggregates of groups; it is shown as what it holds."""

    holds: Expression = field(kw_only=True, compare=False)

    def show(self) -> str:
        return show(self.holds)


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant. `exact` is the value before rounding to a double, if it was rounded; operations
    on such constants alone are computed with it."""

    value: Value
    type: Type
    exact: Fraction | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Compare:
    """`left condition right`, both converted to the type `of`; `span` is where it is written."""

    condition: Condition
    left: Expression
    right: Expression
    of: Type
    type: Type = BOOLEAN
    span: Span | None = field(default=None, compare=False)


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
class Case:
    """Selects the value of the first branch whose condition is true; all values are converted to
    `type`."""

    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression
    type: Type


@dataclass(frozen=True, slots=True)
class Call:
    """A function or operator of the registry; argument i is converted to `takes[i]`."""

    function: str
    arguments: tuple[Expression, ...]
    takes: tuple[Type, ...]
    type: Type
    overload: int = 0  # 0 is the entry itself, i its `overloads[i - 1]`
    at: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Cast:
    """CAST, or with `quiet` TRY_CAST, whose failure is not a fault."""

    term: Expression
    type: Type
    quiet: bool = False
    at: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """An aggregate of the registry over the rows for which `where` holds; count(*) has no argument.
    Argument i is converted to `takes[i]`."""

    function: str
    arguments: tuple[Expression, ...]
    takes: tuple[Type, ...]
    type: Type
    distinct: bool = False
    where: Expression | None = None
    at: Span | None = field(default=None, compare=False)

    @property
    def argument(self) -> Expression | None:
        return self.arguments[0] if self.arguments else None


Expression = Leaf | Literal | Compare | And | Or | Not | IsNull | Case | Call | Cast | AggregateCall

TRUE = Literal(True, BOOLEAN)
FALSE = Literal(False, BOOLEAN)


def children(e: Expression) -> tuple[Expression, ...]:
    match e:
        case Compare():
            return (e.left, e.right)
        case And() | Or():
            return e.terms
        case Not() | IsNull() | Cast():
            return (e.term,)
        case Case():
            return (*(part for branch in e.branches for part in branch), e.otherwise)
        case Call():
            return e.arguments
        case AggregateCall():
            return e.arguments if e.where is None else (*e.arguments, e.where)
        case _:
            return ()


def rebuild(e: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """Rebuilds a node over changed children; returns a leaf or a literal unchanged."""
    match e:
        case Compare():
            return replace(e, left=change(e.left), right=change(e.right))
        case And() | Or():
            return replace(e, terms=tuple(change(term) for term in e.terms))
        case Not() | IsNull() | Cast():
            return replace(e, term=change(e.term))
        case Case():
            branches = tuple((change(when), change(then)) for when, then in e.branches)
            return replace(e, branches=branches, otherwise=change(e.otherwise))
        case Call():
            return replace(e, arguments=tuple(change(a) for a in e.arguments))
        case AggregateCall():
            where = None if e.where is None else change(e.where)
            return replace(e, arguments=tuple(change(a) for a in e.arguments), where=where)
        case _:
            return e


def walk(e: Expression) -> Iterator[Expression]:
    """Yields the expression and everything in it."""
    stack = [e]
    while stack:
        top = stack.pop()
        yield top
        stack.extend(reversed(children(top)))


def leaves(e: Expression) -> Iterator[Leaf]:
    return (part for part in walk(e) if isinstance(part, Leaf))


_KEPT = 1 << 14
_reads: dict[int, tuple[Expression, frozenset[ColumnReference], frozenset[int]]] = {}
"""Caches the columns and sources that expressions read, by identity. Each expression is kept with
its entry, so that its identity is not reused. Every step asks for them."""


def columns(e: Expression) -> frozenset[ColumnReference]:
    """Returns the columns that an expression reads."""
    return _read(e)[1]


def sources(e: Expression) -> frozenset[int]:
    """Returns the positions in FROM of the streams that an expression reads."""
    return _read(e)[2]


def _read(e: Expression) -> tuple[Expression, frozenset[ColumnReference], frozenset[int]]:
    known = _reads.get(id(e))
    if known is None:
        if len(_reads) >= _KEPT:
            _reads.clear()
        found = frozenset(part for part in walk(e) if isinstance(part, ColumnReference))
        known = _reads[id(e)] = e, found, frozenset(column.source for column in found)
    return known


def columns_by_source(expressions: Iterable[Expression]) -> dict[int, set[str]]:
    """Returns the names of the columns that expressions read, by their stream's position in FROM."""
    found: dict[int, set[str]] = {}
    for e in expressions:
        for column in columns(e):
            found.setdefault(column.source, set()).add(column.name)
    return found


def conjuncts(e: Expression) -> tuple[Expression, ...]:
    """Returns the operands of a conjunction; TRUE has none."""
    if e == TRUE:
        return ()
    return e.terms if isinstance(e, And) else (e,)


def conjunction(terms: tuple[Expression, ...]) -> Expression:
    return terms[0] if len(terms) == 1 else And(terms) if terms else TRUE


def disjunction(terms: tuple[Expression, ...]) -> Expression:
    return terms[0] if len(terms) == 1 else Or(terms) if terms else FALSE


def map_predicate(e: Expression, leaf: Callable[[Expression], Expression]) -> Expression:
    """Rebuilds the same AND/OR structure with every operand below it replaced."""
    match e:
        case And():
            return And(tuple(map_predicate(term, leaf) for term in e.terms))
        case Or():
            return Or(tuple(map_predicate(term, leaf) for term in e.terms))
        case _:
            return leaf(e)


def condition(e: Expression) -> Expression:
    """Returns a condition in the form that the passes know: a boolean value b stands for b = TRUE."""
    if isinstance(e, (Compare, And, Or, Not, IsNull)):
        return e
    if isinstance(e, Literal) and e.value is not None:
        return e
    return Compare(Condition.EQ, e, TRUE, BOOLEAN)


def push_not(e: Expression, negated: bool = False) -> Expression:
    """Returns the predicate, or its negation, without any NOT."""
    match e:
        case Not():
            return push_not(e.term, not negated)
        case And() | Or():
            terms = tuple(push_not(term, negated) for term in e.terms)
            return Or(terms) if isinstance(e, And) == negated else And(terms)
        case Compare() if negated:
            return replace(e, condition=e.condition.negated())
        case IsNull() if negated:
            return IsNull(e.term, not e.negated)
        case Literal() if negated:
            return FALSE if e.value else TRUE
        case _:
            return e


def can_be_null(
    e: Expression, lacking: frozenset[int], sure: frozenset[Expression] = frozenset()
) -> bool:
    """Returns whether a value may be NULL, as far as can be decided from columns, constants,
    `coalesce` of these and the values that are `sure`."""
    if e in sure:
        return False
    if isinstance(e, ColumnReference):
        return e.source in lacking or (e.nullable and e.type.kind is not Kind.ERROR)
    if isinstance(e, Call) and e.function == "coalesce":
        return all(can_be_null(argument, lacking, sure) for argument in e.arguments)
    return not (isinstance(e, Literal) and e.value is not None)


# --- as text ------------------------------------------------------------------

_OR, _XOR, _AND, _NOT, _COMPARE, _BITS, _SUM, _PRODUCT, _SIGN, _ATOM = range(10)
_STRENGTH = {
    "&": _BITS,
    "|": _BITS,
    "+": _SUM,
    "-": _SUM,
    "||": _SUM,
    "*": _PRODUCT,
    "/": _PRODUCT,
    "DIV": _PRODUCT,
}


def show(e: Expression) -> str:
    """Shows the expression as X-SQL text."""
    return _shown(e)[0]


def _shown(e: Expression) -> tuple[str, int]:
    """Returns the text, and the precedence of its outermost operator."""
    match e:
        case GroupValue():
            return _shown(e.holds)
        case Literal():
            return _literal(e), _ATOM
        case Compare(condition=Condition.EQ, left=side, right=right) if _wrapped(side, right):
            return _shown(side)
        case Compare(condition=Condition.NE, left=side, right=right) if _wrapped(side, right):
            if isinstance(side, Call) and side.function in _NEGATED:
                return _call(side, negated=True)
            return f"NOT {_within(side, _NOT)}", _NOT
        case Compare():
            return _infix(e.condition.symbol, (e.left, e.right), _COMPARE, chains=False)
        case And():
            return " AND ".join(_within(term, _AND) for term in e.terms), _AND
        case Or():
            return " OR ".join(_within(term, _OR) for term in e.terms), _OR
        case Not(Compare(Condition.EQ, Call(function=name) as call, right)) if (
            name in _NEGATED and right == TRUE
        ):
            return _call(call, negated=True)
        case Not():
            return f"NOT {_within(e.term, _NOT)}", _NOT
        case IsNull():
            return f"{_within(e.term, _SUM)} IS {'NOT ' if e.negated else ''}NULL", _COMPARE
        case Case():
            return _case(e), _ATOM
        case Call():
            return _call(e)
        case Cast():
            return f"{'TRY_' if e.quiet else ''}CAST({show(e.term)} AS {e.type})", _ATOM
        case AggregateCall():
            inside = ", ".join(map(show, e.arguments)) or "*"
            where = f" FILTER (WHERE {show(e.where)})" if e.where is not None else ""
            return f"{e.function}({'DISTINCT ' * e.distinct}{inside}){where}", _ATOM
        case _:
            return e.show(), _ATOM


def _wrapped(side: Expression, right: Expression) -> bool:
    """Returns whether a comparison with TRUE only serves to turn a boolean value into a condition."""
    return right == TRUE and condition(side) is not side


def _within(e: Expression, around: int) -> str:
    text, strength = _shown(e)
    return text if strength >= around else f"({text})"


def _infix(
    name: str, sides: tuple[Expression, ...], strength: int, chains: bool
) -> tuple[str, int]:
    """Shows an infix operator. Operators associate to the left; comparisons do not chain."""
    left = _within(sides[0], strength if chains else strength + 1)
    return f"{left} {name} {_within(sides[1], strength + 1)}", strength


_PATTERNS = ("like", "ilike", "glob")
_NEGATED = (*_PATTERNS, "is_distinct")


def _call(e: Call, negated: bool = False) -> tuple[str, int]:
    """Shows a call; `negated` is for functions whose form takes an inner NOT."""
    name = e.function
    if name == "negate":
        return f"-{_within(e.arguments[0], _SIGN + 1)}", _SIGN
    if name in _STRENGTH:
        text, strength = _infix(name, e.arguments, _STRENGTH[name], chains=True)
        inner = e.arguments[0]
        mixed = isinstance(inner, Call) and inner.function != name
        if mixed and isinstance(inner, Call) and _STRENGTH.get(inner.function) == strength:
            return f"({show(inner)}) {text[len(show(inner)) + 1 :]}", strength
        return text, strength
    if name == "xor":
        return _infix("XOR", e.arguments, _XOR, chains=True)
    if name == "is_distinct":
        return _infix(f"IS {'NOT ' * negated}DISTINCT FROM", e.arguments, _COMPARE, chains=False)
    if name in _PATTERNS:
        text, strength = _infix(
            "NOT " * negated + name.upper(), e.arguments[:2], _COMPARE, chains=False
        )
        escape = f" ESCAPE {show(e.arguments[2])}" if len(e.arguments) > 2 else ""
        return text + escape, strength
    return f"{name}({', '.join(map(show, e.arguments))})", _ATOM


def _case(e: Case) -> str:
    parts = [f"WHEN {show(when)} THEN {show(then)}" for when, then in e.branches]
    if not (isinstance(e.otherwise, Literal) and e.otherwise.value is None):
        parts.append(f"ELSE {show(e.otherwise)}")
    return f"CASE {' '.join(parts)} END"


def _literal(e: Literal) -> str:
    value = e.value
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, datetime.timedelta):
        return f"INTERVAL '{value // datetime.timedelta(milliseconds=1)} ms'"
    if isinstance(value, (datetime.date, datetime.time)):
        name = e.type.kind.name if e.type.kind in (Kind.DATE, Kind.TIME) else "TIMESTAMP"
        return f"{name} '{value.isoformat(' ') if isinstance(value, datetime.datetime) else value}'"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value) if isinstance(value, Decimal) else repr(value)
