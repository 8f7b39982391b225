"""Members of groups that come and leave, with the groups' aggregates kept up to date.

Members leave when a clock has passed their end or, with `rows`, when that many later ones of their
group have come. Members that have left are dropped. So are keys that no member has any more, once
they are as many as the others.

Where none leaves, a group is its state: the members are forgotten that no aggregate needs any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seustream.compiler.language import expressions as x
from seustream.compiler.language.faults import Faults
from seustream.compiler.language.types import Type
from seustream.engine.host.aggregates import Aggregates, AtPoints, values_of
from seustream.engine.host.keys import KeyNumbers, exported
from seustream.engine.kernels import native
from seustream.engine.stream.schema import arrow_type
from seustream.engine.stream.taken import taken

Ints = npt.NDArray[np.int64]

_FEW = 4096
"""Members, keys and codes that may be kept beyond twice the number needed."""

STATES = pa.large_list(pa.int64())
"""The type of the states of groups' sums."""


class HeldMembers(NamedTuple):
    """Members with their keys, arguments and ends. Where none leaves, `sums` has the states of groups in
    further rows, in which the arguments are NULL, and is NULL in those of members. `rows` is the number of
    all rows."""

    rows: int
    keys: list[pa.Array]
    values: list[pa.Array]
    ends: list[Ints]
    sums: pa.Array | None


class Sliding:
    """Groups by keys of types `keys`; aggregates as in `Aggregates`. `clocks` is the number of
    clocks; with `rows`, members leave by number instead."""

    def __init__(
        self,
        keys: Sequence[Type],
        aggregates: Sequence[x.AggregateCall],
        numbers: Sequence[tuple[int, ...]],
        of: Sequence[Type],
        clocks: int,
        ordered: bool = True,
        rows: int | None = None,
        whole: frozenset[int] = frozenset(),
    ) -> None:
        self.types = [arrow_type(one) for one in keys]
        self._made = aggregates, numbers, of, ordered, whole
        self.clocks, self.rows = clocks, rows
        self._begin()
        self.stays = not clocks and rows is None and self.aggregates.can_fold
        """Whether no member leaves, so that they need not be kept."""

    def _begin(self) -> None:
        """Forgets all members."""
        self.keys = KeyNumbers(self.types)
        self.windows = native.Windows() if self.rows is None else native.LastRows()
        self.aggregates = Aggregates(*self._made)
        self._folded = 0
        """The number of members that were needed when that was last found out."""

    @property
    def live(self) -> int:
        """The number of members held."""
        return len(self.aggregates) if self.stays else self.windows.count()

    def enter(
        self,
        keys: Sequence[pa.Array],
        values: Sequence[pa.Array],
        count: int,
        arrival: Ints | None,
        clocks: tuple[Ints, ...] | None = (),
        ends: Sequence[Ints | int] = (),
    ) -> tuple[Ints, Ints] | None:
        """Takes `count` members with the arrivals they come with; without `arrival`, each has one of
        its own. `clocks` are read per arrival; without them no results are asked for. The end of
        a member is a reading, or a number of readings after its arrival. A point is a group that an
        arrival adds to. Returns the first new member of each point and the point of each new
        member; None if each new member is a point of its own."""
        kernel, members = self.keys.kernel, self.aggregates.kernel
        if isinstance(self.windows, native.LastRows):
            assert self.rows is not None
            silent = clocks is None
            self.windows.enter(
                kernel, exported(keys), members, exported(values), count, self.rows, silent
            )
            return None
        found = self.windows.enter(
            kernel, exported(keys), members, exported(values), count, arrival, clocks, tuple(ends)
        )
        if found is None:
            return None
        who, points = found
        return np.frombuffer(who, np.int64), np.frombuffer(points, np.int64)

    def ends(self, clock: int) -> Ints:
        """Returns the ends of the members that are kept, by their places."""
        assert isinstance(self.windows, native.Windows)
        return np.frombuffer(self.windows.ends(clock), np.int64)

    def move(self, clock: int, places: Ints, ends: Ints) -> None:
        """Gives members, by their places among those that are kept, an earlier end on a clock."""
        assert isinstance(self.windows, native.Windows)
        self.windows.move(clock, places, np.ascontiguousarray(ends))

    def results(self, faults: Faults) -> list[pa.Array]:
        """Returns each aggregate at each point of the latest members; adds lost values to
        `faults`."""
        return values_of(self.aggregates.aggregates, self.found(), faults)

    def found(self) -> list[AtPoints]:
        """Returns each aggregate at each point of the latest members, with the values that are
        lost."""
        found = self.aggregates.results(self.windows.found(self.aggregates.kernel))
        if self.stays:
            if len(self.aggregates) > 2 * self._folded + _FEW:
                self._folded = self.aggregates.fold()
        elif self.windows.settle(self.keys.kernel, self.aggregates.kernel) > _FEW:
            self.fill(self.held())
        return found

    def held(self) -> HeldMembers:
        """Returns the members held, for `fill`."""
        members = self.aggregates
        places = np.frombuffer(self.windows.held(members.kernel), np.int64)
        keys = self.keys.values(members.groups(places))
        values = [members.values(number, places) for number in range(len(members.types))]
        ends = [self.ends(clock)[places] for clock in range(self.clocks)]
        if not self.stays:
            return HeldMembers(len(places), keys, values, ends, None)
        groups = np.arange(len(self.keys))
        keys = joined([keys, self.keys.values(groups)])
        values = [pa.concat_arrays([one, pa.nulls(len(groups), one.type)]) for one in values]
        sums = [pa.nulls(len(places), STATES), members.states(groups)]
        return HeldMembers(len(places) + len(groups), keys, values, ends, pa.concat_arrays(sums))

    def fill(self, held: HeldMembers) -> None:
        """Starts over with these members."""
        self._begin()
        count, keys, values, ends, sums = held
        groups: tuple[list[pa.Array], pa.Array] | None = None
        if sums is not None:
            there = np.asarray(sums.is_valid())
            some, members = np.flatnonzero(there), np.flatnonzero(~there)
            groups = [taken(key, some) for key in keys], sums.take(pa.array(some))
            keys, values = ([taken(one, members) for one in part] for part in (keys, values))
            count = len(members)
        self.enter(keys, values, count, np.zeros(count, np.int64), None, ends)
        self.aggregates.results(self.windows.found(self.aggregates.kernel))
        if groups is not None:
            numbers = self.keys.numbers(groups[0], len(groups[1]))
            self.aggregates.resume(numbers, groups[1])


def joined(parts: Sequence[list[pa.Array]]) -> list[pa.Array]:
    """Concatenates the same columns of several tables."""
    return [pa.concat_arrays(some) for some in zip(*parts, strict=True)]
