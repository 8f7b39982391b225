"""GROUP BY TUMBLE, HOP and SESSION: a row for each group of each window, once the window is over.

Rows wait until no window that is still open has them. When the watermark passes ends of windows, their
groups become points of `Aggregates`, and each row counts at a run of them: the windows of its group that
have it follow each other, since none of them is empty. With EMIT CHANGES they are given as they grow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from seustream.compiler.language import expressions as x
from seustream.compiler.logical import program as logical
from seustream.engine.host.aggregates import spanned
from seustream.engine.host.rows import leaves
from seustream.engine.relational.growth import changes_of
from seustream.engine.relational.inputs import Inputs
from seustream.engine.relational.measures import Measures, Rows
from seustream.engine.relational.times import edges, numbers, sessions
from seustream.engine.stream.answers import answer
from seustream.engine.stream.evaluate import evaluate, holds
from seustream.engine.stream.faults import QueryFaults, fault_report, restore
from seustream.engine.stream.merge import timestamps
from seustream.engine.stream.operator import EARLIEST, Answer
from seustream.engine.stream.snapshot import Snapshot, unpack
from seustream.engine.stream.spans import extremes

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(slots=True)
class _Closed:
    """Groups of windows that are over. `rows` are the places of their rows, side by side by group,
    each of which counts at the points lo <= p < hi. Of each point: its group, its window's start and
    end, and the place among `rows` of its first row."""

    rows: Ints
    group: Ints
    lo: Ints
    hi: Ints
    of_point: Ints
    start: Ints
    end: Ints
    first: Ints


class PeriodOperator:
    """Answers a query that groups by windows of time. It remembers the rows of windows that are not
    over: their times, their keys and the arguments of the aggregates."""

    def __init__(self, node: logical.PeriodGroups, faults: QueryFaults) -> None:
        self.node, self.faults = node, {node.name: faults}
        self.input = Inputs(node.inputs)
        self.inputs = self.input.names
        self.push, self.advance = self.input.push, self.input.advance
        parts = [item.expression for item in node.items]
        parts += [key.expression for key in node.order_by]
        parts += [] if node.having is None else [node.having]
        self.measures = Measures(node.group_by, parts)
        times = [("ts", pa.int64()), ("oldest", pa.int64())]
        self.kept = pa.schema([*times, *self.measures.fields]).empty_table()
        self.numbered = isinstance(node.every, logical.Periodic) and node.every.by_rows
        self.count, self.came = (
            0,
            np.empty(0, np.int64),
        )  # rows so far, and the times of the last ones
        self.counts: pa.Array | None = None  # which of the rows just read
        self.done: int | None = None  # the last window whose groups were given, by number
        self.told = EARLIEST  # up to here, what changes is given
        self.quiet: int | None = None  # before this watermark no window of a row kept is over

    @property
    def watermark(self) -> int:
        return self.input.watermark

    def outputs(self) -> Iterator[Answer]:
        came: list[Ints] = []
        for part in self.input.release():
            fresh = self._read(part.rows[0])
            if self.numbered:
                came.append(timestamps(fresh))
                fresh = self._numbered(fresh)
            self.kept = pa.concat_tables([self.kept, fresh]) if self.kept.num_rows else fresh
        now = self.count - 1 if self.numbered else self.watermark
        self.came = np.concatenate([np.empty(0, np.int64), *came])
        if self.node.changes and self.kept.num_rows and now > self.told:
            self.kept = self.kept.combine_chunks()
            group, faults = self.group(self.kept), self.faults[self.node.name]
            span = (self.told, now)
            changed = changes_of(self.node, self.measures, self.kept, group, span, faults)
            if changed.num_rows:
                yield self.node.name, changed
        self.told = max(self.told, now)
        if not self.kept.num_rows or (self.quiet is not None and now < self.quiet):
            return
        self.kept = self.kept.combine_chunks()
        ts = timestamps(self.kept)
        if isinstance(self.node.every, logical.Sessions):
            closed, stays = self._sessions(self.node.every, ts, now)
        else:
            closed, stays = self._periods(self.node.every, ts, now)
        if closed is not None and not self.node.changes:
            found = self._groups(closed)
            if found.num_rows:
                yield self.node.name, found
        if not stays.all():
            self.kept = self.kept.take(pa.array(np.flatnonzero(stays)))

    # --- state ----------------------------------------------------------------

    def snapshot(self) -> bytes:
        plain = {
            "text": self.node.text,
            "done": self.done,
            "told": self.told,
            "count": self.count,
            "inputs": self.input.plain(),
            "faults": fault_report(self.faults),
        }
        return Snapshot("groups", plain, self.input.tables() | {"kept": self.kept}).pack()

    def restore(self, snapshot: bytes) -> None:
        """Goes on with the groups of a query of the same text; of another one they begin anew."""
        state = unpack(snapshot, "groups")
        kept = state.tables["kept"]
        if state.plain["text"] != self.node.text or kept.schema != self.kept.schema:
            return
        self.kept, self.done, self.count = kept, state.plain["done"], state.plain["count"]
        self.told = state.plain["told"]
        self.input.restore(state.plain["inputs"], state.tables)
        restore(self.faults, state.plain["faults"])

    # --- rows -----------------------------------------------------------------

    def _read(self, rows: pa.Table) -> pa.Table:
        """New rows as they are kept."""
        names = {leaf: rows.column(place) for place, leaf in enumerate(self.node.columns, start=1)}
        times, faults = timestamps(rows), self.faults[self.node.name]

        def leaf(e: x.Leaf) -> pa.Array:
            assert isinstance(e, x.ColumnReference)
            return names[e].combine_chunks()

        with faults.naming(lambda row: f"the row at ts {times[row]}"):
            values = [evaluate(e, leaf, len(times), faults) for e in self.measures.read]
            self.counts = None
            if self.node.where != x.TRUE:
                mask = np.zeros(len(times), np.bool_)
                mask[np.flatnonzero(holds(self.node.where, leaf, len(times), faults))] = True
                self.counts = pa.array(mask)
        oldest = rows.column(rows.num_columns - 1)
        return pa.table([pa.array(times), oldest, *values], schema=self.kept.schema)

    def _numbered(self, fresh: pa.Table) -> pa.Table:
        """The rows that count, with their numbers instead of times. Those windows of rows end at one of
        the rows that came last."""
        numbers = pa.array(np.arange(self.count, self.count + fresh.num_rows))
        self.count += fresh.num_rows
        rows = fresh.set_column(0, "ts", numbers)
        return rows if self.counts is None else rows.filter(self.counts)

    def _moments(self, end: Ints) -> Ints:
        """The times of the last instants of windows."""
        return self.came[end - 1 - (self.count - len(self.came))] if self.numbered else end - 1

    def group(self, rows: pa.Table) -> Ints:
        return self.measures.groups(
            [column.combine_chunks() for column in rows.columns[2:]], rows.num_rows
        )

    # --- windows --------------------------------------------------------------

    def _periods(self, every: logical.Periodic, ts: Ints, now: int) -> tuple[_Closed | None, Bools]:
        first, last = numbers(every, ts)
        if self.done is not None:
            first = np.maximum(first, self.done + 1)
        # The first that is not over is the first that ends behind the next instant.
        over = min(int(numbers(every, now + 1)[0]) - 1, int(last[-1]))
        self.quiet = int(edges(every, max(over + 1, int(first[0])))[1]) - 1
        self.done = over if self.done is None else max(over, self.done)
        inside = np.flatnonzero((first <= last) & (first <= over))
        stays = last > over
        if not len(inside):
            return None, stays
        group = self.group(self.kept.take(pa.array(inside)))
        order = np.argsort(group, kind="stable")
        rows, group = inside[order], group[order]
        low, high = first[rows], np.minimum(last[rows], over)
        # Both only rise within a group: a row adds the windows behind those of the row before it.
        begin = low.copy()
        begin[1:] = np.where(group[1:] == group[:-1], np.maximum(low[1:], high[:-1] + 1), low[1:])
        count = np.maximum(high - begin + 1, 0)
        of = np.repeat(np.arange(len(rows)), count)
        window = begin[of] + np.arange(len(of)) - np.repeat(np.cumsum(count) - count, count)
        known = np.unique(window)
        key = group[of] * len(known) + np.searchsorted(known, window)
        lo = np.searchsorted(key, group * len(known) + np.searchsorted(known, low))
        hi = np.searchsorted(key, group * len(known) + np.searchsorted(known, high)) + 1
        start, end = edges(every, window)
        return _Closed(rows, group, lo, hi, group[of], start, end, of), stays

    def _sessions(
        self, every: logical.Sessions, ts: Ints, now: int
    ) -> tuple[_Closed | None, Bools]:
        rows, group, begins = sessions(every.gap, self.group(self.kept), ts)
        times, session = ts[rows], np.cumsum(begins) - 1
        first = np.flatnonzero(begins)
        latest = times[np.append(first[1:], len(rows)) - 1]
        over = latest <= now + 1 - every.gap
        self.quiet = None if over.all() else int(latest[~over].min()) + every.gap - 1
        if not over.any():
            return None, np.ones(len(ts), np.bool_)
        stays = np.ones(len(ts), np.bool_)
        stays[rows[over[session]]] = False
        rows, group, session = rows[over[session]], group[over[session]], session[over[session]]
        point = (np.cumsum(over) - 1)[session]
        first = np.searchsorted(point, np.arange(int(over.sum())))
        start, end = ts[rows[first]], latest[over] + every.gap
        return _Closed(rows, group, point, point + 1, group[first], start, end, first), stays

    # --- groups ---------------------------------------------------------------

    def _groups(self, closed: _Closed) -> pa.Table:
        """The rows of groups by the ends of their windows, then by ORDER BY, and of equal ones in the
        order in which they began."""
        node, faults = self.node, self.faults[self.node.name]
        kept = self.kept.take(pa.array(closed.rows))
        values = [column.combine_chunks() for column in kept.columns]
        turns = spanned(closed.lo, closed.hi, closed.of_point)
        count = len(closed.start)
        since = extremes(np.asarray(values[1]), closed.lo, closed.hi, count, greatest=False)

        def named(point: int) -> str:
            return f"the group of the window that ends at ts {closed.end[point]}"

        with faults.naming(named):
            rows = self.measures.of_points(values[2:], closed.first, closed.group, turns, faults)
        rows[-1, logical.WINDOW_START.name] = pa.array(closed.start)
        rows[-1, logical.WINDOW_END.name] = pa.array(closed.end)
        order = np.lexsort((closed.rows[closed.first], closed.start, closed.end))
        rows, end, since = _taken(rows, order), closed.end[order], since[order]
        with faults.naming(lambda row: f"the group of the window that ends at ts {end[row]}"):
            if node.having is not None:
                having = self.measures.over(node.having)
                some = np.flatnonzero(holds(having, leaves(rows), len(end), faults))
                rows, end, since = _taken(rows, some), end[some], since[some]
            if node.order_by or node.limit is not None:
                some = self._first(rows, end)
                rows, end, since = _taken(rows, some), end[some], since[some]
            leaf = leaves(rows)
            over = [self.measures.over(item.expression) for item in node.items]
            columns = [evaluate(e, leaf, len(end), faults) for e in over]
        return answer(node, [*columns, pa.array(since), pa.array(self._moments(end))])

    def _first(self, rows: Rows, end: Ints) -> Ints:
        """The places of the first rows of each window, in order."""
        start = np.asarray(rows[-1, logical.WINDOW_START.name])
        keys: list[Ints] = []
        for key in self.node.order_by:
            value = evaluate(self.measures.over(key.expression), leaves(rows), len(end))
            keys.append(ranks(value, key.descending, key.nulls_first))
        order = np.lexsort((*reversed(keys), start, end))
        if self.node.limit is None:
            return order
        begins = np.ones(len(order), np.bool_)
        changes = (np.diff(start[order]) != 0) | (np.diff(end[order]) != 0)
        begins[1:] = changes
        places = np.arange(len(order))
        since = np.maximum.accumulate(np.where(begins, places, 0))
        found: Ints = order[places - since < self.node.limit]
        return found


def ranks(value: pa.Array, descending: bool, nulls_first: bool) -> Ints:
    """Numbers in the order of the values, equal where these are."""
    if pa.types.is_floating(value.type):
        value = pc.add(value, pa.scalar(0.0, value.type))  # -0.0 is 0.0
    encoded = value.dictionary_encode()
    distinct = encoded.dictionary
    if pa.types.is_boolean(distinct.type):
        distinct = distinct.cast(pa.int8())
    order = np.asarray(pc.sort_indices(distinct))
    rank = np.empty(len(order) + 1, np.int64)
    rank[order] = np.arange(len(order))[:: -1 if descending else 1]
    rank[-1] = -1 if nulls_first else len(order)  # of NULL
    places = np.asarray(pc.fill_null(encoded.indices, len(order)), dtype=np.int64)
    return rank[places]


def _taken(rows: Rows, places: Ints) -> Rows:
    some = pa.array(places)
    return {key: column.take(some) for key, column in rows.items()}
