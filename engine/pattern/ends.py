"""Matches that end with one of a few new events, found by a kernel event by event.

A search of whole columns costs some hundred calls, however few events are new. For sequences of
single events with conditions that compare numbers of two events, `kernels.native.Sequence` keeps
the events of each element with their numbers, and goes back from each new last event to earlier
ones. Other conditions are evaluated for what it finds. It cannot avoid dead ends. Where it would
look at too many events it gives up: the columns are searched instead, and the kernel is tried again
later.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from seustream.compiler.language import expressions as x
from seustream.compiler.language.faults import Faults
from seustream.compiler.language.types import Type
from seustream.compiler.pattern import ir
from seustream.compiler.pattern.ir import Class, Strategy
from seustream.engine.kernels import native
from seustream.engine.pattern.batch import EventBatch
from seustream.engine.pattern.columns import Bools, Ints
from seustream.engine.pattern.found import Found
from seustream.engine.pattern.kept import KeptEvents
from seustream.engine.pattern.keys import PartitionKeys
from seustream.engine.pattern.links import PatternLink, link, near, of_any
from seustream.engine.pattern.lists import FAR
from seustream.engine.stream.differences import Difference
from seustream.engine.stream.evaluate import evaluate, holds
from seustream.engine.stream.numbers import Numbers, as_column, numbers
from seustream.hdl.isa import Condition

_MOST_WORK = 1 << 22
"""The most work of one search, roughly in events looked at; events scanned in blocks count less."""
_MOST_FOUND = 1 << 14
_MOST_CODES = 1 << 14
"""Codes of texts and keys that no event may need any more, allowed beyond eight per kept event."""

Side = tuple[x.Expression, Type, Difference | None]
"""Numbers of events; of a difference those that bound the other side."""


class SequenceEnds:
    """Keeps the events of a query's elements in a kernel, and searches them. `rest` are conditions
    that the links do not decide."""

    def __init__(
        self,
        query: ir.PatternQuery,
        links: Sequence[PatternLink],
        rest: Sequence[x.Expression],
    ) -> None:
        self._query, self._links, self._rest = query, links, rest
        self._sides: dict[Side, int] = {}
        for one in links:
            for side in _sides(one):
                self._sides.setdefault(side, len(self._sides))
        self._begin()

    def _begin(self) -> None:
        query, width = self._query, len(self._sides) + bool(self._query.partition)
        self._codes, self._keys = native.Codes(), PartitionKeys(query.partition)
        order = _order(len(query.elements), self._links)
        steps = list(self._steps(order))
        steps.sort(key=lambda step: step[0] != Condition.EQ)  # they leave the fewest events
        self._kernel = native.Sequence()
        self._kernel.configure(
            np.array(order, np.int64),
            np.array(steps, np.int64).reshape(-1),
            np.full(len(order), width, np.int64),
            min(query.window or 0, FAR),
        )
        self._faulty, self._pause, self._next_pause = False, 0, 1

    def _steps(self, order: Sequence[int]) -> Iterable[tuple[int, ...]]:
        """Yields the links, each as a step of the element that is bound later."""
        for one in self._links:
            places = [self._sides[side] for side in _sides(one)]
            sides = [*zip((one.left.element, one.right.element), places, strict=True)]
            op = one.op
            if order.index(sides[0][0]) < order.index(sides[1][0]):
                sides, op = sides[::-1], op.mirrored()
            yield int(op), *sides[0], *sides[1]
        if self._query.partition:
            key = len(self._sides)
            for element in order[1:]:
                yield int(Condition.EQ), element, key, order[0], key

    def add(self, kept: KeptEvents, batch: EventBatch, fits: Sequence[Ints]) -> None:
        """Adds events that have just been kept."""
        known = self._codes.count() + len(self._keys.known)
        if known > _MOST_CODES + 8 * len(kept) and (log := kept.log) is not None:
            self._begin()
            self._append(log, kept.rows, kept.gone)
        else:
            self._append(batch, fits, kept.gone + len(kept) - len(batch))

    def _append(self, batch: EventBatch, fits: Sequence[Ints], first: int) -> None:
        if not len(batch) or self._faulty:
            return
        columns = [self._numbers(side, batch) for side in self._sides]
        if self._query.partition:
            columns.append((self._keys.of(batch), None))
        for element, rows in enumerate(fits):
            if len(rows):
                own = tuple(
                    [(n[rows], None if flags is None else flags[rows]) for n, flags in columns]
                )
                self._kernel.append(element, batch.ts[rows], rows + first, own)

    def _numbers(self, side: Side, batch: EventBatch) -> Numbers:
        """Returns the numbers of one side of comparisons, for each event. Faults count where events
        are compared, which only the columns do."""
        e, _, apart = side

        def leaf(e: x.Leaf) -> pa.Array:
            assert isinstance(e, ir.Value)
            return as_column(batch.ts) if e.attribute == ir.TIME else batch.columns[e.attribute]

        faults = Faults()
        found = evaluate(e, leaf, len(batch), faults)
        self._faulty = self._faulty or bool(faults.count)
        values, flags = numbers(found, self._codes)
        return (values, flags) if apart is None else (apart.bounds(values), flags)

    def search(
        self, kept: KeptEvents, ends: int, most: int | None = None
    ) -> tuple[bool, Found | None]:
        """Returns whether the search was done, and the matches that end with the newest `ends`
        events of the last element, in order. It gives up on more than `most` matches."""
        if self._faulty or self._pause:
            self._pause = max(self._pause - 1, 0)
            return False, None
        limit = _MOST_FOUND if most is None else min(most, _MOST_FOUND)
        packed = self._kernel.search(ends, _MOST_WORK, limit)
        if packed is None:
            self._pause, self._next_pause = self._next_pause, 2 * self._next_pause
            return False, None
        self._next_pause = 1
        log = kept.log if packed else None
        if log is None:
            return True, None
        rows = np.frombuffer(packed, np.int64).reshape(-1, len(self._query.elements)) - kept.gone
        singles = {element: np.ascontiguousarray(own) for element, own in enumerate(rows.T)}
        found = Found(log, log.ts[rows[:, -1]], singles, {})
        if self._rest:
            fits = self._fits(found)
            if fits is None:
                return False, None
            found = found.keep(fits)
        return True, found.sorted(self._query)

    def _fits(self, found: Found) -> Bools | None:
        """Returns for which matches the other conditions hold; None if one has a fault, which the
        columns count."""

        def leaf(e: x.Leaf) -> pa.Array:
            assert isinstance(e, ir.Value)
            rows = found.singles[e.element]
            if e.attribute == ir.TIME:
                return as_column(found.log.ts[rows])
            return found.log.columns[e.attribute].take(pa.array(rows))

        faults, fits = Faults(), np.ones(len(found), np.bool_)
        for e in self._rest:
            fits &= holds(e, leaf, len(found), faults)
        return None if faults.total else fits

    def forget(self, earliest: int) -> None:
        """Drops events before this time, which no match can have any more."""
        self._kernel.forget(earliest)


def sequence_ends(query: ir.PatternQuery) -> SequenceEnds | None:
    """Returns the search for a query, or None if it cannot run the query."""
    if query.strategy is not Strategy.ANY or query.window is None or query.waits:
        return None
    if query.variants or any(e.kleene or e.negated for e in query.elements):
        return None
    links: list[PatternLink] = []
    rest: list[x.Expression] = []
    for conjunct in query.conjuncts:
        if conjunct.cls is Class.CONSTANT:
            continue
        exact = link(conjunct)
        links += near(conjunct) if exact is None else [exact]
        if exact is None:
            rest.append(conjunct.expression)
    return SequenceEnds(query, links, rest) if links or not rest else None


def _sides(link: PatternLink) -> tuple[Side, Side]:
    left, right = link.left, link.right
    return (of_any(left.part), left.type, None), (of_any(right.part), right.type, link.apart)


def _order(count: int, links: Sequence[PatternLink]) -> list[int]:
    """Returns the elements from the last; each next one is tied to an earlier one by an equality if
    possible, otherwise by a comparison."""
    order = [count - 1]
    while len(order) < count:
        equal, compared = set[int](), set[int]()
        for one in links:
            ends = {one.left.element, one.right.element}
            compared |= ends if ends & {*order} else set()
            equal |= ends if ends & {*order} and one.op is Condition.EQ else set()
        rest = [element for element in range(count) if element not in order]
        order.append(max(rest, key=lambda e: (e in equal, e in compared, e)))
    return order
