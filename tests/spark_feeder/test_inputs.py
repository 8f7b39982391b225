"""Sources by their names, and a stream's columns from them."""

from __future__ import annotations

import csv
import datetime
import gzip
import json
import math
import random
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from seustream.compiler.pipeline import compile_text
from seustream.spark_feeder.errors import FeedError
from seustream.spark_feeder.inputs import InputSource, _items, read, rows_of
from seustream.spark_feeder.lines import LineReader, messages
from seustream.tables import fields
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
                with pytest.raises(PySparkException, match=r"column d: '1\.005' has more digits"):
                    rows.collect()
            else:
                assert [row.d for row in rows.collect()] == [value]


def collected(
    spark: SparkSession, path: Path | str, select: str | None = None
) -> list[tuple[object, ...]]:
    """Returns the rows of a table from a file or folder."""
    text = "CREATE TABLE T (a int, s varchar); CREATE STREAM R (a int); SELECT s FROM R, T;"
    stream = compile_text(text).streams[0]
    frame = read(spark, InputSource.parse(str(path)), stream, select=select)
    return [tuple(row[1:]) for row in rows_of(frame, stream, select).collect()]


def test_a_select_list_reads_other_columns(spark: SparkSession, tmp_path: Path) -> None:
    """Those of the stream have its types, the others are texts: JSON as it is written."""
    (tmp_path / "t.csv").write_text("n,A,unused,x y\n5,7,?,true\n")
    object = '{"n": {"k": [1, 2.50, "é"]}, "A": 7, "unused": 1, "unused": 2, "x y": true}\n'
    (tmp_path / "t.json").write_text(object)
    nested = '{"k": [1, 2.50, "é"]}'
    for name, n in (("t.csv", "5"), ("t.json", nested)):
        path = tmp_path / name
        assert collected(spark, path, "a + 1 AS a, n AS s") == [(8, n)]
        assert collected(spark, path, "length(`x y`) AS a, `x y` AS s") == [(4, "true")]
        list_of_texts = "transform(array(N), v -> v)[0] AS s, year(current_date) > 0 AS b, a"
        assert collected(spark, path, list_of_texts) == [(7, n)]
        with pytest.raises(PySparkException, match=r"no column none, which the select list reads"):
            collected(spark, path, "a, none AS s")
        with pytest.raises(FeedError, match="PARSE_SYNTAX_ERROR"):
            collected(spark, path, "a, s =")
    assert collected(spark, tmp_path / "t.json", "a, get_json_object(n, '$.k[0]') AS s") == [
        (7, "1")
    ]
    (tmp_path / "t.csv").write_text("S,a\nx,7\n")
    assert collected(spark, tmp_path / "t.csv", "*") == [(7, "x")]


def test_files_of_a_folder_each_have_their_header(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("a,s\n1,x\n")
    (tmp_path / "2.csv").write_text(",S,A\n0,y,2\n")
    (tmp_path / "3.csv.gz").write_bytes(gzip.compress(b"s,a\nz,3\n"))
    assert sorted(collected(spark, f"csv:{tmp_path}")) == [(1, "x"), (2, "y"), (3, "z")]
    assert collected(spark, f"csv:{tmp_path / '3.csv.gz'}") == [(3, "z")]


def test_files_that_spark_would_divide(spark: SparkSession, tmp_path: Path) -> None:
    """A cell in quotes may have line breaks, so that only JSON is divided."""
    rows = [(n, f"{n},\n{n}" * 5) for n in range(300)]
    with (tmp_path / "t.csv").open("w", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows([("a", "s"), *rows])
    (tmp_path / "t.txt").write_text((tmp_path / "t.csv").read_text())
    (tmp_path / "t.part").write_text((tmp_path / "t.csv").read_text())
    texts = [json.dumps({"a": a, "s": s}) for a, s in rows]
    (tmp_path / "t.json").write_text("\n".join(texts) + "\n{")
    settings = {"maxPartitionBytes": "2000", "openCostInBytes": "100"}
    for name, one in settings.items():
        spark.conf.set(f"spark.sql.files.{name}", one)
    try:
        for name in ("t.csv", "csv:t.txt"):
            kind, colon, file = name.rpartition(":")
            where = f"{kind}{colon}{tmp_path / file}"
            assert sorted(collected(spark, where)) == rows
        with pytest.raises(PySparkException, match=r"t\.(txt|part): Spark divides this file"):
            collected(spark, f"csv:{tmp_path}")
        with pytest.raises(
            PySparkException, match=r"t\.json, from byte \d+:\d+: not a JSON object"
        ):
            collected(spark, tmp_path / "t.json")
        (tmp_path / "t.json").write_text("\n".join(texts))
        assert sorted(collected(spark, tmp_path / "t.json")) == rows
    finally:
        for name in settings:
            spark.conf.unset(f"spark.sql.files.{name}")


@pytest.mark.parametrize(
    ("declared", "given", "said"),
    [
        ("int", "'5'", "has type string, expected an int"),
        ("int", "5D", "has type double, expected an int"),
        ("bigint", "TIMESTAMP'2026-01-01'", "has type timestamp, expected a bigint"),
        ("timestamp", "5L", "has type bigint, expected a timestamp"),
        ("date", "TIMESTAMP'2026-01-01'", "has type timestamp, expected a date"),
        ("varchar", "5", "has type int, expected a varchar"),
        ("interval", "INTERVAL '1' YEAR", "has type interval year, expected an interval"),
        ("int", "array(1)", "has type array<int>, expected an int"),
    ],
)
def test_types_of_frames_are_checked(
    spark: SparkSession, declared: str, given: str, said: str
) -> None:
    stream = compile_text(f"CREATE STREAM T (a {declared}); SELECT a FROM T;").streams[0]
    with pytest.raises(FeedError, match=f"stream T: column a {said}"):
        rows_of(spark.sql(f"SELECT 1L AS ts, {given} AS A"), stream)


def test_related_types_become_the_streams(spark: SparkSession) -> None:
    text = "CREATE STREAM T (a int, b bigint, at timestamp); SELECT a FROM T;"
    stream = compile_text(text).streams[0]
    frame = spark.sql("SELECT 1L AS ts, 5L AS a, 6Y AS b, TIMESTAMP'2026-01-01' AS at")
    found = rows_of(frame, stream)
    assert found.dtypes == [("ts", "bigint"), ("a", "int"), ("b", "bigint"), ("at", "timestamp")]
    assert [tuple(row)[:3] for row in found.collect()] == [(1, 5, 6)]


def test_columns_that_differ_in_letter_case_alone(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        frame = spark.sql("SELECT 1L AS ts, 5 AS a, 6 AS A, 7 AS B")
        with pytest.raises(FeedError, match="column a is there 2 times: 'a', 'A'"):
            rows_of(frame, R)
        rows = rows_of(frame.drop("A"), R).collect()
        assert [tuple(row) for row in rows] == [(1, 5, 7)]
        timed = "CREATE STREAM T (at bigint) WITH (time = 'at'); SELECT at FROM T;"
        (stream,) = compile_text(timed).streams
        frame = spark.sql("SELECT 4L AS TS, 5L AS AT UNION ALL SELECT 1L, NULL")
        assert [tuple(row) for row in rows_of(frame, stream).collect()] == [(5, 5)]
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def test_times_of_day(spark: SparkSession, tmp_path: Path) -> None:
    (stream,) = compile_text("CREATE STREAM T (a time); SELECT a FROM T WINDOW 1;").streams
    noon = datetime.time(12, 0, 0, 250_000)
    rows = pa.table({"ts": [1, 2], "a": pa.array([noon, None], pa.time64("us"))})
    (tmp_path / "T").mkdir()
    pq.write_table(rows, tmp_path / "T" / "rows.parquet")
    frame = read(spark, InputSource("parquet", str(tmp_path / "T")), stream)
    assert dict(frame.dtypes)["a"].startswith("time")


def test_messages_of_a_topic(spark: SparkSession) -> None:
    """From a frame with the columns of Spark's connector."""
    columns = "key binary, value binary, topic string, partition int, offset bigint"
    texts = [b'{"ts": 5, "a": 1, "b": 2}', None, b'{"ts": 6}{"ts": 7}']
    rows = [(None, text, "t", 3, 40 + n) for n, text in enumerate(texts)]
    reader = LineReader(R, fields(R))

    def taken(many: int) -> DataFrame:
        given = spark.createDataFrame(rows[:many], columns)
        return given.select(*messages()).mapInArrow(reader, reader.schema)

    assert [tuple(row) for row in taken(2).collect()] == [(5, 1, 2)]
    with pytest.raises(
        PySparkException, match=r"topic t, partition 3: offset 42: not a JSON object"
    ):
        taken(3).collect()


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
