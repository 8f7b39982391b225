"""Gives times in results the types they had in the input.

The engine counts milliseconds; a stream whose file or frame has timestamps gets them back.

    before  ts_newest  int64             1767600030000
    after   ts_newest  timestamp[ms]     2026-01-05 08:00:30

It keeps timestamps in UTC, without a zone. Where a source tells instants from local times, as Spark
does, results can, too.

    before  paid       timestamp[us]           2026-01-05 07:00:00
    after   paid       timestamp[us, tz=UTC]   2026-01-05 07:00:00+00:00
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pyarrow as pa

from seustream.compiler.apas.compile import Compiled
from seustream.compiler.catalogue import TIME_COLUMN, Stream
from seustream.compiler.language import expressions as x
from seustream.compiler.language.types import Kind
from seustream.compiler.logical.joins import JoinTree
from seustream.compiler.logical.levels import Node, definitions, reads
from seustream.compiler.logical.program import (
    RESULT_TIMES,
    WINDOW_END,
    WINDOW_START,
    Over,
    OverRows,
    PeriodGroups,
    Program,
    Query,
    Relation,
    UnionAll,
)
from seustream.compiler.pattern import ir, rows
from seustream.compiler.pattern.fields import fields

TICKS = pa.int64()
UNKNOWN = pa.null()
"""The type of times of which none has been seen yet. It gives way to every other."""
INSTANT = pa.timestamp("us", "UTC")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Tuples:
    """A source's tuples, and the type of its times there, `UNKNOWN` if it has none."""

    rows: pa.Table
    time: pa.DataType


class Times:
    """The types of a program's times; `given` are those of base streams. They are integers if
    nothing is known of any stream that a query reads. `instants` are the TIMESTAMP columns of base
    streams that are instants in their source, and so are all values that are computed from no other
    timestamps."""

    def __init__(
        self,
        program: Program,
        given: Mapping[str, pa.DataType],
        instants: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        self.streams = {stream.name: _declared(stream) for stream in program.base}
        self.streams |= {name: _of(kind) for name, kind in given.items()}
        self.tables = {stream.name for stream in program.base if stream.table}
        self.columns: dict[str, dict[str, pa.DataType]] = {
            name: dict.fromkeys(columns, INSTANT) for name, columns in (instants or {}).items()
        }
        defined = definitions(program)
        for stream in program.streams:  # a stream follows those it reads
            if (node := defined.get(stream.name)) is not None:
                self.streams[stream.name] = self._read_by(node)
                if isinstance(node, ir.MatchQuery):
                    self.columns[stream.name] = self._instants_of(node)
                elif not isinstance(node, Compiled):
                    found = self._results_of(node)
                    kinds = [found.get(item.name, TICKS) for item in node.items]
                    names = [column.name for column in stream.columns]
                    self.columns[stream.name] = dict(zip(names, kinds, strict=False))
        asked: list[Relation | ir.MatchQuery] = [
            *program.asked_relations,
            *program.asked_patterns,
        ]
        self._results = {node.name: self._results_of(node) for node in asked}

    def schema(self, query: str, schema: pa.Schema) -> pa.Schema:
        """Returns the columns of a query's results."""
        return _retyped(schema, self._results.get(query, {}))

    def zoned(self, query: str, schema: pa.Schema) -> pa.Schema:
        """Returns the columns of a query's results, with a zone for those that are instants."""
        kinds = self._results.get(query, {})
        return _retyped(
            schema, {f.name: kinds.get(f.name, TICKS) for f in schema if _is_zoneless(f)}
        )

    def late(self, stream: str, schema: pa.Schema) -> pa.Schema:
        """Returns the columns of a base stream's rows, with a zone for those that are instants."""
        return _retyped(schema, self.columns.get(stream, {}))

    def results(self, query: str, rows: pa.Table) -> pa.Table:
        """Returns a query's results with the types of their times."""
        return _cast(rows, self._results.get(query, {}))

    def rows(self, stream: str, rows: pa.Table) -> pa.Table:
        """Returns rows of a stream with the type of their time."""
        return _cast(rows, {"ts": self.streams.get(stream, UNKNOWN)})

    def _read_by(self, node: Node) -> pa.DataType:
        return _common(self.streams.get(name, UNKNOWN) for name in reads(node) - self.tables)

    def _results_of(self, node: Relation | ir.MatchQuery) -> dict[str, pa.DataType]:
        """Returns the columns that are nothing but a time, and those that are instants, with their
        types."""
        if isinstance(node, ir.MatchQuery):
            kind = self._read_by(node)
            own = {column.name.lower() for column in node.stream.columns}
            times = {name for name, e, _ in fields(node) if ir.TIME not in own and _is_time(e)}
            return dict.fromkeys(times, kind) | self._instants_of(node)
        found = {name: self._read_by(node) for name in RESULT_TIMES}
        for place, item in enumerate(node.items):
            kind = self._kind(node, item.expression, place)
            found |= {} if kind == TICKS else {item.name: kind}
        return found

    def _instants_of(self, node: ir.MatchQuery) -> dict[str, pa.DataType]:
        known = self.columns.get(node.stream.name, {})
        instants = {name.lower() for name, kind in known.items() if kind == INSTANT}
        return {
            name: INSTANT
            for name, e, _ in fields(node)
            if (read := [_name(leaf) for leaf in _timestamps(e)]) and instants.issuperset(read)
        }

    def _kind(self, node: Relation, e: x.Expression, place: int) -> pa.DataType:
        """Returns the type of a result, the `place`-th of its node."""
        if e in (WINDOW_START, WINDOW_END):
            return self._read_by(node)
        if isinstance(node, UnionAll):
            return _common(self._column(of, of.columns[place].name) for of in node.inputs)
        if isinstance(e, x.ColumnReference):
            return TICKS if e.source < 0 else self._value(node, e)
        leaves = [leaf for leaf in _timestamps(e) if isinstance(leaf, x.ColumnReference)]
        return (
            INSTANT
            if leaves and all(self._value(node, leaf) == INSTANT for leaf in leaves)
            else TICKS
        )

    def _value(self, node: Relation, e: x.ColumnReference) -> pa.DataType:
        if isinstance(node, Query | JoinTree):
            return self._column(node.sources[e.source].stream, e.name)
        (stream,) = node.inputs
        if isinstance(node, PeriodGroups | OverRows):
            return self._column(stream, stream.columns[node.columns.index(e)].name)
        return self._column(stream, e.name)

    def _column(self, stream: Stream, name: str) -> pa.DataType:
        """Returns the type that a column of a stream has in results."""
        ends = {column.name: "window_start" for column in stream.columns if column.ends is not None}
        if name == TIME_COLUMN.name or name in ends or ends.get("window_end") == name:
            return self.streams.get(stream.name, UNKNOWN)
        return self.columns.get(stream.name, {}).get(name, TICKS)


def _timestamps(e: x.Expression) -> Iterator[x.Leaf]:
    """Yields the attributes from which a TIMESTAMP, or a list of them, is computed, those that are
    timestamps; also within functions over other rows."""
    if (e.type.element or e.type).kind is not Kind.TIMESTAMP:
        return
    for part in x.leaves(e):
        match part:
            case Over():
                inside = part.arguments if part.aggregate is None else part.aggregate.arguments
            case rows.At():
                inside = (part.part,)
            case ir.GroupAggregate() | rows.RowAggregate():
                inside = part.aggregate.arguments
            case _:
                inside = ()
                if part.type.kind is Kind.TIMESTAMP:
                    yield part
        for one in inside:
            yield from _timestamps(one)


def _name(leaf: x.Leaf) -> str:
    return leaf.attribute if isinstance(leaf, ir.Value | rows.Cell) else ""


def _is_zoneless(field: pa.Field[Any]) -> bool:
    kind = field.type.value_type if pa.types.is_list(field.type) else field.type
    return bool(pa.types.is_timestamp(kind))


def _is_time(e: x.Expression) -> bool:
    """Returns whether a column of a pattern is nothing but the time of an event."""
    part = e.part if isinstance(e, rows.At) else e
    return isinstance(part, (ir.Value, rows.Cell)) and part.attribute == ir.TIME


def _declared(stream: Stream) -> pa.DataType:
    """Returns the type of a stream's times before there are rows: integers, if they are a column of
    integers."""
    column = None if stream.time is None else stream.column(stream.time)
    return UNKNOWN if column is None or column.type.kind is Kind.TIMESTAMP else TICKS


def _of(kind: pa.DataType) -> pa.DataType:
    """Returns a time's type in results. Seconds are too coarse for the times that APAS computes."""
    if kind == UNKNOWN:
        return UNKNOWN
    if not pa.types.is_timestamp(kind):
        return TICKS
    return pa.timestamp("ms", kind.tz) if kind.unit == "s" else kind


def _common(kinds: Iterable[pa.DataType]) -> pa.DataType:
    """Returns one type for times of several streams: integers where one has integers; milliseconds,
    which hold every time there is, where units differ; UTC where zones do."""
    found = [kind for kind in dict.fromkeys(kinds) if kind != UNKNOWN]
    if len(found) < 2:
        return found[0] if found else UNKNOWN
    if TICKS in found:
        return TICKS
    zones = {kind.tz for kind in found}
    units = {kind.unit for kind in found}
    zone = zones.pop() if len(zones) == 1 else "UTC"
    return pa.timestamp(units.pop() if len(units) == 1 else "ms", zone)


def _retyped(schema: pa.Schema, kinds: Mapping[str, pa.DataType]) -> pa.Schema:
    return pa.schema([_field(field, kinds.get(field.name, TICKS)) for field in schema])


def _field(field: pa.Field[Any], kind: pa.DataType) -> pa.Field[Any]:
    if kind in (TICKS, UNKNOWN):
        return field
    return field.with_type(pa.list_(kind) if pa.types.is_list(field.type) else kind)


def _cast(rows: pa.Table, kinds: Mapping[str, pa.DataType]) -> pa.Table:
    wanted = _retyped(rows.schema, kinds)
    if wanted.equals(rows.schema):
        return rows
    columns = [
        column if column.type == field.type else _timed(column, field.type)
        for column, field in zip(rows.columns, wanted, strict=True)
    ]
    return pa.table(columns, schema=wanted)


def _timed(column: pa.ChunkedArray[Any], kind: pa.DataType) -> pa.ChunkedArray[Any]:
    """Turns milliseconds since 1970 into times, and timestamps into instants."""
    first = column.type
    if pa.types.is_int64(first):
        first = pa.timestamp("ms")
    elif pa.types.is_list(first) and pa.types.is_int64(first.value_type):
        first = pa.list_(pa.timestamp("ms"))
    return cast("pa.ChunkedArray[Any]", column.cast(first).cast(kind))


def milliseconds(ts: int | datetime) -> int:
    """Returns a time in the engine's form. A time without a zone is UTC, as everywhere."""
    if isinstance(ts, datetime):
        zoned = ts if ts.tzinfo is not None else ts.replace(tzinfo=UTC)
        return (zoned - _EPOCH) // timedelta(milliseconds=1)
    return int(ts)
