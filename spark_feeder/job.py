"""Whole jobs: a query set, its streams, and the destination of results.

    job = run(compilation, {"R": r, "S": s}, files("out"), bridge="grpc://127.0.0.1:8815",
              checkpoint="state")
    job.wait()

Each stream is a Spark query into the bridge, each query's results one out of it. All run at once, since
writers would otherwise wait for readers that never come. A Spark query that fails for a transient
reason is restarted from its checkpoint. When the sources are bounded and have been read, the
streams end at the bridge, the rest of the results is delivered, and the job is over.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from seustream.compiler.pipeline import Compilation
from seustream.cosim.bridge.access import NONE, Access
from seustream.cosim.bridge.client import BridgeClient
from seustream.cosim.bridge.errors import KINDS, RETRIABLE, BridgeError
from seustream.cosim.bridge.protocol import LATE, PLAIN, Flush, Run
from seustream.cosim.bridge.world import MACHINE, World
from seustream.spark_feeder.bridged import BridgedQueries, bridged
from seustream.spark_feeder.checkpoints import check, held, location
from seustream.spark_feeder.connection import Connection
from seustream.spark_feeder.errors import FeedError, cause_of
from seustream.spark_feeder.keyed import FOLDER, INSIDE, SETTINGS
from seustream.spark_feeder.prefilter import Prefilter, needed
from seustream.spark_feeder.progress import ALL, LATE_ROWS, QUERY, STREAM, FeedCounts
from seustream.spark_feeder.source import WORTH
from seustream.spark_feeder.stall import TRIES, Stall, budget, pause, warned

Sink = Callable[[str, DataFrame], DataStreamWriter]
"""The destination of a query's results: takes its name and rows, returns a writer that only needs
to be started."""

Start = tuple[str, Callable[[str], StreamingQuery], str]
"""The name of a query, the function that starts it, and its argument."""
_BETWEEN = 0.2
"""Seconds between polls of a job."""
_FLUSH = 1.0
"""Seconds that a bridge has to finish before the job polls again."""
_COMING_UP = 10.0
"""Seconds that queries have to come up; after that, they do so by themselves."""
_TOGETHER = 2
_LASTING = frozenset(KINDS) - frozenset(RETRIABLE) - {"internal", "unknown"}
"""Kinds of errors that a restart does not cure. A part may be unknown after the bridge was killed,
and is staged again."""


_JAVA = "spark.driver.extraJavaOptions"
_LOGGING = Path(__file__).with_name("conf") / "log4j2.properties"
SHORT = {_JAVA: "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
"""For a session of about a minute: a JVM that compiles little, which makes longer sessions slower."""
LOCAL = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    )
}
"""For checkpoints on this machine: Spark's usual way to rename a file starts eight processes per
file."""


def session(master: str = "local[2]", **conf: str) -> SparkSession:
    """Returns a suitable Spark session: quiet, in UTC, with workers of this Python.

    An existing session is returned as it is. If SPARK_HOME or SPARK_CONF_DIR configures Spark, its
    logging settings apply. `spark.sparkContext.setLogLevel("WARN")` makes it more verbose.

    Args:
        master: where Spark runs: two threads of this machine, `local[*]` for all it has.
        **conf: further Spark settings, by their names.

    The [tutorial](../tutorial-spark.md) has an example that runs.
    """
    there = SparkSession.getActiveSession()
    if there is not None:
        return there
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # A busy machine starts Python workers slowly; both ends wait for the other.
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
        **SETTINGS,
        "spark.python.authenticate.socketTimeout": "60s",
    }
    local = LOCAL if master.startswith("local") else {}
    if not {"SPARK_HOME", "SPARK_CONF_DIR"} & os.environ.keys():
        # Not by SPARK_CONF_DIR: Java shares no archive of classes if a folder is on its path.
        quiet = f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}"
        conf[_JAVA] = f"{quiet} {conf.get(_JAVA, '')}".strip()
    for name, value in {**usual, **local, **conf}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


_TIMES = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""Spark writes milliseconds by default."""
_AS_IT_IS = {
    "csv": {
        **_TIMES,
        "header": "true",
        "escape": '"',
        "ignoreLeadingWhiteSpace": "false",
        "ignoreTrailingWhiteSpace": "false",
    },
    "json": {**_TIMES, "ignoreNullFields": "false"},
}
"""The options with which a format of Spark writes each value so that it can be read again."""


def files(folder: str | Path, format: str = "parquet") -> Sink:
    """Writes results as files, a folder for each query."""

    def sink(query: str, rows: DataFrame) -> DataStreamWriter:
        writer = rows.writeStream.format(format).option("path", str(Path(folder) / query))
        return writer.options(**_AS_IT_IS.get(format, {}))

    return sink


def console() -> Sink:
    """Prints results on stdout, as Spark shows them."""
    return lambda _, rows: rows.writeStream.format("console").option("truncate", "false")


def nowhere() -> Sink:
    """Reads results and drops them."""
    return lambda _, rows: rows.writeStream.format("noop")


@dataclass(frozen=True, slots=True)
class Trigger:
    """A `bounded` trigger reads what is there and ends; otherwise the query polls at this interval
    until it is stopped."""

    bounded: bool
    every: str = "0 seconds"

    def of(self, writer: DataStreamWriter) -> DataStreamWriter:
        if self.bounded:
            return writer.trigger(availableNow=True)
        return writer.trigger(processingTime=self.every)


@dataclass
class Flow:
    """One Spark query of a job, and how to start it."""

    name: str
    start: Callable[[], StreamingQuery]
    query: StreamingQuery
    restarts: int = 0
    batch: int = -1
    again: float | None = None
    """The time at which it is restarted, if it has failed."""


@dataclass
class Job:
    """A running job. `wait` until it is over, or `stop` it; as a context manager it stops at the
    end."""

    connection: Connection
    writers: list[Flow]
    readers: list[Flow]
    bounded: bool
    most_restarts: int = TRIES
    held: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    prefilter: Prefilter | None = None
    world: World = MACHINE
    restarts: int = 0
    say: Callable[[str], None] = warned
    """Called with a line that names what the job waits for, when its bridge makes no progress."""

    def __post_init__(self) -> None:
        self.began = self.world.now()

    @functools.cached_property
    def stall(self) -> Stall:
        """Detects bridges that make no progress."""
        longest = budget(self.most_restarts, self.connection.patience)
        return Stall(self.world, longest, self.say)

    def wait(
        self, show: Callable[[FeedCounts, float], None] | None = None, timeout: float | None = None
    ) -> FeedCounts:
        """Waits until the bounded sources have been read and all results delivered, or a query
        failed permanently. `show` receives the counts from time to time."""
        while not self.read:
            self.look()
            if show is not None:
                show(self.counts(), self.world.now() - self.began)
            if timeout is not None and self.world.now() - self.began > timeout:
                raise FeedError(f"the job is not over after {timeout:g} seconds")
            self.world.sleep(_BETWEEN)
        return self.finish(show)

    def look(self) -> None:
        """Restarts what failed for a transient reason; raises `FeedError` for a permanent one.
        `wait` calls it repeatedly."""
        self._restart(self.writers)
        self._restart(self.readers)
        self.stall.look(self.connection.clients())

    def finish(
        self, show: Callable[[FeedCounts, float], None] | None = None, ends: bool = True
    ) -> FeedCounts:
        """Ends the streams, if `ends`: what has been read by now is their content. Delivers the
        rest of the results and stops."""
        while self.prefilter is not None and not self.prefilter.close(_BETWEEN):
            self._restart(self.readers)  # the batch under way may wait for them
        for flow in self.writers:
            flow.query.stop()
        if self.prefilter is not None:
            self.prefilter.finish()
        for client in self.connection.clients() if ends else ():
            client.end()
        self._deliver_rest(show)
        counts = self.counts()
        self.stop()
        return counts

    def counts(self) -> FeedCounts:
        """Returns the current counts."""
        counts = FeedCounts()
        for client in self.connection.clients():
            counts.add(client.status())
        if self.prefilter is not None:
            counts.saved = self.prefilter.saved
        return counts

    def stop(self) -> None:
        """Stops all queries; with a checkpoint the job can resume from there."""
        for flow in (*self.writers, *self.readers):
            flow.query.stop()
        self.held.close()

    def __enter__(self) -> Job:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    @property
    def read(self) -> bool:
        """Returns whether everything has been read from bounded sources, without an error."""
        done = (not f.query.isActive and f.query.exception() is None for f in self.writers)
        return self.bounded and all(done)

    def _deliver_rest(self, show: Callable[[FeedCounts, float], None] | None) -> None:
        """Lets the readers reach the end of the results, which are then discarded at the bridge."""
        for client in self.connection.clients():
            while not self._flushed(client):
                self._restart(self.readers)
                if show is not None:
                    show(self.counts(), self.world.now() - self.began)
        for flow in self.readers:
            while True:
                try:
                    flow.query.processAllAvailable()
                    break
                except StreamingQueryException:
                    self._restart([flow])
                    self.world.sleep(_BETWEEN)
        if show is not None:
            show(self.counts(), self.world.now() - self.began)

    def _flushed(self, client: BridgeClient) -> bool:
        try:
            client.act("flush", Flush(wait_ms=int(1000 * _FLUSH)), patience=0)
        except BridgeError as error:
            if not error.retriable:
                raise
            try:
                self.stall.check([client])
            except FeedError:
                self.stop()
                raise
            self.world.sleep(_BETWEEN)
            return False
        return True

    def _restart(self, flows: list[Flow]) -> None:
        """Restarts queries that failed for a transient reason, after growing pauses. One that fails
        repeatedly without a batch in between has failed permanently."""
        for flow in flows:
            if flow.again is not None:
                if self.world.now() >= flow.again:
                    flow.query, flow.again = flow.start(), None
                continue
            error = flow.query.exception()
            if error is None:
                continue
            batch = _last_batch(flow.query)
            flow.restarts = 0 if batch > flow.batch else flow.restarts + 1
            flow.batch = max(batch, flow.batch)
            kind, message = cause_of(error)
            if flow.restarts >= self.most_restarts or kind in _LASTING:
                self.stop()
                tried = f" (started again {flow.restarts} times)" if flow.restarts else ""
                raise FeedError(f"{flow.name}: {message}{tried}") from error
            self.restarts += 1
            flow.again = self.world.now() + pause(flow.restarts)


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
    access: Access = NONE,
    restarts: int = TRIES,
    late: Sink | None = None,
    prefilter: bool = False,
    say: Callable[[str], None] = warned,
) -> Job:
    """Starts a job and returns it. `queries` are a compilation, X-SQL, or a file of it; `sources`
    hold a streaming frame for each stream, and `select` computes the stream's columns from theirs.
    With several bridges, tuples are divided among them by the key that the compiler finds; `spark`
    in place of a bridge runs the queries inside Spark. Without a checkpoint the job begins anew,
    and the bridge must have nothing of another. `late` takes the late rows of each stream, by its
    name. With `prefilter`, tuples that can join nothing stay where they were read. `say` is called
    with a line that names the query whose results fill the bridge, if no reader comes; by default
    it is a warning."""
    if late is not None:
        how = replace(how, late=True)
    addresses = (bridge,) if isinstance(bridge, str) else tuple(bridge)
    if INSIDE in addresses:
        from seustream.spark_feeder.keyed_job import start  # it imports this module

        _alone(addresses, prefilter)
        trigger = Trigger(bounded, every)
        return start(queries, sources, sink, checkpoint, trigger, how, select, restarts, late)
    at = bridged(queries, sources, Connection(addresses, access), select)
    if prefilter:
        needed(at.compilation, at.streaming)
    with contextlib.ExitStack() as stack:
        if (folder := checkpoint) is None:
            made = tempfile.TemporaryDirectory(prefix="seustream-", ignore_cleanup_errors=True)
            folder = stack.enter_context(made)
        place = Path(folder).absolute()
        stack.enter_context(held(place))
        if (place / FOLDER).exists():
            what = f"{place} is the checkpoint of a job inside Spark"
            raise FeedError(what, f"name another one, or {INSIDE} for the bridge")
        check(place)
        at.load(how, fresh=checkpoint is None)
        at.put_whole()
        job = _started(at, place, sink, Trigger(bounded, every), how, late, prefilter)
        job.most_restarts, job.say, job.held = restarts, say, stack.pop_all()
    return job


def _alone(addresses: tuple[str, ...], prefilter: bool) -> None:
    """Raises `FeedError` for options that do not apply to a job inside Spark."""
    if len(addresses) > 1:
        raise FeedError(f"{INSIDE} beside bridges", f"either bridges, or {INSIDE} alone")
    if prefilter:
        raise FeedError(
            "the prefilter saves ways to a bridge, and inside Spark there is none", "leave it out"
        )


def _started(
    at: BridgedQueries,
    place: Path,
    sink: Sink,
    trigger: Trigger,
    how: Run,
    late: Sink | None,
    prefilter: bool,
) -> Job:
    """Starts the queries of a job."""
    every = trigger.every
    least = str(WORTH if trigger.bounded else 1)

    def deliver(query: str) -> StreamingQuery:
        writer = sink(query, at.results(query, minRows=least))
        writer = writer.option("checkpointLocation", location(place / "queries" / query))
        return writer.queryName(QUERY + query).trigger(processingTime=every).start()

    def put_aside(stream: str) -> StreamingQuery:
        assert late is not None
        writer = late(stream, at.results(LATE + stream, minRows=least))
        writer = writer.option("checkpointLocation", location(place / "late" / stream))
        return writer.queryName(LATE_ROWS + stream).trigger(processingTime=every).start()

    names = at.compilation.program.names
    kept = [n for n in names if how.keep is None or n in how.keep]
    starts: list[Start] = [(QUERY + name, deliver, name) for name in kept]
    if late is not None:
        starts += [(LATE_ROWS + name, put_aside, name) for name in at.streaming]
    readers, saving = len(starts), None
    if prefilter:
        saving = made = Prefilter(
            at.compilation,
            at.streaming,
            place / "prefilter",
            at.put,
            slack=max(s.out_of_orderness for s in at.compilation.streams)
            if how.slack is None
            else how.slack,
            lag=how.lag,
        )

        def feed_all(name: str) -> StreamingQuery:
            writer = made.rows().writeStream.foreachBatch(made.take).queryName(name)
            return trigger.of(
                writer.option("checkpointLocation", location(place / "streams"))
            ).start()

        starts += [] if made.ended else [(ALL, feed_all, ALL)]
    else:
        starts += feeding(at, place, trigger)
    flows = started(starts)
    return Job(at.connection, flows[readers:], flows[:readers], trigger.bounded, prefilter=saving)


def feeding(at: BridgedQueries, place: Path, trigger: Trigger) -> list[Start]:
    """Returns a query for each stream, which brings its rows."""

    def feed(stream: str) -> StreamingQuery:
        writer = at.feed(stream).option("checkpointLocation", location(place / "streams" / stream))
        return trigger.of(writer.queryName(STREAM + stream)).start()

    return [(STREAM + name, feed, name) for name in at.streaming]


def started(starts: Iterable[Start]) -> list[Flow]:
    """Starts queries, all or none, and lets no more than `_TOGETHER` come up at a time: more would
    only wait for each other's Python workers."""
    flows: list[Flow] = []
    try:
        for name, start, what in starts:
            until = time.monotonic() + _COMING_UP
            while sum(_comes_up(f.query) for f in flows) >= _TOGETHER and time.monotonic() < until:
                time.sleep(0.02)
            flows.append(Flow(name, functools.partial(start, what), start(what)))
    except BaseException:
        for flow in flows:
            flow.query.stop()
        raise
    return flows


def _comes_up(query: StreamingQuery) -> bool:
    return query.isActive and query.status["message"].startswith("Initializing")


def _last_batch(query: StreamingQuery) -> int:
    progress = query.lastProgress
    return -1 if progress is None else int(progress["batchId"])
