"""Combinations of tuples, at most one from each source of a tree of joins.

A combination lives from the arrival of its latest tuple until the first arrival that finds one of
its tuples out of its window. Two are within together if each has come before the other's end.
Arrivals are compared by their place in the order of all streams, and by time where a window is one
of time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seustream.compiler.language import expressions as x
from seustream.compiler.language.faults import Faults
from seustream.compiler.logical.program import Source
from seustream.compiler.logical.windows import LandmarkWindow, PartitionWindow
from seustream.engine.host.rows import Rows, RowStore, leaves
from seustream.engine.host.stores import Stores
from seustream.engine.relational.partitions import Partitions
from seustream.engine.stream.evaluate import Leaves, survivors
from seustream.hdl.device import WindowKind

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

NEVER = np.iinfo(np.int64).max
NOTHING = -1
"""Stands for the missing tuple of a source."""


@dataclass(slots=True)
class Combinations:
    """`rows` has a column for each source: sequence numbers of its stream. `time` and `place` are
    the moment at which a combination was certain: after the arrivals at `time` up to `place`."""

    rows: Ints
    time: Ints
    place: Ints
    matched: Bools

    @staticmethod
    def none(sources: int) -> Combinations:
        empty = np.empty(0, np.int64)
        return Combinations(np.empty((0, sources), np.int64), empty, empty, np.empty(0, np.bool_))

    def __len__(self) -> int:
        return len(self.time)

    def pick(self, which: Ints | Bools) -> Combinations:
        return Combinations(
            self.rows[which], self.time[which], self.place[which], self.matched[which]
        )

    def not_before(self, time: Ints, place: Ints) -> Combinations:
        """Returns the combinations, certain at these moments if they are later."""
        later = (time > self.time) | ((time == self.time) & (place > self.place))
        return Combinations(
            self.rows,
            np.where(later, time, self.time),
            np.where(later, place, self.place),
            self.matched,
        )


def together(parts: Sequence[Combinations]) -> Combinations:
    return Combinations(
        np.concatenate([part.rows for part in parts]),
        np.concatenate([part.time for part in parts]),
        np.concatenate([part.place for part in parts]),
        np.concatenate([part.matched for part in parts]),
    )


@dataclass(frozen=True, slots=True)
class Lives:
    """The lifetimes of combinations. A later arrival finds one out of a window of rows from place
    `gone` on, whose time is `gone_time`, and out of a window of time after `last`."""

    place: Ints
    time: Ints
    gone: Ints
    gone_time: Ints
    last: Ints

    def pick(self, which: Ints | Bools) -> Lives:
        return Lives(
            self.place[which],
            self.time[which],
            self.gone[which],
            self.gone_time[which],
            self.last[which],
        )

    def within(self, other: Lives) -> Bools:
        """Returns, for each pair, whether both live at the arrival of the later one."""
        place, time = np.maximum(self.place, other.place), np.maximum(self.time, other.time)
        gone, last = np.minimum(self.gone, other.gone), np.minimum(self.last, other.last)
        return np.asarray((place < gone) & (time <= last))

    @property
    def end(self) -> tuple[Ints, Ints]:
        """The moment of the end: time and place."""
        counted = (self.gone < NEVER) & (self.gone_time <= self.last)
        return np.where(counted, self.gone_time, self.last), np.where(counted, self.gone, NEVER)


@dataclass(frozen=True, slots=True)
class Frontier:
    """A bound on what follows: its latest tuple is at this place or after, and at this time or
    after."""

    place: int
    time: int

    def meet(self, other: Frontier) -> Frontier:
        return Frontier(min(self.place, other.place), min(self.time, other.time))

    def ended(self, lives: Lives) -> Bools:
        """Returns which combinations are within together with nothing that comes later."""
        return np.asarray((lives.gone <= self.place) | (lives.last < self.time))


END = Frontier(NEVER, NEVER)


def until_landmark(window: LandmarkWindow, times: Ints) -> Ints:
    """Returns the last times at which tuples of these times are in the window."""
    if window.every is None:
        return np.full(len(times), NEVER)
    begun = times - times % window.every
    return np.where(begun > NEVER - (window.every - 1), NEVER, begun + (window.every - 1))


def _present(tuples: Ints) -> tuple[Ints | slice, Ints]:
    """Returns where there is a tuple, and these; in the common case that is everywhere."""
    there = tuples != NOTHING
    if there.all():
        return slice(None), tuples
    here = np.flatnonzero(there)
    return here, tuples[here]


class TreeSources:
    """The sources of a tree, over the stores of their streams."""

    def __init__(self, sources: Sequence[Source], stores: Stores) -> None:
        self.sources, self.stores = tuple(sources), stores
        self.partitions = {
            number: Partitions(of.window, of.stream.name, stores)
            for number, of in enumerate(sources)
            if isinstance(of.window, PartitionWindow)
        }

    def store(self, source: int) -> RowStore:
        return self.stores[self.sources[source].stream.name]

    def ends_by_time(self, sources: Iterable[int]) -> bool:
        """Returns whether the ends of these sources' tuples are known when they come."""
        windows = (self.sources[number].window for number in sources)
        return all(
            window.kind is not WindowKind.ROWS and not isinstance(window, PartitionWindow)
            for window in windows
        )

    def lives(self, rows: Ints) -> Lives:
        place, time, last = self.arrivals(rows)
        return Lives(place, time, *self.pushed_out(rows), last)

    def arrivals(self, rows: Ints) -> tuple[Ints, Ints, Ints]:
        """Returns what is known of lifetimes at once, and never changes: the place and the time at which
        they begin, and the last time in windows of time."""
        count = len(rows)
        place, time = np.full(count, NOTHING), np.full(count, np.iinfo(np.int64).min)
        last = np.full(count, NEVER)
        for source, of in enumerate(self.sources):
            here, mine = _present(rows[:, source])
            if not len(mine):
                continue
            store, window = self.store(source), of.window
            at = store.index(mine)
            place[here] = np.maximum(place[here], store.position[0][at])
            now = store.timestamp[at]
            time[here] = np.maximum(time[here], now)
            if window.kind is WindowKind.RANGE:
                until = np.minimum(now, NEVER - window.size) + window.size
                last[here] = np.minimum(last[here], until)
            elif isinstance(window, LandmarkWindow):
                last[here] = np.minimum(last[here], until_landmark(window, now))
        return place, time, last

    def pushed_out(self, rows: Ints) -> tuple[Ints, Ints]:
        """Returns the places and times at which rows that have come by now push them out of their
        windows, `NEVER` for others."""
        gone, gone_time = np.full(len(rows), NEVER), np.full(len(rows), NEVER)
        for source, of in enumerate(self.sources):
            window = of.window
            if window.kind is not WindowKind.ROWS and not isinstance(window, PartitionWindow):
                continue
            here = np.flatnonzero(rows[:, source] != NOTHING)
            store = self.store(source)
            at = store.index(rows[here, source])
            if isinstance(window, PartitionWindow):
                pushed = self.partitions[source]
                sooner = pushed.gone[at] < gone[here]
                here, at = here[sooner], at[sooner]
                gone[here], gone_time[here] = pushed.gone[at], pushed.time[at]
            else:
                known = at < len(store) - window.size
                here, after = here[known], at[known] + window.size
                sooner = store.position[0][after] < gone[here]
                here, after = here[sooner], after[sooner]
                gone[here], gone_time[here] = store.position[0][after], store.timestamp[after]
        return gone, gone_time

    def pushed_before(self, source: int, place: int) -> int:
        """Returns the sequence number before which rows up to a place have pushed all out of a window of
        rows."""
        store = self.store(source)
        came = store.position[0].find(place, after=True)
        return store.first + came - self.sources[source].window.size

    def oldest(self, rows: Ints) -> Ints:
        """Returns the time of each combination's oldest tuple."""
        found = np.full(len(rows), NEVER)
        for source, of in enumerate(self.sources):
            if of.stream.table:
                continue
            here, mine = _present(rows[:, source])
            store = self.store(source)
            found[here] = np.minimum(found[here], store.timestamp[store.index(mine)])
        return found

    def places(self, rows: Ints) -> list[Ints]:
        """Returns the places of the tuples, by source, in the order of all streams."""
        found = []
        for source in range(len(self.sources)):
            here, mine = _present(rows[:, source])
            store, places = self.store(source), np.full(len(rows), NOTHING)
            places[here] = store.position[0][store.index(mine)]
            found.append(places)
        return found

    def columns(self, expressions: Iterable[x.Expression], rows: Ints) -> Rows:
        """Returns the columns that expressions read; NULL where there is no tuple."""
        found: dict[tuple[int, str], pa.Array] = {}
        for source, names in x.columns_by_source(expressions).items():
            store = self.store(source)
            mine = rows[:, source]
            there = mine != NOTHING
            whole = bool(there.all())
            taken = store.columns(names, store.index(mine if whole else mine[there]))
            spread = None if whole else pa.array(np.cumsum(there) - 1, mask=~there)
            for name, values in taken.items():
                found[source, name] = values if spread is None else values.take(spread)
        return found

    def leaves(self, e: x.Expression, rows: Ints) -> Leaves:
        return leaves(self.columns([e], rows))

    def where(self, condition: x.Expression, rows: Ints, faults: Faults) -> Ints:
        """Returns the places of the combinations for which a condition holds."""
        if condition == x.TRUE or not len(rows):
            return np.arange(len(rows))
        with faults.naming(lambda row: self.named(rows[row])):
            return survivors(
                x.conjuncts(condition),
                lambda e, which: self.leaves(e, rows[which]),
                len(rows),
                faults,
            )

    def named(self, row: Ints) -> str:
        """Describes a combination to users, by its times."""
        parts = []
        for source, sequence in enumerate(row):
            if sequence != NOTHING:
                store = self.store(source)
                time = store.timestamp[store.index(sequence)]
                parts.append(f"{self.sources[source].alias} at ts {time}")
        return ", ".join(parts)
