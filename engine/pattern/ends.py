"""Matches that end with one of a few new events, found by a kernel event by event.

A search of whole columns costs some hundred calls, however few events are new. For sequences of
single events with conditions that compare numbers of two events, `kernels.native.Sequence` keeps
the events of each element with their numbers, and goes back from each new last event to earlier
ones. Other conditions are evaluated for what it finds.

The comparisons are laid out as a tree (`tree`). If no comparison is left out, and lookups along the
edges decide all of them, the search is `sure`: every event it looks up is part of a match, so its work
grows with the events and the matches alone. Otherwise it may meet dead ends. Where it would look at
too many events it gives up: the columns are searched instead, and the kernel is tried again later.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from seustream.compiler.language import expressions as x
from seustream.compiler.language.faults import Faults
from seustream.compiler.pattern import ir
from seustream.compiler.pattern.ir import Class, Strategy
from seustream.engine.kernels import native
from seustream.engine.pattern.batch import EventBatch
from seustream.engine.pattern.columns import Bools, Ints
from seustream.engine.pattern.found import Found
from seustream.engine.pattern.kept import KeptEvents
from seustream.engine.pattern.keys import NumberedKeys
from seustream.engine.pattern.links import PatternLink, link, near
from seustream.engine.pattern.lists import FAR
from seustream.engine.pattern.tree import SequenceTree, Side
from seustream.engine.stream.evaluate import evaluate, holds
from seustream.engine.stream.numbers import Numbers, as_column, numbers

_MOST_WORK = 1 << 22
"""The most work of one search, roughly in events looked at; events scanned in blocks count less."""
_MOST_FOUND = 1 << 14
_MOST_CODES = 1 << 14
"""Codes of texts and keys that no event may need any more, allowed beyond eight per kept event."""


class SequenceEnds:
    """Keeps the events of a query's elements in a kernel, and searches them. `rest` are conditions
    that the links do not decide; with `tight`, they fail for hardly more matches than there are."""

    def __init__(
        self,
        query: ir.PatternQuery,
        links: Sequence[PatternLink],
        rest: Sequence[x.Expression],
        tight: bool,
    ) -> None:
        self._query, self._rest, self._tight = query, rest, tight
        self.tree = SequenceTree(query, links)
        self._sides: dict[Side, int] = {}
        for one in self.tree.links:
            for _, side in (one.one, one.other):
                self._sides.setdefault(side, len(self._sides))
        self._newest = 0  # the number of the first event added last
        self._begin()

    def _begin(self) -> None:
        self._codes, self._keys = native.Codes(), NumberedKeys(self._query.partition)
        self._kernel = native.Sequence()
        links = [
            (int(link.op), e, self._sides[side], other, self._sides[its])
            for link in self.tree.links
            for (e, side), (other, its) in [(link.one, link.other)]
        ]
        self._decided = self._kernel.configure(
            np.array(self.tree.parents, np.int64),
            np.array(links, np.int64).reshape(-1),
            len(self._sides),
            min(self._query.window or 0, FAR),
        )
        self._faulty, self._pause, self._next_pause = False, 0, 1

    @property
    def sure(self) -> bool:
        """Returns whether there are no dead ends: what it looks up leads to matches."""
        return self._decided and self._tight and not self._faulty

    @property
    def looked_at(self) -> int:
        """The events looked at so far, roughly: those looked at in a row count less."""
        return self._kernel.looked_at()

    def add(self, kept: KeptEvents, batch: EventBatch, fits: Sequence[Ints]) -> None:
        """Adds events that have just been kept."""
        self._newest = kept.gone + len(kept) - len(batch)
        known = self._codes.count() + len(self._keys)
        if known > _MOST_CODES + 8 * len(kept) and (log := kept.log) is not None:
            self._begin()
            self._append(log, kept.rows, kept.gone)
        else:
            self._append(batch, fits, self._newest)

    def _append(self, batch: EventBatch, fits: Sequence[Ints], first: int) -> None:
        if not len(batch) or self._faulty:
            return
        columns = tuple([self._numbers(side, batch) for side in self._sides])
        self._kernel.append(first, batch.ts, columns, tuple(fits))

    def _numbers(self, side: Side, batch: EventBatch) -> Numbers:
        """Returns the numbers of one side of comparisons, for each event. Faults count where events
        are compared, which only the columns do."""
        if side is None:
            return self._keys.of(batch), None
        e, _, apart = side

        def leaf(e: x.Leaf) -> pa.Array:
            assert isinstance(e, ir.Value)
            return as_column(batch.ts) if e.attribute == ir.TIME else batch.columns[e.attribute]

        faults = Faults()
        found = evaluate(e, leaf, len(batch), faults)
        self._faulty = self._faulty or bool(faults.count)
        values, flags = numbers(found, self._codes)
        return (values, flags) if apart is None else (apart.bounds(values), flags)

    def search(self, kept: KeptEvents, most: int | None = None) -> tuple[bool, Found | None]:
        """Returns whether the search was done, and the matches that end with the events added last, in
        order. It gives up on more than `most` matches, unless it is `sure` also on too much work."""
        if self._faulty or self._pause:
            self._pause = max(self._pause - 1, 0)
            return False, None
        work, limit = FAR, FAR if most is None else most
        if not self.sure:
            work, limit = _MOST_WORK, min(limit, _MOST_FOUND)
        count = self._kernel.search(self._newest, work, limit)
        if count is None:
            self._pause, self._next_pause = self._next_pause, 2 * self._next_pause
            return False, None
        self._next_pause = 1
        log = kept.log if count else None
        if log is None:
            return True, None
        rows: Ints = np.empty((len(self._query.elements), count), np.int64)
        self._kernel.take(rows, kept.gone)
        found = Found(log, log.ts[rows[-1]], dict(enumerate(rows)), {})
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
    tight = True
    for conjunct in query.conjuncts:
        if conjunct.cls is Class.CONSTANT:
            continue
        exact = link(conjunct)
        bounds = near(conjunct) if exact is None else (exact,)
        links += bounds
        tight = tight and len(bounds) > 0
        if exact is None:
            rest.append(conjunct.expression)
    return SequenceEnds(query, links, rest, tight) if links or not rest else None
