"""The fast path: OptiSeq on whole columns.

A step of the search is a step for all bindings at once: two bisections give each binding its range
in the next list. Where comparisons of two events are due, a kernel scans the range for the events
that fit (`links`); otherwise every binding is repeated once per event of its range. All other
conditions that are due are evaluated as columns. Where a step would make too many bindings, they
are cut into pieces, and each piece is carried through to the end. So no more than `limit` rows of
partial matches exist, unless a single binding has more partners than that. A search that finds too
many matches begins anew in two halves (`boxes`), which come one after the other.

With `tighten`, a range holds only events from which a chain within the window leads on (`reach`):
without conditions between events there are no dead ends. With some there may be. So sequences whose
search from the newest events (`ends`) is sure to have none are always searched that way.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from seustream.compiler.pattern import ir
from seustream.compiler.pattern.ir import Class, Strategy
from seustream.engine.kernels import native
from seustream.engine.pattern import boxes
from seustream.engine.pattern.batch import EventBatch
from seustream.engine.pattern.columns import Array, Bools, Ints, holds
from seustream.engine.pattern.ends import sequence_ends
from seustream.engine.pattern.fill import LIMIT, Completion, FirstOnes, Rows, TooManyMatches
from seustream.engine.pattern.following import chains, neighbours
from seustream.engine.pattern.found import Found, pieces, runs, together
from seustream.engine.pattern.kept import KeptEvents
from seustream.engine.pattern.links import PatternLink, formula, link, near, partners
from seustream.engine.pattern.lists import FAR, Bindings, Lists
from seustream.engine.pattern.meaning import BoundCondition, Meaning
from seustream.engine.pattern.planner import Order, OrderChooser, check_order
from seustream.engine.pattern.reach import Reach, reach
from seustream.engine.pattern.sampling import share
from seustream.hdl.isa import Condition

_FEW_ENDS = 1 << 10
"""Up to this many events that may end matches are searched one by one, dead ends or not."""


class ColumnSearch:
    """A query's lists in columns, and their search. The matches of a part have at most `most`
    events, or are one match."""

    def __init__(
        self,
        meaning: Meaning,
        order: str | Order = "cost",
        tighten: bool = True,
        limit: int = LIMIT,
        most: int | None = None,
    ) -> None:
        query = meaning.query
        check_order(order, len(query.anchors))
        self.meaning = meaning
        self.chooser = OrderChooser(query, order, self._share)
        self.peak_rows = 0
        self.levels: list[int] = []
        self._query = query
        self._tighten = tighten
        self._limit = limit
        self._most = most
        self._anchors = query.anchors
        self._pairs = meaning.of(Class.PAIR)
        self._links: dict[int, PatternLink] = {
            id(c): found for c in self._pairs if (found := link(c.conjunct)) is not None
        }
        others = [c for c in self._pairs if id(c) not in self._links]
        self._near = {id(c): near(c.conjunct) for c in others}
        self._formulas = {
            (id(c), element): formula(c.conjunct, element)
            for c in others
            for element in c.conjunct.refs
        }
        self.kept = KeptEvents(meaning)
        self._ends = sequence_ends(query) if tighten and order == "cost" else None
        self._order: Order = ()
        self._lists: Lists | None = None
        self._reach: Reach | None = None

    @property
    def held(self) -> int:
        return len(self.kept)

    @property
    def order(self) -> Order:
        return self._order

    def advance(self, batch: EventBatch, old: int, new: int) -> Found | None:
        """Takes a batch of events with old < ts ≤ new, in order; returns the matches determined
        since, ordered, or None."""
        return together(self.parts(batch, old, new))

    def parts(self, batch: EventBatch, old: int, new: int, dated: bool = False) -> Iterator[Found]:
        """Acts like `advance`; yields the matches in parts, in order. `dated`: those that wait for
        the end of the stream have the times of their last events. Must be iterated to its end."""
        batch, fits = self.kept.take(batch)
        last = self._query.positives[-1]
        ends = self._query.waits or last not in self._anchors or len(fits[last]) > 0
        if self._ends is not None:
            self._ends.add(self.kept, batch, fits)
        if ends and len(self.kept) and not self._query.empty:
            done, found = False, None
            if self._ends is not None and (self._ends.sure or len(fits[last]) <= _FEW_ENDS):
                done, found = self._ends.search(self.kept, self._most)
            if found is not None:
                yield found
            if not done:
                yield from self._search((old, new), dated)
        forgotten = self.kept.expire(new)
        if self._ends is not None:
            self._ends.forget(forgotten)

    # --- search ---------------------------------------------------------------

    def _search(self, epoch: boxes.Span, dated: bool) -> Iterator[Found]:
        log = self.kept.log
        if log is None or not self.kept.fills(self._anchors):
            return
        self._lists = Lists(self._query, log, self.kept.rows)
        self._rows = [self.kept.rows[element] for element in self._anchors]
        self.levels = [0] * (len(self._anchors) - 1)
        self._dated = dated
        # Where arrival and time differ, parts by time are not in the order of arrivals. Under NEXT and
        # STRICT there is no more than a match for each event.
        cut = self.kept.ordered and self._query.strategy is Strategy.ANY
        most = self._most if cut else None
        whole = boxes.whole(self._query, log.ts, epoch)
        for found in self._in(whole, boxes.cuts(self._query, dated), most):
            if len(found):
                yield found
        self._lists = self._reach = None

    def _in(
        self, box: boxes.SearchBox, cuts: Sequence[boxes.Cut], most: int | None
    ) -> Iterator[Found]:
        """Yields the matches of a box in order, in halves where they are too many."""
        completion = self._completing(box.epoch, most)
        try:
            with self.meaning.tentative():
                self._begin(box, completion)
        except TooManyMatches:
            assert most is not None
            halves = box.halves(cuts, self._ready.log.ts, self._rows)
            for half in halves:
                yield from self._in(half, cuts, most)
            if not halves:
                yield from self._one_by_one(box, most)
            return
        found = completion.found()
        if found is not None:
            yield found

    def _completing(self, epoch: boxes.Span, most: int | None) -> Completion:
        return Completion(self.meaning, self._ready, epoch, self._limit, most, self._dated)

    def _one_by_one(self, box: boxes.SearchBox, most: int) -> Iterator[Found]:
        """Yields the matches of a box that cannot be halved: searches it anew for each part."""
        after, left, counted = None, True, contextlib.nullcontext()
        while left:
            of = (self.meaning, self._ready, box.epoch, self._limit, most, self._dated, after)
            completion = FirstOnes(*of)
            with self.meaning.uncounted() if after else counted:
                self._begin(box, completion)
                found, left = completion.found(), completion.left
            if found is not None:
                yield found
                after = found.part(len(found) - 1, len(found))

    def _begin(self, box: boxes.SearchBox, completion: Completion) -> None:
        """Finds the matches of a box."""
        lists, self._completion = self._ready, completion
        self._box = box
        self._bounds = [self._times(span) for span in box.spans]
        if any(begin >= end for begin, end in box.spans):
            return
        if self._query.strategy is not Strategy.ANY:
            self._order = tuple(range(len(self._anchors)))
            of = (lists, self._query, self._starts(), self._anchors, self._true)
            strict = self._query.strategy is Strategy.STRICT
            rows = neighbours(*of) if strict else chains(*of, self._limit)
            completion.take(rows, len(rows[self._anchors[0]]))
            return
        counts = lists.counts(self._anchors)
        searched = [len(self._inside(place)) for place in range(len(self._anchors))]
        self._order = self.chooser.choose(counts, lists.span * lists.keys, searched)
        if self._tighten and self._reach is None:
            self._reach = reach(lists.T, self._query.positives)
        start = self._anchors[self._order[0]]
        alone = {start: self._starts()}
        first = self._settled(alone, start, self._completed(alone, start))
        for piece in range(0, max(len(first[start]), 1), self._limit):
            part = {e: r[piece : piece + self._limit] for e, r in first.items()}
            self._extend(part, self._order[0], self._order[0], 1)

    def _times(self, span: boxes.Span) -> tuple[int, int]:
        """Returns the times of some rows of the log, the second excluded."""
        times, (begin, end) = self._ready.log.ts, span
        first = int(times[begin]) if 0 < begin < len(times) else -FAR
        return first, int(times[end - 1]) + 1 if 0 < end < len(times) else FAR

    def _inside(self, place: int) -> Ints:
        """Returns positions in an anchor's list of the events within its bounds."""
        rows, (begin, end) = self._ready.rows[self._anchors[place]], self._box.spans[place]
        if begin == 0 and end == len(self._ready.log):
            return np.arange(len(rows))
        return ((rows >= begin) & (rows < end)).nonzero()[0]

    def _starts(self) -> Ints:
        """Returns the positions from which the search starts, in the list of its first anchor."""
        start = self._anchors[self._order[0]]
        rows = self._inside(self._order[0])
        if self._reach is not None and self._query.window is not None:
            ends, begins = self._reach.ends[start][rows], self._reach.begins[start][rows]
            rows = rows[ends <= begins + self._query.window]
        return rows

    def _extend(self, rows: Rows, low: int, high: int, step: int) -> None:
        """Binds the next anchor for all rows; anchors `low` to `high` are bound."""
        size = len(next(iter(rows.values())))
        if not size:
            return
        self.peak_rows = max(self.peak_rows, size)
        if step == len(self._order):
            self._completion.take(rows, size)
            return
        place = self._order[step]
        element = self._anchors[place]
        begin, end = self._range(rows, low, high, place)
        counts = np.maximum(end - begin, 0)
        total = int(counts.sum())
        settled = self._completed({**rows, element: begin}, element)
        tests, formulas, unsure, rest = self._tests(settled, element, rows)
        wider = min(low, place), max(high, place), step + 1
        if tests or formulas:
            self.levels[step - 1] += total
            for who, found, computed in partners(begin, end, tests, formulas, self._limit):
                longer = {e: r[who] for e, r in rows.items()}
                longer[element] = found
                longer = self._within(longer, place)
                left = rest if computed else unsure
                self._extend(self._settled(longer, element, left), *wider)
            return
        if step + 1 == len(self._order) and not rest:
            self._completion.expect(total)
        if total > self._limit and size > 1:
            for piece in pieces(counts, self._limit):
                part = {e: r[piece] for e, r in rows.items()}
                self._extend(part, low, high, step)
            return
        self.levels[step - 1] += total
        repeated = np.repeat(np.arange(size), counts)
        longer = {e: r[repeated] for e, r in rows.items()}
        longer[element] = runs(begin, counts)
        longer = self._within(longer, place)
        self.peak_rows = max(self.peak_rows, total)
        self._extend(self._settled(longer, element, rest), *wider)

    def _within(self, rows: Rows, place: int) -> Rows:
        """Returns the bindings whose event at a place is in the box; their times are."""
        times, (begin, end) = self._ready.log.ts, self._box.spans[place]
        before = begin > 0 and times[begin - 1] == times[begin]
        if not before and not (end < len(times) and times[end - 1] == times[end]):
            return rows
        element = self._anchors[place]
        own = self._ready.rows[element][rows[element]]
        inside = (own >= begin) & (own < end)
        return {e: r[inside] for e, r in rows.items()}

    def _tests(
        self, settled: list[BoundCondition], element: int, rows: Rows
    ) -> tuple[
        list[native.Test],
        list[native.PairFormula],
        list[BoundCondition],
        list[BoundCondition],
    ]:
        """Returns, of the conditions that an element completes, tests and formulas for a kernel, then
        all conditions that are no tests, and those of them without a formula."""
        tests, formulas, unsure, rest = [], [], [], []
        for condition in settled:
            known = self._links.get(id(condition))
            test = None if known is None else known.test(self._ready, element, rows)
            if test is not None:
                tests.append(test)
                continue
            unsure.append(condition)
            computed = self._formulas.get((id(condition), element))
            made = None if computed is None else computed.bound(self._ready, rows)
            if made is None:
                rest.append(condition)
            else:
                formulas.append(made)
            for bound in self._near.get(id(condition), ()):
                if (test := bound.test(self._ready, element, rows)) is not None:
                    tests.append(test)
        # The kernel applies the first test to a block of events at once; an equality leaves the
        # fewest.
        tests.sort(key=lambda one: one[0] != Condition.EQ)
        return tests, formulas, unsure, rest

    def _settled(self, rows: Rows, element: int, conditions: Iterable[BoundCondition]) -> Rows:
        """Returns the rows for which these conditions hold."""
        for condition in conditions:
            bindings = Bindings(self._ready, len(rows[element]), rows)
            true = holds(condition.prepared, bindings, self.meaning.faults)
            rows = {e: r[true] for e, r in rows.items()}
        return rows

    def _true(self, rows: Rows, element: int) -> Bools:
        """Returns for which rows the conditions hold that this anchor completes."""
        size = len(rows[element])
        true = np.ones(size, bool)
        for condition in self._completed(rows, element):
            bindings = Bindings(self._ready, size, rows)
            true &= holds(condition.prepared, bindings, self.meaning.faults)
        return true

    def _completed(self, rows: Rows, element: int) -> list[BoundCondition]:
        return [
            c
            for c in self._pairs
            if element in c.conjunct.refs and all(i in rows for i in c.conjunct.refs)
        ]

    @property
    def _ready(self) -> Lists:
        assert self._lists is not None
        return self._lists

    def _range(self, rows: Rows, low: int, high: int, place: int) -> tuple[Ints, Ints]:
        """Returns the range of positions in the list of an anchor beside the block, excluding the
        end."""
        lists, window = self._ready, self._query.window
        a, b = self._anchors[low], self._anchors[high]
        left, right = lists.T[a][rows[a]], lists.T[b][rows[b]]
        shift = lists.shift[a]
        offset: Array | int = 0 if shift is None else shift[rows[a]]
        begin, end = self._bounds[place]
        times = lists.T[self._anchors[place]]
        if place > high:
            first = right + 1
            last = lists.stretch_end(left) if window is None else left + (window + 1)
        else:
            first = lists.stretch_begin(right) if window is None else right - window
            last = left
        if begin > -FAR:
            first = np.maximum(first, offset + begin)
        if end < FAR:
            last = np.minimum(last, offset + end)
        low_at = np.searchsorted(times, first, "left")
        high_at = np.searchsorted(times, last, "left")
        if self._reach is not None and window is not None:
            x = self._anchors[place]
            if place > high:
                latest = self._reach.begins[a][rows[a]] + window
                reached = np.searchsorted(self._reach.ends[x], latest, "right")
                high_at = np.minimum(high_at, reached)
            else:
                earliest = self._reach.ends[b][rows[b]] - window
                reached = np.searchsorted(self._reach.begins[x], earliest, "left")
                low_at = np.maximum(low_at, reached)
        return low_at, high_at

    def _share(self, conjunct: ir.Conjunct, first: int, second: int) -> tuple[int, int]:
        """Returns how many pairs of two anchors were sampled, and how many a condition lets
        through."""
        refs = (self._anchors[first], self._anchors[second])
        return share(self._ready, conjunct, refs, self._limit)
