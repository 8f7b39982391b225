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
from seustream.engine.host.aggregates import Aggregates, AtPoints, Turns, values_of
from seustream.engine.host.words import KeyNumbers
from seustream.engine.kernels import native
from seustream.engine.stream.growing import Growing
from seustream.engine.stream.schema import arrow_type

Ints = npt.NDArray[np.int64]

_FEW = 4096
"""Members, keys and codes that may be kept beyond twice the number needed."""


class Sliding:
    """Groups by keys of types `keys`; aggregates as in `Aggregates`."""

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
        self.types = [arrow_type(one) for one in keys], [arrow_type(one) for one in of]
        self._made = aggregates, numbers, of, ordered, whole
        self.clocks, self.rows = clocks, rows
        self._begin()

    def _begin(self) -> None:
        """Forgets all members."""
        self.keys = KeyNumbers(self.types[0])
        self.windows = native.Windows() if self.rows is None else native.LastRows()
        self.aggregates = Aggregates(*self._made)
        self.ends = [Growing() for _ in range(self.clocks)]
        self.live = 0
        """The number of members held."""

    def enter(
        self,
        keys: list[pa.Array],
        values: list[pa.Array],
        arrival: Ints,
        clocks: tuple[Ints, ...] | None = (),
        ends: Sequence[Ints] = (),
    ) -> tuple[Turns, Ints, Ints]:
        """Takes members with the arrivals they come with. `clocks` are read per arrival; without
        them no results are asked for. A point is a group that an arrival adds to. Returns the
        turns, the first new member of each point, and the point of each new member."""
        count, members = len(arrival), self.aggregates
        members.add(values, self.keys.numbers(keys, count))
        for held, added in zip(self.ends, ends, strict=True):
            held.append(added)
        group = members.group.view
        if isinstance(self.windows, native.LastRows):
            assert self.rows is not None
            parts = self.windows.run(self.rows, count, members.base, group)
            events, until = (np.frombuffer(part, np.int64) for part in parts)
            who = points = np.arange(count)
            at = group[len(group) - count :]
        else:
            found = self.windows.run(
                arrival,
                tuple(ends) if clocks is None else clocks,
                tuple(held.view for held in self.ends),
                members.base,
                group,
                clocks is None,
            )
            events, until, at, who, points = (np.frombuffer(part, np.int64) for part in found)
        self.live += len(events) - 2 * int(np.count_nonzero(events < 0))
        return Turns(events, until, at), who, points

    def move(self, clock: int, places: Ints, ends: Ints) -> None:
        """Gives members, by their places among those held, an earlier end on a clock."""
        assert isinstance(self.windows, native.Windows)
        self.ends[clock].view[places] = ends
        self.windows.moved(clock, places + self.aggregates.base, np.ascontiguousarray(ends))

    def results(self, turns: Turns, faults: Faults) -> list[pa.Array]:
        """Returns each aggregate at each point; adds lost values to `faults`."""
        return values_of(self._made[0], self.found(turns), faults)

    def found(self, turns: Turns) -> list[AtPoints]:
        """Returns each aggregate at each point, with the values that are lost."""
        found = self.aggregates.found(turns)
        past = self.windows.oldest() - self.aggregates.base
        if 2 * past > len(self.aggregates):
            self.aggregates.drop(past)
            for held in self.ends:
                held.drop(past)
        kept = max(len(self.aggregates), len(self.keys), self.aggregates.distinct)
        if kept > 2 * self.live + _FEW:
            self.fill(*self.held())
        return found

    def held(self) -> tuple[int, list[pa.Array], list[pa.Array], list[Ints]]:
        """Returns the number of members held, with their keys, arguments and ends, for `fill`."""
        there = np.empty(len(self.aggregates), np.uint8)
        self.windows.live(self.aggregates.base, there)
        places = np.flatnonzero(there)
        groups = self.aggregates.group.view[places]
        keys = [words.take(groups) for words in self.keys.columns]
        values = [words.take(places) for words in self.aggregates.columns]
        return len(places), keys, values, [held.view[places] for held in self.ends]

    def fill(
        self, count: int, keys: list[pa.Array], values: list[pa.Array], ends: list[Ints]
    ) -> None:
        """Starts over with these members."""
        self._begin()
        turns, _, _ = self.enter(keys, values, np.zeros(count, np.int64), None, ends)
        self.aggregates.found(Turns(turns.events, turns.until[:0], turns.at[:0]))
