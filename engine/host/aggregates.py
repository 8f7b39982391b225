"""Aggregates of groups whose members come and leave.

A group is updated by the members that come and leave, however many it has. Counts, exact sums and
means, moments, bits, and the best member of a group are compiled (`engine.kernels`). Every other
aggregate goes through the states of the registry: those that can remove take members out again, unless
all members leave before the group is asked again; the others keep a group's rows and start over at each
point.

With DISTINCT, equal members of a group are one, for as long as one of them is there.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seustream.compiler.language import expressions as x
from seustream.compiler.language.aggregates import AGGREGATES
from seustream.compiler.language.exact import UNIT
from seustream.compiler.language.faults import Faults, Place
from seustream.compiler.language.registry import FAULT
from seustream.compiler.language.spreads import MOMENTS, moments
from seustream.compiler.language.types import Type
from seustream.engine.host.keys import exported
from seustream.engine.kernels import native
from seustream.engine.stream.schema import arrow_type
from seustream.engine.stream.taken import made, taken

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_SUMS, _PICKS, _OTHER, _MOMENTS, _BITS = range(5)
"""`Kind` of the kernels."""
_SUMMED = {"count": 0, "sum": 1, "avg": 2}
_MEMBER, _NOTHING, _SET = 3, 4, 5
"""`Asked` of the kernels."""
_WANTED = {
    "min": 0, "max": 1, "first": 2, "last": 3, "min_by": 0, "max_by": 1, "bool_and": 0, "bool_or": 1,
}  # fmt: skip
"""`Wanted` of the kernels. These functions pick a single row, so repetitions do not matter."""
_BITS_WANTED = {"bit_and": 0, "bit_or": 1}
"""`BitsWanted` of the kernels."""


class AtPoints(NamedTuple):
    """An aggregate at points. Where it is `lost`, it has no value because of a fault."""

    values: pa.Array
    lost: Bools | None

    def some(self, places: Ints) -> AtPoints:
        """Returns those of some points."""
        return AtPoints(
            taken(self.values, places), None if self.lost is None else self.lost[places]
        )


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
        self.aggregates = tuple(aggregates)
        self.types = [arrow_type(one) for one in of]
        self.kernel = native.Aggregates()
        self._states: dict[int, _States] = {}
        parts: dict[tuple[object, ...], tuple[int, tuple[int, ...], bool, int]] = {}
        results, types = [], []
        for e, read in zip(aggregates, numbers, strict=True):
            key: tuple[object, ...]
            if e.function in _WANTED:
                key, part = (e.function, read), (_PICKS, read, False, _WANTED[e.function])
                asked, result = _MEMBER, self.types[read[0]]
            elif e.function in _SUMMED:
                key, part = ("sum", read, e.distinct), (_SUMS, read, e.distinct, 0)
                asked, result = _SUMMED[e.function], arrow_type(e.type)
            elif e.function in _BITS_WANTED:
                key, part = (e.function, read), (_BITS, read, False, _BITS_WANTED[e.function])
                asked, result = _SET, arrow_type(e.type)
            else:
                once = e.distinct and AGGREGATES[e.function].remove is not None
                kind = _MOMENTS if e.function in MOMENTS else _OTHER
                key, part = (e,), (kind, read, once, 0)
                asked, result = _NOTHING, arrow_type(e.type)
            parts.setdefault(key, part)
            number = [*parts].index(key)
            if asked == _NOTHING and number not in self._states:
                states = _Moments if e.function in MOMENTS else _States
                self._states[number] = states(self, number, e, read)
            results.append((number, asked))
            types.append(result)
        self._results = tuple(zip(results, types, strict=True))
        self._can_fold = all(kind != _OTHER for kind, *_ in parts.values())
        self.kernel.configure(
            tuple([one.__arrow_c_schema__() for one in self.types]),
            tuple(parts.values()),
            tuple(results),
            tuple([one.__arrow_c_schema__() for one in types]),
            tuple(whole),
            ordered,
        )

    def __len__(self) -> int:
        return self.kernel.count()

    def add(self, values: Sequence[pa.Array], group: Ints) -> None:
        """Takes new members."""
        self.kernel.add(exported(values), group)

    def values(self, argument: int, places: Ints) -> pa.Array:
        """Returns an argument of some members, by their places among those that are kept."""
        found = self.kernel.take(argument, np.ascontiguousarray(places))
        return made(found, self.types[argument])

    @property
    def can_fold(self) -> bool:
        """Returns whether groups need few of their members, if none leaves."""
        return self._can_fold

    def fold(self) -> int:
        """Forgets members that no group needs where none leaves; returns how many are left."""
        return self.kernel.fold()

    def states(self, groups: Ints) -> pa.Array:
        """Returns the states of the sums of some groups."""
        words, ends = (np.frombuffer(one, np.int64) for one in self.kernel.states(groups))
        return pa.LargeListArray.from_arrays(np.append(0, ends), pa.array(words))

    def resume(self, groups: Ints, states: pa.Array) -> None:
        """Takes the states of the sums of some groups, none of which is NULL, in place of what they had."""
        ends = np.asarray(states.value_lengths()).cumsum()
        self.kernel.resume(groups, np.asarray(states.flatten()), ends)

    def groups(self, places: Ints) -> Ints:
        """Returns the groups of some members, by their places."""
        found = np.empty(len(places), np.int64)
        self.kernel.groups(np.ascontiguousarray(places), found)
        return found

    def at(self, turns: Turns, faults: Faults) -> list[pa.Array]:
        """Returns each aggregate at each point; adds lost values to `faults`."""
        found = self.results(self.kernel.found(turns.events, turns.until, turns.at))
        return values_of(self.aggregates, found, faults)

    def enter(
        self, values: Sequence[pa.Array], group: Ints, until: Ints, at: Ints
    ) -> list[AtPoints]:
        """Takes new members that come one after the other; returns each aggregate at points, of the groups `at` after the
        first `until` of them."""
        return self.results(self.kernel.enter(exported(values), group, until, at))

    def now(self, groups: Ints) -> list[AtPoints]:
        """Returns each aggregate of some groups as they are."""
        nothing = np.zeros(len(groups), np.int64)
        return self.results(self.kernel.found(nothing[:0], nothing, np.ascontiguousarray(groups)))

    def results(self, found: native.Found) -> list[AtPoints]:
        """Returns each aggregate at each point that the kernel was asked for."""
        addresses, lost = found
        for states in self._states.values():
            states.run()
        results = []
        for place, ((part, _), of) in enumerate(self._results):
            if not addresses[place]:
                results.append(self._states[part].found)
                continue
            values = pa.Array._import_from_c(addresses[place], of)
            gone = None if lost is None else lost[place]
            results.append(
                AtPoints(values, None if gone is None else np.frombuffer(gone, np.bool_))
            )
        return results


class _States:
    """Computes an aggregate by the states of the registry. `part` is its number in the kernel."""

    def __init__(
        self, of: Aggregates, part: int, e: x.AggregateCall, read: tuple[int, ...]
    ) -> None:
        self.of, self.part, self.e, self.read = of, part, e, read
        self.entry = AGGREGATES[e.function]
        self.removes = self.entry.remove is not None
        self.repeats = not (e.distinct and not self.removes)
        self.states: dict[int, Any] = {}
        self.found = AtPoints(pa.nulls(0), None)

    def run(self) -> None:
        """Takes the kernel's latest turns."""
        entry, found, lost = self.entry, [], []
        for state in self._at():
            result = entry.result(self.e.type, state) if entry.typed else entry.result(state)
            lost.append(result is FAULT)
            found.append(None if result is FAULT else result)
        self.found = AtPoints(pa.array(found, arrow_type(self.e.type)), np.array(lost, np.bool_))

    def _at(self) -> Iterator[Any]:
        """Yields the state at each point; each is valid until the next is requested."""
        *parts, over = (np.frombuffer(one, np.int64) for one in self.of.kernel.turns(self.part))
        turns = Turns(*parts)
        of, leaves = self.of, turns.events < 0
        members = np.where(leaves, ~turns.events, turns.events)
        places = members - of.kernel.base()
        values = [of.values(number, places).to_pylist() for number in self.read]
        rows = list(zip(*values, strict=True)) if values else [()] * len(places)
        events = zip(
            *(some.tolist() for some in (of.groups(places), members, leaves, over)),
            rows,
            strict=True,
        )
        done = 0
        for until, at in zip(turns.until.tolist(), turns.at.tolist(), strict=True):
            self._step(itertools.islice(events, until - done))
            done = until
            yield self._state(at)
        self._step(events)

    def _step(self, events: Iterable[tuple[int, int, bool, int, tuple[Any, ...]]]) -> None:
        """Takes members of groups that come or leave; a group may start over instead."""
        entry, states = self.entry, self.states
        for group, member, leaves, over, row in events:
            if over:
                states.pop(group, None)
            elif entry.remove is not None:
                state = states[group] if group in states else entry.init()
                states[group] = (entry.remove if leaves else entry.insert)(state, *row)
            elif leaves:
                del states[group][member]
            else:
                states.setdefault(group, {})[member] = row

    def _state(self, group: int) -> Any:
        if self.removes:
            return self.states[group] if group in self.states else self.entry.init()
        held = self.states.get(group, {}).values()
        state = self.entry.init()
        for row in held if self.repeats else dict.fromkeys(held):
            state = self.entry.insert(state, *row)
        return state


_BELOW = 1088 - UNIT
"""A limb of a sum counts multiples of 2^-1088, of which there are two to the power of this in a unit of the
registry's states. Both are squared for products."""
_BITS_BELOW = (_BELOW, 2 * _BELOW, _BELOW, 2 * _BELOW, 2 * _BELOW)


class _Moments(_States):
    """Computes an aggregate by the sums of the kernel, which are those of the registry's state."""

    def _at(self) -> Iterator[Any]:
        below = _BITS_BELOW[: 5 if len(self.read) > 1 else 2]
        *numbers, data = self.of.kernel.moments(self.part)
        counts, first, ends = (np.frombuffer(one, np.int64).tolist() for one in numbers)
        every = zip(first, [0, *ends[:-1]], ends, strict=True)
        for count, infinite in zip(counts[::2], counts[1::2], strict=True):
            sums = (
                int.from_bytes(data[begin:end], "little", signed=True) << 32 * limb >> bits
                for bits, (limb, begin, end) in zip(below, every, strict=False)
            )
            yield moments(count, infinite, *sums)
