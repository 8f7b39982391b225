"""The nodes of a tree of joins: each gives its combinations once they are certain."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from seustream.compiler.language import expressions as x
from seustream.compiler.language.faults import Faults
from seustream.compiler.logical.joins import AsofJoin, JoinKind, JoinSide, TreeJoin, visible
from seustream.compiler.logical.windows import LandmarkWindow
from seustream.engine.kernels import native
from seustream.engine.relational.combinations import (
    END,
    NEVER,
    NOTHING,
    Combinations,
    Frontier,
    Ints,
    Lives,
    TreeSources,
    together,
)
from seustream.engine.relational.compared import Comparisons
from seustream.engine.stream.evaluate import survivors
from seustream.engine.stream.numbers import all_hold
from seustream.engine.stream.operator import EARLIEST
from seustream.engine.stream.schema import TABLE_TIME
from seustream.hdl.device import WindowKind

Pairs = Iterator[tuple[Ints, Ints]]
"""Pairs in parts, as places among the left and among the right combinations."""

_PAIRS_AT_ONCE, _FEW = 1 << 20, 16
"""The most pairs to look at together, and the number of others to look at first where one match is
enough."""
_NONE = np.empty(0, np.int64)
_NO_TIME = EARLIEST
"""Stands for the time of a missing tuple."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """The tuples since the last step, as sequence numbers by stream, and a bound on what
    follows."""

    rows: dict[str, Ints]
    frontier: Frontier


class SourceTuples:
    """The tuples of one source."""

    def __init__(self, source: int, frame: TreeSources) -> None:
        self.source, self.frame = source, frame

    def nodes(self) -> Iterator[JoinStep]:
        return iter(())

    def step(self, arrived: Arrived) -> tuple[Combinations, Frontier]:
        of = self.frame.sources[self.source]
        new = arrived.rows[of.stream.name]
        store = self.frame.store(self.source)
        if isinstance(of.window, LandmarkWindow) and of.window.every is None:
            new = new[store.timestamp[store.index(new)] >= of.window.since]
        rows = np.full((len(new), len(self.frame.sources)), NOTHING)
        rows[:, self.source] = new
        at = store.index(new)
        certain = Combinations(
            rows, store.timestamp[at], store.position[0][at], np.zeros(len(new), np.bool_)
        )
        # The rows of a table all come before those of streams.
        if of.stream.table and arrived.frontier.time > TABLE_TIME:
            return certain, END
        return certain, arrived.frontier


class JoinStep:
    """A join of two parts. It keeps the combinations of each side that may still match."""

    def __init__(self, join: TreeJoin, frame: TreeSources, faults: Faults) -> None:
        self.join, self.frame, self.faults = join, frame, faults
        self.sides = (part(join.left, frame, faults), part(join.right, frame, faults))
        self.kept = [Combinations.none(len(frame.sources)) for _ in self.sides]
        self.conjuncts = x.conjuncts(join.condition)
        self.compared = Comparisons(join, frame)
        self.lives: list[Lives | None] = [None, None]
        self.ends_by_time = [frame.ends_by_time(visible(side)) for side in (join.left, join.right)]
        self.found = 0
        """The number of pairs in the last step."""

    def nodes(self) -> Iterator[JoinStep]:
        for side in self.sides:
            yield from side.nodes()
        yield self

    def step(self, arrived: Arrived) -> tuple[Combinations, Frontier]:
        kind = self.join.kind
        (new_left, left_frontier), (new_right, right_frontier) = (
            side.step(arrived) for side in self.sides
        )
        old = [len(kept) for kept in self.kept]
        left = together([self.kept[0], new_left])
        right = together([self.kept[1], new_right])
        lives = self._lives(0, left, old[0]), self._lives(1, right, old[1])
        self.compared.follow((left, right), old)
        everything = np.arange(len(right))
        pairs = itertools.chain(
            self._matches(left, right, lives, np.arange(old[0], len(left)), everything),
            self._matches(left, right, lives, np.arange(old[0]), everything[old[1] :]),
        )
        results = [
            self._pairs(left, right, pairs) if kind.pairs else self._first(left, right, pairs)
        ]
        ended = right_frontier.ended(lives[0]), left_frontier.ended(lives[1])
        for keeps, side, over, life, other in (
            (kind.keeps_left, left, ended[0], lives[0], self.join.right),
            (kind.keeps_right, right, ended[1], lives[1], self.join.left),
        ):
            if keeps:
                alone = np.flatnonzero(over & ~side.matched)
                found = side.pick(alone)
                if not self._is_known(other):
                    found = found.not_before(*life.pick(alone).end)
                results.append(found)
        stays = [~ended[0], ~ended[1]]
        if not kind.pairs:
            stays[0] &= ~left.matched
        self.kept, self.lives = [left, right], [*lives]
        for number, stay in enumerate(stays):
            if not stay.all():
                self.kept[number] = self.kept[number].pick(stay)
                self.lives[number] = lives[number].pick(stay)
                self.compared.keep(number, stay)
        frontier = left_frontier.meet(right_frontier) if kind.pairs else left_frontier
        for waits, side, stay, life in (
            (kind.keeps_left or kind is JoinKind.SEMI, left, stays[0], lives[0]),
            (kind.keeps_right, right, stays[1], lives[1]),
        ):
            pending = stay & ~side.matched
            if waits and pending.any():
                first = Frontier(int(life.place[pending].min()), int(life.time[pending].min()))
                frontier = frontier.meet(first)
        certain = together([Combinations.none(len(self.frame.sources)), *results])
        certain.matched = np.zeros(len(certain), np.bool_)
        return certain, frontier

    def _pairs(self, left: Combinations, right: Combinations, pairs: Pairs) -> Combinations:
        """Returns all pairs, and marks what is matched."""
        found = list(pairs)
        of_left, of_right = (
            np.concatenate([np.empty(0, np.int64), *(pair[side] for pair in found)])
            for side in (0, 1)
        )
        self.found = len(of_left)
        left.matched[of_left] = True
        right.matched[of_right] = True
        return _paired(left.pick(of_left), right.pick(of_right))

    def _first(self, left: Combinations, right: Combinations, pairs: Pairs) -> Combinations:
        """Marks the left combinations that have a match, and returns them, each once, at the moment
        of the first; none for an anti join. No pairs are kept."""
        time, place = np.full(len(left), NEVER), np.full(len(left), NEVER)
        for of_left, of_right in pairs:
            left.matched[of_left] = True
            partner = right.time[of_right], right.place[of_right]
            order = np.lexsort((*reversed(partner), of_left))
            who, first = np.unique(of_left[order], return_index=True)
            now, at = (of[order[first]] for of in partner)
            sooner = (now < time[who]) | ((now == time[who]) & (at < place[who]))
            time[who[sooner]], place[who[sooner]] = now[sooner], at[sooner]
        found = np.flatnonzero(left.matched) if self.join.kind is JoinKind.SEMI else _NONE
        return left.pick(found).not_before(time[found], place[found])

    def _is_known(self, side: JoinSide) -> bool:
        """Returns whether all of a side is there before any stream: it consists of tables."""
        return all(self.frame.sources[number].stream.table for number in visible(side))

    def _matches(
        self,
        left: Combinations,
        right: Combinations,
        lives: tuple[Lives, Lives],
        some: Ints,
        others: Ints,
    ) -> Pairs:
        """Yields matching pairs, one of `some` on the left and one of `others` on the right. Where
        only the first counts, left combinations that are marked as matched by then are left out."""
        some, others = self.compared.narrowed(some, others)
        if not len(some) or not len(others):
            return
        mine, theirs = lives[0].pick(some), lives[1].pick(others)
        order = np.argsort(theirs.place, kind="stable")
        others, theirs = others[order], theirs.pick(order)
        time, place = right.time[others], right.place[others]
        later = (time[1:] > time[:-1]) | ((time[1:] == time[:-1]) & (place[1:] >= place[:-1]))
        in_order = bool(later.all())
        # The others before `low` have ended when a combination comes; those from `high` on come
        # after it ends.
        low = np.maximum(
            np.searchsorted(np.maximum.accumulate(theirs.last), mine.time),
            np.searchsorted(np.maximum.accumulate(theirs.gone), mine.place, side="right"),
        )
        high = np.minimum(
            np.searchsorted(theirs.time, mine.last, side="right"),
            np.searchsorted(theirs.place, mine.gone),
        )
        codes = self.compared.equal(left.rows[some], right.rows[others])
        if codes is not None:
            ours, keys = codes
            span = len(others) + 1
            by = np.lexsort((np.arange(len(others)), keys))
            ranked = keys[by] * span + by
            low = np.searchsorted(ranked, ours * span + low)
            high = np.searchsorted(ranked, ours * span + high)
            high = np.where(ours < 0, low, high)
            others, theirs = others[by], theirs.pick(by)
        whole = self.join.kind.pairs
        # The first match is enough, if the others come in the order of their moments.
        enough = not whole and (self.join.kind is JoinKind.ANTI or in_order)
        waiting = np.flatnonzero(high > low)
        tests, ways, rest = self.compared.tests(left.rows[some], right.rows[others])
        width = _PAIRS_AT_ONCE if whole else _FEW
        room = min(_PAIRS_AT_ONCE, int((high - low)[waiting].sum()))
        who, row = (np.empty(room, np.int64) for _ in range(2))
        while len(waiting):
            begin, end = low[waiting], np.minimum(high[waiting], low[waiting] + width)
            for number, way in enumerate(ways):
                tried = tuple(
                    (op, values, flags, ours[waiting], None if valid is None else valid[waiting])
                    for op, values, flags, ours, valid in (*tests, *way)
                )
                start = 0
                while start < len(waiting):
                    start, filled = native.scan(start, begin, end, 0, tried, who, row)
                    probe, partner = waiting[who[:filled]], row[:filled]
                    fit = mine.pick(probe).within(theirs.pick(partner))
                    for before in ways[:number]:  # each pair once
                        fit &= ~all_hold(before, probe, partner)
                    of_left, of_right = some[probe[fit]], others[partner[fit]]
                    holds = self._true(left.rows[of_left], right.rows[of_right], rest)
                    yield of_left[holds], of_right[holds]
            low[waiting] = end
            more = end < high[waiting]
            if enough:
                more &= ~left.matched[some[waiting]]
            waiting, width = waiting[more], min(4 * width, _PAIRS_AT_ONCE)

    def _lives(self, side: int, of: Combinations, known: int) -> Lives:
        """Returns the lifetimes of a side, of which the first `known` are those of the last step."""
        had = self.lives[side]
        if had is None or len(had.place) != known or not self.ends_by_time[side]:
            return self.frame.lives(of.rows)
        return had.joined(self.frame.lives(of.rows[known:])) if len(of) > known else had

    def _true(self, left: Ints, right: Ints, conditions: tuple[x.Expression, ...]) -> Ints:
        """Returns the pairs for which some conditions are true."""
        if not conditions:
            return np.arange(len(left))
        rows = np.where(left != NOTHING, left, right)
        with self.faults.naming(lambda row: self.frame.named(rows[row])):
            return survivors(
                conditions,
                lambda e, which: self.frame.leaves(e, rows[which]),
                len(rows),
                self.faults,
            )


class AsofStep(JoinStep):
    """An ASOF join. It keeps the left combinations whose time is not certain, and the right tuples
    that some of them may yet look up: those from that time on, and the latest of each key before
    it, unless it is too old by then."""

    def __init__(self, join: AsofJoin, frame: TreeSources, faults: Faults) -> None:
        super().__init__(join, frame, faults)
        self.at, self.later, self.age = join.at, join.later, join.age
        self.right = visible(join.right)[0]
        reads = [x.sources(e) for e in self.conjuncts]
        self.own = [e for e, of in zip(self.conjuncts, reads, strict=True) if of == {self.right}]
        self.conjuncts = tuple(e for e in self.conjuncts if e not in self.own)

    def step(self, arrived: Arrived) -> tuple[Combinations, Frontier]:
        (new_left, left_frontier), (new_right, right_frontier) = (
            side.step(arrived) for side in self.sides
        )
        left = together([self.kept[0], new_left])
        right = together([self.kept[1], self._own(new_right)])
        until = self._until(left.rows)
        due = np.asarray(until < right_frontier.time)
        stays = np.flatnonzero(~due)
        partner = self._partners(left.pick(due), until[due], right)
        some = np.flatnonzero(partner >= 0)
        rows, candidates = left.rows[due], right.rows[partner[some]]
        holds = some[self._true(rows[some], candidates, self.conjuncts)]
        found = left.pick(due)
        found.rows = found.rows.copy()
        found.rows[holds, self.right] = right.rows[partner[holds], self.right]
        time = np.where(until[due] == _NO_TIME, found.time, until[due])
        found = found.not_before(time, np.full(len(found), NEVER))
        if self.join.kind is JoinKind.ASOF:
            found = found.pick(holds)
        self.kept = [left.pick(stays), right]
        self.kept[1] = right.pick(self._reached(right, until[stays], left_frontier))
        frontier = left_frontier
        if len(stays):
            lives = self.frame.lives(left.rows[stays])
            frontier = frontier.meet(Frontier(int(lives.place.min()), int(lives.time.min())))
        return found, frontier

    def _own(self, right: Combinations) -> Combinations:
        """Returns the right tuples that meet the conditions on the right alone."""
        if not self.own or not len(right):
            return right
        rows = right.rows
        with self.faults.naming(lambda row: self.frame.named(rows[row])):
            return right.pick(
                survivors(
                    tuple(self.own),
                    lambda e, which: self.frame.leaves(e, rows[which]),
                    len(rows),
                    self.faults,
                )
            )

    def _times(self, rows: Ints, source: int) -> Ints:
        """Returns the times of a source's tuples."""
        found = np.full(len(rows), _NO_TIME)
        here = rows[:, source] != NOTHING
        store = self.frame.store(source)
        found[here] = store.timestamp[store.index(rows[here, source])]
        return found

    def _until(self, rows: Ints) -> Ints:
        """Returns the last time of a right tuple that left combinations may look up."""
        times = self._times(rows, self.at)
        latest = np.minimum(times, NEVER - max(self.later, 0)) + self.later
        return np.where(times == _NO_TIME, _NO_TIME, latest)

    def _partners(self, left: Combinations, until: Ints, right: Combinations) -> Ints:
        """Returns the place among `right` of the latest candidate for each left combination, -1 if
        none."""
        if not len(left) or not len(right):
            return np.full(len(left), NOTHING)
        times = self._times(right.rows, self.right)
        ours, keys = self.compared.equal(left.rows, right.rows, doubtful=True) or (
            np.zeros(len(left), np.int64),
            np.zeros(len(right), np.int64),
        )
        order = np.lexsort((right.place, times, keys))
        moments = np.unique(times)
        span = len(moments) + 1
        ranked = keys[order] * span + np.searchsorted(moments, times[order])
        rank = np.searchsorted(moments, until, side="right")
        last = np.searchsorted(ranked, ours * span + rank) - 1
        found = order[np.maximum(last, 0)]
        fits = (last >= 0) & (ours >= 0) & (keys[found] == ours) & (until != _NO_TIME)
        return np.where(fits, found, NOTHING)

    def _reached(self, right: Combinations, waiting: Ints, coming: Frontier) -> Ints:
        """Returns the right tuples that waiting or coming left combinations may look up."""
        if coming == END and not len(waiting):
            return np.empty(0, np.int64)
        since = coming.time
        if isinstance(self.join.left, TreeJoin):  # its times lag behind by its window
            window = self.frame.sources[self.at].window
            ranged = window.kind is WindowKind.RANGE
            since = max(since, EARLIEST + window.size) - window.size if ranged else EARLIEST
        due = waiting[waiting != _NO_TIME].tolist()
        least = min([max(since + self.later, EARLIEST), *due])
        times = self._times(right.rows, self.right)
        coded = self.compared.equal(right.rows[:0], right.rows, doubtful=True)
        keys = np.zeros(len(right), np.int64) if coded is None else coded[1]
        order = np.lexsort((right.place, times, keys))
        keys, times = keys[order], times[order]
        last = np.append((keys[1:] != keys[:-1]) | (times[1:] >= least), True)
        stays = (keys >= 0) & (last | (times >= least))
        if self.age is not None:
            oldest = min([since, *(until - self.later for until in due)]) - self.age
            stays &= times >= max(oldest, EARLIEST)
        return np.sort(order[stays])


def part(side: JoinSide, frame: TreeSources, faults: Faults) -> SourceTuples | JoinStep:
    """Makes the operator of a part of a tree."""
    if isinstance(side, AsofJoin):
        return AsofStep(side, frame, faults)
    return SourceTuples(side, frame) if isinstance(side, int) else JoinStep(side, frame, faults)


def _paired(left: Combinations, right: Combinations) -> Combinations:
    rows = np.where(left.rows != NOTHING, left.rows, right.rows)
    both = Combinations(rows, left.time, left.place, left.matched)
    return both.not_before(right.time, right.place)
