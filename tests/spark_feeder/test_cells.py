"""Values of related types, and texts as times."""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Sequence
from decimal import Decimal

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from seustream.spark_feeder.cells import milliseconds, value
from seustream.spark_feeder.errors import cause

UTC = datetime.UTC
OFFSETS = ("", "Z", "+00:00", "+02:00", "-02:00", "+0530", "-11", "+14:00")


def collected(spark: SparkSession, columns: Sequence[Column]) -> list[object]:
    (row,) = spark.range(1).select(f.array(*columns).alias("found")).collect()
    return list(row.found)


def test_times_with_offsets(spark: SparkSession) -> None:
    """Instants around changes of clocks, as the session's own zone has some."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    texts, times = [], []
    for _ in range(40):
        at = datetime.datetime(2026, 3, 28) + datetime.timedelta(minutes=chance.randrange(2880))
        at += datetime.timedelta(milliseconds=chance.choice((0, 500, 59_123)))
        seconds = f":{at:%S}.{at.microsecond:06}" if at.second or at.microsecond else ""
        offset = chance.choice(OFFSETS)
        texts.append(f"{at:%Y-%m-%d}{chance.choice('T ')}{at:%H:%M}{seconds}{offset}")
        zoned = datetime.datetime.fromisoformat(texts[-1])
        times.append(zoned if offset else zoned.replace(tzinfo=UTC))
    spark.conf.set("spark.sql.session.timeZone", "Europe/Warsaw")
    try:
        found = collected(spark, [milliseconds(f.lit(text), "ts") for text in texts])
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    epoch = datetime.datetime(1970, 1, 1, tzinfo=UTC)
    assert found == [(time - epoch) // datetime.timedelta(milliseconds=1) for time in times]


@pytest.mark.parametrize(
    ("have", "want", "given", "wanted"),
    [
        ("bigint", "int", ["5", "NULL", "3000000000"], [5, None, ValueError]),
        ("tinyint", "bigint", ["5", "NULL"], [5, None]),
        ("double", "float", ["1.5", "1e39", "'-inf'"], [1.5, ValueError, -math.inf]),
        ("decimal(38,0)", "double", ["7"], [7.0]),
        ("decimal(9,4)", "decimal(9,2)", ["1.25", "1.005", "-0.001"], [Decimal("1.25")] + [ValueError] * 2),
        ("decimal(9,2)", "decimal(5,4)", ["1.25", "10"], [Decimal("1.25"), ValueError]),
        ("bigint", "decimal(3,1)", ["5", "123"], [Decimal(5), ValueError]),
        ("bigint", "interval day to second", ["-1500"], [datetime.timedelta(seconds=-1.5)]),
        ("interval hour to second", "interval day to second", ["INTERVAL '1:00:01' HOUR TO SECOND"],
         [datetime.timedelta(seconds=3601)]),
        ("void", "int", ["NULL"], [None]),
        ("timestamp", "timestamp_ntz", ["TIMESTAMP'2006-03-01'"], [datetime.datetime(2006, 3, 1)]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_related_types(
    spark: SparkSession, have: str, want: str, given: list[str], wanted: list[object], ansi: str
) -> None:
    """A value comes as it is, or stops the job."""
    kinds = [
        spark.sql(f"SELECT CAST(NULL AS {kind}) AS a").schema["a"].dataType for kind in (have, want)
    ]
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        for text, one in zip(given, wanted, strict=True):
            column = value(f.expr(f"CAST({text} AS {have})"), *kinds, "column a")
            if one is not ValueError:
                assert collected(spark, [column]) == [one]
                continue
            with pytest.raises(PySparkException) as caught:
                collected(spark, [column])
            kind, said = cause(str(caught.value))
            assert (kind, said.split(": ")[:3]) == ("schema", ["schema", "column a", f"no {want}"])
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


@pytest.mark.parametrize("text", ["1.5", "x", "09:00", "5\n", "2026-02-30", "2006-03-01+02:00"])
def test_what_is_no_time(spark: SparkSession, text: str) -> None:
    with pytest.raises(PySparkException) as caught:
        collected(spark, [milliseconds(f.lit(text), "column ts")])
    kind, said = cause(str(caught.value))
    assert kind == "schema"
    assert said.startswith(f"schema: column ts: no time: {text.strip()}")


def test_other_errors_may_show_the_expression(spark: SparkSession) -> None:
    """Spark prints plans in its messages. Such an error has no cause that ends a job for good."""
    column = value(f.col("a"), t.LongType(), t.IntegerType(), "column a")
    rows = spark.createDataFrame([(1,)], "a bigint").select(column)
    shown = rows._jdf.queryExecution().toString()
    assert "no int: " in shown
    assert cause(shown)[0] is None
