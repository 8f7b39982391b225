"""Types of the languages as Arrow types."""

from __future__ import annotations

import functools
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from seustream.compiler.catalogue import Stream
from seustream.compiler.language.types import Kind, Type

Times = TypeVar("Times", "pa.Array[Any]", "pa.ChunkedArray[Any]")

TABLE_TIME = -(1 << 63) + 1
"""The time of every row of a table, before all times of streams."""

_ARROW: dict[Kind, pa.DataType] = {
    Kind.SMALLINT: pa.int16(),
    Kind.INT: pa.int32(),
    Kind.BIGINT: pa.int64(),
    Kind.REAL: pa.float32(),
    Kind.DOUBLE: pa.float64(),
    Kind.CHAR: pa.string(),
    Kind.VARCHAR: pa.string(),
    Kind.DATE: pa.date32(),
    Kind.TIME: pa.time32("ms"),
    Kind.TIMESTAMP: pa.timestamp("us"),
    Kind.INTERVAL: pa.duration("ms"),
    Kind.BOOLEAN: pa.bool_(),
    Kind.NULL: pa.null(),
}


def arrow_type(of: Type) -> pa.DataType:
    """Returns the Arrow type of a column of this type."""
    if of.kind is Kind.DECIMAL:
        return pa.decimal128(of.length, of.scale)
    if of.element is not None:
        return pa.list_(arrow_type(of.element))
    return _ARROW[of.kind]


def with_time(stream: Stream, rows: pa.Table) -> pa.Table:
    """Adds the column ts to the rows of a stream that names its time column; ts is NULL where the
    time is."""
    folded = [name.lower() for name in rows.column_names]
    time = rows.column(folded.index(str(stream.time).lower()))
    if pa.types.is_timestamp(time.type):
        time = in_milliseconds(time)
    own = rows.select([at for at, name in enumerate(folded) if name != "ts"])
    return own.add_column(0, pa.field("ts", pa.int64()), time.cast(pa.int64()))


def in_milliseconds(times: Times) -> Times:
    """Returns timestamps as milliseconds since 1970, rounded down even before it (a cast would round
    towards it). Raises `pa.ArrowInvalid` for one that is out of their range."""
    of = times.cast(pa.timestamp(times.type.unit))
    floored = pc.floor_temporal(of, unit="millisecond")
    found: Times = floored.cast(pa.timestamp("ms")).cast(pa.int64())
    return found


def under(schema: pa.Schema, rows: pa.Table) -> pa.Table:
    """Returns rows under the names and types of a schema, column by column."""
    if rows.schema.equals(schema):
        return rows
    return pa.Table.from_arrays(rows.columns, schema=schema)


@functools.lru_cache(maxsize=1024)
def stream_schema(stream: Stream) -> pa.Schema:
    """Returns the columns of a stream's rows: their time, and its own columns."""
    fields = [pa.field(c.name, arrow_type(c.type), c.nullable) for c in stream.columns]
    return pa.schema([pa.field("ts", pa.int64(), nullable=False), *fields])
