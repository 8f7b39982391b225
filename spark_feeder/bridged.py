"""A query set at its bridges, with the two ends Spark has there: rows of its streams go in, results
of its queries come out."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from seustream.compiler.pipeline import Compilation
from seustream.compiler.plan.keys import keys
from seustream.cosim.bridge.protocol import LATE, Run
from seustream.engine.assembly import answer_schemas, streams_read
from seustream.engine.stream.schema import stream_schema
from seustream.engine.times import Times
from seustream.spark_feeder.connection import Connection
from seustream.spark_feeder.errors import FeedError
from seustream.spark_feeder.inputs import instants_of, rows_of, time_of
from seustream.spark_feeder.progress import OBSERVED, observed
from seustream.spark_feeder.queries import compiled_for
from seustream.spark_feeder.source import NAME, Seustream
from seustream.spark_feeder.types import spark_schema, timed
from seustream.spark_feeder.workers import prepare


@dataclass(frozen=True, slots=True)
class BridgedQueries:
    """A loaded query set.

    frames   the rows of each stream, with exactly its columns
    keys     the column that divides a stream's rows over several bridges
    columns  those of each query's results, and of each stream's late rows
    times    their types of time
    """

    spark: SparkSession
    compilation: Compilation
    connection: Connection
    frames: Mapping[str, DataFrame]
    keys: Mapping[str, str]
    columns: Mapping[str, pa.Schema]
    times: Times

    @property
    def streaming(self) -> dict[str, DataFrame]:
        """Returns the streaming frames, excluding static ones such as those of tables."""
        return {name: rows for name, rows in self.frames.items() if rows.isStreaming}

    def load(self, how: Run, fresh: bool) -> None:
        """Loads the query set at its bridges; `fresh` requires that these have no rows of it yet."""
        for client in self.connection.clients():
            client.load(self.compilation, how)
            if fresh and client.status().get("writer_epoch"):
                raise FeedError(
                    f"{client.address} has rows of an earlier job, and this one has no checkpoint",
                    "give that job's checkpoint, or reset the bridge",
                )

    def feed(self, stream: str) -> DataStreamWriter:
        """Returns a writer for the rows of a stream, which still takes a checkpoint and a trigger."""
        writer = observed(self.frames[stream]).writeStream.format(NAME)
        fed: DataStreamWriter = self._options(writer, stream=stream, key=self.keys.get(stream))
        return fed

    def put(self, stream: str, rows: DataFrame, writer: str, epoch: int) -> None:
        """Writes rows as an epoch of a writer."""
        to = self._options(rows.write.format(NAME), stream=stream, key=self.keys.get(stream))
        to.option("writer", writer).option("epoch", str(epoch)).mode("append").save()

    def put_whole(self) -> None:
        """Writes the rows of static frames and ends their streams. Each is one epoch, however often
        it is written."""
        for name, rows in self.frames.items():
            if not rows.isStreaming:
                self.put(name, rows, f"whole {name}", 0)
                for client in self.connection.clients():
                    client.end(name)

    def results(self, what: str, name: str = OBSERVED, **options: str) -> DataFrame:
        """Returns the results of a query as a stream; their counts are observed under a name."""
        reader = self._options(self.spark.readStream.format(NAME), query=what, **options)
        schema = self.columns[what]
        rows = observed(reader.schema(spark_schema(schema)).load(), name)
        return timed(rows, self.times.schema(what, schema))

    def _options(self, to: Any, **more: str | None) -> Any:
        given = {**self.connection.options, **more}
        for name, value in given.items():
            to = to.option(name, value) if value is not None else to
        return to


def bridged(
    queries: Compilation | str | Path,
    sources: Mapping[str, DataFrame],
    connection: Connection,
    select: Mapping[str, str] | None = None,
) -> BridgedQueries:
    """Returns a query set over these sources, not yet loaded."""
    spark = spark_of(sources)
    # Spark looks for it once, in a Python worker; if that worker dies, Spark continues without it.
    spark.dataSource.register(Seustream)
    prepare(spark, NAME)
    compilation = (
        queries if isinstance(queries, Compilation) else compiled_for(connection.client(), queries)
    )
    key_of = _keys(compilation, len(connection.bridges))
    frames, times = frames_of(compilation, sources, select or {})
    for name in (stream.name for stream in compilation.streams if stream.table):
        if name in frames and (frames[name].isStreaming or len(connection.bridges) > 1):
            streaming = frames[name].isStreaming
            what = "its frame is streaming" if streaming else "there are several bridges"
            raise FeedError(f"table {name}: {what}", "spark.read it, for one bridge")
    columns = columns_of(compilation, times, frames)
    check_times(spark, columns)
    return BridgedQueries(spark, compilation, connection, frames, key_of, columns, times)


def columns_of(
    compilation: Compilation, times: Times, fed: Collection[str]
) -> dict[str, pa.Schema]:
    """Returns the columns of each query's results, and of the late rows of the streams that are
    fed."""
    answers = answer_schemas(compilation.program)
    columns = {name: times.zoned(name, schema) for name, schema in answers.items()}
    for stream in compilation.streams:
        if stream.name in fed:
            columns[LATE + stream.name] = times.late(stream.name, stream_schema(stream))
    return columns


def check_times(spark: SparkSession, columns: Mapping[str, pa.Schema]) -> None:
    """Checks for Spark's time-of-day type, which a session not created by `session` may lack."""
    if spark.conf.get("spark.sql.timeType.enabled", "false") == "true":
        return
    for name, schema in columns.items():
        for column in schema:
            if pa.types.is_time(column.type):
                raise FeedError(
                    f"{name}: {column.name} is a time of day, which this Spark session does not have",
                    "set spark.sql.timeType.enabled=true, as spark_feeder.session does",
                )


def spark_of(sources: Mapping[str, DataFrame]) -> SparkSession:
    if not sources:
        raise FeedError("no sources", "give each stream a streaming frame")
    return next(iter(sources.values())).sparkSession


def frames_of(
    compilation: Compilation, sources: Mapping[str, DataFrame], select: Mapping[str, str]
) -> tuple[dict[str, DataFrame], Times]:
    """Returns each stream's rows, and the original types of times; every stream that a query reads
    must have a source."""
    streams = {s.name.lower(): s for s in compilation.streams if s.defined_by is None}
    frames, given, instants = {}, {}, {}
    for name, frame in sources.items():
        if name.lower() not in streams:
            known = ", ".join(stream.name for stream in streams.values())
            raise FeedError(f"there is no stream {name}", f"streams: {known}")
        stream = streams[name.lower()]
        chosen = {n.lower(): text for n, text in select.items()}.get(name.lower())
        frames[stream.name] = rows_of(frame, stream, chosen)
        given[stream.name] = time_of(frame, stream, chosen)
        instants[stream.name] = instants_of(frame, stream, chosen)
    used = streams_read(compilation.program)
    if missing := [s.name for s in streams.values() if s.name in used - set(frames)]:
        raise FeedError(f"no source for stream {', '.join(missing)}")
    return frames, Times(compilation.program, given, instants)


def _keys(compilation: Compilation, bridges: int) -> dict[str, str]:
    if bridges == 1:
        return {}
    found = keys(compilation.program)
    if not found.columns:
        raise FeedError(
            f"these queries cannot be divided over {bridges} bridges: {found.why}",
            "`seustream explain` shows what can",
        )
    return dict(found.columns)
