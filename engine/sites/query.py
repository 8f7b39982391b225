"""X-SQL queries as joins across sites: each alias of FROM is a site, its rows come in blocks.

before  SELECT * FROM R, S, T WHERE R.a = S.d AND S.e = T.f AND (R.b < T.g OR T.g IS NULL)
        WINDOW RANGE 100, RANGE 5, RANGE 0
after   streams R(a) 100, S(d, e) 5, T(f) 0; R.a = S.d, S.e = T.f; the condition over R.b and T.g
        is evaluated where R and T meet, and one over a single stream at its source

With a block for each timestamp, or with `by_row`, the join's windows are those of X-SQL: a
combination is a result if each of its rows was in its stream's window when the newest came. A row's
payload is its place in its table, and the columns that conditions and results read.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from seustream.compiler.catalogue import TIME_COLUMN
from seustream.compiler.language import expressions as x
from seustream.compiler.language.faults import Faults
from seustream.compiler.logical.program import Query
from seustream.compiler.plan.keys import implied
from seustream.engine.host.rows import leaves
from seustream.engine.sites.errors import BadQuery, SitesError
from seustream.engine.sites.model import BlockRows, EquiJoin, SiteRow, SiteStream
from seustream.engine.stream.evaluate import holds
from seustream.engine.stream.schema import arrow_type


@dataclass(frozen=True, slots=True)
class Where:
    """A condition over streams. `columns` lists, for each of `streams`, the columns its rows carry
    after their place."""

    streams: tuple[int, ...]
    condition: x.Expression
    columns: tuple[tuple[str, ...], ...]

    def among(self, payloads: Sequence[tuple[object, ...]]) -> Sequence[bool]:
        columns = {}
        for column in x.columns(self.condition):
            at = self.streams.index(column.source)
            place = 1 + self.columns[at].index(column.name)
            values = [payload[at][place] for payload in payloads]  # type: ignore[index]  # of that place: a tuple
            columns[column.source, column.name] = pa.array(values, column_type(column))
        doubts = Faults()
        held: list[bool] = holds(self.condition, leaves(columns), len(payloads), doubts).tolist()
        # A fault is counted where results are made, so combinations with one go on to there.
        return [True] * len(payloads) if doubts.total else held


def column_type(column: x.ColumnReference) -> pa.DataType:
    return pa.int64() if column.name == TIME_COLUMN.name else arrow_type(column.type)


def columns_read(query: Query, conditions: Sequence[x.Expression] | None = None) -> list[set[str]]:
    """Returns, by source, the columns that some conditions read; without conditions, those of the
    results."""
    if conditions is None:
        conditions = [item.expression for item in query.items] + list(query.group_by)
        conditions += [query.having] if query.having is not None else []
    read = x.columns_by_source(conditions)
    return [read.get(source, set()) for source in range(len(query.sources))]


def conditions_left(query: Query) -> list[x.Expression]:
    """Returns the conditions of a query that are not equalities of columns."""
    return [
        term
        for term in x.conjuncts(query.where)
        if not (isinstance(term, x.Compare) and implied(term))
    ]


def join_of(
    query: Query,
    names: Sequence[str] = (),
    carried: Sequence[tuple[str, ...]] = (),
    by_row: bool = False,
) -> EquiJoin:
    """Returns the join of a query whose condition equates columns of its streams. `names` are the
    streams' names if not the aliases; `carried` lists columns if more than conditions read."""
    others = conditions_left(query)
    if any(not x.sources(term) for term in others) and query.where != x.TRUE:
        raise BadQuery(f"query {query.name} has a condition without a column, which never changes")
    equal = sorted({pair for term in x.conjuncts(query.where) for pair in implied(term)})
    carried = carried or [tuple(sorted(read)) for read in columns_read(query, others)]
    residuals = tuple(
        Where(over, term, tuple(carried[k] for k in over))
        for term in others
        if (over := tuple(sorted(x.sources(term))))
    )
    columns: list[list[str]] = [[] for _ in query.sources]
    for source, name in (column for pair in equal for column in pair):
        if name not in columns[source]:
            columns[source].append(name)
    streams = tuple(
        SiteStream(name, tuple(keys), source.window, carried=take)
        for source, name, keys, take in zip(
            query.sources,
            names or [source.alias for source in query.sources],
            columns,
            carried,
            strict=True,
        )
    )
    return EquiJoin(streams, tuple(equal), residuals=residuals, by_row=by_row)


# --- rows as blocks -------------------------------------------------------------------


def rows_of(stream: SiteStream, table: pa.Table) -> list[SiteRow]:
    """Returns a table's rows with their keys and payloads, in the table's order."""
    keys = zip(*(_keys(table.column(name)) for name in stream.columns), strict=True)
    read = ["ts" if name == TIME_COLUMN.name else name for name in stream.carried]
    carried = zip(
        range(table.num_rows), *(table.column(name).to_pylist() for name in read), strict=True
    )
    times = _times(table).tolist()
    if not stream.columns:
        keys = (() for _ in times)  # type: ignore[assignment]
    return [SiteRow(key, t, load) for key, t, load in zip(keys, times, carried, strict=True)]


def _keys(column: pa.ChunkedArray) -> list[object]:
    """Returns keys as integers or texts; booleans and dates are joined by their numbers."""
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    elif pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    keys: list[object] = column.to_pylist()
    return keys


def _times(table: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.asarray(table.column("ts").combine_chunks(), dtype=np.int64)


def blocks_of(
    stream: SiteStream, number: int, table: pa.Table, first: int = 0, most: int | None = None
) -> Iterator[BlockRows]:
    """Yields rows, in the order of their timestamps, as blocks of site `number`: one block for each
    timestamp, or for every `most` rows; counted from `first`."""
    ts = _times(table)
    if np.any(ts[1:] < ts[:-1]):
        raise BadQuery(
            f"rows of stream {stream.name} are not in the order of their timestamps",
            "sort them, or let seustream.engine.stream.merge.Merger do it",
        )
    starts = np.arange(0, len(ts), most) if most else np.unique(ts, return_index=True)[1]
    for no, start in enumerate(starts.tolist(), start=first):
        end = starts[no - first + 1] if no - first + 1 < len(starts) else len(ts)
        part = rows_of(stream, table.slice(start, end - start))
        rows = tuple(SiteRow(r.keys, r.t, (r.payload[0] + start, *r.payload[1:])) for r in part)  # type: ignore[index]  # a payload is a tuple
        yield BlockRows(number, rows[-1].t, rows, no)


class BlockNumbers:
    """The numbers given to blocks so far, in a file of one JSON array per line: batch, stream,
    closing time, number. A feeder that fails in the middle of a batch runs it once more; sites
    ignore a block that they had before, which they recognise by its number. So numbers are on disk
    before any block goes out. A last line without an end was being written when the power failed,
    and is dropped: nothing had been sent under it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.given: dict[tuple[int, int, int], int] = {}
        self.next: dict[int, int] = {}
        self.ends: dict[int, list[tuple[int, int]]] = {}
        if path.exists():
            whole = path.read_bytes()
            end = whole.rfind(b"\n") + 1
            if end < len(whole):
                with path.open("r+b") as file:
                    file.truncate(end)
            for place, line in enumerate(whole[:end].splitlines(), start=1):
                self._take(place, line)

    def _take(self, place: int, line: bytes) -> None:
        try:
            batch, stream, tau, no = json.loads(line)
            expected = self.next.get(stream, 0)
        except (ValueError, TypeError):
            batch, stream, tau, no, expected = 0, 0, 0, -1, 0
        if no != expected:
            raise SitesError(
                f"{self.path}:{place}: not the next block number",
                "the file is written by one feeder alone; start a new one with new sites",
            )
        self._give(batch, stream, tau, no)

    def latest(self, stream: int, before: int) -> float:
        """Returns when the last block of a stream closed in the batches before `before`."""
        ends = self.ends.get(stream, [])
        return next((tau for batch, tau in reversed(ends) if batch < before), -math.inf)

    def _give(self, batch: int, stream: int, tau: int, no: int) -> None:
        self.given[batch, stream, tau] = no
        self.next[stream] = no + 1
        ends = self.ends.setdefault(stream, [])
        if ends and ends[-1][0] == batch:
            ends[-1] = batch, max(ends[-1][1], tau)
        else:
            ends.append((batch, tau))

    def of(self, batch: int, blocks: list[tuple[int, int]]) -> list[int]:
        """Returns the numbers of a batch's blocks, given by stream and closing time; new numbers
        are on disk when this returns."""
        lines = []
        for stream, tau in blocks:
            if (batch, stream, tau) not in self.given:
                no = self.next.get(stream, 0)
                self._give(batch, stream, tau, no)
                lines.append(json.dumps([batch, stream, tau, no]) + "\n")
        if lines:
            with self.path.open("a") as file:
                file.write("".join(lines))
                file.flush()
                os.fsync(file.fileno())
        return [self.given[batch, stream, tau] for stream, tau in blocks]


def blocks_of_batch(
    join: EquiJoin, numbers: BlockNumbers, batch: int, tables: Mapping[int, pa.Table], unit: int
) -> list[BlockRows]:
    """Returns a micro-batch's rows, by stream, as blocks of `unit` ticks each that close at the
    unit's end, in the order of their closing times, then streams."""
    if unit < 1:
        raise ValueError(f"unit = {unit}: want 1 tick or more")
    blocks: dict[tuple[int, int], list[SiteRow]] = {}
    for stream, table in tables.items():
        # Rows after their time join the first block that closes no earlier than those already sent.
        closing = np.maximum(-(-_times(table) // unit) * unit, numbers.latest(stream, batch))
        rows = rows_of(join.streams[stream], table)
        for row, tau in zip(rows, closing.astype(np.int64).tolist(), strict=True):
            blocks.setdefault((tau, stream), []).append(row)
    order = sorted(blocks)
    given = numbers.of(batch, [(stream, tau) for tau, stream in order])
    return [
        BlockRows(stream, tau, tuple(blocks[tau, stream]), no)
        for (tau, stream), no in zip(order, given, strict=True)
    ]
