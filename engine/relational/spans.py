"""Combinations of tuples that a tree of joins holds, and the spans of time during which they exist.

Arrivals and departures of a step are numbered from 1 in their order. A combination that existed
before begins at 0, and one that stays ends at `NEVER`. A join has a pair for as long as both its
parts exist, and a part without a match for as long as it has none. A step looks only at what
comes and leaves, and at the matches of these.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

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
from seustream.engine.relational.keyed import Keyed
from seustream.engine.relational.matching import together_in, true_of
from seustream.engine.relational.pool import Pool
from seustream.engine.relational.slots import Slots
from seustream.engine.stream.growing import Growing
from seustream.engine.stream.sorting import lexsort

_PAIRS_AT_ONCE = 1 << 20


class Changed(NamedTuple):
    """Places at which something comes or leaves in a step, in order, with the numbers of the moments."""

    places: Ints
    numbers: Ints

    @staticmethod
    def none() -> Changed:
        return Changed(np.empty(0, np.int64), np.empty(0, np.int64))

    @staticmethod
    def together(parts: Sequence[Changed]) -> Changed:
        places, numbers = (
            np.concatenate([np.empty(0, np.int64), *(part[n] for part in parts)]) for n in (0, 1)
        )
        order = np.argsort(places, kind="stable")
        return Changed(places[order], numbers[order])

    def some(self, which: Bools) -> Changed:
        return Changed(self.places[which], self.numbers[which])

    def at(self, places: Ints, otherwise: int) -> Ints:
        """Returns the numbers at places, and another number where nothing changes."""
        found = np.full(len(places), otherwise)
        if len(self.places):
            near = np.minimum(np.searchsorted(self.places, places), len(self.places) - 1)
            there = self.places[near] == places
            found[there] = self.numbers[near[there]]
        return found


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
        self.came = self.left = Changed.none()

    def nodes(self) -> Iterator[TupleSpans | JoinSpans]:
        yield self

    @property
    def rows(self) -> Ints:
        """The tuples by place, also those that have left."""
        return self.pool.view.rows

    @property
    def shown(self) -> Slots:
        return self.pool

    @property
    def first(self) -> int | None:
        """The sequence number of the first tuple that is in the window."""
        place = self.pool.first
        return None if place is None else int(self.rows[place, self.source])

    def arrive(self, new: Ints) -> None:
        """Takes new tuples, by their sequence numbers."""
        of, store = self.frame.sources[self.source], self.frame.store(self.source)
        if isinstance(of.window, LandmarkWindow) and of.window.every is None:
            new = new[store.timestamp[store.index(new)] >= of.window.since]
        rows = np.full((len(new), len(self.frame.sources)), NOTHING)
        rows[:, self.source] = new
        nothing = np.zeros(len(new), np.int64)
        found = Combinations(rows, nothing, nothing, np.zeros(len(new), np.bool_))
        self.came = Changed(self.pool.add(found), nothing)

    def depart(self, until: int) -> tuple[Ints, Ints]:
        """Finds the tuples that leave up to a time. Returns the times, and the places of the arrivals that
        push them out, or -1."""
        over = np.sort(self.pool.ended(Frontier(self.frame.stores.position, until)))
        self.left = Changed(over, over)
        lives = self.pool.lives(over)
        pushed = (lives.gone < NEVER) & (lives.gone_time <= lives.last)
        time = np.where(pushed, lives.gone_time, np.minimum(lives.last, NEVER - 1) + 1)
        self._when = time, np.where(pushed, lives.gone, -1)
        return self._when

    def step(self, moments: Moments) -> None:
        places, store = self.came.places, self.frame.store(self.source)
        at = store.index(self.rows[places, self.source])
        self.came = Changed(places, moments.numbers(store.timestamp[at], store.position[0][at]))
        self.left = Changed(self.left.places, moments.numbers(*self._when))

    def settle(self) -> None:
        self.pool.leave(self.left.places)

    def forget(self) -> None:
        """Forgets the tuples that came, as if they had left."""
        places = self.came.places
        self.pool.leave(places[self.pool.here[places]])

    def compact(self) -> Ints:
        """Gives those that are left new places, from 0 up; returns their old places."""
        return self.pool.compact()


class _Pairs(Slots):
    """The pairs of a join, by place: the places of their parts, and where the join shows them."""

    def __init__(self) -> None:
        super().__init__()
        self._keyed = Keyed(), Keyed()
        self.shown_at = Growing()

    def part(self, side: int, some: Ints) -> Ints:
        """Returns the places of the parts of some pairs on a side."""
        return self._keyed[side].values[some]

    def add(self, left: Ints, right: Ints, shown: Ints) -> None:
        for keyed, places in zip(self._keyed, (left, right), strict=True):
            keyed.append((places, None))
        self.shown_at.append(shown)
        self.take(len(left))

    def of(self, side: int, places: Ints) -> Ints:
        """Returns the pairs that are here and have one of some distinct parts on a side."""
        found = self._keyed[side].places(places)
        return found[self.here[found]]


class _Keyed(NamedTuple):
    """Parts of a join: when they begin and end, as numbers that grow with their keys, then with the moments;
    whether they have a key, and whether they are new."""

    begin: Ints
    end: Ints
    matches: Bools
    new: Bools


class JoinSpans:
    """A join of two parts, by the places of what it shows: pairs, and parts without a match; of a semi
    join, parts with one."""

    def __init__(self, join: TreeJoin, frame: TreeSources, faults: Faults) -> None:
        self.join, self.frame, self.faults = join, frame, faults
        self.parts = (spans_of(join.left, frame, faults), spans_of(join.right, frame, faults))
        self.conjuncts = x.conjuncts(join.condition)
        self.compared = Comparisons(join, frame)
        kind = join.kind
        self.lone = kind.keeps_left or kind is JoinKind.SEMI, kind.keeps_right
        """By side, whether its parts are shown alone."""
        self.pairs = _Pairs()
        self.alone = Growing(), Growing()
        """By side and place of a part, where it is shown alone; -1 if it is not."""
        self.came = self.left = Changed.none()
        self.shown, self._rows = Slots(), Growing()

    def nodes(self) -> Iterator[TupleSpans | JoinSpans]:
        for side in self.parts:
            yield from side.nodes()
        yield self

    @property
    def rows(self) -> Ints:
        """The combinations by place, also those that have left."""
        return self._rows.view.reshape(-1, len(self.frame.sources))

    # --- a step ---------------------------------------------------------------

    def step(self, moments: Moments) -> None:
        for part, alone in zip(self.parts, self.alone, strict=True):
            part.step(moments)
            alone.append(np.full(len(part.came.places), -1))
        left, right = self.parts
        self.compared.follow((left.rows, right.rows))
        old = np.unique(
            np.concatenate(
                [self.pairs.of(n, np.unique(p.left.places)) for n, p in enumerate(self.parts)]
            )
        )
        mine, theirs = self._fresh(len(moments.keys))
        first = len(self.pairs)
        begin, end = self._meet(mine, theirs)
        came, over = list[Changed](), list[Changed]()
        shown = np.full(len(mine), -1)
        if self.join.kind.pairs:
            shown = self._show(together_in(left.rows[mine], right.rows[theirs]))
            came.append(Changed(shown, begin))
            over.append(Changed(shown, end).some(end < NEVER))
        self.pairs.add(mine, theirs, shown)
        _, until = self._meet(self.pairs.part(0, old), self.pairs.part(1, old))
        if self.join.kind.pairs:
            over.append(Changed(self.pairs.shown_at.view[old], until))
        over_now = np.concatenate((old, first + np.flatnonzero(end < NEVER)))
        for side, lone in enumerate(self.lone):
            if lone:
                changed = np.concatenate((old, np.arange(first, len(self.pairs))))
                one, other = self._by_themselves(side, self.pairs.part(side, changed))
                came.append(one)
                over.append(other)
        self.pairs.leave(over_now)
        self.came, self.left = Changed.together(came), Changed.together(over)

    def _fresh(self, last: int) -> tuple[Ints, Ints]:
        """Returns the pairs of places that match, exist together, and have a new part; `last` is the number
        of the last moment."""
        left, right = self.parts
        some, others = self._candidates(0), self._candidates(1)
        found = [(np.empty(0, np.int64),) * 2]
        if len(some) and len(others):
            codes = self.compared.known(some, others)
            if codes is None:
                codes = self.compared.equal(left.rows[some], right.rows[others])
            keys = codes or (np.zeros(len(some), np.int64), np.zeros(len(others), np.int64))
            keyed = self._keyed(0, some, keys[0], last), self._keyed(1, others, keys[1], last)
            for of_left, of_right in _together(*keyed):
                mine, theirs = some[of_left], others[of_right]
                rows = together_in(left.rows[mine], right.rows[theirs])
                holds = true_of(rows, self.conjuncts, self.frame, self.faults)
                found.append((mine[holds], theirs[holds]))
        return np.concatenate([one for one, _ in found]), np.concatenate([one for _, one in found])

    def _candidates(self, side: int) -> Ints:
        """Returns the places of a side that are new, and of those that may match new parts of the other
        side."""
        new, others = (self.parts[n].came.places for n in (side, 1 - side))
        here = self.parts[side].shown.here[: len(self.parts[side].shown) - len(new)]
        found = self.compared.partners(side, others) if len(others) else others
        if found is None:
            return np.append(np.flatnonzero(here), new)
        found = found[: np.searchsorted(found, len(here))]
        return np.append(found[here[found]], new)

    def _keyed(self, side: int, places: Ints, keys: Ints, last: int) -> _Keyed:
        """Returns when parts with some keys begin and end."""
        part = self.parts[side]
        begin, end = part.came.at(places, 0), np.minimum(part.left.at(places, NEVER), last + 1)
        first = keys * (last + 2)
        return _Keyed(first + begin, first + end, keys >= 0, begin > 0)

    def _meet(self, left: Ints, right: Ints) -> tuple[Ints, Ints]:
        """Returns when pairs of places begin and end."""
        (a, b), (c, d) = (
            (part.came.at(places, 0), part.left.at(places, NEVER))
            for part, places in zip(self.parts, (left, right), strict=True)
        )
        return np.maximum(a, c), np.minimum(b, d)

    def _by_themselves(self, side: int, paired: Ints) -> tuple[Changed, Changed]:
        """Shows parts of a side that are alone from some moment on; returns these, and those that are shown
        no longer. The matches of `paired` have changed."""
        part, alone = self.parts[side], self.alone[side].view
        some = np.unique(np.concatenate((part.came.places, part.left.places, paired)))
        matches = self.pairs.of(side, some)
        begin, end = self._meet(self.pairs.part(0, matches), self.pairs.part(1, matches))
        entry = np.searchsorted(some, self.pairs.part(side, matches))
        spans = part.came.at(some, 0), part.left.at(some, NEVER)
        which, since, till = _apart(spans, entry, begin, end, self.join.kind is JoinKind.SEMI)
        place, goes_on = some[which], since == 0
        known = Changed(alone[place[goes_on]], till[goes_on])
        alone[place[goes_on & (till < NEVER)]] = -1
        place, since, till = place[~goes_on], since[~goes_on], till[~goes_on]
        shown = self._show(part.rows[place])
        stays = till == NEVER
        alone[place[stays]] = shown[stays]
        over = Changed.together([known, Changed(shown, till)])
        return Changed(shown, since), over.some(over.numbers < NEVER)

    def _show(self, rows: Ints) -> Ints:
        """Shows combinations; returns their places."""
        self._rows.append(rows.reshape(-1))
        return self.shown.take(len(rows))

    # --- memory ---------------------------------------------------------------

    def settle(self) -> None:
        """Forgets what has left."""
        self.shown.leave(self.left.places)
        for part in self.parts:
            part.settle()
        sparse = [side for side, part in enumerate(self.parts) if part.shown.is_sparse]
        if self.compared.is_crowded:
            self._compact_parts((0, 1))
            self.compared.begin()
        elif sparse or self.pairs.is_sparse:
            self._compact_parts(sparse)

    def _compact_parts(self, sides: Sequence[int]) -> None:
        """Gives the parts of some sides new places, and the pairs new numbers."""
        old, here = self.pairs, np.flatnonzero(self.pairs.here)
        parts = [old.part(side, here) for side in (0, 1)]
        for side in sides:
            count = len(self.parts[side].shown)
            stays = self.parts[side].compact()
            self.compared.keep(side, stays)
            to = np.full(count, -1)
            to[stays] = np.arange(len(stays))
            parts[side] = to[parts[side]]
            kept = self.alone[side].view[stays]
            self.alone[side].drop(count)
            self.alone[side].append(kept)
        self.pairs = _Pairs()
        self.pairs.add(parts[0], parts[1], old.shown_at.view[here])

    def compact(self) -> Ints:
        """Gives the combinations that are here new places, from 0 up; returns their old places."""
        stays = np.flatnonzero(self.shown.here)
        rows, to = self.rows[stays], np.full(len(self.shown), -1)
        to[stays] = np.arange(len(stays))
        self.shown, self._rows = Slots(), Growing()
        self._show(rows)
        for places in (self.pairs.shown_at.view, *(alone.view for alone in self.alone)):
            there = places >= 0
            places[there] = to[places[there]]
        return stays


def _together(left: _Keyed, right: _Keyed) -> Iterator[tuple[Ints, Ints]]:
    """Yields pairs of parts of equal keys that exist together, one of which is new, by their places among
    these. Each is found from its earlier part, in whose time the other begins: the work is in proportion
    to the pairs."""
    of_left, of_right = _begun(left, right, "left"), _begun(right, left, "right")
    later = np.concatenate((of_left[0], of_right[0]))
    low = np.concatenate((of_left[1], of_right[1] + len(of_left[0])))
    counts = np.concatenate((of_left[2], of_right[2]))
    total = np.cumsum(counts)
    cuts = np.searchsorted(total, np.arange(_PAIRS_AT_ONCE, int(total[-1]), _PAIRS_AT_ONCE))
    for part in np.split(np.arange(len(total)), cuts):
        begins = np.cumsum(counts[part]) - counts[part]
        at = np.repeat(low[part] - begins, counts[part])
        one, other = np.repeat(part, counts[part]), later[at + np.arange(len(at))]
        is_left = one < len(left.begin)
        one = np.where(is_left, one, one - len(left.begin))
        yield np.where(is_left, one, other), np.where(is_left, other, one)


def _begun(there: _Keyed, come: _Keyed, side: Literal["left", "right"]) -> tuple[Ints, Ints, Ints]:
    """Returns the places of new parts in order; then, for each of some others, where among these are the
    ones of its key that begin while it is there: the first, and how many. Those that begin with it count
    only if `side` is left."""
    new = np.flatnonzero(come.new & come.matches)
    new = new[lexsort((come.begin[new],))]
    begins = come.begin[new]
    low = np.searchsorted(begins, there.begin, side=side)
    return new, low, np.where(there.matches, np.searchsorted(begins, there.end) - low, 0)


def _apart(
    of: tuple[Ints, Ints], entry: Ints, begin: Ints, end: Ints, matched: bool
) -> tuple[Ints, Ints, Ints]:
    """Returns when parts, which exist from and until moments, have no match, or with `matched` some match:
    which, from when, to when. `entry`, `begin` and `end` are those of the matches."""
    every = np.arange(len(of[0]))
    ends = end < NEVER
    who = np.concatenate((every, entry, entry[ends]))
    when = np.concatenate((of[0], begin, end[ends]))
    delta = np.concatenate((np.zeros(len(every)), np.ones(len(entry)), -np.ones(int(ends.sum()))))
    order = lexsort((when, who))
    who, when, delta = who[order], when[order], delta[order].astype(np.int64)
    total = np.cumsum(delta)
    first = np.searchsorted(who, who)
    count = total - (total - delta)[first]
    last = np.append((who[1:] != who[:-1]) | (when[1:] != when[:-1]), True)[: len(who)]
    who, when, count = who[last], when[last], count[last]
    till = np.append(when[1:], NEVER)[: len(who)]
    till[np.append(who[1:] != who[:-1], True)[: len(who)]] = NEVER
    till = np.minimum(till, of[1][who])
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
