"""GROUP BY: aggregates over what the windows of a query hold at each arrival.

A *member* is a row the aggregates are over: a tuple of one stream, or a result of a join. An
arrival that adds members gives, for each group it adds to, one row: the group's aggregates over all
members then in their windows, if HAVING holds. Members leave as the windows slide: when the clock of
a window (time for RANGE, the stream's count for ROWS) goes past where the member ends.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seustream.compiler.language import expressions as x
from seustream.compiler.language.faults import Faults
from seustream.compiler.language.types import NULL
from seustream.compiler.logical.program import Query, Source
from seustream.compiler.logical.windows import has_end
from seustream.engine.host.aggregates import Aggregates, codes
from seustream.engine.host.complete import arrival_order, rows_of, selected
from seustream.engine.host.join import Side
from seustream.engine.host.rows import Rows, leaves
from seustream.engine.host.stores import Stores
from seustream.engine.stream import spans
from seustream.engine.stream.evaluate import evaluate, holds
from seustream.engine.stream.schema import arrow_type
from seustream.hdl.device import Window, WindowKind

Ints = npt.NDArray[np.int64]

_LAST = np.iinfo(np.int64).max
_NO_ROWS: Mapping[str, int] = {}


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Arrivals that add members, in order. `clocks` has one clock for each window, what it shows
    at each arrival; `time` is that of the arrival."""

    time: Ints
    clocks: tuple[Ints, ...]


@dataclass(frozen=True, slots=True)
class Members:
    """New members, in order: the arrival each comes with, what each clock shows when it is last in
    that window, its oldest time, and the columns the query reads of it."""

    arrival: Ints
    ends: tuple[Ints, ...]
    oldest: Ints
    rows: Rows


def end_of(window: Window, time: Ints, count: Ints) -> Ints:
    """Returns what a window's clock shows when a tuple of this time and place in its stream is last in
    it."""
    if window.kind is WindowKind.RANGE:
        room = _LAST - window.size
        return np.where(time > room, _LAST, np.minimum(time, room) + window.size)
    if window.kind is WindowKind.ROWS:
        return count + (window.size - 1)
    return np.full(len(time), _LAST)


class Grouping:
    """The members of one aggregated query, and what its groups give."""

    def __init__(self, query: Query) -> None:
        self.query = query
        parts = [item.expression for item in query.items]
        parts += [query.having] if query.having is not None else []
        found = dict.fromkeys(e for part in parts for e in x.walk(part))
        self.aggregates = [e for e in found if isinstance(e, x.AggregateCall)]
        read = [arguments_of(e) for e in self.aggregates]
        self.arguments = list(dict.fromkeys(argument for some in read for argument in some))
        self.numbers = [tuple(map(self.arguments.index, some)) for some in read]
        self.items = tuple(
            dataclasses.replace(item, expression=self._over_groups(item.expression))
            for item in query.items
        )
        self.having = self._over_groups(query.having) if query.having is not None else None
        types = [arrow_type(e.type) for e in (*query.group_by, *self.arguments)]
        fields = [(f"c{i}", type) for i, type in enumerate(types)]
        self.table = pa.schema(fields).empty_table()
        self.ends: list[Ints] | None = None
        self.oldest: Ints = np.empty(0, np.int64)

    @property
    def reads(self) -> list[x.Expression]:
        """The expressions over the members' columns."""
        having = [self.query.having] if self.query.having is not None else []
        return [*(item.expression for item in self.query.items), *self.query.group_by, *having]

    @property
    def live(self) -> int:
        """Returns how many members are held."""
        return len(self.oldest)

    def add(self, arrivals: Arrivals, new: Members, faults: Faults) -> pa.Table:
        """The rows these arrivals give, in order. The caller names the new members for
        `faults`."""
        count, held = len(arrivals.time), len(self.oldest)
        columns = [*self.query.group_by, *self.arguments]
        leaf = leaves(new.rows)
        fresh = [evaluate(e, leaf, len(new.arrival), faults) for e in columns]
        table = pa.table(
            [
                pa.chunked_array([*old.chunks, *_chunks(added)], old.type)
                for old, added in zip(self.table.columns, fresh, strict=True)
            ],
            names=self.table.schema.names,
        ).combine_chunks()
        ends = [
            np.concatenate((old, added))
            for old, added in zip(
                self.ends or [np.empty(0, np.int64)] * len(new.ends), new.ends, strict=True
            )
        ]
        oldest = np.concatenate((self.oldest, new.oldest))
        first = np.concatenate((np.zeros(held, np.int64), new.arrival))
        last = np.full(len(oldest), count)
        for clock, end in zip(arrivals.clocks, ends, strict=True):
            last = np.minimum(last, np.searchsorted(clock, end, side="right"))
        group = self._groups(table, len(oldest))
        answer = self._answer(arrivals, table, group, oldest, first, last, held, faults)
        stays = last >= count
        if not stays.all():
            kept = pa.array(np.flatnonzero(stays))
            table = table.take(kept) if table.num_columns else table
            oldest = oldest[stays]
            ends = [end[stays] for end in ends]
        self.table, self.ends, self.oldest = table, ends, oldest
        return answer

    # --- state ----------------------------------------------------------------

    def members(self, stores: Stores) -> pa.Table:
        """Returns what is held, for `restore`. Where a window of ROWS of a join ends, the rows of its
        stream are counted from the first that `stores` keep: they will be counted so again."""
        clocks = self._clocks()
        ends = self.ends or [np.empty(0, np.int64)] * len(clocks)
        columns = [*self.table.columns, self.oldest]
        for source, end in zip(clocks, ends, strict=True):
            first = stores[source.stream.name].first if self._counted(source) else 0
            columns.append(end - first)
        names = [f"end{number}" for number in range(len(ends))]
        return pa.table(columns, names=[*self.table.schema.names, "oldest", *names])

    def restore(self, members: pa.Table, earlier: Mapping[str, int] = _NO_ROWS) -> None:
        """Goes on with the members of a query with the same text; of another type than they now
        are, they are left out. Of some streams there may be `earlier` rows than were counted."""
        keys = self.table.schema.names
        own = members.select(keys)
        if own.schema != self.table.schema or len(members.columns) != len(keys) + 1 + len(
            self._clocks()
        ):
            return
        self.table = own.combine_chunks()
        self.oldest, *ends = (
            np.asarray(column.combine_chunks(), dtype=np.int64)
            for column in members.columns[len(keys) :]
        )
        self.ends = [
            end + earlier.get(source.stream.name, 0) if self._counted(source) else end
            for source, end in zip(self._clocks(), ends, strict=True)
        ]

    def _counted(self, source: Source) -> bool:
        """Says whether the end of a window is counted in rows that the stores keep."""
        return source.window.kind is WindowKind.ROWS and len(self.query.sources) > 1

    def _clocks(self) -> list[Source]:
        """The sources whose windows have a clock, in the order of their ends."""
        return [s for s in self.query.sources if has_end(s.window)]

    # --- inside ---------------------------------------------------------------

    def _answer(
        self,
        arrivals: Arrivals,
        table: pa.Table,
        group: Ints,
        oldest: Ints,
        first: Ints,
        last: Ints,
        held: int,
        faults: Faults,
    ) -> pa.Table:
        width = len(arrivals.time) + 1
        # Members of a group side by side, in the order in which they came: what follows goes
        # through memory from front to back.
        by = _by_small_numbers(group)
        group, first, last, oldest = group[by], first[by], last[by], oldest[by]
        # A point is a group at an arrival that adds to it; a member's span is a range of points.
        key = group * width + first
        new = np.flatnonzero(by >= held)
        begins = np.ones(len(new), np.bool_)
        begins[1:] = key[new[1:]] != key[new[:-1]]
        points = key[new[begins]]
        lo = np.searchsorted(points, key)
        hi = np.searchsorted(points, group * width + last)
        # Rows come by arrival; of one arrival, in the order of its members.
        who = by[new[begins]]
        place = np.full(len(by), -1)
        place[who] = np.arange(len(who))
        order = place[place >= 0]
        rows: dict[tuple[int, str], pa.Array] = {}
        keys = len(self.query.group_by)
        for number in range(keys):
            rows[0, f"g{number}"] = _whole(table.column(number).take(pa.array(who[order])))
        results = Aggregates(lo, hi, group, points // width)
        sorted_by = pa.array(by)
        values = [
            _whole(table.column(keys + i).take(sorted_by)) for i in range(len(self.arguments))
        ]
        times = arrivals.time[points % width]
        with faults.naming(lambda point: f"the group at ts {times[point]}"):
            for number, (e, read) in enumerate(zip(self.aggregates, self.numbers, strict=True)):
                one = results.of(e, tuple(values[place] for place in read), read, faults)
                rows[0, f"a{number}"] = one.take(pa.array(order))
        time = times[order]
        since = _least(oldest, group, lo, hi, len(points))[order]
        with faults.naming(lambda row: f"the group at ts {time[row]}"):
            if self.having is not None:
                kept = np.flatnonzero(holds(self.having, leaves(rows), len(time), faults))
                rows = {key: column.take(pa.array(kept)) for key, column in rows.items()}
                time, since = time[kept], since[kept]
            over = dataclasses.replace(self.query, items=self.items)
            return selected(over, rows, since.astype(np.int64), time, faults)

    def _groups(self, table: pa.Table, count: int) -> Ints:
        """A number for each member's group, NULL being a value like others. A table without columns
        does not know how many rows it has."""
        code = np.zeros(count, np.int64)
        for number in range(len(self.query.group_by)):
            mine, distinct = codes(_whole(table.column(number)))
            code = code * max(distinct, 1) + mine
            if number:
                code = np.unique(code, return_inverse=True)[1]
        return code

    def _over_groups(self, e: x.Expression) -> x.Expression:
        """The expression over columns of groups: keys and aggregates."""
        if e in self.query.group_by:
            number = self.query.group_by.index(e)
            return x.ColumnReference(0, f"g{number}", e.type, True, x.show(e))
        if isinstance(e, x.AggregateCall):
            number = self.aggregates.index(e)
            return x.ColumnReference(0, f"a{number}", e.type, True, x.show(e))
        return x.rebuild(e, self._over_groups)


def arguments_of(e: x.AggregateCall) -> tuple[x.Expression, ...]:
    """The columns that an aggregate is computed of; NULL in rows that its FILTER leaves out."""
    taken = tuple(
        argument if argument.type in (of, NULL) else x.Cast(argument, of, at=e.at)
        for argument, of in zip(e.arguments, e.takes, strict=True)
    )
    if e.where is None:
        return taken
    nothing = x.Literal(None, NULL)
    return tuple(
        x.Case(((e.where, argument),), nothing, argument.type) for argument in taken or (x.TRUE,)
    )


def _least(values: Ints, group: Ints, lo: Ints, hi: Ints, points: int) -> Ints:
    """The least value at each point. Where values and ends both rise, as with one window over one
    stream, it is that of the first member that still counts."""
    falls = (values[1:] < values[:-1]) & (group[1:] == group[:-1])
    if falls.any() or np.any(hi[1:] < hi[:-1]):
        found: Ints = spans.extremes(values, lo, hi, points, greatest=False)
        return found
    return values[np.searchsorted(hi, np.arange(points), side="right")]


def _by_small_numbers(numbers: Ints) -> Ints:
    """A stable order; small numbers are sorted by their digits, which takes a few passes."""
    small = len(numbers) and int(numbers.max()) < 1 << 16
    return np.argsort(numbers.astype(np.uint16) if small else numbers, kind="stable")


def _whole(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _chunks(column: pa.ChunkedArray | pa.Array) -> Sequence[pa.Array]:
    chunks: list[pa.Array] = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return chunks


# --- members of queries -------------------------------------------------------


def of_stream(window: Window, time: Ints, place: Ints, rows: Rows) -> tuple[Arrivals, Members]:
    """Tuples of one stream, each an arrival; `place` is that in the stream."""
    clock = place if window.kind is WindowKind.ROWS else time
    clocks, ends = (
        ((), ())
        if window.kind is WindowKind.UNBOUNDED
        else ((clock,), (end_of(window, time, place),))
    )
    return Arrivals(time, clocks), Members(np.arange(len(time)), ends, time, rows)


def of_results(query: Query, sides: list[Side], sequences: Ints) -> tuple[Arrivals, Members, Ints]:
    """Results of a join, and the sequence numbers of the members. Those whose newest component is
    the same tuple come with one arrival, in whatever roles it stands in them."""
    places = [side.store.index(sequences[:, i]) for i, side in enumerate(sides)]
    # A tuple's copies stand side by side in the total order; the first stands for all.
    positions = [s.store.position[0][p] for s, p in zip(sides, places, strict=True)]
    newest = functools.reduce(np.maximum, positions)
    order = arrival_order(newest, positions)
    if order is not None:
        sequences, newest = sequences[order], newest[order]
        places = [place[order] for place in places]
    when, first, arrival = np.unique(newest, return_index=True, return_inverse=True)
    times = np.stack([s.store.timestamp[p] for s, p in zip(sides, places, strict=True)], axis=1)
    time = times.max(axis=1)[first]
    clocks: list[Ints] = []
    ends: list[Ints] = []
    for i, side in enumerate(sides):
        if side.window.kind is WindowKind.RANGE:
            clocks.append(time)
        elif side.window.kind is WindowKind.ROWS:
            arrived = np.searchsorted(side.store.position[0], when, side="right")
            clocks.append(side.store.first + arrived - 1)
        else:
            continue
        ends.append(end_of(side.window, times[:, i], sequences[:, i]))
    read = [item.expression for item in query.items] + list(query.group_by)
    read += [query.having] if query.having is not None else []
    rows = rows_of(read, sides, sequences)
    timed = [i for i, source in enumerate(query.sources) if not source.stream.table]
    new = Members(arrival, tuple(ends), times[:, timed].min(axis=1), rows)
    return Arrivals(time, tuple(clocks)), new, sequences
