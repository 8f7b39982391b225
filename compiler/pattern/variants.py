"""Expands a sequence with optional elements and choices into its ways, each a pattern of its own.

before  A a; B? b; (C c | D d)
after   A a; B b; C c / A a; C c / A a; B b; D d / A a; D d

In a match without an element, its attributes are NULL and its count is 0. A condition that is then NULL
regardless of the other events does not apply.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from seustream.compiler.errors import Span
from seustream.compiler.language import expressions as x
from seustream.compiler.language.aggregates import AGGREGATES
from seustream.compiler.language.evaluate import compile_row
from seustream.compiler.language.functions import FUNCTIONS
from seustream.compiler.pattern import ir, tree
from seustream.compiler.pattern.fields import fields

MOST_WAYS = 64

Sequenced = Sequence[tree.ElementClause | tree.OneOf]
Bound = Sequence[tuple[x.Expression, Span]]
"""The conditions that WHERE joins by AND, each with its place."""
Way = tuple[tuple[int, bool], ...]
"""The elements present, by number; False for a group that has no event."""


def clauses_of(sequence: Sequenced) -> Iterator[tree.ElementClause]:
    """Yields the elements in written order, which is the order of their numbers."""
    for part in sequence:
        if isinstance(part, tree.OneOf):
            for way in part.ways:
                yield from clauses_of(way)
        else:
            yield part


def _may_be_empty(clause: tree.ElementClause) -> bool:
    return not clause.negated and clause.quantifier is not None and clause.quantifier.least == 0


def has_choice(sequence: Sequenced) -> bool:
    """Returns whether there is more than one way through."""
    return any(
        isinstance(part, tree.OneOf) or part.optional or _may_be_empty(part) for part in sequence
    )


def ways(sequence: Sequenced, grouped: bool) -> list[Way]:
    """Returns all ways through a sequence, except those whose matches another way has too: one with
    the same events and only some of the absences. A group without events is an absence only if
    groups are maximal (`grouped`)."""
    numbers = itertools.count()

    def of_part(part: tree.ElementClause | tree.OneOf) -> list[Way]:
        if isinstance(part, tree.OneOf):
            return [way for one in part.ways for way in of_sequence(one)]
        number = next(numbers)
        if _may_be_empty(part):
            return [((number, True),), ((number, False),) if grouped else ()]
        return [((number, True),), *([()] if part.optional else [])]

    def of_sequence(parts: Sequenced) -> list[Way]:
        found = [of_part(part) for part in parts]
        return [sum(chosen, ()) for chosen in itertools.product(*found)]

    clauses = list(clauses_of(sequence))

    def events(way: Way) -> Way:
        return tuple(one for one in way if one[1] and not clauses[one[0]].negated)

    found = list(dict.fromkeys(of_sequence(sequence)))
    alike: dict[Way, list[Way]] = {}
    for way in found:
        alike.setdefault(events(way), []).append(way)
    return [way for way in found if not any({*other} < {*way} for other in alike[events(way)])]


@dataclass
class Variant:
    """One way: its elements, and the forms that conditions and columns take in it. A group that
    must be maximal and has no event is the absence of every event that would be a member."""

    every: Sequence[ir.Element]
    way: Way
    grouped: bool
    elements: tuple[ir.Element, ...] = ()
    _places: dict[int, int] = field(default_factory=dict)  # of elements with events
    _empty: dict[int, int] = field(default_factory=dict)  # of groups that must have none

    def __post_init__(self) -> None:
        found: list[ir.Element] = []
        for number, there in self.way:
            element = self.every[number]
            if there:
                self._places[number] = len(found)
                least = None if element.least is None else max(element.least, 1)
                found.append(replace(element, least=least))
            elif self.grouped:
                self._empty[number] = len(found)
                found.append(replace(element, negated=True, least=None, most=None))
        self.elements = tuple(found)

    def conditions(self, bound: Bound) -> list[tuple[x.Expression, Span]]:
        """Returns the conditions that apply, over the elements of this way."""
        found = []
        for e, span in bound:
            refs = ir.references(e)
            gone = [i for i in refs if i not in self._places]
            forbids = len(gone) == 1 and gone[0] in self._empty and self._says_members(e, gone[0])
            here = self._narrowed(e, forbids)
            if not gone or not _is_null(here):
                found.append((here, span))
        return found

    def outputs(self, query: ir.PatternQuery) -> tuple[ir.OutputColumn, ...]:
        """Returns the columns that refer to something present."""
        found = []
        for name, e, each in fields(query):
            refs = ir.references(e)
            if (each is None or each in self._places) and (
                not refs or any(i in self._places for i in refs) or not _is_null(self._narrowed(e))
            ):
                at = None if each is None else self._places[each]
                found.append(ir.OutputColumn(name, self._narrowed(e), at))
        return tuple(found)

    def _says_members(self, e: x.Expression, group: int) -> bool:
        """Returns whether a condition decides which events are members, by itself or with single
        elements."""
        mine = all(
            isinstance(part, ir.Value) and part.pick is ir.Pick.EACH
            for part in ir.parts(e)
            if part.element == group
        )
        return mine and all(self.every[i].single for i in ir.references(e) if i != group)

    def _narrowed(self, e: x.Expression, forbids: bool = False) -> x.Expression:
        match e:
            case ir.Value() if forbids and e.element in self._empty:
                return replace(e, element=self._empty[e.element], pick=ir.Pick.ONE)
            case ir.Value():
                if e.element in self._places:
                    return replace(e, element=self._places[e.element])
                return x.Literal(None, e.type)
            case ir.GroupAggregate():
                if e.element in self._places:
                    of = self._narrowed(e.aggregate, forbids)
                    assert isinstance(of, x.AggregateCall)
                    return replace(e, element=self._places[e.element], aggregate=of)
                return x.Literal(_of_nothing(e.aggregate), e.type)
            case _:
                return x.rebuild(e, lambda part: self._narrowed(part, forbids))


def _of_nothing(e: x.AggregateCall) -> x.Value:
    """Returns the value of an aggregate over no events."""
    entry = AGGREGATES[e.function]
    state = entry.init()
    value: x.Value = entry.result(e.type, state) if entry.typed else entry.result(state)
    return value


Truths = frozenset[bool | None]
"""The values that a condition may have: TRUE, FALSE and NULL. Of any other value it is only of interest
whether it may be NULL, so that it counts as TRUE and FALSE if it is not."""
_NULL: Truths = frozenset({None})
_KNOWN: Truths = frozenset({True, False})
_ANY: Truths = _NULL | _KNOWN
_NULL_OF_NULLS = ("coalesce", "greatest", "least")


def _is_null(e: x.Expression) -> bool:
    """Returns whether a value is NULL regardless of its leaves."""
    return _truths(e) == _NULL


def _truths(e: x.Expression) -> Truths:
    """Returns the values that an expression may have over all values of its leaves."""
    if not any(True for _ in x.leaves(e)):
        value = constant(e)
        return frozenset({value}) if value is None or isinstance(value, bool) else _KNOWN
    match e:
        case x.And() | x.Or():
            decides = isinstance(e, x.Or)
            found: Truths = frozenset({not decides})
            for term in map(_truths, e.terms):
                found = frozenset(_joined(a, b, decides) for a in found for b in term)
            return found
        case x.Not():
            (of,) = map(_truths, x.children(e))
            return frozenset(None if value is None else not value for value in of)
        case x.Compare() | x.Cast():
            return _NULL if any(map(_is_null, x.children(e))) else _ANY
        case x.Case():
            reached = frozenset[bool | None]()
            for when, then in e.branches:
                if True in (may := _truths(when)):
                    reached |= _truths(then)
                if may == {True}:
                    return reached
            return reached | _truths(e.otherwise)
        case x.Call():
            nulls = [*map(_is_null, e.arguments)]
            strict = FUNCTIONS[e.function].strict and any(nulls)
            return _NULL if strict or (e.function in _NULL_OF_NULLS and all(nulls)) else _ANY
        case ir.GroupAggregate() if e.aggregate.arguments and _of_nothing(e.aggregate) is None:
            return _NULL if _is_null(e.aggregate.arguments[0]) else _ANY
        case _:
            return _ANY


def _joined(a: bool | None, b: bool | None, decides: bool) -> bool | None:
    """Returns `a AND b`, or `a OR b` if TRUE `decides`."""
    if a is decides or b is decides:
        return decides
    return None if a is None or b is None else not decides


def constant(e: x.Expression) -> x.Value:
    """Returns the value of an expression without variables."""

    def leaf(e: x.Leaf) -> Callable[[None], x.Value]:
        raise AssertionError(e)

    return compile_row(e, leaf)(None)
