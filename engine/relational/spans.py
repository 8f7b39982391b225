"""Combinations of tuples that a tree of joins holds, and the spans of time during which they exist.

Arrivals and departures of a step are numbered from 1 in their order. A combination that existed
before begins at 0, and one that stays ends at `NEVER`. A join has a pair for as long as both its
parts exist, and a part without a match for as long as it has none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from seustream.compiler.language import expressions as x
from seustream.compiler.language.faults import Faults
from seustream.compiler.logical.joins import JoinKind, JoinSide, TreeJoin
from seustream.compiler.logical.windows import LandmarkWindow
from seustream.engine.relational.combinations import (
    NEVER,
    NOTHING,
    Bools,
    Combinations,
    Frontier,
    Ints,
    TreeSources,
)
from seustream.engine.relational.compared import Comparisons
from seustream.engine.relational.matching import JoinStep
from seustream.engine.relational.pool import Pool

_PAIRS_AT_ONCE = 1 << 20
_PAIR, _LEFT, _RIGHT = range(3)
_SOME = 256


@dataclass(slots=True)
class Spans:
    """Combinations, those that existed before first, with the beginning and end of each."""

    rows: Ints
    begin: Ints
    end: Ints

    def __len__(self) -> int:
        return len(self.begin)

    @property
    def stays(self) -> Bools:
        return np.asarray(self.end == NEVER)


class Moments:
    """The moments of a step: arrivals by time and place; departures by time, before arrivals."""

    def __init__(self, time: Ints, place: Ints) -> None:
        self.times = np.unique(time)
        self.first = int(place.min(initial=0)) - 1
        self.span = int(place.max(initial=0)) - self.first + 2
        self.keys = np.unique(self._keys(time, place))

    def _keys(self, time: Ints, place: Ints) -> Ints:
        of = np.where(place < 0, 0, place - self.first)
        found: Ints = np.searchsorted(self.times, time) * self.span + of
        return found

    def numbers(self, time: Ints, place: Ints) -> Ints:
        """Returns the numbers of some moments."""
        return 1 + np.searchsorted(self.keys, self._keys(time, place))

    def time(self, numbers: Ints) -> Ints:
        """Returns the times of moments, given their numbers."""
        found: Ints = self.times[self.keys[numbers - 1] // self.span]
        return found


class TupleSpans:
    """The tuples of one source, for as long as they are in its window."""

    def __init__(self, source: int, frame: TreeSources) -> None:
        self.source, self.frame = source, frame
        self.pool = Pool(frame, (source,), waits=False)
        self.fresh = self.over = np.empty(0, np.int64)
        """The places of the tuples that come in a step, and of those that leave."""
        self.when = self.fresh, self.fresh
        """The times of departures, and the places of the arrivals that push tuples out, or -1."""
        self._first = 0

    def nodes(self) -> Iterator[TupleSpans | JoinSpans]:
        yield self

    @property
    def rows(self) -> Ints:
        """The tuples by place, also those that have left."""
        return self.pool.view.rows

    @property
    def present(self) -> Ints:
        """The tuples that are in the window, between two steps of a join."""
        return self.rows

    @property
    def first(self) -> int | None:
        """The sequence number of the first tuple that is in the window."""
        here = self.pool.here
        while self._first < len(here) and not here[self._first]:
            some = here[self._first : self._first + _SOME]
            self._first += int(some.argmax()) if some.any() else len(some)
        return int(self.rows[self._first, self.source]) if self._first < len(here) else None

    def arrive(self, new: Ints) -> None:
        """Takes new tuples, by their sequence numbers."""
        of, store = self.frame.sources[self.source], self.frame.store(self.source)
        if isinstance(of.window, LandmarkWindow) and of.window.every is None:
            new = new[store.timestamp[store.index(new)] >= of.window.since]
        rows = np.full((len(new), len(self.frame.sources)), NOTHING)
        rows[:, self.source] = new
        nothing = np.zeros(len(new), np.int64)
        found = Combinations(rows, nothing, nothing, np.zeros(len(new), np.bool_))
        self.fresh = self.pool.add(found)

    def depart(self, until: int) -> tuple[Ints, Ints]:
        """Finds the tuples that leave up to a time; returns `when`."""
        self.over = self.pool.ended(Frontier(self.frame.stores.position, until))
        lives = self.pool.lives(self.over)
        pushed = (lives.gone < NEVER) & (lives.gone_time <= lives.last)
        time = np.where(pushed, lives.gone_time, np.minimum(lives.last, NEVER - 1) + 1)
        self.when = time, np.where(pushed, lives.gone, -1)
        return self.when

    def changes(self, moments: Moments) -> tuple[Ints, Ints]:
        """Returns the numbers of the moments at which tuples come, and at which they leave."""
        store = self.frame.store(self.source)
        at = store.index(self.rows[self.fresh, self.source])
        come = moments.numbers(store.timestamp[at], store.position[0][at])
        return come, moments.numbers(*self.when)

    def step(self, moments: Moments) -> Spans:
        count = len(self.pool)
        begin, end = np.zeros(count, np.int64), np.full(count, NEVER)
        begin[self.fresh], end[self.over] = self.changes(moments)
        self.spans = Spans(self.rows, begin, end)
        return self.spans

    def settle(self) -> Ints:
        """Forgets the tuples that have left; returns the new places of those that stay."""
        stays = self.spans.stays
        self.pool.leave(self.over)
        self.compact()
        return np.cumsum(stays) - 1

    def compact(self) -> Ints:
        """Gives those that are left new places, from 0 up; returns their old places."""
        self._first = 0
        return self.pool.compact()


class JoinSpans(JoinStep):
    """A join of two parts. `of` records how each combination was made: its kind, and the places of
    its parts."""

    def __init__(self, join: TreeJoin, frame: TreeSources, faults: Faults) -> None:
        self.join, self.frame, self.faults = join, frame, faults
        self.parts = (spans_of(join.left, frame, faults), spans_of(join.right, frame, faults))
        self.conjuncts = x.conjuncts(join.condition)
        self.compared = Comparisons(join, frame)
        self.rows = np.empty((0, len(frame.sources)), np.int64)
        self.of = np.empty((0, 3), np.int64)

    def nodes(self) -> Iterator[TupleSpans | JoinSpans]:  # type: ignore[override]
        for side in self.parts:
            yield from side.nodes()
        yield self

    @property
    def present(self) -> Ints:
        """The combinations that others see, between two steps."""
        return self.rows[self._seen()]

    def step(self, moments: Moments) -> Spans:  # type: ignore[override]
        left, right = (side.step(moments) for side in self.parts)
        kind, of = self.join.kind, self.of
        fresh = self._fresh(left, right)
        pairs = np.concatenate((of[of[:, 0] == _PAIR, 1:], fresh))
        begin = np.maximum(left.begin[pairs[:, 0]], right.begin[pairs[:, 1]])
        end = np.minimum(left.end[pairs[:, 0]], right.end[pairs[:, 1]])
        old = len(pairs) - len(fresh)
        ends = np.full(len(of), NEVER)
        ends[of[:, 0] == _PAIR] = end[:old]
        rows = np.where(
            left.rows[fresh[:, 0]] != NOTHING, left.rows[fresh[:, 0]], right.rows[fresh[:, 1]]
        )
        found = [(self.rows, of, np.zeros(len(of), np.int64), ends)]
        made = np.column_stack((np.full(len(fresh), _PAIR), fresh))
        found.append((rows, made, begin[old:], end[old:]))
        for keeps, side, spans, column in (
            (kind.keeps_left or kind is JoinKind.SEMI, _LEFT, left, 0),
            (kind.keeps_right, _RIGHT, right, 1),
        ):
            if not keeps:
                continue
            matched = kind is JoinKind.SEMI
            entry, since, till = _apart(spans, pairs[:, column], begin, end, matched)
            goes_on = since == 0
            mine = of[:, 0] == side
            until_of = np.full(len(spans), NEVER)
            until_of[entry[goes_on]] = till[goes_on]
            ends[mine] = until_of[of[mine, 1]]
            entry, since, till = entry[~goes_on], since[~goes_on], till[~goes_on]
            made = np.column_stack((np.full(len(entry), side), entry, np.full(len(entry), -1)))
            found.append((spans.rows[entry], made, since, till))
        self.rows = np.concatenate([part[0] for part in found])
        self.of = np.concatenate([part[1] for part in found])
        begins, ends = (np.concatenate([part[n] for part in found]) for n in (2, 3))
        self.all = Spans(self.rows, begins, ends)
        seen = self._seen()
        return Spans(self.rows[seen], begins[seen], ends[seen])

    def _seen(self) -> Bools:
        """Returns the combinations that others see: SEMI and ANTI joins show no pairs."""
        seen: Bools = (self.of[:, 0] != _PAIR) | self.join.kind.pairs
        return seen

    def settle(self) -> Ints:
        places = [side.settle() for side in self.parts]
        stays, seen = self.all.stays, self._seen()
        self.rows, of = self.rows[stays], self.of[stays].copy()
        for kind, column, part in ((_PAIR, 1, 0), (_PAIR, 2, 1), (_LEFT, 1, 0), (_RIGHT, 1, 1)):
            mine = of[:, 0] == kind
            of[mine, column] = places[part][of[mine, column]]
        self.of = of
        return np.cumsum(stays[seen]) - 1

    def _fresh(self, left: Spans, right: Spans) -> Ints:
        """Returns the pairs that match, exist together, and have a new part."""
        codes = self.compared.equal(left.rows, right.rows, doubtful=False)
        ours, keys = codes or (np.zeros(len(left), np.int64), np.zeros(len(right), np.int64))
        found = []
        for some, others in (
            (np.flatnonzero(left.begin > 0), np.arange(len(right))),
            (np.flatnonzero(left.begin == 0), np.flatnonzero(right.begin > 0)),
        ):
            others = others[np.argsort(keys[others], kind="stable")]
            low = np.searchsorted(keys[others], ours[some])
            counts = np.searchsorted(keys[others], ours[some], side="right") - low
            counts[ours[some] < 0] = 0
            parts = max(1, -(-int(counts.sum()) // _PAIRS_AT_ONCE))
            for part in np.array_split(np.arange(len(some)), parts):
                who = np.repeat(part, counts[part])
                first = np.repeat(np.cumsum(counts[part]) - counts[part], counts[part])
                mine, theirs = some[who], others[low[who] + np.arange(len(who)) - first]
                begin = np.maximum(left.begin[mine], right.begin[theirs])
                meet = begin < np.minimum(left.end[mine], right.end[theirs])
                mine, theirs = mine[meet], theirs[meet]
                holds = self._true(left.rows[mine], right.rows[theirs], self.conjuncts)
                found.append(np.column_stack((mine[holds], theirs[holds])))
        return np.concatenate(found)


def _apart(
    of: Spans, entry: Ints, begin: Ints, end: Ints, matched: bool
) -> tuple[Ints, Ints, Ints]:
    """Returns when combinations have no match, or with `matched` some match: which, from when, to
    when. `entry`, `begin` and `end` are those of the matches."""
    every = np.arange(len(of))
    ends = end < NEVER
    who = np.concatenate((every, entry, entry[ends]))
    when = np.concatenate((of.begin, begin, end[ends]))
    delta = np.concatenate((np.zeros(len(of)), np.ones(len(entry)), -np.ones(int(ends.sum()))))
    order = np.lexsort((when, who))
    who, when, delta = who[order], when[order], delta[order].astype(np.int64)
    total = np.cumsum(delta)
    first = np.searchsorted(who, who)
    count = total - (total - delta)[first]
    last = np.append((who[1:] != who[:-1]) | (when[1:] != when[:-1]), True)[: len(who)]
    who, when, count = who[last], when[last], count[last]
    till = np.append(when[1:], NEVER)[: len(who)]
    till[np.append(who[1:] != who[:-1], True)[: len(who)]] = NEVER
    till = np.minimum(till, of.end[who])
    state = (count > 0) if matched else (count == 0)
    some = np.flatnonzero(state & (when < till))
    # Adjoining spans of one combination become one.
    touches = np.zeros(len(some), np.bool_)
    touches[1:] = (who[some][1:] == who[some][:-1]) & (when[some][1:] == till[some][:-1])
    heads = np.flatnonzero(~touches)
    tails = np.append(heads[1:], len(some)) - 1
    return who[some][heads], when[some][heads], till[some][tails] if len(some) else till[:0]


def spans_of(side: JoinSide, frame: TreeSources, faults: Faults) -> TupleSpans | JoinSpans:
    """Makes the operator of a part of a tree."""
    return TupleSpans(side, frame) if isinstance(side, int) else JoinSpans(side, frame, faults)
