"""Joins in software, for the rows the device does not hold.

A row is the host's if its window had no room for it any more (hand-over), or if it cannot enter
the device at all: a NULL or an out-of-range integer in a compared column. Here every new row is
joined like in the device, but only combinations with at least one of the host's rows are kept:
the device finds all others. Conditions are evaluated as written, on the values themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from seustream.compiler.language import expressions as x
from seustream.compiler.language.faults import Faults
from seustream.compiler.plan.logical import Query
from seustream.engine.host.rows import IN_DEVICE, RowStore, leaves, reach_back
from seustream.engine.stream.evaluate import Leaves, evaluate, holds, survivors
from seustream.hdl.device import Window, WindowKind
from seustream.hdl.isa import Condition

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_ROWS_AT_ONCE = 512
_PAIRS_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True)
class Side:
    """One stream of a query's FROM list: its rows, which copy of them, its window, its name."""

    store: RowStore
    copy: int
    window: Window
    alias: str

    @property
    def position(self) -> Ints:
        return self.store.position[self.copy]

    @property
    def left(self) -> Ints:
        return self.store.left[self.copy]


def combination(sides: list[Side], sequences: Ints) -> str:
    """A combination of rows by their times, for people."""
    places = [side.store.index(at) for side, at in zip(sides, sequences, strict=True)]
    times = [side.store.timestamp[at] for side, at in zip(sides, places, strict=True)]
    return ", ".join(f"{side.alias} at ts {ts}" for side, ts in zip(sides, times, strict=True))


def software_join(query: Query, sides: list[Side], new: list[Ints], faults: Faults) -> Ints:
    """Sequence numbers, by source, of the results among whose components is a row of the host.
    `new[i]` are the places, in its store, of the rows that have just arrived on source i."""
    if not any(np.any(side.left != IN_DEVICE) for side in sides):
        return np.empty((0, len(sides)), np.int64)
    join = _Join(query, sides, faults)
    found = [
        part
        for source, arrived in enumerate(new)
        for start in range(0, len(arrived), _ROWS_AT_ONCE)
        for part in join.arriving(source, arrived[start : start + _ROWS_AT_ONCE])
    ]
    return np.concatenate(found) if found else np.empty((0, len(sides)), np.int64)


@dataclass(slots=True)
class _Partial:
    """Combinations so far: per bound source the places of its rows; `low` and `high` bound the
    window of every source at the arrival of the newest row, whose position is `when`."""

    places: dict[int, Ints]
    low: list[Ints]
    high: list[Ints]
    when: Ints
    ours: Bools

    def pick(self, index: Ints | Bools) -> _Partial:
        return _Partial(
            {source: places[index] for source, places in self.places.items()},
            [low[index] for low in self.low],
            [high[index] for high in self.high],
            self.when[index],
            self.ours[index],
        )


class _Join:
    def __init__(self, query: Query, sides: list[Side], faults: Faults) -> None:
        self.sides, self.faults = sides, faults
        self.conjuncts = x.conjuncts(query.where)
        self.doubtful: set[x.Expression] = set()  # conjuncts with a fault in some row

    def arriving(self, source: int, places: Ints) -> Iterator[Ints]:
        """Results whose newest component is one of these rows."""
        side = self.sides[source]
        when, now = side.position[places], side.store.timestamp[places]
        bounds = [_window(other, when, now) for other in self.sides]
        start = _Partial(
            {source: places},
            [low for low, _ in bounds],
            [high for _, high in bounds],
            when,
            side.left[places] <= when,
        )
        yield from self._extend(self._filtered(start, frozenset()))

    def _extend(self, partial: _Partial) -> Iterator[Ints]:
        bound = frozenset(partial.places)
        if not len(partial.when):
            return
        if len(bound) == len(self.sides):
            yield self._sequences(partial.pick(partial.ours))
            return
        source = self._next(bound)
        if len(bound) + 1 < len(self.sides):
            yield from self._with(partial, source, ours_only=False)
        else:
            # The last partner: a combination without a row of ours yet needs one here.
            yield from self._with(partial.pick(partial.ours), source, ours_only=False)
            yield from self._with(partial.pick(~partial.ours), source, ours_only=True)

    def _sequences(self, partial: _Partial) -> Ints:
        """Whole combinations by sequence numbers, those that also pass what was in doubt."""

        def columns(e: x.Expression, index: Ints) -> Leaves:
            return self._leaves(e, {source: at[index] for source, at in partial.places.items()})

        sequences = np.stack(
            [side.store.first + partial.places[source] for source, side in enumerate(self.sides)],
            axis=1,
        )
        doubtful = [e for e in self.conjuncts if e in self.doubtful]
        if not doubtful:
            return sequences
        with self.faults.naming(lambda row: combination(self.sides, sequences[row])):
            return sequences[survivors(doubtful, columns, len(sequences), self.faults)]

    def _with(self, partial: _Partial, source: int, ours_only: bool) -> Iterator[Ints]:
        side = self.sides[source]
        if not len(partial.when):
            return
        candidates = np.arange(partial.low[source].min(), max(partial.high[source].max(), 0))
        if ours_only:
            candidates = candidates[side.left[candidates] != IN_DEVICE]
        first, last, order = self._matches(partial, source, candidates)
        counts = np.maximum(last - first, 0)
        ends = np.cumsum(counts)
        start = 0
        while start < len(counts):
            before = ends[start - 1] if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, before + _PAIRS_AT_ONCE)))
            part = np.arange(start, stop)
            who = np.repeat(part, counts[part])
            offset = np.arange(len(who)) - np.repeat(
                ends[part] - counts[part] - before, counts[part]
            )
            joined = partial.pick(who)
            joined.places[source] = order[first[who] + offset]
            ours = side.left[joined.places[source]] <= joined.when
            if ours_only:
                joined = joined.pick(ours)
                ours = ours[ours]
            joined.ours = joined.ours | ours
            yield from self._extend(self._filtered(joined, frozenset(partial.places)))
            start = stop

    def _next(self, bound: frozenset[int]) -> int:
        """The next source: one an equality leads to, if there is one."""
        free = [source for source in range(len(self.sides)) if source not in bound]
        return min(free, key=lambda source: (self._equality(bound, source) is None, source))

    def _equality(self, bound: frozenset[int], source: int) -> x.Compare | None:
        """A conjunct that equates something of this source with something bound."""
        for e in self.conjuncts:
            if isinstance(e, x.Compare) and e.condition is Condition.EQ:
                left, right = x.sources(e.left), x.sources(e.right)
                if left == {source} and right and right <= bound:
                    return e
                if right == {source} and left and left <= bound:
                    return x.Compare(e.condition, e.right, e.left, e.of)
        return None

    def _matches(self, partial: _Partial, source: int, candidates: Ints) -> tuple[Ints, Ints, Ints]:
        """Per combination a range [first, last) of `order`: candidates in its window that agree
        in an equality, where there is one."""
        low, high = partial.low[source], partial.high[source]
        equality = self._equality(frozenset(partial.places), source)
        doubts = Faults()
        if equality is not None:
            theirs = self._value(equality.left, equality, {source: candidates}, doubts)
            ours = self._value(equality.right, equality, partial.places, doubts)
        if equality is None or doubts.total:  # faults count in whole combinations
            return np.searchsorted(candidates, low), np.searchsorted(candidates, high), candidates
        keys = pa.concat_arrays([theirs, ours]).dictionary_encode().indices
        numbers = np.asarray(keys.fill_null(-1)).astype(np.int64)
        their, our = numbers[: len(candidates)], numbers[len(candidates) :]
        # Sorted by key, then place, one number holds both.
        span = int(max(candidates.max(initial=0), high.max(initial=0))) + 1
        order = np.lexsort((candidates, their))
        sorted_keys = their[order] * span + candidates[order]
        first = np.searchsorted(sorted_keys, our * span + low)
        last = np.searchsorted(sorted_keys, our * span + high)
        last = np.where(our < 0, first, last)
        return first, last, candidates[order]

    def _value(
        self, e: x.Expression, compare: x.Compare, places: dict[int, Ints], faults: Faults
    ) -> pa.Array:
        rows = len(next(iter(places.values())))
        both = x.Cast(e, compare.of, quiet=True) if e.type != compare.of else e
        value = evaluate(both, self._leaves(e, places), rows, faults)
        if pa.types.is_floating(value.type):
            value = pc.add(value, pa.scalar(0.0, value.type))  # -0.0 equals 0.0
        return value

    def _leaves(self, e: x.Expression, places: dict[int, Ints]) -> Leaves:
        rows = {}
        for source in x.sources(e):
            names = {column.name for column in x.columns(e) if column.source == source}
            found = self.sides[source].store.columns(names, places[source])
            rows.update({(source, name): column for name, column in found.items()})
        return leaves(rows)

    def _filtered(self, partial: _Partial, before: frozenset[int]) -> _Partial:
        """Returns what remains once the conjuncts that have just become decidable are applied."""
        bound = frozenset(partial.places)
        for e in self.conjuncts:
            reads = x.sources(e)
            if reads <= bound and not (before and reads <= before) and len(partial.when):
                doubts = Faults()
                leaf = self._leaves(e, partial.places)
                fits = holds(e, leaf, len(partial.when), doubts)
                if doubts.total:
                    # Perhaps another conjunct excludes that row; the last step will tell.
                    self.doubtful.add(e)
                    continue
                if not fits.all():
                    partial = partial.pick(fits)
        return partial


def _window(side: Side, when: Ints, now: Ints) -> tuple[Ints, Ints]:
    """Places [low, high) a row that arrives at position `when` and time `now` sees."""
    high = np.searchsorted(side.position, when, side="left")
    window = side.window
    if window.kind is WindowKind.RANGE:
        oldest = reach_back(now, window.size)
        low = np.searchsorted(side.store.timestamp, oldest, side="left")
    elif window.kind is WindowKind.ROWS:
        # The stream's own count at that moment; a row counts for all copies at once.
        arrived = np.searchsorted(side.store.position[0], when, side="right")
        low = arrived - window.size
    else:
        low = np.zeros(len(when), np.int64)
    return np.clip(low, 0, high), high
