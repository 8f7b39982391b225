"""Conditions that compare two events, as compiled kernels decide them.

A *link* compares an expression over one event with an expression over another, both numeric. A
kernel finds the partners of a partial match in a range of events, so pairs that do not fit are
never made.

    a.id = b.id AND b.price > a.price * 1.1      two links of a and b
    a.price + b.price > c.price                  none: its left side reads two events

A condition that is no link may be a *formula*, which a kernel computes for each pair.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np

from seustream.compiler.language import expressions as x
from seustream.compiler.language.faults import Faults
from seustream.compiler.language.types import Kind, Type
from seustream.compiler.pattern import ir
from seustream.compiler.pattern.ir import Class, Pick
from seustream.engine.kernels import native
from seustream.engine.pattern.columns import Array, Ints, Once
from seustream.engine.pattern.lists import Bindings, Lists
from seustream.engine.stream.differences import Difference, differences
from seustream.engine.stream.evaluate import evaluate
from seustream.engine.stream.formulas import Formula, formula_of
from seustream.engine.stream.numbers import Key, Numbers, all_of, comparable, converted, picked
from seustream.hdl.isa import Condition

_ROOM = 1 << 12
"""The number of pairs that a search makes room for at first."""

Rows = dict[int, Array]


@dataclasses.dataclass(frozen=True, slots=True)
class PatternLink:
    """`left op right`, each side over the event of one element. With `apart` it bounds their
    difference instead, and the condition has to be evaluated, too."""

    op: Condition
    left: Once
    right: Once
    apart: Difference | None = None

    def test(self, lists: Lists, element: int, rows: Rows) -> native.Test | None:
        """Returns the comparison of an element's events with the bound ones, or None where a side
        has a fault in some event."""
        theirs, ours, op, apart = self.left, self.right, self.op, self.apart
        if theirs.element != element:
            theirs, ours, op = ours, theirs, op.mirrored()
            apart = None if apart is None else apart.exchanged
        one, other = lists.numbers(theirs), lists.numbers(ours)
        if one is None or other is None:
            return None
        bound = rows[ours.element]
        values, flags = other
        values = values[bound] if apart is None else apart.bounds(values[bound])
        return int(op), *one, values, None if flags is None else flags[bound]


def link(conjunct: ir.Conjunct) -> PatternLink | None:
    """Returns the condition as a link, or None if it is not one."""
    e = conjunct.expression
    if not comparable(e):
        return None
    assert isinstance(e, x.Compare)
    left, right = _once(e.left, e.of), _once(e.right, e.of)
    if left is None or right is None or left.element == right.element:
        return None
    return PatternLink(e.condition, left, right)


def near(conjunct: ir.Conjunct) -> tuple[PatternLink, ...]:
    """Returns links that bound a difference wherever the condition is true."""
    found = []
    for one in differences(conjunct.expression):
        left, right = _once(one.left, one.of), _once(one.right, one.of)
        if left is not None and right is not None and left.element != right.element:
            found.append(PatternLink(one.op, left, right, one))
    return tuple(found)


@dataclasses.dataclass(frozen=True, slots=True)
class PatternFormula:
    """A condition over the event of an element and earlier bound ones, as a kernel computes it. `theirs`
    are the parts over that event; of `ours`, some read one element, others several or none."""

    formula: Formula
    theirs: tuple[Once, ...]
    ours: tuple[Once | Key, ...]

    def bound(self, lists: Lists, rows: Rows) -> native.PairFormula | None:
        """Returns the formula with its columns, or None where one has a fault in some event."""
        theirs = all_of([lists.numbers(part) for part in self.theirs])
        ours = all_of([_bound(part, lists, rows) for part in self.ours])
        return None if theirs is None or ours is None else (self.formula.steps, theirs, ours)


def _bound(part: Once | Key, lists: Lists, rows: Rows) -> Numbers | None:
    if isinstance(part, Once):
        known = lists.numbers(part)
        return None if known is None else picked(known, rows[part.element])
    faults, size = Faults(), len(next(iter(rows.values())))
    column = evaluate(converted(part), Bindings(lists, size, rows).leaf, size, faults)
    return None if faults.total else lists.numbers_of(column)


def formula(conjunct: ir.Conjunct, element: int) -> PatternFormula | None:
    """Returns the formula of a condition once an element is the last that it needs, or None if it has
    none."""
    leaves = [*x.leaves(conjunct.expression)]
    if not all(isinstance(leaf, ir.Value) and leaf.pick is Pick.ONE for leaf in leaves):
        return None
    found = formula_of(conjunct.expression, frozenset({element}), _elements)
    if found is None:
        return None
    theirs = [_once(*key) for key in found.theirs]
    parts = tuple(part for part in theirs if part is not None)
    assert len(parts) == len(theirs)
    return PatternFormula(found, parts, tuple(_once(*key) or key for key in found.ours))


def _elements(e: x.Expression) -> frozenset[int]:
    return frozenset(leaf.element for leaf in x.leaves(e) if isinstance(leaf, ir.Value))


def _once(side: x.Expression, of: Type) -> Once | None:
    """Returns a side of a comparison, if it is about the single event of one element."""
    read = {
        leaf.element if isinstance(leaf, ir.Value) and leaf.pick is Pick.ONE else None
        for leaf in x.leaves(side)
    }
    element = read.pop() if len(read) == 1 else None
    return None if element is None else Once(element, Pick.ONE, converted((side, of)), of)


def side_of(e: x.Expression, of: Type) -> set[tuple[int, Pick]] | None:
    """Returns which events a side of a comparison reads, as the automaton's kernel knows them: one,
    or none for a constant and for a plain count of a group. None where it knows none of these."""
    if isinstance(e, ir.GroupAggregate):
        plain = not (e.before or e.aggregate.arguments or e.aggregate.where)
        counts = e.aggregate.function == "count" and plain and of.kind is Kind.BIGINT
        return set() if counts else None
    leaves = [*x.leaves(converted((e, of)))]
    read = {(leaf.element, leaf.pick) for leaf in leaves if isinstance(leaf, ir.Value)}
    whole = all(isinstance(leaf, ir.Value) for leaf in leaves)
    return read if whole and len(read) < 2 else None


def asks(query: ir.PatternQuery) -> bool:
    """Returns whether the automaton's kernel has to ask for a condition, which costs as much as
    hundreds of its own comparisons."""
    for conjunct in query.conjuncts:
        e = conjunct.expression
        if conjunct.cls is Class.CONSTANT:
            continue
        if sum(query.elements[i].kleene for i in conjunct.refs) > 1 or not comparable(e):
            return True
        assert isinstance(e, x.Compare)
        if any(side_of(side, e.of) is None for side in (e.left, e.right)):
            return True
    return False


def partners(
    begin: Ints,
    end: Ints,
    tests: Sequence[native.Test],
    formulas: Sequence[native.PairFormula],
    limit: int,
) -> Iterator[tuple[Ints, Ints, bool]]:
    """Yields pairs of a binding and a position from its `begin` to its `end` for which the tests
    hold, in order, and whether the formulas do; at most `limit` at once, unless a single binding has
    more. From where a formula has no value on, they are left out."""
    begin, end = np.maximum(begin, 0), np.ascontiguousarray(end)
    start, room, those, made = 0, min(_ROOM, limit), tuple(tests), tuple(formulas)
    while start < len(begin):
        who, found = np.empty(room, np.int64), np.empty(room, np.int64)
        try:
            start, filled = native.scan(start, begin, end, 0, those, who, found, made)
        except ArithmeticError:  # whether that is a fault, all conditions decide
            made = ()
            continue
        if filled:
            yield who[:filled], found[:filled], len(made) == len(formulas)
        if start < len(begin) and (not filled or 2 * room <= limit):
            room *= 2


def of_any(e: x.Expression) -> x.Expression:
    """Returns the expression with its element left open, so that equal sides compare equal."""
    if isinstance(e, ir.Value):
        return dataclasses.replace(e, element=0, pick=Pick.ONE)
    return x.rebuild(e, of_any) if x.children(e) else e
