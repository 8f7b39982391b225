"""Combinations that stay for a while: those of a side of a join that may still match, or those that
wait for their turn. What a step costs depends on those that come and leave, not on those that stay."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from seustream.compiler.logical.windows import LandmarkWindow, PartitionWindow
from seustream.engine.relational.combinations import (
    NEVER,
    NOTHING,
    Bools,
    Combinations,
    Frontier,
    Ints,
    Lives,
    TreeSources,
)
from seustream.engine.relational.keyed import Keyed
from seustream.engine.relational.slots import Slots
from seustream.engine.stream.growing import Growing
from seustream.engine.stream.nearby import Nearby
from seustream.hdl.device import WindowKind


class _Rising:
    """Numbers that rise, and their places. Of places that follow one another only the first is kept."""

    def __init__(self) -> None:
        self.numbers = Nearby()
        self._first = 0
        self._places: Nearby | None = None

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def lowest(self) -> int:
        return int(self.numbers[:1][0])

    @property
    def highest(self) -> int:
        return int(self.numbers[-1:][0])

    def append(self, numbers: Ints, places: Ints) -> None:
        if not len(self):
            self._first, self._places = int(places[0]), None
        if self._places is None:
            follow = np.arange(self._first + len(self), self._first + len(self) + len(places))
            if not np.array_equal(places, follow):
                self._places = Nearby()
                self._places.append(np.arange(self._first, self._first + len(self)))
        if self._places is not None:
            self._places.append(places)
        self.numbers.append(numbers)

    def places(self, count: int) -> Ints:
        """Returns the places of the first numbers."""
        if self._places is None:
            return np.arange(self._first, self._first + min(count, len(self)))
        return self._places[:count].copy()

    def drop(self, count: int) -> None:
        self.numbers.drop(count)
        self._first += count
        if self._places is not None:
            self._places.drop(count)


@dataclass(frozen=True, slots=True)
class Pooled:
    """Combinations of a pool, as columns."""

    rows: Ints
    time: Nearby
    place: Nearby
    matched: Bools

    def __len__(self) -> int:
        return len(self.time)

    def pick(self, which: Ints) -> Combinations:
        return Combinations(
            self.rows[which], self.time[which], self.place[which], self.matched[which]
        )


class Ordered:
    """Places by a number, the least first. Numbers that rise are one sorted run; others are runs, each
    at most half as long as the one before."""

    def __init__(self) -> None:
        self._runs: list[_Rising] = []

    def add(self, numbers: Ints, places: Ints) -> None:
        if not len(numbers):
            return
        if (numbers[1:] < numbers[:-1]).any():
            order = np.argsort(numbers, kind="stable")
            numbers, places = numbers[order], places[order]
        if not self._runs or self._runs[-1].highest > numbers[0]:
            self._runs.append(_Rising())
        self._runs[-1].append(numbers, places)
        while len(self._runs) > 1 and 2 * len(self._runs[-1]) >= len(self._runs[-2]):
            some = self._runs[-2:]
            numbers = np.concatenate([run.numbers[:] for run in some])
            places = np.concatenate([run.places(len(run)) for run in some])
            order = np.argsort(numbers, kind="stable")
            self._runs[-2:] = [_Rising()]
            self._runs[-1].append(numbers[order], places[order])

    def take(self, below: int) -> Ints:
        """Removes the places whose numbers are below a number, and returns them; `NEVER` takes all."""
        found = []
        for run in self._runs:
            count = len(run) if below == NEVER else run.numbers.find(below)
            if count:
                found.append(run.places(count))
                run.drop(count)
        if not found:
            return np.empty(0, np.int64)
        self._runs = [run for run in self._runs if len(run)]
        return found[0] if len(found) == 1 else np.concatenate(found)

    @property
    def lowest(self) -> int | None:
        """The least number, None if there is none."""
        return min((run.lowest for run in self._runs), default=None)

    def least(self, here: Bools, matched: Bools) -> int | None:
        """Returns the place with the least number that is here and not matched. Others are removed if no
        such place has a smaller number in their run."""
        found: list[tuple[int, int]] = []
        for run in self._runs:
            width = 16
            while len(run):
                some = run.places(width)
                waits = here[some] & ~matched[some]
                first = int(waits.argmax())
                if waits[first]:
                    run.drop(first)
                    found.append((run.lowest, int(some[first])))
                    break
                run.drop(len(some))
                width *= 4
        self._runs = [run for run in self._runs if len(run)]
        return min(found)[1] if found else None


class Pool(Slots):
    """Combinations by place.

    `frame` and `sources` tell when they end: by the time, by the rows that follow in their streams, or by
    partitions; without sources that is not asked for. `waits` if it is to be asked for the first that is
    not matched, or for those that have come before a place of all streams; `dated` if for the times of the
    latest tuples of all.
    """

    def __init__(
        self, frame: TreeSources, sources: Iterable[int], waits: bool, dated: bool = False
    ) -> None:
        self.frame, self.width = frame, len(frame.sources)
        windows = {number: frame.sources[number].window for number in sources}
        self._ends_by_time = frame.ends_by_time(windows)
        self._pushed = {
            number: frame.partitions[number].reader()
            for number, of in windows.items()
            if isinstance(of, PartitionWindow)
        }
        self._counted = [
            number
            for number, of in windows.items()
            if of.kind is WindowKind.ROWS and not isinstance(of, PartitionWindow)
        ]
        self._timed = any(
            of.kind is WindowKind.RANGE or isinstance(of, LandmarkWindow) for of in windows.values()
        )
        self._waits, self._dated = waits, dated
        self._begin()

    def _begin(self) -> None:
        super().__init__()
        self._rows, self._time, self._place = Growing(), Nearby(), Nearby()
        self._matched = Growing(np.bool_)
        self._moment = Growing()
        self._by_time, self._by_arrival = Ordered(), Ordered()
        self._by_row = {number: Ordered() for number in self._counted}
        # By the places of their rows in the order of all streams; rows that have been pushed out by then are
        # known when they come.
        self._by_place = {number: Keyed() for number in self._pushed}
        self._by_push = Ordered()

    @property
    def view(self) -> Pooled:
        """All places, also of those that have left. Valid until more are added; what is written to rows and
        flags is kept."""
        rows = self._rows.view.reshape(-1, self.width)
        return Pooled(rows, self._time, self._place, self._matched.view)

    @property
    def moments(self) -> Ints:
        """The times of the latest tuples, by place."""
        found: Ints = self._moment.view
        return found

    def add(self, found: Combinations) -> Ints:
        """Adds combinations; returns their places."""
        places = self.take(len(found))
        if not len(found):
            return places
        arrival, moment, last = self.frame.arrivals(found.rows)
        self._rows.append(found.rows.reshape(-1))
        self._time.append(found.time)
        self._place.append(found.place)
        self._matched.append(found.matched)
        if self._dated:
            self._moment.append(moment)
        if self._timed:
            ends = last < NEVER
            self._by_time.add(*((last, places) if ends.all() else (last[ends], places[ends])))
        for number, rows in self._by_row.items():
            mine = found.rows[:, number]
            there = mine != NOTHING
            rows.add(mine[there], places[there])
        for number, index in self._by_place.items():
            mine, store = found.rows[:, number], self.frame.store(number)
            there = mine != NOTHING
            at, place = store.index(mine[there]), np.full(len(mine), NOTHING)
            place[there] = store.position[0][at]
            index.append((place, there.astype(np.uint8)))
            gone = self.frame.partitions[number].gone[at]
            self._by_push.add(gone[gone < NEVER], places[there][gone < NEVER])
        if self._waits:
            self._by_arrival.add(arrival, places)
        return places

    def lives(self, places: Ints) -> Lives:
        """Returns the lifetimes of some that are here."""
        rows = self.view.rows[places]
        if not self._ends_by_time:
            return self.frame.lives(rows)
        never, (place, time, last) = np.full(len(places), NEVER), self.frame.arrivals(rows)
        return Lives(place, time, never, never, last)

    # --- who leaves -----------------------------------------------------------

    def ended(self, frontier: Frontier) -> Ints:
        """Returns the places of those that are within together with nothing that comes later. Each is
        returned once if it leaves then."""
        if frontier.place == NEVER:
            here = np.flatnonzero(self.here)
            return here[frontier.ended(self.lives(here))]
        found = [self._by_time.take(frontier.time)]
        for number, rows in self._by_row.items():
            found.append(rows.take(self.frame.pushed_before(number, frontier.place)))
        for number, index in self._by_place.items():
            found.append(index.places(self._pushed[number].take(frontier.place)))
        if self._pushed:
            found.append(self._by_push.take(frontier.place + 1))
        places = found[0] if len(found) == 1 else np.unique(np.concatenate(found))
        return places[self.here[places]] if self.left else places

    def before(self, place: int) -> Ints:
        """Returns the places of those whose last tuple came before a place of all streams. Each is
        returned once."""
        return np.sort(self._by_arrival.take(place))

    def pending(self) -> Frontier | None:
        """Returns the moment of the first that is not matched; None if there is none."""
        place = self._by_arrival.least(self.here, self._matched.view)
        if place is None:
            return None
        arrival, moment, _ = self.frame.arrivals(self.view.rows[place : place + 1])
        return Frontier(int(arrival[0]), int(moment[0]))

    def compact(self) -> Ints:
        """Gives those that are here new places, from 0 up; returns their old places."""
        stays = np.flatnonzero(self.here)
        if not self.left:
            return stays
        found = self.view.pick(stays)
        self._begin()
        self.add(found)
        return stays
