"""The Python Data Source `seustream`: streams to a bridge, results from it, exactly once.

    spark.dataSource.register(Seustream)

Sink: one streaming query feeds one stream, in two phases. Each task stages its rows, on disk at
the bridge; when all have, Spark's driver commits the epoch, which the bridge takes once however
often it is said. Rows have a column `ts`, whole milliseconds, and the stream's own.

    rows.writeStream.format("seustream").option("bridge", url).option("stream", "R")

Source: a query's results by stable offsets. A batch that is planned is read again as it was after
any failure; what is before it is given up at the bridge.

    spark.readStream.format("seustream").option("bridge", url).option("query", "q0").load()

Options: `bridge` (several, with commas between, if the compiler found a key to divide by), `stream`
and `key`, or `query`; `reader`, a name for each consumer of a query's results (spark); `maxRows` of
a batch of results (1,000,000); `tokenFile`, `tlsCa`; `patience`, seconds to wait for a bridge that
is away or has no room (60).
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows
from pyspark.sql.types import StructType

from seustream.cosim.bridge.client import BridgeClient
from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.bridge.protocol import Abort, Commit, Stage, StagedPart
from seustream.spark_feeder.errors import FeedError, as_feed_errors
from seustream.spark_feeder.split import split
from seustream.spark_feeder.types import for_bridge, for_spark, spark_schema

NAME = "seustream"
MOST_ROWS = 1_000_000
_PART_ROWS = 1 << 18
"""Results of one task."""


@dataclass(frozen=True)
class Connection:
    """The addresses of the bridges and how to get in; goes to the workers as it is."""

    bridges: tuple[str, ...]
    token_file: str | None = None
    tls_ca: str | None = None
    patience: float = 60.0

    def client(self, number: int = 0) -> BridgeClient:
        """A client, one a process: Spark uses its workers again, and forks them."""
        key = (os.getpid(), self, number)
        if key not in _CLIENTS:
            _CLIENTS[key] = BridgeClient.of(
                self.bridges[number], self.token_file, self.tls_ca, self.patience
            )
        return _CLIENTS[key]


_CLIENTS: dict[tuple[int, Connection, int], BridgeClient] = {}


class Seustream(DataSource):
    """Both ends; see the module."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def _connection(self) -> Connection:
        return Connection(
            tuple(url.strip() for url in self._wanted("bridge").split(",")),
            self.options.get("tokenFile"),
            self.options.get("tlsCa"),
            float(self.options.get("patience", "60")),
        )

    def _wanted(self, option: str) -> str:
        value = self.options.get(option)
        if not value:
            raise ValueError(f'seustream: option("{option}", …) is missing')
        return str(value)

    def schema(self) -> StructType:
        query = self._wanted("query")
        return spark_schema(self._connection().client().schema("query", query))

    def streamReader(self, schema: StructType) -> SourceReader:  # noqa: N802
        return SourceReader(
            self._connection(),
            self._wanted("query"),
            schema,
            self.options.get("reader", "spark"),
            int(self.options.get("maxRows", MOST_ROWS)),
        )

    def streamWriter(self, schema: StructType, overwrite: bool) -> SourceWriter:  # noqa: N802
        return SourceWriter(*self._sink())

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        return BatchWriter(*self._sink(), self._wanted("writer"), int(self._wanted("epoch")))

    def _sink(self) -> tuple[Connection, str, str | None]:
        connection, stream = self._connection(), self._wanted("stream")
        key = self.options.get("key")
        if len(connection.bridges) > 1 and not key:
            raise ValueError('seustream: several bridges need option("key", column)')
        return connection, stream, key


# --- sink ---------------------------------------------------------------------


@dataclass
class Written(WriterCommitMessage):
    """The parts a task staged: bridge, staging identifier and rows of each part."""

    writer: str
    parts: list[tuple[int, str, int]]
    highest: int | None


class SourceWriter(DataSourceStreamArrowWriter):
    """Two-phase commit of one stream. The writer the bridge knows is the Spark query, whose
    identity lives in its checkpoint."""

    def __init__(self, connection: Connection, stream: str, key: str | None) -> None:
        self.connection, self.stream, self.key = connection, stream, key

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
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
        """Returns who writes, and which epoch this is."""
        writer = str(task.getLocalProperty("sql.streaming.queryId"))
        return writer, int(str(task.getLocalProperty("streaming.sql.batchId")))

    def commit(self, messages: Sequence[Any], batchId: int) -> None:  # noqa: N803
        written = [message for message in messages if isinstance(message, Written)]
        if not written:
            # Spark runs at least one task for every epoch; without one nobody can say whose it is.
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
        """Best effort: a later commit or restart forgets what is left. An error here would hide
        the one that led here."""
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
    """The same for rows that a job of ours has ready, as an epoch it names: however often it is
    written, the bridge takes it once. Options `writer` and `epoch`."""

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
    """A writer that knows its epoch."""

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


class SourceReader(DataSourceStreamReader):
    """Results by offset; an offset is a number for each bridge."""

    def __init__(
        self, connection: Connection, query: str, columns: StructType, reader: str, most: int
    ) -> None:
        self.connection, self.query, self.columns = connection, query, columns
        self.reader, self.most = reader, most

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {str(bridge): found["first"] for bridge, found in self._latest()}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self.most)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        left = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        found = {}
        for bridge, latest in self._latest(start):
            begin, end = start[str(bridge)], latest["end"]
            if end < begin:
                raise FeedError(
                    f"gap: {self.query}: read up to {begin:,}, but there are {end:,} results;"
                    " does the checkpoint belong to this session?"
                )
            if left is not None:
                end = min(end, begin + left)
                left -= end - begin
            found[str(bridge)] = end
        return found

    def reportLatestOffset(self) -> dict[str, int]:  # noqa: N802
        return {str(bridge): found["end"] for bridge, found in self._latest()}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[SourceRange]:
        # What is before a planned batch was committed by Spark.
        self._trim(start)
        return [
            SourceRange(bridge, at, min(at + _PART_ROWS, end[str(bridge)]))
            for bridge in range(len(self.connection.bridges))
            for at in range(start[str(bridge)], end[str(bridge)], _PART_ROWS)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, SourceRange)
        client = self.connection.client(partition.bridge)
        with as_feed_errors():
            rows = client.read(self.query, partition.start, partition.end)
        for batch in rows.combine_chunks().to_batches():
            yield for_spark(batch, self.columns)

    def commit(self, end: dict[str, int]) -> None:
        self._trim(end)

    def stop(self) -> None:
        """Nothing is held."""

    def _latest(self, start: dict[str, int] | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
        """A bridge that was started again waits until it has been as far as `start`."""
        for bridge in range(len(self.connection.bridges)):
            beyond = -1 if start is None else start[str(bridge)]
            with as_feed_errors():
                found = self.connection.client(bridge).latest(self.query, beyond)
            yield bridge, found

    def _trim(self, offset: dict[str, int]) -> None:
        with as_feed_errors():
            for bridge in range(len(self.connection.bridges)):
                self.connection.client(bridge).trim(self.query, offset[str(bridge)], self.reader)
