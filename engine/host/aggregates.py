"""Aggregates at all points of a slice, of members that each count for a span of points.

Points are the rows that groups give, side by side by group; members are in the order in which they came,
also side by side by group. What a few passes over columns can do (`count`, `sum` and `avg` of integers
and reals, `min`, `max`) is done so. Every other aggregate goes through the states of the registry: what
can remove adds each member and takes it away again; of the others, where members leave in the order in
which they came, two stacks of states are merged, and else each point begins anew.

With DISTINCT, equal members of a group are one, for the union of their spans.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from seustream.compiler.language import expressions as x
from seustream.compiler.language.aggregates import AGGREGATES
from seustream.compiler.language.faults import Faults, Place
from seustream.compiler.language.registry import FAULT, AggregateFunction
from seustream.engine.stream import spans
from seustream.engine.stream.schema import arrow_type

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Key = tuple[tuple[int, ...], bool]
"""Arguments by number, and whether they are distinct."""


@dataclass(slots=True)
class _Members:
    """The members that count: their values, spans and groups; how many there are at each point."""

    values: tuple[pa.Array, ...]
    lo: Ints
    hi: Ints
    group: Ints
    counts: Ints


class Aggregates:
    """`lo` and `hi` are the members' spans, `group` their groups; `of_point` the points' groups."""

    def __init__(self, lo: Ints, hi: Ints, group: Ints, of_point: Ints) -> None:
        self.lo, self.hi, self.group, self.of_point = lo, hi, group, of_point
        self.points = len(of_point)
        self.members: dict[Key, _Members] = {}
        self.blocks: dict[Key, spans.Blocks] = {}
        self.sums: dict[Key, npt.NDArray[np.float64]] = {}
        self.whole: dict[Key, tuple[Ints, Bools]] = {}

    def of(
        self,
        e: x.AggregateCall,
        values: tuple[pa.Array, ...],
        numbers: tuple[int, ...],
        faults: Faults,
    ) -> pa.Array:
        """One aggregate at each point, of the arguments with these numbers."""
        entry = AGGREGATES[e.function]
        # Of what looks at one row alone, or at the best, a repetition changes nothing.
        distinct = e.distinct and not (entry.ordered or e.function in ("min", "max"))
        key = (numbers, distinct)
        if key not in self.members:
            self.members[key] = self._counting(values, distinct)
        m = self.members[key]
        found = self._by_columns(e, m, key)
        result, lost = self._by_states(e, entry, m) if found is None else found
        if lost.any():
            place = Place(e.at, x.show(e), entry.fault)
            faults.add(place, int(lost.sum()), int(lost.argmax()))
        return result

    # --- members --------------------------------------------------------------

    def _counting(self, values: tuple[pa.Array, ...], distinct: bool) -> _Members:
        valid = self.hi > self.lo
        for value in values:
            if value.null_count:
                valid &= np.asarray(value.is_valid())
        lo, hi, group = self.lo, self.hi, self.group
        if not valid.all():
            mask = pa.array(valid)
            values = tuple(value.filter(mask) for value in values)
            lo, hi, group = lo[valid], hi[valid], group[valid]
        if distinct and len(lo):
            values, lo, hi, group = self._united(values, lo, hi, group)
        return _Members(values, lo, hi, group, spans.counts(lo, hi, self.points))

    def _united(
        self, values: tuple[pa.Array, ...], lo: Ints, hi: Ints, group: Ints
    ) -> tuple[tuple[pa.Array, ...], Ints, Ints, Ints]:
        """Equal members of a group as one, for each stretch of points that their spans cover."""
        code = group
        for value in values:
            mine, distinct = codes(value)
            code = np.unique(code * max(distinct, 1) + mine, return_inverse=True)[1]
        order = np.lexsort((lo, code))
        # With the code in front, the furthest end so far never reaches into the next code.
        base = code[order] * (self.points + 1)
        begin, reach = base + lo[order], np.maximum.accumulate(base + hi[order])
        first = np.ones(len(order), np.bool_)
        first[1:] = begin[1:] > reach[:-1]
        starts = np.flatnonzero(first)
        ends = np.append(starts[1:], len(order)) - 1
        lo, hi = lo[order[starts]], reach[ends] - base[ends]
        again = np.argsort(lo, kind="stable")
        who = order[starts][again]
        taken = pa.array(who)
        return tuple(v.take(taken) for v in values), lo[again], hi[again], group[who]

    # --- by columns -----------------------------------------------------------

    def _by_columns(
        self, e: x.AggregateCall, m: _Members, key: Key
    ) -> tuple[pa.Array, Bools] | None:
        none_lost = np.zeros(self.points, np.bool_)
        if e.function == "count":
            return pa.array(m.counts), none_lost
        (values, *others), empty = m.values, m.counts == 0
        if others or pa.types.is_null(values.type):
            return None
        if e.function in ("min", "max"):
            if key not in self.blocks:
                self.blocks[key] = spans.Blocks(m.lo, m.hi)
            return _extreme(values, self.blocks[key], empty, e.function == "max"), none_lost
        if e.function not in ("sum", "avg"):
            return None
        if pa.types.is_integer(values.type):
            if key not in self.whole:
                numbers = np.asarray(values.cast(pa.int64()))
                self.whole[key] = spans.integer_sums(numbers, m.lo, m.hi, self.points)
            whole, lost = self.whole[key]
            if e.function == "sum":
                return pa.array(whole, mask=empty | lost), lost & ~empty
            mean = whole.astype(np.longdouble) / np.where(empty, 1, m.counts)
            return pa.array(mean.astype(np.float64), mask=empty | lost), lost & ~empty
        if pa.types.is_floating(values.type):
            if key not in self.sums:
                doubles = np.asarray(pc.cast(values, pa.float64()))
                self.sums[key] = spans.sums(doubles, m.lo, m.hi, self.points)
            found = self.sums[key]
            if e.function == "avg":
                found = found / np.where(empty, 1, m.counts)
            lost = np.isnan(found) & ~empty
            return pa.array(found, mask=empty | lost), lost
        return None

    # --- by states ------------------------------------------------------------

    def _by_states(
        self, e: x.AggregateCall, entry: AggregateFunction, m: _Members
    ) -> tuple[pa.Array, Bools]:
        rows = list(zip(*(value.to_pylist() for value in m.values), strict=True))
        states = _states(entry, rows, m, self.of_point, e.distinct and entry.collects)
        lost = np.zeros(self.points, np.bool_)
        found: list[Any] = []
        for point, state in enumerate(states):
            result = entry.result(e.type, state) if entry.typed else entry.result(state)
            if result is FAULT:
                lost[point], result = True, None
            found.append(result)
        return pa.array(found, arrow_type(e.type)), lost


def _states(
    entry: AggregateFunction,
    rows: Sequence[tuple[Any, ...]],
    m: _Members,
    of_point: Ints,
    distinct: bool,
) -> Iterator[Any]:
    """The state at each point, each good until the next is asked for."""
    bounds = np.flatnonzero(np.diff(of_point, prepend=-1, append=-1))
    for start, stop in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        own = slice(*np.searchsorted(m.lo, (start, stop)).tolist())
        lo, hi = m.lo[own], m.hi[own]
        of_group = rows[own]
        if entry.remove is not None and not distinct:
            yield from _by_removal(entry, of_group, lo, hi, range(start, stop))
        elif np.any(hi[1:] < hi[:-1]):
            yield from _anew(entry, of_group, _held(lo, hi, range(start, stop)), distinct)
        else:
            points = np.arange(start, stop)
            first = np.searchsorted(hi, points, side="right").tolist()
            last = np.searchsorted(lo, points, side="right").tolist()
            if entry.merge is None or entry.collects:
                ranges = map(range, first, last)
                yield from _anew(entry, of_group, ranges, distinct)
            else:
                yield from _by_merging(entry, entry.merge, of_group, first, last)


def _by_removal(
    entry: AggregateFunction, rows: Sequence[tuple[Any, ...]], lo: Ints, hi: Ints, points: range
) -> Iterator[Any]:
    assert entry.remove is not None
    leaving = np.argsort(hi, kind="stable")
    begins, ends = lo.tolist(), hi[leaving].tolist()
    state, came, left = entry.init(), 0, 0
    for point in points:
        while left < len(ends) and ends[left] <= point:
            state = entry.remove(state, *rows[leaving[left]])
            left += 1
        while came < len(begins) and begins[came] <= point:
            state = entry.insert(state, *rows[came])
            came += 1
        yield state


def _held(lo: Ints, hi: Ints, points: range) -> Iterator[list[int]]:
    """The members at each point, in the order in which they came."""
    begins, ends = lo.tolist(), hi.tolist()
    held: list[int] = []
    came = 0
    for point in points:
        held = [member for member in held if ends[member] > point]
        while came < len(begins) and begins[came] <= point:
            held.append(came)
            came += 1
        yield held


def _anew(
    entry: AggregateFunction,
    rows: Sequence[tuple[Any, ...]],
    members: Iterator[Sequence[int]] | map[range],
    distinct: bool,
) -> Iterator[Any]:
    for some in members:
        state = entry.init()
        values = (rows[member] for member in some)
        for row in dict.fromkeys(values) if distinct else values:
            state = entry.insert(state, *row)
        yield state


_RUN = 64
"""Members whose states are kept side by side; of further ones, a state for each so many."""


def _by_merging(
    entry: AggregateFunction,
    merge: Callable[[Any, Any], Any],
    rows: Sequence[tuple[Any, ...]],
    first: Sequence[int],
    last: Sequence[int],
) -> Iterator[Any]:
    """States of the members first[p] to last[p], both of which only grow: that of the older half,
    kept for each member it may begin with, merged with that of the newer half."""

    def single(member: int) -> Any:
        return entry.insert(entry.init(), *rows[member])

    middle = 0  # older members are below, newer ones from here on
    marks: list[Any] = []  # states from each `_RUN`th older member on, counted from the last
    run: dict[int, Any] = {}  # states from each older member of the run on
    newer, came = entry.init(), 0
    for begin, end in zip(first, last, strict=True):
        while came < end:
            newer = entry.insert(newer, *rows[came])
            came += 1
        if begin >= middle:
            middle, run = came, {}
            marks, state = [], entry.init()
            for place, member in enumerate(range(middle - 1, begin - 1, -1)):
                if place % _RUN == 0:
                    marks.append(state)
                state = merge(single(member), state)
            newer = entry.init()
        if begin < middle and begin not in run:
            number = (middle - 1 - begin) // _RUN
            state, run = marks[number], {}
            for member in range(middle - 1 - number * _RUN, begin - 1, -1):
                state = run[member] = merge(single(member), state)
        yield merge(run[begin], newer) if begin < middle else newer


# --- values -------------------------------------------------------------------


def codes(column: pa.Array) -> tuple[Ints, int]:
    """Numbers that are equal where the values are, NULL being a value like others, and how many
    there are."""
    if pa.types.is_floating(column.type):
        column = pc.add(column, pa.scalar(0.0, column.type))  # -0.0 is 0.0
    encoded = column.dictionary_encode(null_encoding="encode")
    return np.asarray(encoded.indices, dtype=np.int64), len(encoded.dictionary)


def _extreme(values: pa.Array, blocks: spans.Blocks, empty: Bools, greatest: bool) -> pa.Array:
    if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
        numbers = np.asarray(values)
        found = blocks.extremes(numbers, len(empty), greatest)
        return pa.array(np.where(empty, numbers.dtype.type(0), found), values.type, mask=empty)
    # Whatever else has an order is compared by its rank.
    encoded = values.dictionary_encode()
    sortable = encoded.dictionary
    if pa.types.is_boolean(sortable.type):
        sortable = sortable.cast(pa.int8())
    order = np.asarray(pc.sort_indices(sortable))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    ranks = rank[np.asarray(encoded.indices)] if len(order) else np.empty(0, np.int64)
    found = blocks.extremes(ranks, len(empty), greatest).astype(np.int64)
    places = pa.array(order[np.where(empty, 0, found)] if len(order) else found, mask=empty)
    return encoded.dictionary.take(places)
