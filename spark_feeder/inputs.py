"""Streams as Spark reads them, and their columns as the bridge requires them.

    R=data/r.csv        a file, or a folder or pattern of files: .csv, .jsonl, .parquet
    R=parquet:data/r    with the format, if the name does not give it
    R=rate:1000         this many rows per second, columns `timestamp` and `value`
    R=kafka:HOST:9092/TOPIC   values are JSON objects with the stream's columns and ts

A stream takes a column `ts` (integer milliseconds, or a timestamp) and its own by name. `select`
computes them from other columns, as SQL: "timestamp AS ts, value % 100 AS a".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.streaming.readwriter import DataStreamReader

from seustream.compiler.catalogue import Stream
from seustream.compiler.language.types import Kind
from seustream.engine.stream.schema import TABLE_TIME, stream_schema
from seustream.spark_feeder.cells import milliseconds, ntz_millis, spelled, value
from seustream.spark_feeder.errors import FeedError
from seustream.spark_feeder.types import quoted, spark_schema, time_type

FILES = {"csv": "csv", "json": "jsonl", "jsonl": "jsonl", "parquet": "parquet"}
KAFKA = "org.apache.spark:spark-sql-kafka-0-10_2.13"
_DIGITS = 38
"""The most digits of a decimal number in Spark."""
_NULL = "\0"
"""An empty cell without quotes, as Spark reads it. By default, `""` is NULL, too."""


@dataclass(frozen=True, slots=True)
class InputSource:
    """The origin of a stream. A `bounded` one ends when its present content has been read."""

    kind: str
    where: str

    @property
    def bounded(self) -> bool:
        return self.kind in ("csv", "jsonl", "parquet")

    @classmethod
    def parse(cls, text: str) -> InputSource:
        kind, colon, where = text.partition(":")
        if colon and kind in FILES:
            return cls(FILES[kind], where)
        if colon and kind in ("rate", "kafka"):
            return cls(kind, where)
        suffix = Path(text).suffix.lower().lstrip(".")
        if suffix in FILES:
            return cls(FILES[suffix], text)
        hint = "a file or folder: csv:DIR, json:DIR, parquet:DIR, or NAME.csv; rate:N; kafka:HOST:PORT/TOPIC"
        raise FeedError(f"{text}: no source", hint)


def read(
    spark: SparkSession, source: InputSource, stream: Stream, files_a_batch: int | None = None
) -> DataFrame:
    """Reads the source as a streaming frame, or a table as a frame of all its rows, with
    unconverted columns. Files are one batch, unless a number per batch is given; they are then read
    in the order in which they were written."""
    if source.kind == "rate":
        if not source.where.isdigit() or not int(source.where):
            raise FeedError(f"rate:{source.where}: want rows a second")
        return spark.readStream.format("rate").option("rowsPerSecond", source.where).load()
    if source.kind == "kafka":
        return _kafka(spark, source.where, stream)
    return _files(spark, source, stream, files_a_batch)


def _files(
    spark: SparkSession, source: InputSource, stream: Stream, files_a_batch: int | None
) -> DataFrame:
    path = Path(source.where)
    options: dict[str, str] = {"mode": "FAILFAST"}
    reader: DataFrameReader | DataStreamReader = spark.read if stream.table else spark.readStream
    if path.is_file():
        # Spark's streams read folders; the filter selects the one file.
        escaped = "".join(f"\\{c}" if c in "*?[]{}\\" else c for c in path.name)
        options["pathGlobFilter"] = escaped
        path = path.parent
    elif not path.is_dir() and not any(c in source.where for c in "*?[{:"):
        raise FeedError(f"{source.where}: no such file or folder")
    where = source.where if ":" in source.where else str(path.absolute())
    if files_a_batch is not None and not stream.table:
        options["maxFilesPerTrigger"] = str(files_a_batch)
    if source.kind == "parquet":
        schema = spark.read.options(**options).parquet(where).schema
        return reader.options(**options).schema(schema).parquet(where)
    if source.kind == "jsonl":
        lines = reader.options(**options).text(where)
        return _objects(lines.where(f.trim("value") != ""), stream)
    options |= {"header": "true", "enforceSchema": "false", "escape": '"', "nullValue": _NULL}
    options["multiLine"] = "true"  # a cell in quotes may have line breaks
    # Spark assigns CSV columns by position, so the schema follows the file's own header.
    head = spark.read.options(**options).csv(where).columns
    cells = t.StructType([t.StructField(name, t.StringType(), True) for name in head])
    return _valued(reader.options(**options).schema(cells).csv(where), stream)


def _kafka(spark: SparkSession, where: str, stream: Stream) -> DataFrame:
    servers, _, topic = where.rpartition("/")
    if not servers or not topic:
        raise FeedError(f"kafka:{where}: want kafka:HOST:PORT/TOPIC")
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers)
    try:
        raw = reader.option("subscribe", topic).option("startingOffsets", "earliest").load()
    except AnalysisException as error:
        if "kafka" not in str(error).lower():
            raise
        version = spark.version
        raise FeedError(
            "this Spark has no Kafka connector",
            f"--conf spark.jars.packages={KAFKA}:{version}, or spark.jars with the files",
        ) from None
    return _objects(raw.select(raw.value.cast("string").alias("value")), stream)


def _objects(lines: DataFrame, stream: Stream) -> DataFrame:
    """Reads the stream's columns from JSON objects, one in each row of the column `value`."""
    untimed = stream.table or stream.time is not None
    schema = t.StructType()
    for field in spark_schema(stream_schema(stream)).fields[untimed:]:
        kind: t.DataType = t.StringType()
        if isinstance(field.dataType, t.DecimalType):
            # A text would lose digits of a number, and the column's own type those that are too fine.
            before = field.dataType.precision - field.dataType.scale
            kind = t.DecimalType(_DIGITS, _DIGITS - before)
        schema.add(field.name, kind)
    found = f.from_json(spelled(lines.value, schema.names), schema, {"mode": "FAILFAST"})
    return _valued(lines.select(found.alias("value")).select("value.*"), stream)


def _valued(texts: DataFrame, stream: Stream) -> DataFrame:
    """Converts columns of text to the types of the stream's columns; `ts` may be a number or a
    time, and remains text."""
    own = {field.name.lower(): field.dataType for field in spark_schema(stream_schema(stream))}
    columns = []
    for field in texts.schema:
        name, kind = field.name, own.get(field.name.lower(), field.dataType)
        column = texts[quoted(name)]
        if name.lower() != "ts" and field.dataType != kind:
            column = value(column.cast("string"), kind, f"stream {stream.name}, column {name}")
        columns.append(column.alias(name))
    return texts.select(*columns)


def rows_of(frame: DataFrame, stream: Stream, select: str | None = None) -> DataFrame:
    """Returns a frame with exactly the stream's columns: `ts` in milliseconds, then its own."""
    frame = _selected(frame, stream, select)
    if stream.table:
        frame = frame.withColumn("ts", f.lit(TABLE_TIME).cast("bigint"))
    frame = _timed(frame, stream)
    by_name = {name.lower(): name for name in frame.columns}
    wanted = [field.name for field in stream_schema(stream)]
    missing = [name for name in wanted if name.lower() not in by_name]
    if missing:
        raise FeedError(
            f"stream {stream.name}: no column {', '.join(missing)}; the source has"
            f" {', '.join(frame.columns)}",
            f'--select {stream.name}="timestamp AS ts, …", or selectExpr of the frame',
        )
    columns = [_ts(frame, by_name["ts"], stream)]
    for field in spark_schema(stream_schema(stream)).fields[1:]:
        columns.append(frame[quoted(by_name[field.name.lower()])].alias(field.name))
    return frame.select(*columns)


def time_of(frame: DataFrame, stream: Stream, select: str | None = None) -> pa.DataType:
    """Returns the type of the frame's `ts` before `rows_of` converts it to milliseconds."""
    if stream.table:
        return pa.int64()
    fields = _timed(_selected(frame, stream, select), stream).schema
    return time_type(next(field.dataType for field in fields if field.name.lower() == "ts"))


def instants_of(frame: DataFrame, stream: Stream, select: str | None = None) -> frozenset[str]:
    """Returns the stream's columns that are instants in the frame, not local times."""
    fields = _selected(frame, stream, select).schema
    zoned = {field.name.lower() for field in fields if field.dataType == t.TimestampType()}
    own = (column for column in stream.columns if column.type.kind is Kind.TIMESTAMP)
    return frozenset(column.name for column in own if column.name.lower() in zoned)


def _timed(frame: DataFrame, stream: Stream) -> DataFrame:
    """Copies the stream's declared time column to `ts`; rows whose time is NULL are left out."""
    if stream.time is None or stream.time.lower() not in map(str.lower, frame.columns):
        return frame
    time = frame[quoted(stream.time)]
    return frame.where(time.isNotNull()).withColumn("ts", time)


def _selected(frame: DataFrame, stream: Stream, select: str | None) -> DataFrame:
    if select is None:
        return frame
    try:
        return frame.selectExpr(*_items(select))
    except AnalysisException as error:
        raise FeedError(f"stream {stream.name}: {_first_line(error)}") from None


def _ts(frame: DataFrame, name: str, stream: Stream) -> Column:
    """Returns milliseconds since 1970; timestamps without a zone are read as UTC, as everywhere."""
    kind = frame.schema[name].dataType
    time = frame[quoted(name)]
    match kind:
        case t.LongType() | t.IntegerType() | t.ShortType() | t.ByteType():
            found = time.cast("bigint")
        case t.TimestampType():
            found = f.unix_millis(time)
        case t.TimestampNTZType():
            found = ntz_millis(time)
        case t.StringType():
            found = milliseconds(time, f"stream {stream.name}, column {name}")
        case _:
            raise FeedError(
                f"stream {stream.name}: ts is {kind.simpleString()}",
                "want whole milliseconds, or a timestamp",
            )
    return found.alias("ts")


def _items(select: str) -> Sequence[str]:
    """Splits a SELECT list into items; commas inside brackets and quotes belong to an item."""
    items, depth, quote, begin = [], 0, "", 0
    for at, c in enumerate(select):
        if quote:
            quote = "" if c == quote else quote
        elif c in "'\"`":
            quote = c
        elif c in "([":
            depth += 1
        elif c in ")]":
            depth -= 1
        elif c == "," and not depth:
            items.append(select[begin:at])
            begin = at + 1
    return [item.strip() for item in [*items, select[begin:]]]


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]
