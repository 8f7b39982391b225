"""Whole jobs: a query set, its streams, and where results go.

    job = run(compilation, {"R": r, "S": s}, files("out"), bridge="grpc://127.0.0.1:8815",
              checkpoint="state")
    job.wait()

Each stream is a Spark query into the bridge, each query's results one out of it; all run at once,
or the writers would wait for readers that never come. A Spark query that fails for a reason that
may pass is started again from its checkpoint. When the sources are bounded and have been read, the
streams end at the bridge, the rest of the results is delivered, and the job is over.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from seustream.compiler.pipeline import Compilation, compile_text
from seustream.compiler.plan.keys import keys
from seustream.cosim.bridge.client import BridgeClient
from seustream.cosim.bridge.errors import KINDS, RETRIABLE, BridgeError
from seustream.cosim.bridge.protocol import LATE, PLAIN, Run
from seustream.engine.graph import answer_schemas, streams_read
from seustream.engine.stream.schema import stream_schema
from seustream.engine.times import Times
from seustream.spark_feeder.errors import FeedError, cause
from seustream.spark_feeder.inputs import rows_of, time_of
from seustream.spark_feeder.prefilter import Prefilter, needed
from seustream.spark_feeder.progress import ALL, LATE_ROWS, QUERY, STREAM, FeedCounts, observed
from seustream.spark_feeder.source import NAME, Connection, Seustream
from seustream.spark_feeder.types import spark_schema, timed

Sink = Callable[[str, DataFrame], DataStreamWriter]
"""The destination of a query's results: its name and rows in, a writer that only has to be started out."""

_BETWEEN = 0.2
"""Seconds between looks at a job."""
_COMING_UP = 10.0
"""Seconds a query gets for that; it goes on by itself."""
_LASTING = frozenset(KINDS) - frozenset(RETRIABLE) - {"internal", "unknown"}
"""Kinds of errors that a restart does not cure. A part may be unknown after the bridge was killed,
and is staged again."""


SHORT = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
"""For a session of a minute: a JVM that compiles little. A longer one is the slower for it."""


def session(master: str = "local[2]", **conf: str) -> SparkSession:
    """A Spark session that suits: quiet, in UTC, workers of this Python."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # A machine that is busy starts Python workers slowly; both ends wait for the other.
    os.environ.setdefault("SPARK_AUTH_SOCKET_TIMEOUT", "60")
    builder = SparkSession.builder.master(master).appName("seustream")
    usual = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.timeType.enabled": "true",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
        "spark.sql.streaming.numRecentProgressUpdates": "10",
        "spark.sql.streaming.pollingDelay": "250ms",
        "spark.python.authenticate.socketTimeout": "60s",
    }
    for name, value in {**usual, **conf}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("FATAL")
    return spark


def _check_times(spark: SparkSession, columns: Mapping[str, pa.Schema]) -> None:
    """A session that is not of `session` may not have Spark's type for times of day."""
    if spark.conf.get("spark.sql.timeType.enabled", "false") == "true":
        return
    for name, schema in columns.items():
        for column in schema:
            if pa.types.is_time(column.type):
                raise FeedError(
                    f"{name}: {column.name} is a time of day, which this Spark session does not have",
                    "set spark.sql.timeType.enabled=true, as spark_feeder.session does",
                )


def files(folder: str | Path, format: str = "parquet") -> Sink:
    """Results as files, a folder for each query."""

    def sink(query: str, rows: DataFrame) -> DataStreamWriter:
        writer = rows.writeStream.format(format).option("path", str(Path(folder) / query))
        return writer.option("header", "true") if format == "csv" else writer

    return sink


def console() -> Sink:
    """Results on stdout, as Spark shows them."""
    return lambda _, rows: rows.writeStream.format("console").option("truncate", "false")


def nowhere() -> Sink:
    """Results read and dropped."""
    return lambda _, rows: rows.writeStream.format("noop")


@dataclass(frozen=True, slots=True)
class Trigger:
    """`bounded`: read what is there, then end; else go on until stopped, looking for more so
    often."""

    bounded: bool
    every: str = "0 seconds"

    def of(self, writer: DataStreamWriter) -> DataStreamWriter:
        if self.bounded:
            return writer.trigger(availableNow=True)
        return writer.trigger(processingTime=self.every)


@dataclass
class _Flow:
    """One Spark query of a job, and how to start it."""

    name: str
    start: Callable[[], StreamingQuery]
    query: StreamingQuery
    restarts: int = 0
    batch: int = -1


@dataclass
class Job:
    """A job that runs. `wait` until it is over, or `stop` it; as a context it is stopped."""

    connection: Connection
    writers: list[_Flow]
    readers: list[_Flow]
    bounded: bool
    most_restarts: int
    _folder: Any = None
    prefilter: Prefilter | None = None
    began: float = field(default_factory=time.monotonic)
    restarts: int = 0

    def wait(
        self, show: Callable[[FeedCounts, float], None] | None = None, timeout: float | None = None
    ) -> FeedCounts:
        """Until the bounded sources have been read and all results delivered, or a query failed
        for good. `show` gets the counts every now and then."""
        while not self._read():
            self.look()
            if show is not None:
                show(self.counts(), time.monotonic() - self.began)
            if timeout is not None and time.monotonic() - self.began > timeout:
                raise FeedError(f"the job is not over after {timeout:g} seconds")
            time.sleep(_BETWEEN)
        return self.finish(show)

    def look(self) -> None:
        """Starts again what failed for a reason that may pass; raises `FeedError` for one that
        will not. `wait` does it all the time."""
        self._restart(self.writers)
        self._restart(self.readers)

    def finish(self, show: Callable[[FeedCounts, float], None] | None = None) -> FeedCounts:
        """Ends the streams: what has been read by now is all there is. Delivers the rest of the
        results and stops."""
        while self.prefilter is not None and not self.prefilter.close(_BETWEEN):
            self._restart(self.readers)  # the batch under way may wait for them
        for flow in self.writers:
            flow.query.stop()
        if self.prefilter is not None:
            self.prefilter.finish()
        for client in self._clients():
            client.end()
        self._deliver_rest(show)
        counts = self.counts()
        self.stop()
        return counts

    def counts(self) -> FeedCounts:
        """As of now."""
        counts = FeedCounts()
        for client in self._clients():
            counts.add(client.status())
        if self.prefilter is not None:
            counts.saved = self.prefilter.saved
        return counts

    def stop(self) -> None:
        """Stops all queries; with a checkpoint the job goes on from there another time."""
        for flow in (*self.writers, *self.readers):
            flow.query.stop()
        if self._folder is not None:
            self._folder.cleanup()

    def __enter__(self) -> Job:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def _clients(self) -> list[BridgeClient]:
        return [self.connection.client(i) for i in range(len(self.connection.bridges))]

    def _read(self) -> bool:
        """Returns whether everything has been read from bounded sources, without an error."""
        done = (not f.query.isActive and f.query.exception() is None for f in self.writers)
        return self.bounded and all(done)

    def _deliver_rest(self, show: Callable[[FeedCounts, float], None] | None) -> None:
        """Lets the readers come to the end of the results, and gives these up at the bridge."""
        while not all(self._flushed(client) for client in self._clients()):
            self._restart(self.readers)
            if show is not None:
                show(self.counts(), time.monotonic() - self.began)
        for flow in self.readers:
            while True:
                try:
                    flow.query.processAllAvailable()
                    break
                except StreamingQueryException:
                    self._restart([flow])
        if show is not None:
            show(self.counts(), time.monotonic() - self.began)

    def _flushed(self, client: BridgeClient) -> bool:
        try:
            client.act("flush", patience=0)
        except BridgeError as error:
            if not error.retriable:
                raise
            return False
        return True

    def _restart(self, flows: list[_Flow]) -> None:
        """Starts queries again that failed for a reason that may pass; one that fails over and
        over without a batch in between has failed for good."""
        for flow in flows:
            error = flow.query.exception()
            if error is None:
                continue
            batch = _last_batch(flow.query)
            flow.restarts = 0 if batch > flow.batch else flow.restarts + 1
            flow.batch = max(batch, flow.batch)
            kind, message = cause(str(error))
            if flow.restarts >= self.most_restarts or kind in _LASTING:
                self.stop()
                raise FeedError(f"{flow.name}: {message}") from error
            self.restarts += 1
            time.sleep(_BETWEEN)
            flow.query = flow.start()


def run(
    queries: Compilation | str | Path,
    sources: Mapping[str, DataFrame],
    sink: Sink,
    *,
    bridge: str | tuple[str, ...] = "grpc://127.0.0.1:8815",
    checkpoint: str | Path | None = None,
    bounded: bool = True,
    every: str = "0 seconds",
    how: Run = PLAIN,
    select: Mapping[str, str] | None = None,
    token_file: str | None = None,
    tls_ca: str | None = None,
    restarts: int = 20,
    late: Sink | None = None,
    prefilter: bool = False,
) -> Job:
    """Starts a job and gives it. `queries` are a compilation, X-SQL, or a file of it; `sources`
    a streaming frame for each stream, `select` how to make the stream's columns of theirs. With
    several bridges, tuples are divided among them by the key the compiler finds. Without a
    checkpoint the job begins anew, and the bridge must have nothing of another. `late` takes the
    late rows of each stream, by its name. With `prefilter` tuples that can join nothing stay
    where they were read."""
    compilation = _compiled(queries)
    if late is not None:
        how = replace(how, late=True)
    spark = _spark_of(sources)
    spark.dataSource.register(Seustream)
    bridges = (bridge,) if isinstance(bridge, str) else tuple(bridge)
    connection = Connection(bridges, token_file, tls_ca)
    key_of = _keys(compilation, len(bridges))
    frames, given = _frames(compilation, sources, select or {})
    if prefilter:
        needed(compilation)
    for number in range(len(bridges)):
        _load(connection.client(number), compilation, how, fresh=checkpoint is None)
    folder = None
    if checkpoint is None:
        folder = tempfile.TemporaryDirectory(prefix="seustream-", ignore_cleanup_errors=True)
        checkpoint = folder.name
    place = Path(checkpoint).absolute()
    trigger = Trigger(bounded, every)
    columns = answer_schemas(compilation.program)
    columns |= {LATE + s.name: stream_schema(s) for s in compilation.streams if s.name in frames}
    _check_times(spark, columns)
    times = Times(compilation.program, given)

    def options(writer: Any, **more: str | None) -> Any:
        given = {"bridge": ",".join(bridges), "tokenFile": token_file, "tlsCa": tls_ca, **more}
        for name, value in given.items():
            writer = writer.option(name, value) if value is not None else writer
        return writer

    def feed(stream: str) -> StreamingQuery:
        rows = observed(frames[stream])
        writer = options(rows.writeStream.format(NAME), stream=stream, key=key_of.get(stream))
        writer = writer.option("checkpointLocation", str(place / "streams" / stream))
        return trigger.of(writer.queryName(STREAM + stream)).start()

    def read(what: str) -> DataFrame:
        reader = options(spark.readStream.format(NAME), query=what)
        rows = observed(reader.schema(spark_schema(columns[what])).load())
        return timed(rows, times.schema(what, columns[what]))

    def put(stream: str, rows: DataFrame, writer: str, epoch: int) -> None:
        to = options(rows.write.format(NAME), stream=stream, key=key_of.get(stream))
        to.option("writer", writer).option("epoch", str(epoch)).mode("append").save()

    for stream in (s for s in compilation.streams if s.table and s.name in frames):
        rows = frames.pop(stream.name)
        if rows.isStreaming or len(bridges) > 1:
            what = "its frame is streaming" if rows.isStreaming else "there are several bridges"
            raise FeedError(f"table {stream.name}: {what}", "spark.read it, for one bridge")
        put(stream.name, rows, f"table {stream.name}", 0)
        connection.client(0).end(stream.name)

    def deliver(query: str) -> StreamingQuery:
        writer = sink(query, read(query))
        writer = writer.option("checkpointLocation", str(place / "queries" / query))
        return writer.queryName(QUERY + query).trigger(processingTime=every).start()

    def put_aside(stream: str) -> StreamingQuery:
        assert late is not None
        writer = late(stream, read(LATE + stream))
        writer = writer.option("checkpointLocation", str(place / "late" / stream))
        return writer.queryName(LATE_ROWS + stream).trigger(processingTime=every).start()

    kept = [n for n in compilation.program.names if how.keep is None or n in how.keep]
    readers = [_flow(QUERY + name, deliver, name) for name in kept]
    if late is not None:
        readers += [_flow(LATE_ROWS + name, put_aside, name) for name in frames]
    if prefilter:
        made = Prefilter(
            compilation, frames, place / "prefilter", put, slack=how.slack, lag=how.lag
        )

        def feed_all(name: str) -> StreamingQuery:
            writer = made.rows().writeStream.foreachBatch(made.take).queryName(name)
            return trigger.of(writer.option("checkpointLocation", str(place / "streams"))).start()

        writers = [] if made.ended else [_flow(ALL, feed_all, ALL)]
        return Job(connection, writers, readers, bounded, restarts, folder, made)
    writers = [_flow(STREAM + name, feed, name) for name in frames]
    return Job(connection, writers, readers, bounded, restarts, folder)


def _flow(name: str, start: Callable[[str], StreamingQuery], what: str) -> _Flow:
    """Starts a query and lets it come up before the next: together they would only wait for each
    other's Python workers."""
    flow = _Flow(name, lambda: start(what), start(what))
    until = time.monotonic() + _COMING_UP
    while flow.query.isActive and time.monotonic() < until:
        if not flow.query.status["message"].startswith("Initializing"):
            break
        time.sleep(0.02)
    return flow


def _compiled(queries: Compilation | str | Path) -> Compilation:
    if isinstance(queries, Compilation):
        return queries
    if isinstance(queries, Path) or queries.endswith(".xsql"):
        return compile_text(Path(queries).read_text(encoding="utf-8-sig"), str(queries))
    return compile_text(queries)


def _spark_of(sources: Mapping[str, DataFrame]) -> SparkSession:
    if not sources:
        raise FeedError("no sources", "give each stream a streaming frame")
    return next(iter(sources.values())).sparkSession


def _frames(
    compilation: Compilation, sources: Mapping[str, DataFrame], select: Mapping[str, str]
) -> tuple[dict[str, DataFrame], dict[str, pa.DataType]]:
    """Each stream's rows, and the type their times had; every stream some query reads must have a
    source."""
    streams = {s.name.lower(): s for s in compilation.streams if s.defined_by is None}
    frames, given = {}, {}
    for name, frame in sources.items():
        if name.lower() not in streams:
            known = ", ".join(stream.name for stream in streams.values())
            raise FeedError(f"there is no stream {name}", f"streams: {known}")
        stream = streams[name.lower()]
        chosen = {n.lower(): text for n, text in select.items()}.get(name.lower())
        frames[stream.name] = rows_of(frame, stream, chosen)
        given[stream.name] = time_of(frame, stream, chosen)
    used = streams_read(compilation.program)
    if missing := [s.name for s in streams.values() if s.name in used - set(frames)]:
        raise FeedError(f"no source for stream {', '.join(missing)}")
    return frames, given


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


def _load(client: BridgeClient, compilation: Compilation, how: Run, fresh: bool) -> None:
    client.load(compilation, how)
    if fresh and client.status().get("writer_epoch"):
        raise FeedError(
            f"{client.address} has rows of an earlier job, and this one has no checkpoint",
            "give that job's checkpoint, or reset the bridge",
        )


def _last_batch(query: StreamingQuery) -> int:
    progress = query.lastProgress
    return -1 if progress is None else int(progress["batchId"])
