"""Aggregates of groups whose members come and leave.

A group is updated by the members that come and leave, however many it has. Counts, exact sums and
means, and the best member of a group are compiled (`engine.kernels`). Every other aggregate goes
through the states of the registry: those that can remove take members out again; the others keep a
group's rows and start over at each point.

With DISTINCT, equal members of a group are one, for as long as one of them is there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seustream.compiler.language import expressions as x
from seustream.compiler.language.aggregates import AGGREGATES
from seustream.compiler.language.faults import Faults, Place
from seustream.compiler.language.registry import FAULT, AggregateFunction
from seustream.compiler.language.types import Type
from seustream.engine.host.words import Flags, KeyNumbers, Words, decimals
from seustream.engine.kernels import native
from seustream.engine.stream.growing import Growing
from seustream.engine.stream.numbers import as_column
from seustream.engine.stream.schema import arrow_type

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_COUNTED, _WHOLE, _REAL, _SPAN, _DECIMAL, _WIDE = range(6)
"""`Summed` of the kernels."""
_WANTED = {"min": 0, "max": 1, "first": 2, "last": 3, "min_by": 0, "max_by": 1}
"""`Wanted` of the kernels. These functions pick a single row, so repetitions do not matter."""
_SHORTEST, _LONGEST = -86_399_999_913_600_000, 86_399_999_999_999_999
"""The intervals that Python can represent, in milliseconds."""


class AtPoints(NamedTuple):
    """An aggregate at points. Where it is `lost`, it has no value because of a fault."""

    values: pa.Array
    lost: Bools | None


@dataclass(frozen=True, slots=True)
class Turns:
    """Members coming (m) and leaving (~m), in the order of `events`. Point p asks group `at[p]`
    after the first `until[p]` events."""

    events: Ints
    until: Ints
    at: Ints


def spanned(lo: Ints, hi: Ints, at: Ints) -> Turns:
    """Returns the turns of members, each of which counts at the points lo <= p < hi."""
    held = np.flatnonzero(hi > lo)
    when = np.concatenate((2 * lo[held] + 1, 2 * hi[held]))
    order = np.argsort(when, kind="stable")
    until = np.searchsorted(when[order], 2 * np.arange(len(at)) + 1, side="right")
    return Turns(np.concatenate((held, ~held))[order], until, at)


def values_of(
    aggregates: Sequence[x.AggregateCall], found: Sequence[AtPoints], faults: Faults
) -> list[pa.Array]:
    """Returns the values of aggregates, and adds to `faults` those that are lost."""
    for e, (_, lost) in zip(aggregates, found, strict=True):
        if lost is not None and lost.any():
            place = Place(e.at, x.show(e), AGGREGATES[e.function].fault)
            faults.add(place, int(lost.sum()), int(lost.argmax()))
    return [one.values for one in found]


class Aggregates:
    """Aggregates over members whose arguments have the types `of`; aggregate i takes the arguments
    `numbers[i]`. `ordered` says that members of a group leave in the order in which they came. In
    the arguments `whole`, NULL is a value like any other."""

    def __init__(
        self,
        aggregates: Sequence[x.AggregateCall],
        numbers: Sequence[tuple[int, ...]],
        of: Sequence[Type],
        ordered: bool,
        whole: frozenset[int] = frozenset(),
    ) -> None:
        self.base, self.whole = 0, whole
        self.group = Growing()
        self.columns = [Words(arrow_type(one)) for one in of]
        self._parts: dict[tuple[Any, ...], _Totals | _Best | _States] = {}
        self._of: list[tuple[x.AggregateCall, _Totals | _Best | _States]] = []
        for e, read in zip(aggregates, numbers, strict=True):
            members = _Members(self, read)
            key: tuple[Any, ...]
            if e.function in _WANTED:
                key = (e.function, read)
                part: Any = _Best(members, e.function, ordered)
            elif e.function in ("count", "sum", "avg"):
                key = ("sum", read, e.distinct)
                part = _Totals(members, e)
            else:
                key = (e,)
                part = _States(members, e)
            part = self._parts.setdefault(key, part)
            if isinstance(part, _Totals):
                part.functions.add(e.function)
            self._of.append((e, part))

    def __len__(self) -> int:
        return len(self.group)

    @property
    def distinct(self) -> int:
        """The largest number of codes or keys held for any column or part; they are never
        forgotten."""
        codes = [words.codes.count() for words in self.columns if words.codes is not None]
        keys = [len(p.members.keys) for p in self._parts.values() if p.members.keys is not None]
        return max((*codes, *keys), default=0)

    def add(self, values: Sequence[pa.Array], group: Ints) -> None:
        """Takes new members."""
        self.group.append(group)
        for words, value in zip(self.columns, values, strict=True):
            words.append(value)
        for part in self._parts.values():
            part.members.add(values, group)

    def drop(self, count: int) -> None:
        """Drops the first `count` members, which have left."""
        self.base += count
        self.group.drop(count)
        for words in self.columns:
            words.drop(count)
        for part in self._parts.values():
            part.members.drop(count)

    def at(self, turns: Turns, faults: Faults) -> list[pa.Array]:
        """Returns each aggregate at each point; adds lost values to `faults`."""
        return values_of([e for e, _ in self._of], self.found(turns), faults)

    def found(self, turns: Turns) -> list[AtPoints]:
        """Returns each aggregate at each point, with the values that are lost."""
        for part in self._parts.values():
            part.run(part.members.distinct(turns))
        return [part.result(e) for e, part in self._of]


class _Members:
    """The members that count for one aggregate: those with no NULL argument. With DISTINCT, `keys`
    numbers the members of one group so that equal ones share a number."""

    def __init__(self, of: Aggregates, read: tuple[int, ...]) -> None:
        self.of, self.read = of, read
        self.keys: KeyNumbers | None = None
        self._both = Growing(np.uint8)
        self._codes = Growing()
        self._repeats = native.Repeats()

    @property
    def flags(self) -> Flags:
        if len(self.read) > 1:
            return self._both.view
        if not self.read or self.read[0] in self.of.whole:
            return None
        return self.of.columns[self.read[0]].flags

    def once(self) -> None:
        """Counts equal members once from now on."""
        types = [self.of.columns[number].type for number in self.read]
        self.keys = KeyNumbers([pa.int64(), *types])

    def add(self, values: Sequence[pa.Array], group: Ints) -> None:
        mine = [values[number] for number in self.read]
        if len(mine) > 1:
            some = [self.of.columns[number].flags for number in self.read]
            both = np.ones(len(group), np.uint8)
            for flags in some:
                if flags is not None:
                    both &= flags[len(flags) - len(group) :]
            self._both.append(both)
        if self.keys is not None:
            self._codes.append(self.keys.numbers([pa.array(group), *mine], len(group)))

    def drop(self, count: int) -> None:
        if len(self.read) > 1:
            self._both.drop(count)
        if self.keys is not None:
            self._codes.drop(count)

    def distinct(self, turns: Turns) -> Turns:
        """Returns the turns of the members that count."""
        if self.keys is None:
            return turns
        kept = np.empty(len(turns.events), np.uint8)
        self._repeats.run(turns.events, self.of.base, self._codes.view, self.flags, kept)
        until = np.concatenate(([0], np.cumsum(kept, dtype=np.int64)))[turns.until]
        return Turns(turns.events[kept != 0], until, turns.at)


class _Totals:
    """Counts, sums and means of one argument."""

    def __init__(self, members: _Members, e: x.AggregateCall) -> None:
        self.members, self.functions = members, set[str]()
        if e.distinct:
            members.once()
        self.kernel = native.Totals()
        self.counts: Ints = np.empty(0, np.int64)
        self.sums: Ints | None = None
        self.means: Ints | None = None
        self.known: npt.NDArray[np.uint8] | None = None

    def run(self, turns: Turns) -> None:
        of, points = self.members.of, len(turns.at)
        words = of.columns[self.members.read[0]] if self.functions - {"count"} else None
        kind = _COUNTED if words is None else _summed(words)
        size = points * (1 + (kind in (_DECIMAL, _WIDE)))
        self.counts = np.empty(points, np.int64)
        self.sums = np.empty(size, np.int64) if "sum" in self.functions else None
        self.means = np.empty(size, np.int64) if "avg" in self.functions else None
        self.known = None if words is None else np.empty(points, np.uint8)
        self.kernel.run(
            turns.events, turns.until, turns.at, of.base, of.group.view,
            None if words is None else words.words, self.members.flags,
            kind, 1 if words is None else 10 ** _scale(words.type),
            self.counts, self.sums, self.means, self.known,
        )  # fmt: skip

    def result(self, e: x.AggregateCall) -> AtPoints:
        if e.function == "count":
            return AtPoints(as_column(self.counts), None)
        found, bit = (self.sums, 1) if e.function == "sum" else (self.means, 2)
        assert found is not None
        assert self.known is not None
        there = (self.known & bit) != 0
        of = arrow_type(e.type)
        if pa.types.is_duration(of):
            there &= (found >= _SHORTEST) & (found <= _LONGEST)
        lost = ~there & (self.counts > 0)
        nulls = None if there.all() else ~there
        if pa.types.is_decimal(of):
            return AtPoints(decimals(found, of, nulls), lost)
        if pa.types.is_floating(of):
            return AtPoints(as_column(found, pa.float64(), nulls), lost)
        return AtPoints(as_column(found, nulls=nulls).cast(of), lost)


def _summed(words: Words) -> int:
    of = words.type
    if pa.types.is_decimal(of):
        return _WIDE if words.wide else _DECIMAL
    if pa.types.is_duration(of):
        return _SPAN
    return _REAL if pa.types.is_floating(of) else _WHOLE


def _scale(of: pa.DataType) -> int:
    """Returns how many more digits a mean has than its argument."""
    return min(of.scale + 4, 38) - of.scale if pa.types.is_decimal(of) else 0


class _Best:
    """Picks one of the members of each group."""

    def __init__(self, members: _Members, function: str, ordered: bool) -> None:
        self.members, self.wanted, self.ordered = members, _WANTED[function], ordered
        self.kernel = native.Best()
        self.found: Ints = np.empty(0, np.int64)

    def run(self, turns: Turns) -> None:
        of = self.members.of
        words = of.columns[self.members.read[-1]]
        self.found = np.empty(len(turns.at), np.int64)
        self.kernel.run(
            turns.events, turns.until, turns.at, of.base, of.group.view, words.words,
            self.members.flags, _compared(words), words.codes, self.wanted, self.ordered,
            self.found,
        )  # fmt: skip

    def result(self, e: x.AggregateCall) -> AtPoints:
        of, known = self.members.of, self.found >= 0
        some = None if known.all() else known
        return AtPoints(of.columns[self.members.read[0]].take(self.found - of.base, some), None)


def _compared(words: Words) -> int:
    """`Compared` of the kernels."""
    if words.codes is not None:
        return 3
    return 2 if words.wide else int(pa.types.is_floating(words.type))


class _States:
    """Computes an aggregate by the states of the registry."""

    def __init__(self, members: _Members, e: x.AggregateCall) -> None:
        self.members, self.e, self.entry = members, e, AGGREGATES[e.function]
        self.removes = self.entry.remove is not None
        self.repeats = not (e.distinct and not self.removes)
        if e.distinct and self.removes:
            members.once()
        self.states: dict[int, Any] = {}
        self.found: AtPoints | None = None

    def run(self, turns: Turns) -> None:
        lost = np.zeros(len(turns.at), np.bool_)
        entry, found = self.entry, []
        for point, state in enumerate(self._at(turns, entry)):
            result = entry.result(self.e.type, state) if entry.typed else entry.result(state)
            if result is FAULT:
                lost[point], result = True, None
            found.append(result)
        self.found = AtPoints(pa.array(found, arrow_type(self.e.type)), lost)

    def result(self, e: x.AggregateCall) -> AtPoints:
        assert self.found is not None
        return self.found

    def _at(self, turns: Turns, entry: AggregateFunction) -> Iterator[Any]:
        """Yields the state at each point; each is valid until the next is requested."""
        of = self.members.of
        members = np.where(turns.events < 0, ~turns.events, turns.events)
        places = members - of.base
        flags = self.members.flags
        counts = [True] * len(places) if flags is None else (flags[places] != 0).tolist()
        values = [of.columns[number].take(places).to_pylist() for number in self.members.read]
        rows = list(zip(*values, strict=True))
        groups, events = of.group.view[places].tolist(), turns.events.tolist()
        done, numbers = 0, members.tolist()
        for until, at in zip(turns.until.tolist(), turns.at.tolist(), strict=True):
            for i in range(done, until):
                if counts[i]:
                    self._step(groups[i], numbers[i], rows[i], events[i] < 0)
            done = until
            yield self._state(at)
        for i in range(done, len(events)):
            if counts[i]:
                self._step(groups[i], numbers[i], rows[i], events[i] < 0)

    def _step(self, group: int, member: int, row: tuple[Any, ...], leaves: bool) -> None:
        entry = self.entry
        if entry.remove is None:
            held = self.states.setdefault(group, {})
            if leaves:
                del held[member]
            else:
                held[member] = row
            return
        state = self.states[group] if group in self.states else entry.init()
        self.states[group] = (entry.remove if leaves else entry.insert)(state, *row)

    def _state(self, group: int) -> Any:
        if self.removes:
            return self.states[group] if group in self.states else self.entry.init()
        held = self.states.get(group, {}).values()
        state = self.entry.init()
        for row in held if self.repeats else dict.fromkeys(held):
            state = self.entry.insert(state, *row)
        return state
