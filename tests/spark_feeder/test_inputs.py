"""Sources by their names, and a stream's columns from them."""

from __future__ import annotations

import csv
import datetime
import json
import math
import random
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from seustream.compiler.pipeline import compile_text
from seustream.spark_feeder.errors import FeedError
from seustream.spark_feeder.inputs import InputSource, _items, read, rows_of
from tests.cosim.bridge.serving import compiled

R, S = compiled().streams


@pytest.mark.parametrize(
    ("text", "kind", "where"),
    [
        ("a/r.csv", "csv", "a/r.csv"),
        ("csv:a/r", "csv", "a/r"),
        ("json:a/r", "jsonl", "a/r"),
        ("r.JSONL", "jsonl", "r.JSONL"),
        ("r.parquet", "parquet", "r.parquet"),
        ("rate:100", "rate", "100"),
        ("kafka:host:9092/topic", "kafka", "host:9092/topic"),
    ],
)
def test_sources(text: str, kind: str, where: str) -> None:
    assert InputSource.parse(text) == InputSource(kind, where)


@pytest.mark.parametrize("text", ["", "r.txt", "folder", "ftp:x"])
def test_what_is_no_source(text: str) -> None:
    with pytest.raises(FeedError, match="no source"):
        InputSource.parse(text)


def test_items_of_a_select_list() -> None:
    text = "a, f(b, 'x,y') AS c, `d,e`, named_struct('k', array(1, 2))"
    assert _items(text) == ["a", "f(b, 'x,y') AS c", "`d,e`", "named_struct('k', array(1, 2))"]


def test_files_and_their_times(spark: SparkSession, tmp_path: Path) -> None:
    """Each format, one file among others, times as numbers and as texts: all give the same rows."""
    at = datetime.datetime(2006, 3, 1, 12, 0, 0, 5000)
    millis = 1141214400005
    (tmp_path / "n.csv").write_text(f"b,ts,a\n1,{millis},2\n")
    (tmp_path / "t.csv").write_text("ts,a,b\n2006-03-01 12:00:00.0059,2,1\n")
    (tmp_path / "n.jsonl").write_text(f'{{"a": 2, "ts": {millis}, "b": 1, "more": 5}}\n')
    ints = {"a": pa.array([2], pa.int32()), "b": pa.array([1], pa.int32())}
    pq.write_table(pa.table({"ts": [millis], **ints}), tmp_path / "n.parquet")
    pq.write_table(pa.table({"ts": pa.array([at]), **ints}), tmp_path / "t[1].parquet")
    zoned = pa.array([at], pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"TS": zoned, **ints}), tmp_path / "z.parquet")
    for number, path in enumerate(sorted(tmp_path.iterdir())):
        found = rows_of(read(spark, InputSource.parse(str(path)), R), R)
        query = found.writeStream.format("memory").queryName(f"m{number}")
        query.trigger(availableNow=True).start().awaitTermination()
        rows = [tuple(row) for row in spark.table(f"m{number}").collect()]
        assert rows == [(millis, 2, 1)], path


TEXTS = """
CREATE STREAM T (a int, s varchar, b boolean, x double precision, d numeric(30, 9), at timestamp);
SELECT a FROM T WINDOW 1;
"""


def test_texts_of_files(spark: SparkSession, tmp_path: Path) -> None:
    """Files as Python's own modules write them: quotes, empty texts, members in any case, numbers as
    texts."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    (stream,) = compile_text(TEXTS).streams
    names = ("ts", *(column.name for column in stream.columns))
    pieces = ('"', "\\", ",", "'", "x", " ", "ts", ":", '"a": ', "\n")
    rows, cells = [], []
    for ts in range(60):
        a, b = chance.choice((None, ts)), chance.choice((True, False, None))
        text = "".join(chance.choices(pieces, k=chance.randrange(5)))
        x = chance.choice((chance.random(), math.inf))
        d = Decimal(chance.randrange(10**29)).scaleb(-9)
        at = datetime.datetime(2026, 3, 2) + datetime.timedelta(minutes=chance.randrange(1440))
        rows.append((ts, a, text, b, x, d, at))
        zone = chance.choice(("", "Z", "+00:00"))
        cells.append((ts, a, text, b, "inf" if x == math.inf else x, f"{d:f}", f"{at}{zone}"))
    for quoting in (csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC):
        with (tmp_path / f"{quoting}.csv").open("w", newline="") as file:
            csv.writer(file, quoting=quoting).writerows([names, *cells])
    with (tmp_path / "t.jsonl").open("w") as file:
        for row in cells:
            given = [str(v) if v is not None and chance.random() < 0.3 else v for v in row]
            spelled = [chance.choice((name, name.upper())) for name in names]
            line = json.dumps(dict(zip(spelled, given, strict=True)))
            decimal = chance.choice((row[5], f'"{row[5]}"'))
            file.write(line.replace(f'"{row[5]}"', decimal) + chance.choice(("\n", "\n \n")))
    for number, path in enumerate(sorted(tmp_path.iterdir())):
        found = rows_of(read(spark, InputSource.parse(str(path)), stream), stream)
        query = found.writeStream.format("memory").queryName(f"texts{number}")
        query.trigger(availableNow=True).start().awaitTermination()
        got = [tuple(row) for row in spark.table(f"texts{number}").sort("ts").collect()]
        assert got == rows, path


def test_decimals_that_are_too_fine(spark: SparkSession, tmp_path: Path) -> None:
    """A column's text is read as it is, or refused, in both formats."""
    text = "CREATE TABLE T (d numeric(9, 2)); CREATE STREAM R (a int); SELECT d FROM R, T;"
    stream = compile_text(text).streams[0]
    for text, value in (("1.500", Decimal("1.50")), ("-0.01", Decimal("-0.01")), ("1.005", None)):
        (tmp_path / "t.csv").write_text(f"d\n{text}\n")
        (tmp_path / "t.json").write_text(f'{{"d": {text}}}\n')
        for path in tmp_path.iterdir():
            rows = rows_of(read(spark, InputSource.parse(str(path)), stream), stream)
            if value is None:
                with pytest.raises(PySparkException, match=r"column d: no decimal\(9,2\): 1\.005"):
                    rows.collect()
            else:
                assert [row.d for row in rows.collect()] == [value]


def test_times_of_day(spark: SparkSession, tmp_path: Path) -> None:
    (stream,) = compile_text("CREATE STREAM T (a time); SELECT a FROM T WINDOW 1;").streams
    noon = datetime.time(12, 0, 0, 250_000)
    rows = pa.table({"ts": [1, 2], "a": pa.array([noon, None], pa.time64("us"))})
    (tmp_path / "T").mkdir()
    pq.write_table(rows, tmp_path / "T" / "rows.parquet")
    frame = read(spark, InputSource("parquet", str(tmp_path / "T")), stream)
    assert dict(frame.dtypes)["a"].startswith("time")


def test_rate_and_kafka(spark: SparkSession) -> None:
    frame = read(spark, InputSource.parse("rate:5"), R)
    select = "timestamp AS ts, CAST(value % 3 AS int) AS a, CAST(value AS int) AS b"
    assert rows_of(frame, R, select).columns == ["ts", "a", "b"]
    for text, complaint in (
        ("rate:x", "rows a second"),
        ("kafka:nowhere", "kafka:HOST:PORT/TOPIC"),
        ("kafka:host:9092/t", "no Kafka connector"),
        ("none.csv", "no such file"),
    ):
        with pytest.raises(FeedError, match=complaint):
            read(spark, InputSource.parse(text), R)
