"""Members of groups that come and leave, with the groups' aggregates kept up to date.

Members leave when a clock has passed their end or, with `rows`, when that many later ones of their
group have come. Members that have left are dropped. So are keys that no member has any more, once
they are as many as the others.
"""

from __future__ import annotations

from collections.abc import Sequence

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

Ints = npt.NDArray[np.int64]

_FEW = 4096
"""Members, keys and codes that may be kept beyond twice the number needed."""


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

    def _begin(self) -> None:
        """Forgets all members."""
        self.keys = KeyNumbers(self.types)
        self.windows = native.Windows() if self.rows is None else native.LastRows()
        self.aggregates = Aggregates(*self._made)

    @property
    def live(self) -> int:
        """The number of members held."""
        return self.windows.count()

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
        if self.windows.settle(self.keys.kernel, self.aggregates.kernel) > _FEW:
            self.fill(*self.held())
        return found

    def held(self) -> tuple[int, list[pa.Array], list[pa.Array], list[Ints]]:
        """Returns the number of members held, with their keys, arguments and ends, for `fill`."""
        members = self.aggregates
        places = np.frombuffer(self.windows.held(members.kernel), np.int64)
        keys = self.keys.values(members.groups(places))
        values = [members.values(number, places) for number in range(len(members.types))]
        ends = [self.ends(clock)[places] for clock in range(self.clocks)]
        return len(places), keys, values, ends

    def fill(
        self, count: int, keys: list[pa.Array], values: list[pa.Array], ends: list[Ints]
    ) -> None:
        """Starts over with these members."""
        self._begin()
        self.enter(keys, values, count, np.zeros(count, np.int64), None, ends)
        self.aggregates.results(self.windows.found(self.aggregates.kernel))
