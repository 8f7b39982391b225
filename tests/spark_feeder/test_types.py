"""Every type of X-SQL, to Spark and back."""

from __future__ import annotations

import datetime

import pyarrow as pa
from pyspark.sql import types as t

from seustream.spark_feeder.types import for_bridge, for_spark, spark_schema

BRIDGE = pa.schema(
    [
        pa.field("ts", pa.int64(), nullable=False),
        ("s", pa.int16()),
        ("i", pa.int32()),
        ("b", pa.int64()),
        ("r", pa.float32()),
        ("d", pa.float64()),
        ("c", pa.string()),
        ("day", pa.date32()),
        ("time", pa.time32("ms")),
        ("at", pa.timestamp("us")),
        ("yes", pa.bool_()),
    ]
)


def test_rows_come_back_as_they_went() -> None:
    day, noon = datetime.date(2006, 3, 1), datetime.time(12, 0, 0, 123000)
    at = datetime.datetime(2006, 3, 1, 12, 0, 0, 5)
    one = [7, 1, 2, 3, 0.5, 0.25, "x", day, noon, at, True]
    none = [8, *[None] * 10]
    columns = [
        pa.array(pair, f.type) for pair, f in zip(zip(one, none, strict=True), BRIDGE, strict=True)
    ]
    rows = pa.RecordBatch.from_arrays(columns, schema=BRIDGE)
    back = for_bridge(for_spark(rows, spark_schema(BRIDGE)))
    assert back.to_pylist() == rows.to_pylist()
    assert [field.type for field in back.schema] == [field.type for field in BRIDGE]


def test_sparks_types() -> None:
    kinds = {field.name: field.dataType for field in spark_schema(BRIDGE)}
    assert kinds["at"] == t.TimestampNTZType()
    assert isinstance(kinds["time"], t.TimeType)
    assert not spark_schema(BRIDGE)["ts"].nullable
