"""The Python Data Source `seustream`: streams to a bridge, results from it, exactly once. Spark finds
it by itself, as the default source of the module `pyspark_seustream`.

Sink: one streaming query feeds one stream, in two phases. Each task stages its rows, on disk at
the bridge; when all have, Spark's driver commits the epoch, which the bridge takes once however
often it is committed. Rows have a column `ts`, integer milliseconds, and the stream's own.

    rows.writeStream.format("seustream").option("bridge", url).option("stream", "R")

Source: a query's results by stable offsets. After a failure, a planned batch is read again as it
was; results before it are discarded at the bridge.

    spark.readStream.format("seustream").option("bridge", url).option("query", "q0").load()

With the trigger `availableNow` it reads the results that the bridge has of the rows received by then.
For a static read, `spark.read` does so too.

Options: `bridge` (several, with commas between, if the compiler found a key to divide by); `queries`,
or `queriesFile`, the text to load there first; `stream` and `key`, or `query`; `reader`, a name for
each consumer of a query's results (spark); `maxRows` of a batch of results (1,000,000); `minRows`,
for which a batch waits up to a second (1);
`endStreams`, true: what is read with `availableNow` or `spark.read` is complete, so the streams end
first; `tokenFile`, `tlsCa`, `tlsCert` and `tlsKey`; `patience`, seconds to wait for a bridge that is away or has no room
(60). A batch of rows may have a `writer` and an `epoch`, by which the bridge recognises it.

A program that starts several queries of a session at once, other than by `run`, first calls
`workers.prepare(spark, "seustream")`.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.bridge.protocol import Abort, Commit, Stage, StagedPart
from seustream.spark_feeder.connection import Connection
from seustream.spark_feeder.draining import Drain
from seustream.spark_feeder.errors import FeedError, as_feed_errors
from seustream.spark_feeder.split import split
from seustream.spark_feeder.stall import checking
from seustream.spark_feeder.types import for_bridge, for_spark, spark_schema
from seustream.spark_feeder.workers import settle

NAME = "seustream"
MOST_ROWS = 1_000_000
_QUERY, _RUNS = "query", "runs"
_PART_ROWS = 1 << 18
"""The most results of one task."""
_LOOK = 0.2
"""Seconds between polls of a busy bridge."""
_POLLS = 5
"""The most polls, from its first result on, of a batch with `availableNow` that gathers results."""
_GATHER = 1.0
"""Seconds for which a batch of results waits for its least rows, if the streams do not end."""
WORTH = 1 << 18
"""Results worth a micro-batch, which costs a tenth of a second of processor time, and files."""


class Seustream(DataSource):
    """Provides both ends; see the module."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def _connection(self) -> Connection:
        """Connects to the bridges, and loads the queries if the options have them."""
        connection = Connection.of(self._wanted("bridge"), self.options)
        file = self.options.get("queriesFile")
        queries = Path(file) if file else self.options.get("queries")
        if queries is not None:
            # Imported here: other workers need no compiler, whose import takes longer than their task.
            from seustream.spark_feeder.queries import compiled_for

            with as_feed_errors():
                for client in connection.clients():
                    client.load(compiled_for(client, queries))
        return connection

    def _wanted(self, option: str) -> str:
        value = self.options.get(option)
        if not value:
            raise ValueError(f'seustream: option("{option}", …) is missing')
        return str(value)

    def schema(self) -> StructType:
        query = self._wanted("query")
        with as_feed_errors():
            return spark_schema(self._connection().client().schema("query", query))

    def streamReader(self, schema: StructType) -> SourceReader:  # noqa: N802
        drain, begin = self.options.get("drain"), self.options.get("begin")
        return SourceReader(
            self._results(schema),
            self.options.get("reader", "spark"),
            int(self.options.get("maxRows", MOST_ROWS)),
            None if drain is None else Drain(drain),
            int(self.options.get("minRows", "1")),
            None if begin is None else int(begin),
        )

    def reader(self, schema: StructType) -> BatchReader:
        return BatchReader(self._results(schema))

    def _results(self, schema: StructType) -> BridgeResults:
        ends = self.options.get("endStreams", "false").lower() == "true"
        return BridgeResults(self._connection(), self._wanted("query"), schema, ends)

    def streamWriter(self, schema: StructType, overwrite: bool) -> SourceWriter:  # noqa: N802
        return SourceWriter(*self._sink())

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        writer = self.options.get("writer", f"batch-{uuid.uuid4()}")
        return BatchWriter(*self._sink(), writer, int(self.options.get("epoch", "0")))

    def _sink(self) -> tuple[Connection, str, str | None]:
        connection, stream = self._connection(), self._wanted("stream")
        key = self.options.get("key")
        if len(connection.bridges) > 1 and not key:
            raise ValueError('seustream: several bridges need option("key", column)')
        return connection, stream, key


# --- sink ---------------------------------------------------------------------


@dataclass
class Written(WriterCommitMessage):
    """The parts that a task staged: bridge, staging identifier and rows of each part."""

    writer: str
    parts: list[tuple[int, str, int]]
    highest: int | None


class SourceWriter(DataSourceStreamArrowWriter):
    """Commits one stream in two phases. The writer is the Spark query, by its checkpoint."""

    def __init__(self, connection: Connection, stream: str, key: str | None) -> None:
        self.connection, self.stream, self.key = connection, stream, key
        settle()

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        settle()
        with as_feed_errors():
            return self._write(iterator)

    def _write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        task = TaskContext.get()
        assert task is not None
        writer, epoch = self._epoch(task)
        partition = task.partitionId()
        bridges = len(self.connection.bridges)
        open_parts: dict[int, Any] = {}
        try:
            for batch in iterator:
                for bridge, rows in enumerate(split(for_bridge(batch), self.key, bridges)):
                    if not rows.num_rows:
                        continue
                    if bridge not in open_parts:
                        stage = Stage(writer, self.stream, epoch, partition, str(uuid.uuid4()))
                        open_parts[bridge] = self.connection.client(bridge).stage(stage)
                    open_parts[bridge].write(rows)
            staged = {bridge: part.close() for bridge, part in open_parts.items()}
        except BaseException:
            for part in open_parts.values():
                part.cancel()
            raise
        parts = [(bridge, part.staging, part.rows) for bridge, part in staged.items()]
        tops = [part.highest for part in open_parts.values() if part.highest is not None]
        return Written(writer, parts, max(tops, default=None))

    def _epoch(self, task: TaskContext) -> tuple[str, int]:
        """Returns the writer and the number of this epoch."""
        writer = str(task.getLocalProperty("sql.streaming.queryId"))
        return writer, int(str(task.getLocalProperty("streaming.sql.batchId")))

    def commit(self, messages: Sequence[Any], batchId: int) -> None:  # noqa: N803
        written = [message for message in messages if isinstance(message, Written)]
        if not written:
            # Spark runs a task for every epoch; without one the writer is unknown.
            raise FeedError(f"gap: epoch {batchId} of stream {self.stream} has no tasks")
        self._commit(written, written[0].writer, batchId)

    def _commit(self, written: list[Written], writer: str, epoch: int) -> None:
        tops = [message.highest for message in written if message.highest is not None]
        seen = {self.stream: max(tops)} if tops else {}
        for bridge in range(len(self.connection.bridges)):
            parts = tuple(
                StagedPart(staging, rows)
                for message in written
                for at, staging, rows in message.parts
                if at == bridge
            )
            with as_feed_errors():
                client = self.connection.client(bridge)
                client.commit(Commit(writer, epoch, parts, seen))

    def abort(self, messages: Sequence[Any], batchId: int) -> None:  # noqa: N803
        """Makes a best effort: a later commit or restart discards the remains. An error here would
        hide the one that led here."""
        for message in messages:
            if isinstance(message, Written):
                for bridge in {at for at, _, _ in message.parts}:
                    try:
                        client = self.connection.client(bridge)
                        client.act("abort", Abort(message.writer, batchId), patience=1)
                    except BridgeError:
                        continue
                return


class BatchWriter(DataSourceArrowWriter):
    """Writes rows of a job as an epoch that it names: however often it is written, the bridge takes
    it once. Options `writer` and `epoch`."""

    def __init__(
        self, connection: Connection, stream: str, key: str | None, writer: str, epoch: int
    ) -> None:
        self.sink = _Named(connection, stream, key, writer, epoch)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        return self.sink.write(iterator)

    def commit(self, messages: Sequence[Any]) -> None:
        written = [message for message in messages if isinstance(message, Written)]
        self.sink._commit(written, self.sink.writer, self.sink.epoch)

    def abort(self, messages: Sequence[Any]) -> None:
        self.sink.abort(messages, self.sink.epoch)


class _Named(SourceWriter):
    """A writer with a given epoch."""

    def __init__(
        self, connection: Connection, stream: str, key: str | None, writer: str, epoch: int
    ) -> None:
        super().__init__(connection, stream, key)
        self.writer, self.epoch = writer, epoch

    def _epoch(self, task: TaskContext) -> tuple[str, int]:
        return self.writer, self.epoch


# --- source -------------------------------------------------------------------


@dataclass
class SourceRange(InputPartition):
    """Results [start, end) of one bridge."""

    bridge: int
    start: int
    end: int
    run: int | None = None
    """The run of the query whose results they are."""


Offset = dict[str, Any]
"""The number of results for each bridge, the query to which they belong, and its run there: offsets
count from 0 in each run."""


@dataclass(frozen=True)
class BridgeResults:
    """A query's results at its bridges. With `ends`, the streams end before everything is read."""

    connection: Connection
    query: str
    columns: StructType
    ends: bool

    def latest(
        self, start: Offset | None = None, wait_ms: int = 0, least: int = 1
    ) -> list[dict[str, Any]]:
        """Counts each bridge's results, once there are `least` past `start`, or after a while. A
        restarted bridge first waits to reach `start` again."""
        with as_feed_errors():
            return [
                client.latest(
                    self.query, -1 if start is None else start[str(bridge)], wait_ms, least
                )
                for bridge, client in enumerate(self.connection.clients())
            ]

    def close_streams(self) -> None:
        """Ends the streams, if no more rows come."""
        if self.ends:
            with as_feed_errors():
                for client in self.connection.clients():
                    client.end()

    def processed(self) -> bool:
        """Returns whether the bridges have nothing left to do."""
        with as_feed_errors():
            if any(client.status()["rows_waiting"] for client in self.connection.clients()):
                return False
        return not self.ends or all(found["over"] for found in self.latest())

    def ranges(self, start: Offset, end: Offset) -> list[SourceRange]:
        """Returns one range for each task."""
        runs = end.get(_RUNS, {})
        return [
            SourceRange(bridge, at, min(at + _PART_ROWS, end[str(bridge)]), runs.get(str(bridge)))
            for bridge in range(len(self.connection.bridges))
            for at in range(start[str(bridge)], end[str(bridge)], _PART_ROWS)
        ]

    def read(self, part: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(part, SourceRange)
        settle()
        client = self.connection.client(part.bridge)
        with as_feed_errors():
            rows = client.read(self.query, part.start, part.end)
            if part.run is not None:  # asked behind the read, which it may have overtaken
                self._check_run(part.run, client.latest(self.query))
        for batch in rows.combine_chunks().to_batches():
            yield for_spark(batch, self.columns)

    def offset(self, latest: list[dict[str, Any]], what: str) -> Offset:
        counts = {str(bridge): found[what] for bridge, found in enumerate(latest)}
        runs = {str(bridge): found.get("run") for bridge, found in enumerate(latest)}
        return {**counts, _QUERY: self.query, _RUNS: runs}

    def check_runs(self, offset: Offset, latest: list[dict[str, Any]]) -> None:
        """Raises if an offset belongs to a run of the query that another one has replaced."""
        runs = offset.get(_RUNS, {})  # older checkpoints lack them
        with as_feed_errors():
            for bridge, found in enumerate(latest):
                self._check_run(runs.get(str(bridge)), found)

    def _check_run(self, run: int | None, found: dict[str, Any]) -> None:
        if run is not None and run != found["run"]:
            raise FeedError(
                f"conflict: {self.query} was replaced: the checkpoint is of the results of run {run},"
                f" the bridge has those of run {found['run']} (name another one)"
            )

    def check_all_there(self, first: Offset, begin: int = 0) -> None:
        """Raises if results from `begin` on have been read and given up."""
        if (gone := sum(self.counts(first).values()) - begin) > 0:
            with as_feed_errors():
                raise FeedError(
                    f"trimmed: {self.query}: its first {gone:,} results were read by a stream"
                    " and given up (read them where that stream put them)"
                )

    def counts(self, offset: Offset) -> dict[str, int]:
        """Returns the counts of an offset; raises if it belongs to other results."""
        of = offset.get(_QUERY, self.query)  # older checkpoints lack it
        if of != self.query:
            with as_feed_errors():
                raise FeedError(
                    f"conflict: the checkpoint is of the results of {of}, not of {self.query}"
                    " (name another one)"
                )
        return {bridge: at for bridge, at in offset.items() if bridge not in (_QUERY, _RUNS)}


class BatchReader(DataSourceReader):
    """Reads all results of the rows that have come."""

    def __init__(self, results: BridgeResults) -> None:
        self.results = results

    def partitions(self) -> list[SourceRange]:
        results = self.results
        results.close_streams()
        check = checking(results.connection.clients(), results.connection.patience)
        while not results.processed():
            check()
            time.sleep(_LOOK)
        latest = results.latest()
        first, end = results.offset(latest, "first"), results.offset(latest, "end")
        results.check_all_there(first)
        return results.ranges(first, end)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self.results.read(partition)


class SourceReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads results by offset. `drain` is for the feed, if it is in the driver's process. A batch
    waits a while for its `least` rows, and has no more than `most`. A query without a checkpoint
    needs all results from `begin` on; without a number, it takes those that are still there."""

    def __init__(
        self,
        results: BridgeResults,
        reader: str,
        most: int,
        drain: Drain | None,
        least: int = 1,
        begin: int | None = None,
    ) -> None:
        self.results, self.reader, self.most, self.drain = results, reader, most, drain
        self.least, self.begin = least, begin
        self._bounded = False
        self._target: Offset | None = None

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._bounded = True
        if self.drain is not None:
            self.drain.ask(all_there=True)
        else:
            self.results.close_streams()

    def initialOffset(self) -> Offset:  # noqa: N802
        first = self.results.offset(self.results.latest(), "first")
        if self.begin is not None:
            self.results.check_all_there(first, self.begin)
        return first

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self.most)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """With `availableNow`, a batch gathers results as long as there are more at each poll, and an
        unchanged offset ends the query, once everything is processed."""
        # The last commit may be lost, in transit or with power; without results none follows.
        self._trim(start)
        if self.drain is not None and not self._bounded:
            self.drain.ask(all_there=False)
        connection = self.results.connection
        check = checking(connection.clients() if self.drain is None else (), connection.patience)
        polls, before = 0, start
        while True:
            if self._bounded and self._target is None and self._processed():
                self._target = self.results.offset(self.results.latest(), "end")
            found = self._beyond(start, limit)
            if not self._bounded or self._target is not None:
                return found
            polls += found != start
            if found != start and (found == before or polls == _POLLS):
                return found
            before = found
            check()

    def _processed(self) -> bool:
        return self.results.processed() if self.drain is None else self.drain.answered()

    def _beyond(self, start: Offset, limit: ReadLimit) -> Offset:
        left = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        wait, least = _GATHER if self.least > 1 else 0.0, self.least
        if self._bounded:
            wait, least = _LOOK if self._target is None else 0.0, WORTH
        latest = self.results.latest(start, int(1000 * wait), least)
        self.results.check_runs(start, latest)
        ends = self.results.offset(latest, "end")
        if self.drain is not None:
            with as_feed_errors():
                self.drain.check()
        found: Offset = {_QUERY: self.results.query, _RUNS: ends.get(_RUNS, {})}
        counts = self.results.counts(start)
        for bridge, begin in counts.items():
            if ends[bridge] < begin:
                raise FeedError(
                    f"gap: {self.results.query}: read up to {begin:,}, but there are"
                    f" {ends[bridge]:,} results; does the checkpoint belong to this session?"
                )
            end = ends[bridge]
            if self._target is not None:
                end = max(begin, min(end, self._target[bridge]))
            if left is not None:
                end = min(end, begin + left)
                left -= end - begin
            found[bridge] = end
        # An older checkpoint has no runs, which are no news.
        return start if self.results.counts(found) == counts else found

    def reportLatestOffset(self) -> Offset:  # noqa: N802
        return self.results.offset(self.results.latest(), "end")

    def partitions(self, start: Offset, end: Offset) -> list[SourceRange]:
        # Spark has committed everything before a planned batch.
        self._trim(start)
        return self.results.ranges(start, end)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self.results.read(partition)

    def commit(self, end: Offset) -> None:
        self._trim(end)

    def stop(self) -> None:
        """Does nothing, since no resources are held."""

    def _trim(self, offset: Offset) -> None:
        results, counts = self.results, self.results.counts(offset)
        if offset.get(_RUNS):
            results.check_runs(offset, results.latest())
        with as_feed_errors():
            for bridge, at in counts.items():
                results.connection.client(int(bridge)).trim(results.query, at, self.reader)
