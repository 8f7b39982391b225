"""Columns as the bridge and Spark each name their types.

Spark counts a time of day in nanoseconds, the bridge in milliseconds; all other types of X-SQL are
the same in Arrow for both.
"""

from __future__ import annotations

import functools

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import DataType, StructType, TimestampNTZType, TimestampType

from seustream.columns import in_whole_milliseconds


def quoted(name: str) -> str:
    """Quotes a name that Spark would otherwise read as a path."""
    return "`" + name.replace("`", "``") + "`"


def spark_schema(schema: pa.Schema) -> StructType:
    """Returns the bridge's columns as Spark's."""
    fields = [pa.field(field.name, _spark_kind(field.type), field.nullable) for field in schema]
    return from_arrow_schema(pa.schema(fields), prefer_timestamp_ntz=True)


def _spark_kind(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_list(kind):
        return pa.list_(_spark_kind(kind.value_type))
    if pa.types.is_time(kind):
        return pa.time64("us")
    return pa.string() if pa.types.is_null(kind) else kind


def for_spark(rows: pa.RecordBatch, schema: StructType) -> pa.RecordBatch:
    """Converts rows of the bridge to exactly the types that Spark expects."""
    wanted = to_arrow_schema(schema, timezone="UTC")
    columns = [
        _cast(column, field.type) for column, field in zip(rows.columns, wanted, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=wanted)


def for_bridge(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Converts rows of Spark to the types that the bridge takes: times of day and intervals in
    milliseconds, rounded down, and timestamps without a zone (Spark's are instants, in UTC)."""
    schema = _bridge_schema(rows.schema)
    columns = [_cast(column, kind) for column, kind in zip(rows.columns, schema.types, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


@functools.lru_cache(maxsize=64)
def _bridge_schema(schema: pa.Schema) -> pa.Schema:
    fields = []
    for field in schema:
        kind = field.type
        if pa.types.is_time(kind):
            kind = pa.time32("ms")
        elif pa.types.is_timestamp(kind):
            kind = pa.timestamp("us")
        elif pa.types.is_duration(kind):
            kind = pa.duration("ms")
        fields.append(pa.field(field.name, kind))
    return pa.schema(fields)


def time_type(kind: DataType) -> pa.DataType:
    """Returns the type of a stream's times from that of a frame's column `ts`. A text's is unknown
    before its rows are, and counts as integers."""
    match kind:
        case TimestampType():
            return pa.timestamp("us", "UTC")
        case TimestampNTZType():
            return pa.timestamp("us")
        case _:
            return pa.int64()


def timed(frame: DataFrame, schema: pa.Schema) -> DataFrame:
    """Converts milliseconds to times, in the columns that are times in the schema."""
    return frame.select(*[_timed(frame, field) for field in schema])


def _timed(frame: DataFrame, field: pa.Field) -> Column:
    column: Column = frame["`" + field.name.replace("`", "``") + "`"]
    lists = pa.types.is_list(field.type)
    kind = field.type.value_type if lists else field.type
    have = frame.schema[field.name].dataType.simpleString()
    if not pa.types.is_timestamp(kind) or "bigint" not in have:
        return column
    to = _instant if kind.tz else _wall_clock
    times: Column = f.transform(column, to) if lists else to(column)
    return times.alias(field.name)


def _instant(milliseconds: Column) -> Column:
    return f.timestamp_millis(milliseconds)


def _wall_clock(milliseconds: Column) -> Column:
    """Returns a time without a zone, whatever the session's zone is."""
    seconds = (milliseconds.cast("decimal(20, 0)") / 1000).cast("decimal(18, 6)")
    moment: Column = f.lit("1970-01-01").cast("timestamp_ntz") + f.make_dt_interval(secs=seconds)
    return moment


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if column.type == kind:
        return column
    if pa.types.is_duration(kind) and kind.unit == "ms":
        return in_whole_milliseconds(column).cast(kind)
    return column.cast(kind, safe=not pa.types.is_time(kind))  # a time of day is never negative
