"""Every type of X-SQL, to Spark and back."""

from __future__ import annotations

import datetime

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import types as t

from seustream.spark_feeder.types import for_bridge, for_spark, spark_schema, time_type, timed

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


def test_times_of_day_are_rounded_down() -> None:
    fine = [datetime.time(12, 30, 0, 123_999), datetime.time(23, 59, 59, 999_999), None]
    rows = pa.record_batch({"time": pa.array(fine, pa.time64("us"))})
    (found,) = for_bridge(rows.cast(pa.schema([("time", pa.time64("ns"))]))).columns
    assert found.type == pa.time32("ms")
    assert found.to_pylist() == [
        datetime.time(12, 30, 0, 123_000), datetime.time(23, 59, 59, 999_000), None
    ]  # fmt: skip


def test_sparks_types() -> None:
    kinds = {field.name: field.dataType for field in spark_schema(BRIDGE)}
    assert kinds["at"] == t.TimestampNTZType()
    assert isinstance(kinds["time"], t.TimeType)
    assert not spark_schema(BRIDGE)["ts"].nullable


def test_times_come_back_as_the_frames_had_them(spark: SparkSession) -> None:
    """An instant, a time without a zone, and lists of both, whatever the session's zone."""
    ms, at = 1141214400005, datetime.datetime(2006, 3, 1, 12, 0, 0, 5000)
    wanted = pa.schema(
        [
            ("zoned", pa.timestamp("us", "UTC")),
            ("naive.x", pa.timestamp("us")),
            ("lists", pa.list_(pa.timestamp("us"))),
            ("past", pa.timestamp("us")),
            ("ms", pa.int64()),
            ("own", pa.timestamp("us")),
        ]
    )
    rows = spark.createDataFrame(
        [(ms, ms, [ms, None], -1, ms, at), (None,) * 6],
        "zoned bigint, `naive.x` bigint, lists array<bigint>, past bigint, ms bigint, own timestamp_ntz",
    )
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        found = timed(rows, wanted).toArrow()
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(zone))
    instants = found.column("zoned").cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    assert instants.to_pylist() == [1000 * ms, None]
    past = datetime.datetime(1969, 12, 31, 23, 59, 59, 999000)
    first, second = found.select(found.column_names[1:]).to_pylist()
    assert first == {"naive.x": at, "lists": [at, None], "past": past, "ms": ms, "own": at}
    assert set(second.values()) == {None}
    kinds = {field.name: time_type(field.dataType) for field in timed(rows, wanted).schema}
    assert kinds == {
        "zoned": pa.timestamp("us", "UTC"),
        "naive.x": pa.timestamp("us"),
        "past": pa.timestamp("us"),
        "own": pa.timestamp("us"),
        "lists": pa.int64(),
        "ms": pa.int64(),
    }


def test_intervals_are_rounded_down() -> None:
    lengths = pa.array([1_000_999, -1, None], pa.duration("us"))
    (found,) = for_bridge(pa.record_batch({"a": lengths})).columns
    assert found.type == pa.duration("ms")
    assert found.cast(pa.int64()).to_pylist() == [1000, -1, None]


def test_lists_of_times_of_day() -> None:
    lists = pa.list_(pa.time32("ms"))
    rows = pa.record_batch({"a": pa.array([[1, None], None], pa.list_(pa.int32())).cast(lists)})
    rows = rows.append_column("b", pa.array([[], [None]], pa.list_(pa.null())))
    schema = spark_schema(rows.schema)
    assert isinstance(schema["a"].dataType.elementType, t.TimeType)  # type: ignore[attr-defined]
    assert schema["b"].dataType == t.ArrayType(t.StringType())
    found = for_spark(rows, schema)
    assert found.column("a").to_pylist() == [[datetime.time(0, 0, 0, 1000), None], None]
    assert found.column("b").to_pylist() == [[], [None]]
