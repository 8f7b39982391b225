"""GROUP BY: aggregates over what the windows of a query hold at each arrival.

A *member* is a row the aggregates are over: a tuple of one stream, or a result of a join. An
arrival that adds members gives, for each group it adds to, one row: the group's aggregates over all
members then in their windows, if HAVING holds. Members leave as the windows slide: when the clock of
a window (time for RANGE, the stream's count for ROWS) goes past where the member ends.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seustream.compiler.language import expressions as x
from seustream.compiler.language.faults import Faults
from seustream.compiler.language.types import BIGINT, NULL
from seustream.compiler.logical.program import Query, Source
from seustream.compiler.logical.windows import has_end, is_plain
from seustream.engine.host.complete import arrival_order, rows_of, selected
from seustream.engine.host.join import Side
from seustream.engine.host.rows import Rows, leaves
from seustream.engine.host.sliding import Sliding
from seustream.engine.host.stores import Stores
from seustream.engine.stream.evaluate import evaluate, holds
from seustream.engine.stream.numbers import as_column
from seustream.engine.stream.schema import arrow_type
from seustream.engine.stream.taken import taken
from seustream.hdl.device import Window, WindowKind

Ints = npt.NDArray[np.int64]

_LAST = np.iinfo(np.int64).max
_SINCE = x.AggregateCall("min", (x.Literal(0, BIGINT),), (BIGINT,), BIGINT)
"""The oldest time of a group."""
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
        items = tuple(
            dataclasses.replace(item, expression=self._over_groups(item.expression))
            for item in query.items
        )
        self.answers = dataclasses.replace(query, items=items)
        self.having = self._over_groups(query.having) if query.having is not None else None
        self.clocks = [s for s in query.sources if has_end(s.window)]
        self.sliding = Sliding(
            [e.type for e in query.group_by],
            [*self.aggregates, _SINCE],
            [*self.numbers, (len(self.arguments),)],
            [*(e.type for e in self.arguments), BIGINT],
            len(self.clocks),
            ordered=len(query.sources) == 1 and is_plain(query.sources[0].window),
        )

    @property
    def reads(self) -> list[x.Expression]:
        """The expressions over the members' columns."""
        having = [self.query.having] if self.query.having is not None else []
        return [*(item.expression for item in self.query.items), *self.query.group_by, *having]

    @property
    def live(self) -> int:
        """Returns how many members are held."""
        return self.sliding.live

    def add(self, arrivals: Arrivals, new: Members, faults: Faults) -> pa.Table:
        """The rows these arrivals give, in order. The caller names the new members for
        `faults`."""
        count, leaf = len(new.arrival), leaves(new.rows)
        keys = [evaluate(e, leaf, count, faults) for e in self.query.group_by]
        values = [evaluate(e, leaf, count, faults) for e in self.arguments]
        values.append(as_column(new.oldest))
        turns, who, _ = self.sliding.enter(keys, values, new.arrival, arrivals.clocks, new.ends)
        time = arrivals.time[new.arrival[who]]
        if len(who) < count:
            keys = [taken(key, who) for key in keys]
        rows = {(0, f"g{number}"): key for number, key in enumerate(keys)}
        with faults.naming(lambda point: f"the group at ts {time[point]}"):
            *found, since = self.sliding.results(turns, faults)
            rows |= {(0, f"a{number}"): one for number, one in enumerate(found)}
            if self.having is not None:
                kept = np.flatnonzero(holds(self.having, leaves(rows), len(time), faults))
                rows = {key: taken(column, kept) for key, column in rows.items()}
                time, since = time[kept], taken(since, kept)
            return selected(self.answers, rows, since, as_column(time), faults)

    # --- state ----------------------------------------------------------------

    def members(self, stores: Stores) -> pa.Table:
        """Returns what is held, for `restore`. Where a window of ROWS of a join ends, the rows of its
        stream are counted from the first that `stores` keep: they will be counted so again."""
        _, keys, values, ends = self.sliding.held()
        columns = [*keys, *values]
        for source, end in zip(self.clocks, ends, strict=True):
            first = stores[source.stream.name].first if self._counted(source) else 0
            columns.append(pa.array(end - first))
        return pa.table(columns, schema=self._schema())

    def restore(self, members: pa.Table, earlier: Mapping[str, int] = _NO_ROWS) -> None:
        """Goes on with the members of a query with the same text; of another type than they now
        are, they are left out. Of some streams there may be `earlier` rows than were counted."""
        if members.schema != self._schema():
            return
        columns = [column.combine_chunks() for column in members.columns]
        keys, values = len(self.query.group_by), len(self.arguments) + 1
        ends = [
            np.asarray(end) + (earlier.get(s.stream.name, 0) if self._counted(s) else 0)
            for s, end in zip(self.clocks, columns[keys + values :], strict=True)
        ]
        self.sliding.fill(members.num_rows, columns[:keys], columns[keys : keys + values], ends)

    def _schema(self) -> pa.Schema:
        types = [arrow_type(e.type) for e in (*self.query.group_by, *self.arguments)]
        names = ["oldest", *(f"end{number}" for number in range(len(self.clocks)))]
        columns = [(f"c{number}", of) for number, of in enumerate(types)]
        return pa.schema([*columns, *((name, pa.int64()) for name in names)])

    def _counted(self, source: Source) -> bool:
        """Tells the windows whose ends are counted in rows that the stores keep."""
        return source.window.kind is WindowKind.ROWS and len(self.query.sources) > 1

    # --- inside ---------------------------------------------------------------

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
