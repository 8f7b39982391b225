"""The nodes of a tree of joins: each gives its combinations once they are certain."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
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
    Bools,
    Combinations,
    Frontier,
    Ints,
    TreeSources,
    together,
)
from seustream.engine.relational.compared import Comparisons
from seustream.engine.relational.pool import Ordered, Pool, Pooled
from seustream.engine.stream.evaluate import survivors
from seustream.engine.stream.numbers import all_hold
from seustream.engine.stream.operator import EARLIEST
from seustream.engine.stream.schema import TABLE_TIME
from seustream.engine.stream.sorting import lexsort
from seustream.hdl.device import WindowKind

Pairs = Iterator[tuple[Ints, Ints]]
"""Pairs in parts, as places among the left and among the right combinations."""

_PAIRS_AT_ONCE, _FEW = 1 << 20, 16
"""The most pairs to look at together, and the number of others to look at first where one match is
enough."""
_NONE = np.empty(0, np.int64)


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
        self.conjuncts = x.conjuncts(join.condition)
        self.compared = Comparisons(join, frame)
        kind = join.kind
        self.waits = kind.keeps_left or kind is JoinKind.SEMI, kind.keeps_right
        """By side, whether combinations without a match may still be results."""
        self.pools = tuple(
            Pool(frame, visible(side), waits)
            for side, waits in zip((join.left, join.right), self.waits, strict=True)
        )
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
        if self.compared.is_crowded:
            self._compact()
            self.compared.begin()
        mine, theirs = self.pools
        fresh, others = mine.add(new_left), theirs.add(new_right)
        left, right = mine.view, theirs.view
        self.compared.follow((left.rows, right.rows))
        pairs = itertools.chain(
            self._matches(left, right, fresh, self._partners(1, fresh)),
            self._matches(left, right, self._partners(0, others, len(mine) - len(fresh)), others),
        )
        results = [Combinations.none(len(self.frame.sources))]
        matched = _NONE
        if kind.pairs:
            results.append(self._pairs(left, right, pairs))
        else:
            matched, time, place = self._first(left, right, pairs)
            if kind is JoinKind.SEMI:
                results.append(left.pick(matched).not_before(time, place))
        ended = mine.ended(right_frontier), theirs.ended(left_frontier)
        for keeps, side, pool, over, other in (
            (kind.keeps_left, left, mine, ended[0], self.join.right),
            (kind.keeps_right, right, theirs, ended[1], self.join.left),
        ):
            if keeps:
                alone = over[~side.matched[over]]
                found = side.pick(alone)
                if not self._is_known(other):
                    found = found.not_before(*pool.lives(alone).end)
                results.append(found)
        mine.leave(ended[0])
        theirs.leave(ended[1])
        mine.leave(matched[mine.here[matched]])
        frontier = left_frontier.meet(right_frontier) if kind.pairs else left_frontier
        for waits, pool in zip(self.waits, self.pools, strict=True):
            if waits and (first := pool.pending()) is not None:
                frontier = frontier.meet(first)
        self._compact_sparse()
        certain = together(results)
        certain.matched = np.zeros(len(certain), np.bool_)
        return certain, frontier

    def _partners(self, side: int, others: Ints, below: int | None = None) -> Ints:
        """Returns the places of a side, of those below a number, that may match some combinations of the
        other side."""
        pool = self.pools[side]
        if not len(others):
            return _NONE
        found = self.compared.partners(side, others)
        if found is None:
            here = pool.here if below is None else pool.here[:below]
            return np.flatnonzero(here)
        if below is not None:
            found = found[: np.searchsorted(found, below)]
        return found[pool.here[found]]

    def _pairs(self, left: Pooled, right: Pooled, pairs: Pairs) -> Combinations:
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

    def _first(self, left: Pooled, right: Pooled, pairs: Pairs) -> tuple[Ints, Ints, Ints]:
        """Marks the left combinations that have a match, and returns the places of those found now, with
        the moment of the first match of each. No pairs are kept."""
        found = [(_NONE, _NONE, _NONE)]
        for of_left, of_right in pairs:
            left.matched[of_left] = True
            found.append(_sooner(of_left, right.time[of_right], right.place[of_right]))
        return _sooner(*(np.concatenate([part[n] for part in found]) for n in range(3)))

    # --- memory ---------------------------------------------------------------

    def _compact(self, sides: Iterable[int] = (0, 1)) -> None:
        """Gives the combinations of some sides new places."""
        for side in sides:
            if self.pools[side].left:
                self.compared.keep(side, self.pools[side].compact())

    def _compact_sparse(self) -> None:
        """Does so for the sides that a third of the combinations have left; a large side waits for its own turn."""
        self._compact([side for side, pool in enumerate(self.pools) if pool.is_sparse])

    def kept(self) -> list[Pooled]:
        """The combinations of both sides. What is written to their rows is kept."""
        self._compact()
        return [pool.view for pool in self.pools]

    def restore(self, kept: Sequence[Combinations]) -> None:
        """Takes the combinations of both sides, in place of none."""
        for pool, of in zip(self.pools, kept, strict=True):
            pool.add(of)

    # --- pairs ----------------------------------------------------------------

    def _is_known(self, side: JoinSide) -> bool:
        """Returns whether all of a side is there before any stream: it consists of tables."""
        return all(self.frame.sources[number].stream.table for number in visible(side))

    def _matches(
        self,
        left: Pooled,
        right: Pooled,
        some: Ints,
        others: Ints,
    ) -> Pairs:
        """Yields matching pairs, one of `some` on the left and one of `others` on the right. Where
        only the first counts, left combinations that are marked as matched by then are left out."""
        if not len(some) or not len(others):
            return
        mine, theirs = self.pools[0].lives(some), self.pools[1].lives(others)
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
        codes = self.compared.known(some, others)
        if codes is None:
            codes = self.compared.equal(left.rows[some], right.rows[others])
        if codes is not None:
            ours, keys = codes
            span = len(others) + 1
            by = lexsort((np.arange(len(others)), keys))
            ranked = keys[by] * span + by
            low = np.searchsorted(ranked, ours * span + low)
            high = np.searchsorted(ranked, ours * span + high)
            high = np.where(ours < 0, low, high)
            others, theirs = others[by], theirs.pick(by)
        whole = self.join.kind.pairs
        # The first match is enough, if the others come in the order of their moments.
        enough = not whole and (self.join.kind is JoinKind.ANTI or in_order)
        waiting = np.flatnonzero(high > low)
        tests = self.compared.tests(left.rows[some], right.rows[others])
        width = _PAIRS_AT_ONCE if whole else _FEW
        room = min(_PAIRS_AT_ONCE, int((high - low)[waiting].sum()))
        who, row = (np.empty(room, np.int64) for _ in range(2))
        while len(waiting):
            begin, end = low[waiting], np.minimum(high[waiting], low[waiting] + width)
            for number, way in enumerate(tests.ways):
                tried, formulas = tests.by(way, waiting), tests.formulas_for(waiting)
                start = 0
                while start < len(waiting):
                    try:
                        start, filled = native.scan(start, begin, end, 0, tried, who, row, formulas)
                    except ArithmeticError:  # whether a fault counts, all conditions decide
                        tests, formulas = tests.without_formulas(), ()
                        continue
                    probe, partner = waiting[who[:filled]], row[:filled]
                    fit = mine.pick(probe).within(theirs.pick(partner))
                    for before in tests.ways[:number]:  # each pair once
                        fit &= ~all_hold(before, probe, partner)
                    of_left, of_right = some[probe[fit]], others[partner[fit]]
                    holds = self._true(left.rows[of_left], right.rows[of_right], tests.unknown)
                    yield of_left[holds], of_right[holds]
            low[waiting] = end
            more = end < high[waiting]
            if enough:
                more &= ~left.matched[some[waiting]]
            waiting, width = waiting[more], min(4 * width, _PAIRS_AT_ONCE)

    def _true(self, left: Ints, right: Ints, conditions: tuple[x.Expression, ...]) -> Ints:
        """Returns the pairs for which some conditions are true."""
        return true_of(together_in(left, right), conditions, self.frame, self.faults)


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
        self.pools = Pool(frame, (), waits=True), Pool(frame, (), waits=False, dated=True)
        self.due = Ordered()
        """The left combinations by the last time of a right tuple that they look up."""
        self.replaced = self.aged = 0
        """The right tuples before these places are older than what is looked up: only the latest of each
        key is needed; and none, because they are too old."""

    def step(self, arrived: Arrived) -> tuple[Combinations, Frontier]:
        (new_left, left_frontier), (new_right, right_frontier) = (
            side.step(arrived) for side in self.sides
        )
        waiting, tuples = self.pools
        self.due.add(self._until(new_left.rows), waiting.add(new_left))
        self._take(self._own(new_right))
        places = np.sort(self.due.take(right_frontier.time))
        found = waiting.view.pick(places)
        until = self._until(found.rows)
        partner = self._latest(found.rows, until)
        some = np.flatnonzero(partner >= 0)
        candidates = tuples.view.rows[partner[some]]
        holds = self._true(found.rows[some], candidates, self.conjuncts)
        found.rows[some[holds], self.right] = candidates[holds, self.right]
        time = np.where(self._looks(found.rows), until, found.time)
        found = found.not_before(time, np.full(len(found), NEVER))
        if self.join.kind is JoinKind.ASOF:
            found = found.pick(some[holds])
        waiting.leave(places)
        self._forget(left_frontier)
        frontier = left_frontier
        if (first := waiting.pending()) is not None:
            frontier = frontier.meet(first)
        self._compact_sparse()
        if self.compared.is_crowded:
            self._compact()
            self.compared.begin()
            self.compared.keys[1].append(self.compared.keys_of(1, tuples.view.rows))
        return found, frontier

    def _take(self, right: Combinations) -> None:
        """Takes the right tuples that can be equal to some left combination."""
        values, flags = self.compared.keys_of(1, right.rows)
        if flags is not None and not flags.all():
            there = flags != 0
            right, values = right.pick(there), values[there]
        self.pools[1].add(right)
        self.compared.keys[1].append((values, None))

    def _own(self, right: Combinations) -> Combinations:
        """Returns the right tuples that meet the conditions on the right alone."""
        return right.pick(true_of(right.rows, tuple(self.own), self.frame, self.faults))

    def _until(self, rows: Ints) -> Ints:
        """Returns the last time of a right tuple that left combinations may look up; for those that
        look up none, the first time of all."""
        here, store = self._looks(rows), self.frame.store(self.at)
        times = store.timestamp[store.index(rows[here, self.at])]
        until = np.full(len(rows), EARLIEST)
        until[here] = np.minimum(times, NEVER - max(self.later, 0)) + self.later
        return until

    def _looks(self, rows: Ints) -> Bools:
        """Returns which left combinations look something up: those that have the tuple whose time
        decides, not so early that nothing can come before it."""
        here = rows[:, self.at] != NOTHING
        if self.later < 0:
            store = self.frame.store(self.at)
            here[here] = store.timestamp[store.index(rows[here, self.at])] >= EARLIEST - self.later
        return np.asarray(here)

    def _latest(self, left: Ints, until: Ints) -> Ints:
        """Returns the place of the latest candidate for each left combination, -1 if none."""
        tuples = self.pools[1]
        if not len(left) or not len(tuples):
            return np.full(len(left), NOTHING)
        below = np.searchsorted(tuples.moments, until, side="right")
        below[~self._looks(left)] = 0
        found = self.compared.keys[1].of.latest(self.compared.keys_of(0, left), below)
        return np.where((found >= 0) & tuples.here[found], found, NOTHING)

    def _forget(self, coming: Frontier) -> None:
        """Forgets the right tuples that no waiting or coming left combination may look up."""
        tuples, keys, waiting = self.pools[1], self.compared.keys[1].of, self.due.lowest
        if coming == END and waiting is None:
            tuples.leave(np.flatnonzero(tuples.here))
            return
        since = coming.time
        if isinstance(self.join.left, TreeJoin):  # its times lag behind by its window
            window = self.frame.sources[self.at].window
            ranged = window.kind is WindowKind.RANGE
            since = max(since, EARLIEST + window.size) - window.size if ranged else EARLIEST
        least = max(since + self.later, EARLIEST)
        oldest = since
        if waiting is not None:
            least, oldest = min(least, waiting), min(oldest, waiting - self.later)
        replaced = int(np.searchsorted(tuples.moments, least))
        if replaced > self.replaced:
            before = keys.previous(self.replaced, replaced)
            before = before[before >= 0]
            tuples.leave(before[tuples.here[before]])
            self.replaced = replaced
        if self.age is not None:
            aged = int(np.searchsorted(tuples.moments, max(oldest - self.age, EARLIEST)))
            gone = np.arange(self.aged, aged)
            tuples.leave(gone[tuples.here[gone]])
            self.aged = max(aged, self.aged)

    def _compact(self, sides: Iterable[int] = (0, 1)) -> None:
        waiting, tuples = self.pools
        if 0 in sides and waiting.left:
            waiting.compact()
            self.due = Ordered()
            self.due.add(self._until(waiting.view.rows), np.arange(len(waiting)))
        if 1 in sides and tuples.left:
            self.compared.keep(1, tuples.compact())
            self.replaced = self.aged = 0

    def restore(self, kept: Sequence[Combinations]) -> None:
        waiting, tuples = kept
        self.due.add(self._until(waiting.rows), self.pools[0].add(waiting))
        self._take(tuples)


def part(side: JoinSide, frame: TreeSources, faults: Faults) -> SourceTuples | JoinStep:
    """Makes the operator of a part of a tree."""
    if isinstance(side, AsofJoin):
        return AsofStep(side, frame, faults)
    return SourceTuples(side, frame) if isinstance(side, int) else JoinStep(side, frame, faults)


def together_in(left: Ints, right: Ints) -> Ints:
    """Returns pairs as combinations of the tuples of both."""
    return np.where(left != NOTHING, left, right)


def true_of(
    rows: Ints, conditions: tuple[x.Expression, ...], frame: TreeSources, faults: Faults
) -> Ints:
    """Returns the combinations for which some conditions are true."""
    if not conditions:
        return np.arange(len(rows))
    with faults.naming(lambda row: frame.named(rows[row])):
        return survivors(
            conditions, lambda e, which: frame.leaves(e, rows[which]), len(rows), faults
        )


def _paired(left: Combinations, right: Combinations) -> Combinations:
    rows = together_in(left.rows, right.rows)
    both = Combinations(rows, left.time, left.place, left.matched)
    return both.not_before(right.time, right.place)


def _sooner(who: Ints, time: Ints, place: Ints) -> tuple[Ints, Ints, Ints]:
    """Returns each of some places once, with the first of its moments."""
    order = lexsort((place, time, who))
    who, first = np.unique(who[order], return_index=True)
    return who, time[order[first]], place[order[first]]
