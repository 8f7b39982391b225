"""Streams as Spark reads them, and their columns as the bridge requires them.

    R=data/r.csv        a file, or a folder or pattern of files: .csv, .jsonl, .parquet
    R=parquet:data/r    with the format, if the name does not give it
    R=rate:1000         this many rows per second, columns `timestamp` and `value`
    R=kafka:HOST:9092/TOPIC   values are JSON objects with the stream's columns and ts

A stream takes a column `ts` (integer milliseconds, or a timestamp) and its own by name. `select`
computes them from other columns, as SQL: "timestamp AS ts, value % 100 AS a".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.errors import AnalysisException, ParseException, PySparkTypeError
from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.streaming.readwriter import DataStreamReader

from seustream.columns import suits
from seustream.compiler.catalogue import Stream
from seustream.compiler.language.types import VARCHAR, Kind
from seustream.engine.stream.schema import TABLE_TIME, stream_schema
from seustream.spark_feeder.cells import milliseconds, ntz_millis, value
from seustream.spark_feeder.errors import FeedError
from seustream.spark_feeder.lines import LineReader, lines_of_files, messages
from seustream.spark_feeder.types import quoted, spark_schema, time_type
from seustream.tables import Field, fields, fold

FILES = {"csv": "csv", "json": "jsonl", "jsonl": "jsonl", "parquet": "parquet"}
KAFKA = "org.apache.spark:spark-sql-kafka-0-10_2.13"


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
    spark: SparkSession,
    source: InputSource,
    stream: Stream,
    files_a_batch: int | None = None,
    select: str | None = None,
) -> DataFrame:
    """Reads the source as a streaming frame, or a table as a frame of all its rows. Of text it has
    the stream's columns, or those that `select` reads. Files are one batch, unless a number per
    batch is given; they are then read in the order in which they were written."""
    if source.kind == "rate":
        if not source.where.isdigit() or not int(source.where):
            raise FeedError(f"rate:{source.where}: want rows a second")
        return spark.readStream.format("rate").option("rowsPerSecond", source.where).load()
    if source.kind == "kafka":
        lines = _kafka(spark, source.where)
    else:
        lines = _files(spark, source, stream, files_a_batch)
        if source.kind == "parquet":
            return lines
    reader = LineReader(stream, _fields(spark, stream, select), source.kind == "csv")
    return lines.mapInArrow(reader, reader.schema)


def _files(
    spark: SparkSession, source: InputSource, stream: Stream, files_a_batch: int | None
) -> DataFrame:
    path = Path(source.where)
    options: dict[str, str] = {}
    reader: DataFrameReader | DataStreamReader = spark.read if stream.table else spark.readStream
    suffix = ".csv"
    if path.is_file():
        suffix = suffix if path.suffix.lower() in ("", *_PACKED) else path.suffix
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
    if source.kind == "csv":
        options |= _undivided(suffix)
    options["lineSep"] = "\n"
    return reader.options(**options).text(where).select(*lines_of_files())


_PACKED = (".gz", ".bz2", ".deflate", ".lz4", ".snappy", ".zst")
"""Suffixes of compressed files, which Hadoop unpacks."""


def _undivided(suffix: str) -> dict[str, str]:
    """Keeps files with a suffix whole, as a cell in quotes may have line breaks: Spark divides no
    compressed file, and this codec of Hadoop changes nothing. Hadoop's client has its option under a
    name of its own."""
    option = "io.compress.passthrough.extension"
    return {
        "io.compression.codecs": "org.apache.hadoop.io.compress.PassthroughCodec",
        option: suffix,
        f"org.apache.hadoop.shaded.{option}": suffix,
    }


def _kafka(spark: SparkSession, where: str) -> DataFrame:
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
    return raw.select(*messages())


def _fields(spark: SparkSession, stream: Stream, select: str | None) -> tuple[Field, ...]:
    """Returns the columns to read of text: those of the stream, or those that a select list reads.
    Of the latter, those that the stream does not have are texts, and so is the time."""
    own = fields(stream)
    if not stream.table and stream.time is None and stream.column("ts") in stream.columns:
        raise FeedError(
            f"stream {stream.name} has a column ts of its own",
            f"CREATE STREAM {stream.name} (…) WITH (time = 'column') names the time column",
        )
    if select is None:
        return own
    known = {name: of for of in own for name in of.names if not of.is_time}
    found: dict[str, Field] = {}
    for name in _names(spark, stream, select):
        text = Field(name, (fold(name),), VARCHAR, nullable=True, is_json=True)
        found.setdefault(fold(name), known.get(fold(name), text))
    if "*" in _items(select):
        found = {of.name.lower(): of for of in own} | found
    return tuple(found.values()) or own


def _names(spark: SparkSession, stream: Stream, select: str) -> Iterator[str]:
    """Yields the names of columns in a select list."""
    parser = spark._jsparkSession.sessionState().sqlParser()
    for item in _items(select):
        try:
            leaves = parser.parseExpression(item).collectLeaves()
        except ParseException as error:
            raise FeedError(f"stream {stream.name}: {_first_line(error)}") from None
        for place in range(leaves.size()):
            leaf = leaves.apply(place)
            if leaf.getClass().getSimpleName() == "UnresolvedAttribute":
                name = leaf.nameParts().head()
                if name.lower() not in _CURRENT:
                    yield name


_CURRENT = {
    f"current_{what}"
    for what in ("catalog", "database", "date", "schema", "time", "timestamp", "user")
}
"""Functions that may lack their brackets."""


def rows_of(frame: DataFrame, stream: Stream, select: str | None = None) -> DataFrame:
    """Returns a frame with exactly the stream's columns: `ts` in milliseconds, then its own."""
    frame = _selected(frame, stream, select)
    if stream.table:
        frame = frame.withColumn("ts", f.lit(TABLE_TIME).cast("bigint"))
    frame = _timed(frame, stream)
    by_name: dict[str, list[str]] = {}
    for name in frame.columns:
        by_name.setdefault(name.lower(), []).append(name)
    wanted = [field.name for field in stream_schema(stream)]
    missing = [name for name in wanted if name.lower() not in by_name]
    if missing:
        raise FeedError(
            f"stream {stream.name}: no column {', '.join(missing)}; the source has"
            f" {', '.join(frame.columns)}",
            f'--select {stream.name}="timestamp AS ts, …", or selectExpr of the frame',
        )
    for name in wanted:
        if len(same := by_name[name.lower()]) > 1:
            raise FeedError(
                f"stream {stream.name}: column {name} is there {len(same)} times:"
                f" {', '.join(map(repr, same))}",
                "rename one; letter case does not tell columns apart",
            )
    columns = [times_of(frame, by_name["ts"][0], f"stream {stream.name}")]
    own = {of.name: of for of in fields(stream) if not of.is_time}
    for field in spark_schema(stream_schema(stream)).fields[1:]:
        (name,) = by_name[field.name.lower()]
        column = _own(frame, name, field.dataType, own[field.name], stream)
        columns.append(column.alias(field.name))
    return frame.select(*columns)


def _own(frame: DataFrame, name: str, want: t.DataType, of: Field, stream: Stream) -> Column:
    """Returns a column of the stream, in its type."""
    have = frame.schema[name].dataType
    try:
        given = to_arrow_type(have, timezone="UTC")
        suitable = pa.types.is_null(given) or suits(given, of)
    except PySparkTypeError:  # a type that Arrow lacks
        suitable = False
    if not suitable:
        raise FeedError(
            f"stream {stream.name}: column {of.name} has type {have.simpleString()}, expected"
            f" {of.expected}",
            f"convert it: CAST({name} AS {want.simpleString()})",
        )
    return value(frame[quoted(name)], have, want, f"stream {stream.name}, column {of.name}")


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
    named = {name.lower(): name for name in frame.columns}
    if stream.time is None or stream.time.lower() not in named:
        return frame
    time = frame[quoted(named[stream.time.lower()])]
    others = [frame[quoted(name)] for folded, name in named.items() if folded != "ts"]
    return frame.where(time.isNotNull()).select(time.alias("ts"), *others)


def _selected(frame: DataFrame, stream: Stream, select: str | None) -> DataFrame:
    if select is None:
        return frame
    try:
        return frame.selectExpr(*_items(select))
    except AnalysisException as error:
        raise FeedError(f"stream {stream.name}: {_first_line(error)}") from None


def times_of(frame: DataFrame, name: str, what: str) -> Column:
    """Returns a column as `ts` in milliseconds since 1970; timestamps without a zone are read as
    UTC, as everywhere. `what` names the frame in an error."""
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
            found = milliseconds(time, f"{what}, column {name}")
        case _:
            raise FeedError(
                f"{what}: {name} is {kind.simpleString()}",
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
    return str(error).strip().splitlines()[0]
