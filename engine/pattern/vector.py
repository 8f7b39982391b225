"""The fast path: OptiSeq on whole columns.

A step of the search is a step for all bindings at once: two bisections give each its range in the
next list, every binding is repeated as often as its range is long, and the conditions that are now
settled are evaluated as columns. The bindings are cut into pieces where a step would make too
many, and each piece is carried through to the end; so no more than `limit` rows of partial matches
exist, unless a single binding has more partners than that.
"""

from __future__ import annotations

import numpy as np

from compiler.pattern import ir
from compiler.pattern.ir import Class
from engine.pattern.batch import Batch, concat
from engine.pattern.columns import Array, Bools, Column, Ints, holds
from engine.pattern.errors import PatternBudgetExceeded
from engine.pattern.event import END_OF_STREAM, Event
from engine.pattern.found import Found, Members, joined, runs
from engine.pattern.lists import FAR, Bindings, Lists
from engine.pattern.meaning import Meaning
from engine.pattern.planner import Order, OrderChooser, check_order, sample_step

LIMIT = 4_000_000
Rows = dict[int, Array]
"""For each bound element a position in its list, a binding a row."""


class ColumnSearch:
    """A query's lists in columns, and their search."""

    def __init__(
        self,
        meaning: Meaning,
        order: str | Order = "cost",
        tighten: bool = True,
        limit: int = LIMIT,
        max_matches: int | None = None,
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
        self._max_matches = max_matches
        self._anchors = query.anchors
        self._conjuncts = {cls: [c for c in query.conjuncts if c.cls is cls] for cls in Class}
        self._log: Batch | None = None
        self._rows: list[Ints] = [np.zeros(0, np.int64) for _ in query.elements]
        self._order: Order = ()
        self._lists: Lists | None = None
        self._epoch = (0, 0)
        self._parts: list[Found] = []

    @property
    def held(self) -> int:
        return 0 if self._log is None else len(self._log)

    @property
    def largest(self) -> int:
        return max(map(len, self._rows), default=0)

    @property
    def order(self) -> Order:
        return self._order

    def events(self) -> list[Event]:
        """What is kept, as single events."""
        return [] if self._log is None else self._log.rows()

    def advance(self, batch: Batch, old: int, new: int) -> Found | None:
        """Takes a batch of events with old < ts ≤ new, in order; the matches determined since,
        ordered, or None."""
        self._take(batch)
        found = None
        if self._log is not None and not self._query.empty:
            found = self._search(self._log, old, new)
        self._expire(new)
        return found

    # --- lists ----------------------------------------------------------------

    def _take(self, batch: Batch) -> None:
        fitting = [self._fitting(element, batch) for element in range(len(self._rows))]
        kept = np.zeros(len(batch), bool)
        for rows in fitting:
            kept[rows] = True
        base = 0 if self._log is None else len(self._log)
        places = np.cumsum(kept) - 1 + base
        for element, rows in enumerate(fitting):
            self._rows[element] = np.concatenate([self._rows[element], places[rows]])
        if kept.any():
            self._log = concat(self._log, batch if kept.all() else batch.take(np.flatnonzero(kept)))

    def _fitting(self, element: int, batch: Batch) -> Ints:
        """The rows of a batch that have an element's type and pass its constants."""
        wanted = self._query.elements[element].type
        if wanted is None:
            rows: Ints = np.arange(len(batch))
        elif wanted in batch.names:
            rows = np.flatnonzero(batch.type == batch.names.index(wanted))
        else:
            return np.zeros(0, np.int64)
        for conjunct in self._conjuncts[Class.CONSTANT]:
            if conjunct.refs == (element,) and len(rows):
                rows = rows[holds(conjunct.expression, _BatchRows(batch, rows))]
        return rows

    def _expire(self, now: int) -> None:
        horizon = 0 if now == END_OF_STREAM else self._query.horizon
        if horizon is None or self._log is None:
            return
        gone = int(np.searchsorted(self._log.ts, max(now + 1 - horizon, -FAR), "left"))
        if now == END_OF_STREAM:
            gone = len(self._log)
        if gone:
            left = len(self._log) - gone
            self._log = self._log.take(slice(gone, None)) if left else None  # type: ignore[arg-type]
            self._rows = [rows[np.searchsorted(rows, gone) :] - gone for rows in self._rows]

    # --- search ---------------------------------------------------------------

    def _search(self, log: Batch, old: int, new: int) -> Found | None:
        if not all(len(self._rows[e]) for e in self._anchors):
            return None
        lists = self._lists = Lists(self._query, log, list(self._rows))
        self._order = self.chooser.choose(lists.counts(self._anchors), lists.span)
        self._epoch = (old, new)
        self._bounds = self._determining(old, new)
        self._parts = []
        self.levels = [0] * (len(self._anchors) - 1)
        start = self._anchors[self._order[0]]
        rows = np.arange(len(lists.rows[start]))
        begin, end = self._bounds[self._order[0]]
        times = log.ts[lists.rows[start]]
        if begin > -FAR or end < FAR:
            rows = rows[(times >= begin) & (times < end)]
        first = self._settled({start: rows}, start)
        for piece in range(0, max(len(rows), 1), self._limit):
            part = {e: r[piece : piece + self._limit] for e, r in first.items()}
            self._extend(part, self._order[0], self._order[0], 1)
        self._lists = None
        return joined(self._parts).sorted(self._query) if self._parts else None

    def _determining(self, old: int, new: int) -> list[tuple[int, int]]:
        """As in `OptiSeq`: the anchor that determines D is bound to the epoch."""
        bounds = [(-FAR, FAR)] * len(self._anchors)
        query = self._query
        if not query.waits:
            if self._anchors[-1] == query.positives[-1]:
                bounds[-1] = (max(old + 1, -FAR), min(new + 1, FAR))
        elif query.window is not None and self._anchors[0] == query.positives[0]:
            bounds[0] = (max(old + 1 - query.window, -FAR), min(new + 1 - query.window, FAR))
        return bounds

    def _extend(self, rows: Rows, low: int, high: int, step: int) -> None:
        """Binds the next anchor for all rows; anchors `low` to `high` are bound."""
        size = len(next(iter(rows.values())))
        if not size:
            return
        self.peak_rows = max(self.peak_rows, size)
        if step == len(self._order):
            self._complete(rows, size)
            return
        place = self._order[step]
        element = self._anchors[place]
        begin, end = self._range(rows, low, high, place)
        counts = np.maximum(end - begin, 0)
        total = int(counts.sum())
        if total > self._limit and size > 1:
            for piece in _pieces(counts, self._limit):
                part = {e: r[piece] for e, r in rows.items()}
                self._extend(part, low, high, step)
            return
        self.levels[step - 1] += total
        repeated = np.repeat(np.arange(size), counts)
        longer = {e: r[repeated] for e, r in rows.items()}
        longer[element] = runs(begin, counts)
        self.peak_rows = max(self.peak_rows, total)
        settled = self._settled(longer, element)
        self._extend(settled, min(low, place), max(high, place), step + 1)

    def _settled(self, rows: Rows, element: int) -> Rows:
        """The rows for which the conditions hold that this anchor completes."""
        for conjunct in self._conjuncts[Class.PAIR]:
            if element in conjunct.refs and all(i in rows for i in conjunct.refs):
                size = len(rows[element])
                true = holds(conjunct.expression, Bindings(self._ready, size, rows))
                rows = {e: r[true] for e, r in rows.items()}
        return rows

    @property
    def _ready(self) -> Lists:
        assert self._lists is not None
        return self._lists

    def _range(self, rows: Rows, low: int, high: int, place: int) -> tuple[Ints, Ints]:
        """Positions in the list of an anchor beside the block, from and without."""
        lists, window = self._ready, self._query.window
        a, b = self._anchors[low], self._anchors[high]
        left, right = lists.T[a][rows[a]], lists.T[b][rows[b]]
        shift = lists.shift[a]
        offset: Array | int = 0 if shift is None else shift[rows[a]]
        begin, end = self._bounds[place]
        times = lists.T[self._anchors[place]]
        if place > high:
            first = right + 1
            last = self._stretch_end(left, offset)
            if window is not None:
                last = left + (window + 1 - self._missing(low, before=True))
        else:
            first, last = self._stretch_begin(right, offset), left
            if window is not None:
                first = right - (window - self._missing(high, before=False))
        if begin > -FAR:
            first = np.maximum(first, offset + begin)
        if end < FAR:
            last = np.minimum(last, offset + end)
        return np.searchsorted(times, first, "left"), np.searchsorted(times, last, "left")

    def _stretch_begin(self, like: Ints, offset: Array | int) -> Ints:
        if not self._query.partition:
            return np.full(len(like), -FAR)
        return like // self._ready.stretch * self._ready.stretch

    def _stretch_end(self, like: Ints, offset: Array | int) -> Ints:
        if not self._query.partition:
            return np.full(len(like), FAR)
        return (like // self._ready.stretch + 1) * self._ready.stretch

    def _missing(self, place: int, before: bool) -> int:
        if not self._tighten:
            return 0
        element = self._anchors[place]
        return sum((i < element) if before else (i > element) for i in self._query.positives)

    def _share(self, conjunct: ir.Conjunct, first: int, second: int) -> tuple[int, int]:
        """Sampled pairs of two anchors, and how many a condition lets through."""
        lists = self._ready
        a, b = self._anchors[first], self._anchors[second]
        rows = np.arange(0, len(lists.T[a]), sample_step(len(lists.T[a])))
        times = lists.T[a][rows]
        begin = np.searchsorted(lists.T[b], times, "right")
        if self._query.window is None:
            end = np.searchsorted(lists.T[b], self._stretch_end(times, 0), "left")
        else:
            end = np.searchsorted(lists.T[b], times + self._query.window, "right")
        counts = end - begin
        pairs = passed = 0
        for piece in _pieces(counts, self._limit):
            part = counts[piece]
            at = {a: np.repeat(rows[piece], part), b: runs(begin[piece], part)}
            true = holds(conjunct.expression, Bindings(lists, len(at[a]), at))
            pairs, passed = pairs + len(true), passed + int(true.sum())
        return pairs, passed

    # --- groups and absences --------------------------------------------------

    def _complete(self, rows: Rows, size: int) -> None:
        """All anchors are bound: groups are filled, absences looked for, D is computed."""
        for piece in self._by_groups(rows, size):
            part = {e: r[piece] for e, r in rows.items()}
            self._finish(part, len(next(iter(part.values()))))

    def _by_groups(self, rows: Rows, size: int) -> list[slice]:
        """Pieces whose groups and absences together are not too many rows."""
        most = np.zeros(size, np.int64)
        for element, of in enumerate(self._query.elements):
            if of.kleene:
                begin, end = self._gap(element, rows, None)
                most = np.maximum(most, end - begin)
        return _pieces(most, self._limit) if most.any() else [slice(0, size)]

    def _finish(self, rows: Rows, size: int) -> None:
        groups: dict[int, Members] = {}
        for element, of in enumerate(self._query.elements):
            if not of.kleene:
                continue
            members = self._members(element, rows, size)
            groups[element] = members
            keep = members.counts >= (of.least or 1)
            if of.most is not None:
                keep &= members.counts <= of.most
            rows, groups, size = _kept(rows, groups, keep)
        for cls in (Class.FIRST, Class.STEP, Class.GROUP):
            for conjunct in self._conjuncts[cls]:
                if size:
                    keep = self._holds(conjunct, rows, groups, size)
                    rows, groups, size = _kept(rows, groups, keep)
        if not size:
            return
        determined = self._determined(rows, groups)
        old, new = self._epoch
        keep = (determined > old) & (determined <= new)
        for element in self.meaning.forbidding:
            keep &= ~self._forbidden(element, rows, groups, size)
        if not keep.any():
            return
        lists = self._ready
        found = Found(
            lists.log,
            determined,
            {e: lists.rows[e][r] for e, r in rows.items()},
            {e: Members(m.counts, lists.rows[e][m.rows]) for e, m in groups.items()},
        )
        self._parts.append(found if keep.all() else found.keep(keep))
        count = sum(map(len, self._parts))
        if self._max_matches is not None and count > self._max_matches:
            raise PatternBudgetExceeded(
                f"query {self._query.name}: more than {self._max_matches:,} matches at once",
                "narrow WITHIN, add conditions, or raise max_matches",
            )

    def _ends(self, rows: Rows, groups: dict[int, Members]) -> tuple[Array, Array]:
        """Positions of the first and the last event, in the layout of times."""
        lists = self._ready
        first, last = self._query.positives[0], self._query.positives[-1]
        begin = rows[first] if first in rows else groups[first].rows[groups[first].starts]
        end = rows[last] if last in rows else groups[last].rows[groups[last].ends - 1]
        return lists.T[first][begin], lists.T[last][end]

    def _determined(self, rows: Rows, groups: dict[int, Members]) -> Ints:
        begin, end = self._ends(rows, groups)
        anchor = self._anchors[0]
        shift = self._ready.shift[anchor]
        if not self._query.waits:
            found = end
        elif self._query.window is None:
            return np.full(len(begin), END_OF_STREAM)
        else:
            found = begin + self._query.window
        return found if shift is None else found - shift[rows[anchor]]

    def _gap(
        self, element: int, rows: Rows, groups: dict[int, Members] | None
    ) -> tuple[Ints, Ints]:
        """Positions in an element's list that lie in its gap. Without groups, between anchors;
        with them, between whatever positives are beside it."""
        lists, window = self._ready, self._query.window
        beside = self._anchors if groups is None else self._query.positives
        before = [i for i in beside if i < element]
        after = [i for i in beside if i > element]

        def time(of: int, last: bool) -> Array:
            if of in rows:
                return lists.T[of][rows[of]]
            assert groups is not None
            members = groups[of]
            return lists.T[of][members.rows[members.ends - 1 if last else members.starts]]

        if before:
            first = time(before[-1], True) + 1
        elif window is None:
            first = self._stretch_begin(time(beside[0], False), 0)
        else:
            first = time(beside[-1], True) - window
        if after:
            last = time(after[0], False)
        elif window is None:
            last = self._stretch_end(time(beside[0], False), 0)
        else:
            last = time(beside[0], False) + window + 1
        times = lists.T[element]
        begin = np.searchsorted(times, first, "left")
        return begin, np.maximum(np.searchsorted(times, last, "left"), begin)

    def _members(self, element: int, rows: Rows, size: int) -> Members:
        begin, end = self._gap(element, rows, None)
        members = Members(end - begin, runs(begin, end - begin))
        for conjunct in self._conjuncts[Class.MEMBER]:
            if element in conjunct.refs and len(members.rows):
                owner = members.owner
                at = {e: r[owner] for e, r in rows.items()}
                bindings = Bindings(self._ready, len(owner), at, {element: members.rows})
                true = holds(conjunct.expression, bindings)
                counts = np.bincount(owner[true], minlength=size).astype(np.int64)
                members = Members(counts, members.rows[true])
        return members

    def _holds(
        self, conjunct: ir.Conjunct, rows: Rows, groups: dict[int, Members], size: int
    ) -> Bools:
        """Whether a condition on complete groups is TRUE, for each match."""
        through = _goes_through(conjunct.expression)
        if through is None:
            return self._one_by_one(conjunct, rows, groups, size)
        if not through:
            bindings = Bindings(self._ready, size, rows, groups=groups)
            return holds(conjunct.expression, bindings)
        (element,) = through
        members = groups[element]
        owner = members.owner
        index = np.arange(len(members.rows))
        if conjunct.cls is Class.STEP:
            later = np.ones(len(index), bool)
            later[members.starts] = False
            index, owner = index[later], owner[later]
        at = {e: r[owner] for e, r in rows.items()}
        bindings = Bindings(
            self._ready,
            len(index),
            at,
            {element: members.rows[index]},
            {element: members.rows[index - 1]} if conjunct.cls is Class.STEP else None,
            groups,
            owner,
        )
        fails = np.bincount(owner[~holds(conjunct.expression, bindings)], minlength=size)
        none: Bools = fails == 0
        return none

    def _one_by_one(
        self, conjunct: ir.Conjunct, rows: Rows, groups: dict[int, Members], size: int
    ) -> Bools:
        """Conditions that compare a member with all before it, or two groups."""
        condition = next(c for c in self.meaning.conditions if c.conjunct is conjunct)
        found = np.zeros(size, bool)
        for number in range(size):
            found[number] = self.meaning.throughout(condition, self._events(rows, groups, number))
        return found

    def _events(
        self, rows: Rows, groups: dict[int, Members], number: int
    ) -> list[tuple[Event, ...]]:
        lists = self._ready
        whole: list[tuple[Event, ...]] = [()] * len(self._query.elements)
        for element, positions in rows.items():
            whole[element] = (lists.log.event(int(lists.rows[element][positions[number]])),)
        for element, members in groups.items():
            part = members.rows[members.starts[number] : members.ends[number]]
            whole[element] = tuple(lists.log.event(int(r)) for r in lists.rows[element][part])
        return whole

    def _forbidden(self, element: int, rows: Rows, groups: dict[int, Members], size: int) -> Bools:
        """Which matches some event forbids."""
        begin, end = self._gap(element, rows, groups)
        counts = end - begin
        conjuncts = [c for c in self._conjuncts[Class.NEGATED] if element in c.refs]
        found: Bools = counts > 0
        if not conjuncts:
            return found
        found[:] = False
        for piece in _pieces(counts, self._limit):
            owner = np.repeat(np.arange(piece.start, piece.stop), counts[piece])
            events = runs(begin[piece], counts[piece])
            true = np.ones(len(events), bool)
            for conjunct in conjuncts:
                if _goes_through(conjunct.expression) == ():
                    at = {e: r[owner] for e, r in rows.items()} | {element: events}
                    bindings = Bindings(self._ready, len(events), at, groups=groups, owner=owner)
                    true &= holds(conjunct.expression, bindings)
                else:
                    true &= self._forbids(conjunct, element, rows, groups, owner, events)
            found[owner[true]] = True
        return found

    def _forbids(
        self,
        conjunct: ir.Conjunct,
        element: int,
        rows: Rows,
        groups: dict[int, Members],
        owner: Array,
        events: Array,
    ) -> Bools:
        """Conditions between a forbidding event and every member of a group."""
        lists = self._ready
        condition = next(c for c in self.meaning.conditions if c.conjunct is conjunct)
        found = np.zeros(len(events), bool)
        for number, (match, position) in enumerate(zip(owner, events, strict=True)):
            whole = self._events(rows, groups, int(match))
            whole[element] = (lists.log.event(int(lists.rows[element][position])),)
            found[number] = self.meaning.throughout(condition, whole)
        return found


def _goes_through(e: ir.Expression) -> tuple[int, ...] | None:
    """The groups whose members a condition goes through; None where columns do not do it."""
    parts = list(ir.walk(e))
    if any(isinstance(part, ir.Aggregate) and part.before for part in parts):
        return None
    picks = (ir.Pick.EACH, ir.Pick.PREVIOUS)
    found = {p.element for p in parts if isinstance(p, ir.Value) and p.pick in picks}
    return tuple(found) if len(found) < 2 else None


def _kept(
    rows: Rows, groups: dict[int, Members], keep: Bools
) -> tuple[Rows, dict[int, Members], int]:
    if not keep.all():
        rows = {e: r[keep] for e, r in rows.items()}
        groups = {e: m.keep(keep) for e, m in groups.items()}
    return rows, groups, int(keep.sum())


def _pieces(counts: Ints, limit: int) -> list[slice]:
    """Consecutive stretches whose counts add up to no more than the limit, or are of one."""
    ends = np.cumsum(counts)
    pieces, begin = [], 0
    while begin < len(counts):
        done = int(ends[begin - 1]) if begin else 0
        end = max(int(np.searchsorted(ends, done + limit, "right")), begin + 1)
        pieces.append(slice(begin, end))
        begin = end
    return pieces


class _BatchRows:
    """Some rows of a batch, as the events of whatever element is asked for."""

    def __init__(self, batch: Batch, rows: Array) -> None:
        self.size = len(rows)
        self._batch = batch
        self._rows = rows

    def value(self, element: int, pick: ir.Pick, attribute: str) -> Column:
        if attribute == ir.TIME:
            return Column(self._batch.ts[self._rows])
        return self._batch.columns[attribute].take(self._rows)

    def aggregate(self, e: ir.Aggregate) -> Column:
        raise AssertionError(e)

    def alone(self, e: ir.Expression) -> Column | None:
        return None
