"""GROUP BY: aggregates over the contents of a query's windows at each arrival.

A *member* is a row that the aggregates are over: a tuple of one stream, or a result of a join. An
arrival that adds members yields one row for each group it adds to: the group's aggregates over all
members then in their windows, if HAVING holds. Members leave as the windows slide: when the clock
of a window (time for RANGE, the stream's count for ROWS) passes the member's end.
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
from seustream.compiler.language.types import BIGINT, NULL
from seustream.compiler.logical.program import Query, Source
from seustream.compiler.logical.windows import has_end, is_plain
from seustream.engine.host.aggregates import AtPoints, values_of
from seustream.engine.host.complete import arrival_order, rows_of, selected
from seustream.engine.host.join import Side
from seustream.engine.host.rows import Rows, leaves
from seustream.engine.host.sliding import STATES, HeldMembers, Sliding, joined
from seustream.engine.host.stores import Stores
from seustream.engine.stream.evaluate import evaluate, holds
from seustream.engine.stream.numbers import as_column
from seustream.engine.stream.schema import arrow_type
from seustream.engine.stream.taken import taken
from seustream.hdl.device import Window, WindowKind

Ints = npt.NDArray[np.int64]
Columns = list[pa.Array]

_LAST = np.iinfo(np.int64).max
OLDEST = x.AggregateCall("min", (x.Literal(0, BIGINT),), (BIGINT,), BIGINT)
"""The aggregate that gives the oldest time of a group."""
SUMS = "sums"
"""In a snapshot, the column with the states of groups."""
_NO_ROWS: Mapping[str, Mapping[str, int]] = {}


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Arrivals that add members, in order. `clocks` holds, for each window, the reading of its
    clock at each arrival; `time` is the time of the arrival."""

    time: Ints
    clocks: tuple[Ints, ...]


@dataclass(frozen=True, slots=True)
class Members:
    """New members, in order: the arrival each comes with, None if each has one of its own; the last
    reading of each clock at which it is in that window, or how many readings after its arrival that
    is; its oldest time, and the columns the query reads from it."""

    arrival: Ints | None
    ends: tuple[Ints | int, ...]
    oldest: Ints
    rows: Rows

    def __len__(self) -> int:
        return len(self.oldest)

    def some(self, index: Ints) -> Members:
        """Returns some of the members, without the columns, which have been read by then."""
        ends = tuple(end if isinstance(end, int) else end[index] for end in self.ends)
        arrival = index if self.arrival is None else self.arrival[index]
        return Members(arrival, ends, self.oldest[index], {})


def end_of(window: Window, time: Ints, count: Ints) -> Ints:
    """Returns the last reading of a window's clock at which a tuple of this time and place in its
    stream is in the window."""
    if window.kind is WindowKind.RANGE:
        return _later(time, window.size)
    if window.kind is WindowKind.ROWS:
        return _later(count, window.size - 1)
    return np.full(len(time), _LAST)


def _later(clock: Ints, by: int) -> Ints:
    """Returns the readings later by a number, as far as there are such readings."""
    return np.minimum(clock, _LAST - by) + by


class Form:
    """The computations of an aggregated query: aggregates of arguments, and over them and the keys
    its SELECT list, where HAVING holds."""

    def __init__(self, query: Query) -> None:
        self.query = query
        parts = [item.expression for item in query.items]
        parts += [query.having] if query.having is not None else []
        found = dict.fromkeys(e for part in parts for e in x.walk(part))
        self.aggregates = [e for e in found if isinstance(e, x.AggregateCall)]
        read = [arguments_of(e) for e in self.aggregates]
        self.arguments = list(dict.fromkeys(argument for some in read for argument in some))
        self.numbers = [tuple(map(self.arguments.index, some)) for some in read]
        items = tuple(
            dataclasses.replace(item, expression=self._over_groups(item.expression))
            for item in query.items
        )
        self.answers = dataclasses.replace(query, items=items)
        self.having = self._over_groups(query.having) if query.having is not None else None
        self.names = tuple(dict.fromkeys(of.name for e in read_by(query) for of in x.columns(e)))
        """The columns that members of one stream need."""

    def values(self, new: Rows, count: int, faults: Faults) -> tuple[Columns, Columns]:
        """Returns the keys and the arguments of members."""
        leaf = leaves(new)
        keys = [evaluate(e, leaf, count, faults) for e in self.query.group_by]
        return keys, [evaluate(e, leaf, count, faults) for e in self.arguments]

    def results(self, points: Points, faults: Faults) -> tuple[pa.Table, Ints | None]:
        """Returns the result rows of groups, and with HAVING the places of the groups it keeps."""
        kept: Ints | None = None
        time, since = points.time, points.since
        with faults.naming(lambda point: f"the group at ts {time[point]}"):
            rows: dict[tuple[int, str], pa.Array] = {
                (0, f"g{number}"): key for number, key in enumerate(points.keys)
            }
            found = values_of(self.aggregates, points.found, faults)
            rows |= {(0, f"a{number}"): one for number, one in enumerate(found)}
            if self.having is not None:
                kept = np.flatnonzero(holds(self.having, leaves(rows), len(time), faults))
                rows = {key: taken(column, kept) for key, column in rows.items()}
                time, since = time[kept], taken(since, kept)
            return selected(self.answers, rows, since, as_column(time), faults), kept

    def _over_groups(self, e: x.Expression) -> x.Expression:
        """Rewrites an expression to columns of groups: keys and aggregates."""
        if e in self.query.group_by:
            number = self.query.group_by.index(e)
            return x.GroupValue(0, f"g{number}", e.type, True, "", holds=e)
        if isinstance(e, x.AggregateCall):
            number = self.aggregates.index(e)
            return x.GroupValue(0, f"a{number}", e.type, True, "", holds=e)
        return x.rebuild(e, self._over_groups)


@dataclass(frozen=True, slots=True)
class Points:
    """Groups to which arrivals have added: the time of each arrival, the oldest time in the group,
    its keys, and its aggregates."""

    time: Ints
    since: pa.Array
    keys: Columns
    found: list[AtPoints]

    def some(self, index: Ints) -> Points:
        """Returns some of the points."""
        return Points(
            self.time[index],
            taken(self.since, index),
            [taken(key, index) for key in self.keys],
            [one.some(index) for one in self.found],
        )


class Grouping:
    """The members of an aggregated query, or of several that differ only in conditions. With
    several, each group belongs to one query, whose number precedes its keys."""

    def __init__(self, *queries: Query) -> None:
        self.query = query = queries[0]
        self.numbers = {one.name: number for number, one in enumerate(queries)}
        self.several = len(queries) > 1
        self.form = form = Form(query)
        self._forms = {query.name: form}
        self.clocks = [s for s in query.sources if has_end(s.window)]
        self.sliding = Sliding(
            [*([BIGINT] if self.several else []), *(e.type for e in query.group_by)],
            [*form.aggregates, OLDEST],
            [*form.numbers, (len(form.arguments),)],
            [*(e.type for e in form.arguments), BIGINT],
            len(self.clocks),
            ordered=len(query.sources) == 1 and is_plain(query.sources[0].window),
        )

    def form_of(self, query: Query) -> Form:
        """Returns the form of one of the queries, with the places in its own text."""
        if query.name not in self._forms:
            self._forms[query.name] = Form(query)
        return self._forms[query.name]

    @property
    def live(self) -> int:
        """The number of members held."""
        return self.sliding.live

    def add(self, arrivals: Arrivals, new: Members, faults: Faults) -> pa.Table:
        """Returns the rows that these arrivals yield for a single query, in order. The caller names
        the new members for `faults`."""
        keys, values = self.form.values(new.rows, len(new), faults)
        points, _ = self.enter(arrivals, new, keys, values)
        return self.form.results(points, faults)[0]

    def enter(
        self, arrivals: Arrivals, new: Members, keys: Columns, values: Columns
    ) -> tuple[Points, Ints | None]:
        """Takes in members; returns the points this adds to, with the first new member of each: None
        if each member is the first of one."""
        own = self.sliding.enter(
            keys,
            [*values, as_column(new.oldest)],
            len(new),
            new.arrival,
            arrivals.clocks,
            new.ends,
        )
        *found, since = self.sliding.found()
        who, arrival = None, new.arrival
        if own is not None:
            who, _ = own
            arrival = who if arrival is None else arrival[who]
            keys = [taken(key, who) for key in keys]
        time = arrivals.time if arrival is None else arrivals.time[arrival]
        return Points(time, since.values, keys, found), who

    # --- state ----------------------------------------------------------------

    def held(self) -> dict[str, HeldMembers]:
        """Returns the members in the windows, by query."""
        _, keys, values, ends, sums = held = self.sliding.held()
        if not self.several:
            return {self.query.name: held}
        whose, *keys = keys
        numbers = np.asarray(whose)
        order = np.argsort(numbers, kind="stable")
        cuts = np.searchsorted(numbers[order], np.arange(len(self.numbers) + 1))
        found = {}
        for (name, _), begin, end in zip(self.numbers.items(), cuts[:-1], cuts[1:], strict=True):
            some = order[begin:end]
            found[name] = HeldMembers(
                len(some),
                [taken(key, some) for key in keys],
                [taken(value, some) for value in values],
                [one[some] for one in ends],
                None if sums is None else sums.take(pa.array(some)),
            )
        return found

    def fill(self, held: Mapping[str, HeldMembers]) -> None:
        """Starts over with the members that queries with the same text held."""
        parts = [(number, held[name]) for name, number in self.numbers.items() if name in held]
        if not parts:
            return
        counts = [part.rows for _, part in parts]
        keys = joined([part.keys for _, part in parts])
        values = joined([part.values for _, part in parts])
        ends = [
            np.concatenate(some) for some in zip(*(part.ends for _, part in parts), strict=True)
        ]
        sums = None
        if self.sliding.stays:
            sums = pa.concat_arrays(
                [
                    pa.nulls(count, STATES) if part.sums is None else part.sums
                    for count, (_, part) in zip(counts, parts, strict=True)
                ]
            )
        if self.several:
            keys.insert(0, as_column(np.repeat([number for number, _ in parts], counts)))
        if self.several and ends:  # sorted, so that members leave one after the other
            order = np.argsort(ends[0], kind="stable")
            keys, values = ([taken(one, order) for one in some] for some in (keys, values))
            ends = [end[order] for end in ends]
        self.sliding.fill(HeldMembers(sum(counts), keys, values, ends, sums))

    def members(self, stores: Stores) -> dict[str, pa.Table]:
        """Returns the held members by query, for `restore`. The ends in ROWS windows of a join are
        counted from the first row that `stores` keep, as they will be after restoring."""
        found = {}
        schema = self._schema()
        for name, held in self.held().items():
            columns = [*held.keys, *held.values]
            for source, end in zip(self.clocks, held.ends, strict=True):
                first = stores[source.stream.name].first if self._counted(source) else 0
                columns.append(pa.array(end - first))
            found[name] = pa.table(columns, schema=schema)
            if held.sums is not None:
                found[name] = found[name].append_column(SUMS, held.sums)
        return found

    def restore(
        self,
        members: Mapping[str, pa.Table],
        earlier: Mapping[str, Mapping[str, int]] = _NO_ROWS,
    ) -> None:
        """Continues with the members of queries with the same text; members of other types are left
        out. `earlier` counts, by query and stream, the rows now kept before the first that was
        counted."""
        held = {}
        for name, table in members.items():
            sums: pa.Array | None = None
            if self.sliding.stays and SUMS in table.column_names:
                sums = table.column(SUMS).combine_chunks()
                table = table.drop_columns([SUMS])
            if table.schema != self._schema():
                continue
            columns = [column.combine_chunks() for column in table.columns]
            keys, values = len(self.query.group_by), len(self.form.arguments) + 1
            before = earlier.get(name, {})
            ends = [
                _later(np.asarray(end), before.get(s.stream.name, 0) if self._counted(s) else 0)
                for s, end in zip(self.clocks, columns[keys + values :], strict=True)
            ]
            own = columns[:keys], columns[keys : keys + values]
            held[name] = HeldMembers(table.num_rows, *own, ends, sums)
        self.fill(held)

    def _schema(self) -> pa.Schema:
        types = [arrow_type(e.type) for e in (*self.query.group_by, *self.form.arguments)]
        names = ["oldest", *(f"end{number}" for number in range(len(self.clocks)))]
        columns = [(f"c{number}", of) for number, of in enumerate(types)]
        return pa.schema([*columns, *((name, pa.int64()) for name in names)])

    def _counted(self, source: Source) -> bool:
        """Returns whether the ends of a window are counted in rows that the stores keep."""
        return source.window.kind is WindowKind.ROWS and len(self.query.sources) > 1


def alike(query: Query) -> tuple[object, ...]:
    """Returns the features that queries whose groups are held together have in common."""
    sources = tuple((s.alias, s.stream.name, s.window) for s in query.sources)
    return sources, query.items, query.group_by, query.having


def read_by(query: Query) -> list[x.Expression]:
    """Returns the expressions of an aggregated query over its members' columns."""
    having = [query.having] if query.having is not None else []
    return [*(item.expression for item in query.items), *query.group_by, *having]


def arguments_of(e: x.AggregateCall) -> tuple[x.Expression, ...]:
    """Returns the columns from which an aggregate is computed; NULL in rows that its FILTER leaves
    out."""
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


# --- members of queries -------------------------------------------------------


def of_stream(window: Window, time: Ints, place: Ints, rows: Rows) -> tuple[Arrivals, Members]:
    """Returns tuples of one stream as members, each an arrival; `place` is their place in the
    stream."""
    if window.kind is WindowKind.UNBOUNDED:
        return Arrivals(time, ()), Members(None, (), time, rows)
    by_rows = window.kind is WindowKind.ROWS
    clock, until = (place, window.size - 1) if by_rows else (time, window.size)
    return Arrivals(time, (clock,)), Members(None, (until,), time, rows)


def of_results(
    query: Query, sides: list[Side], sequences: Ints
) -> tuple[Arrivals, Members, Ints | None]:
    """Returns results of a join as members, and the order in which they arrive if it is different.
    Results whose newest component is the same tuple, in any role, come with one arrival."""
    places = [side.store.index(sequences[:, i]) for i, side in enumerate(sides)]
    positions = _positions(sides, places)
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
            arrived = side.store.position[0].search(when, after=True)
            clocks.append(side.store.first + arrived - 1)
        else:
            continue
        ends.append(end_of(side.window, times[:, i], sequences[:, i]))
    rows = rows_of(x.columns_by_source(read_by(query)), sides, sequences)
    timed = [i for i, source in enumerate(query.sources) if not source.stream.table]
    new = Members(arrival, tuple(ends), times[:, timed].min(axis=1), rows)
    return Arrivals(time, tuple(clocks)), new, order


def newest_of(sides: list[Side], sequences: Ints) -> Ints:
    """Returns the arrival that each result of a join comes with, by its place in the total
    order."""
    places = [side.store.index(sequences[:, i]) for i, side in enumerate(sides)]
    return functools.reduce(np.maximum, _positions(sides, places))


def _positions(sides: list[Side], places: Sequence[Ints]) -> list[Ints]:
    """Copies of a tuple are adjacent in the total order; the first stands for all."""
    return [s.store.position[0][p] for s, p in zip(sides, places, strict=True)]
