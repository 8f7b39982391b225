"""Conditions that compare two events, as compiled kernels decide them.

A *link* compares an expression over one event with one over another, both of numbers. The partners of a
partial match are then those events of a range that a kernel finds: pairs that do not fit are never made.

    a.id = b.id AND b.price > a.price * 1.1      two links of a and b
    a.price + b.price > c.price                  none: its left side reads two events
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np

from seustream.compiler.language import expressions as x
from seustream.compiler.pattern import ir
from seustream.compiler.pattern.ir import Pick
from seustream.engine.kernels import native
from seustream.engine.pattern.columns import Array, Ints, Once
from seustream.engine.pattern.lists import Lists
from seustream.engine.stream.numbers import comparable, converted
from seustream.hdl.isa import Condition

_ROOM = 1 << 12
"""Pairs that a search has room for at first."""

Rows = dict[int, Array]


@dataclasses.dataclass(frozen=True, slots=True)
class PatternLink:
    """`left op right`, each side over the event of one element."""

    op: Condition
    left: Once
    right: Once

    def test(self, lists: Lists, element: int, rows: Rows) -> native.Test | None:
        """The comparison of the events of an element with those that are bound; None where a side has a
        fault in some event."""
        theirs, ours = self.left, self.right
        if theirs.element != element:
            theirs, ours = ours, theirs
        op = self.op if theirs is self.left else self.op.mirrored()
        one, other = lists.numbers(theirs), lists.numbers(ours)
        if one is None or other is None:
            return None
        bound = rows[ours.element]
        values, flags = other
        return int(op), *one, values[bound], None if flags is None else flags[bound]


def link(conjunct: ir.Conjunct) -> PatternLink | None:
    """The condition as a link, if it is one."""
    e = conjunct.expression
    if not comparable(e):
        return None
    assert isinstance(e, x.Compare)
    sides = []
    for side in (e.left, e.right):
        read = {
            leaf.element if isinstance(leaf, ir.Value) and leaf.pick is Pick.ONE else None
            for leaf in x.leaves(side)
        }
        element = read.pop() if len(read) == 1 else None
        if element is None:
            return None
        sides.append(Once(element, Pick.ONE, converted((side, e.of)), e.of))
    left, right = sides
    return PatternLink(e.condition, left, right) if left.element != right.element else None


def partners(
    begin: Ints, end: Ints, tests: Sequence[native.Test], limit: int
) -> Iterator[tuple[Ints, Ints]]:
    """Pairs of a binding and a position from its `begin` to its `end` for which the tests hold, in order;
    no more than `limit` at once, unless of a single binding."""
    begin, end = np.maximum(begin, 0), np.ascontiguousarray(end)
    start, room, those = 0, min(_ROOM, limit), tuple(tests)
    while start < len(begin):
        who, found = np.empty(room, np.int64), np.empty(room, np.int64)
        start, filled = native.scan(start, begin, end, 0, those, who, found)
        if filled:
            yield who[:filled], found[:filled]
        if start < len(begin) and (not filled or 2 * room <= limit):
            room *= 2


def of_any(e: x.Expression) -> x.Expression:
    """The same of whatever event."""
    if isinstance(e, ir.Value):
        return dataclasses.replace(e, element=0, pick=Pick.ONE)
    return x.rebuild(e, of_any) if x.children(e) else e
