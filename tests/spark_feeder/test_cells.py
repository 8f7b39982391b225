"""Texts as values: Python's own readers of numbers and times say what they are."""

from __future__ import annotations

import datetime
import json
import random
from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from seustream.spark_feeder.cells import milliseconds, spelled, value
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
        kind = t.TimestampNTZType()
        naive = collected(spark, [value(f.lit(text), kind, "a") for text in texts])
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    epoch = datetime.datetime(1970, 1, 1, tzinfo=UTC)
    assert found == [(time - epoch) // datetime.timedelta(milliseconds=1) for time in times]
    assert naive == [time.astimezone(UTC).replace(tzinfo=None) for time in times]


@pytest.mark.parametrize(
    ("kind", "texts", "values"),
    [
        (t.IntegerType(), ["5", " -17\t", "", "  ", None], [5, -17, None, None, None]),
        (t.StringType(), ["", " x ", 'say "hi"', None], ["", " x ", 'say "hi"', None]),
        (t.BooleanType(), ["true", "T", "1", "FALSE", "f", "0"], [True] * 3 + [False] * 3),
        (t.DoubleType(), [".5", "1e-3", "inf", "-Infinity"], [0.5, 1e-3, *map(float, ("inf", "-inf"))]),
        (t.DecimalType(9, 2), ["1.2500", "-.05", "1.2345e2"],
         [Decimal("1.25"), Decimal("-0.05"), Decimal("123.45")]),
        (t.DateType(), ["2006-03-01", " "], [datetime.date(2006, 3, 1), None]),
        (t.DecimalType(9, 2), ["nan", "+1"], [None, Decimal(1)]),
        (t.FloatType(), ["3e38", "-inf", "-nan"], [float(np.float32(3e38)), float("-inf"), None]),
        (t.TimestampNTZType(), ["2006-03-01t12:30z", "2006-03-01 12:30:00+19:00"],
         [datetime.datetime(2006, 3, 1, 12, 30), datetime.datetime(2006, 2, 28, 17, 30)]),
    ],
)  # fmt: skip
def test_values(
    spark: SparkSession, kind: t.DataType, texts: list[str | None], values: list[object]
) -> None:
    assert collected(spark, [value(f.lit(text), kind, "a") for text in texts]) == values


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_what_is_no_value(spark: SparkSession, ansi: str) -> None:
    wrong = {
        "x": t.IntegerType(),
        "3000000000": t.IntegerType(),
        "1.005": t.DecimalType(9, 2),
        "1.0050e0": t.DecimalType(9, 2),
        "1e-40": t.DecimalType(9, 2),
        "1234567890.5": t.DecimalType(38, 0),
        "1e400": t.DoubleType(),
        "5\n": t.LongType(),
        "2024-01-01\n": t.TimestampNTZType(),
        "1e39": t.FloatType(),
        "1.5f": t.DoubleType(),
        "0x1p3": t.DoubleType(),
        "yes": t.BooleanType(),
        "2006-03": t.DateType(),
        "2006-03-01 12:30:00": t.DateType(),
        "12:30 PM": t.TimeType(),
        "0000-03-01": t.DateType(),
        "0001-01-01 00:00:00+01:00": t.TimestampNTZType(),
        "9999-12-31 23:59:59-01:00": t.TimestampNTZType(),
        "2006": t.TimestampNTZType(),
        "2006-03-01+02:00": t.TimestampNTZType(),
        "2026-02-30": t.TimestampNTZType(),
        "2026-03-02 09:00 Europe/Paris": t.TimestampNTZType(),
    }
    columns = [(text, value(f.lit(text), kind, "column a")) for text, kind in wrong.items()]
    columns += [(text, milliseconds(f.lit(text), "column a")) for text in ("1.5", "x", "09:00")]
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        for text, column in columns:
            with pytest.raises(PySparkException) as caught:
                collected(spark, [column])
            kind_of_error, said = cause(str(caught.value))
            assert kind_of_error == "schema"
            assert said.startswith("schema: column a: no ")
            assert f": {text.strip()}" in said
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


def test_other_errors_may_show_the_expression(spark: SparkSession) -> None:
    """Spark prints plans in its messages. Such an error has no cause that ends a job for good."""
    column = value(f.col("a"), t.IntegerType(), "column a")
    rows = spark.createDataFrame([("1",)], "a string").select(column)
    shown = rows._jdf.queryExecution().toString()
    assert "no int: " in shown
    assert cause(shown)[0] is None


def test_members_are_spelled_as_columns(spark: SparkSession) -> None:
    """Names within texts, and those of other members, stay as they are."""
    names = ["a", "user.id", "Größe", "c$1"]
    members = {"A": '"A": 1', "User.ID": "a", "other": {"x": '\\"a": '}, "GRÖSSE": 1, "GRÖßE": 2}
    members |= {"C$1": 'A "a" :', " a1": 3}
    for ascii_only in (True, False):
        text = json.dumps(members, ensure_ascii=ascii_only)
        (found,) = collected(spark, [spelled(f.lit(text), names)])
        assert isinstance(found, str)
        large = "GRÖßE" if ascii_only else "Größe"  # an escape is not compared
        want = ["a", "user.id", "other", "GRÖSSE", large, "c$1", " a1"]
        assert list(json.loads(found)) == want
        assert list(json.loads(found).values()) == list(members.values())
