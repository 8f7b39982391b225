"""Simulates Spark as the bridge knows it: its protocol for sinks and sources, with everything that may repeat.

A query has a checkpoint: the rows of a batch are written down before it begins, and that it is done
after the sink has committed it. A driver that dies in between does the batch again. Tasks are
tried up to four times, some twice at once, and one that lost may go on for long. The sink and the source
are the connector's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql.streaming.datasource import ReadMaxRows

from seustream.cosim.bridge.client import BridgeClient
from seustream.spark_feeder.connection import Connection
from seustream.spark_feeder.source import BridgeResults, SourceReader, SourceWriter
from seustream.spark_feeder.types import spark_schema
from tests.world.faults import Faults
from tests.world.network import Network
from tests.world.simulation import Process, SimTask, Simulation, SimWorld

ATTEMPTS = 4
_LOOK, _LONGEST = 1.0, 8.0
"""Seconds between two looks for results, doubled up to the longest while there are none."""
BRIDGE = "grpc://10.0.0.1:8815"


@dataclass
class Checkpoint:
    """The checkpoint of a Spark query: planned batches and done ones; it outlives everything."""

    offsets: dict[int, Any] = field(default_factory=dict)
    done: set[int] = field(default_factory=set)

    @property
    def next(self) -> int:
        return max(self.done, default=-1) + 1


class TaskFailed(Exception):
    """A task failed for good."""


@dataclass(frozen=True)
class Ways:
    """Tells tasks about themselves, like Spark's `TaskContext`."""

    query: str
    batch: int
    partition: int

    def getLocalProperty(self, name: str) -> str:  # noqa: N802
        return {"sql.streaming.queryId": self.query, "streaming.sql.batchId": str(self.batch)}[name]

    def partitionId(self) -> int:  # noqa: N802
        return self.partition


@dataclass(frozen=True)
class SimLink(Connection):
    """A connection of whichever process uses it."""

    of: Callable[[], BridgeClient] = field(kw_only=True, compare=False)

    def client(self, number: int = 0) -> BridgeClient:
        return self.of()


class Driver:
    """One life of a Spark driver; whatever outlives it is passed to its methods."""

    def __init__(self, simulation: Simulation, network: Network, faults: Faults) -> None:
        self.simulation, self.network, self.faults = simulation, network, faults
        self.process = Process("driver")
        self.link = SimLink((BRIDGE,), patience=20.0, of=self.client)

    def client(self) -> BridgeClient:
        """Returns the client of the running process."""
        task = self.simulation.current
        assert task is not None
        process = task.process
        if process.client is None:
            process.client = BridgeClient(
                BRIDGE,
                patience=20.0,
                world=SimWorld(self.simulation, process),
                connect=self.network.connect(process),
            )
        client: BridgeClient = process.client
        return client

    # --- the sink ---------------------------------------------------------------

    def feed(self, name: str, rows: pa.Table, kept: Checkpoint, acked: dict[str, int]) -> None:
        """Feeds a stream into the bridge, batch after batch."""
        simulation, chance = self.simulation, self.faults.of("batch repeated")
        (whole,) = rows.combine_chunks().to_batches()
        writer = SourceWriter(self.link, name, None)
        while True:
            batch = kept.next
            if batch not in kept.offsets:
                start = kept.offsets[batch - 1][1] if batch else 0
                if start == whole.num_rows:
                    return
                end = min(start + simulation.chance.randint(1, 24), whole.num_rows)
                simulation.park(0.01)
                kept.offsets[batch] = (start, end)
            start, end = kept.offsets[batch]
            part = whole.slice(start, end - start)
            for again in (True, False):
                messages: list[Any] = []
                try:
                    self._tasks(f"writer-{name}", batch, part, writer, messages)
                    simulation.park(0.01 * chance.random())
                    writer.commit(messages, batch)
                except Exception:
                    writer.abort(messages, batch)
                    raise
                acked[f"writer-{name}"] = max(batch, acked.get(f"writer-{name}", -1))
                if not again or not self.faults.happens("batch repeated", simulation.time):
                    break
                simulation.tell(f"spark: batch {batch} of {name} is done once more")
            simulation.park(0.01)
            kept.done.add(batch)
            simulation.park(simulation.chance.random() * 3)

    def _tasks(
        self, query: str, batch: int, rows: pa.RecordBatch, writer: SourceWriter, found: list[Any]
    ) -> None:
        """Finds the messages of a batch's tasks, in any order."""
        chance = self.simulation.chance
        order = list(range(rows.num_rows))
        chance.shuffle(order)
        partitions = chance.randint(1, 3)
        for number in range(partitions):
            part = rows.take(pa.array(order[number::partitions], pa.int64()))
            found.append(self._task(Ways(query, batch, number), part, writer))
        chance.shuffle(found)

    def _task(self, way: Ways, rows: pa.RecordBatch, writer: SourceWriter) -> Any:
        simulation, faults = self.simulation, self.faults

        def batches() -> Iterator[pa.RecordBatch]:
            for start in range(0, rows.num_rows, 8):
                simulation.park(0.01)
                yield rows.slice(start, 8)

        error: BaseException | None = None
        for _ in range(ATTEMPTS):
            attempts = [self._attempt(lambda: writer.write(batches()), way)]
            if faults.happens("task speculated", simulation.time):
                simulation.tell(f"spark: a second attempt of {way}")
                attempts.append(self._attempt(lambda: writer.write(batches()), way))
            while not all(task.done for task in attempts):
                if any(task.done and task.error is None for task in attempts):
                    break  # one that has lost may go on
                for task in attempts:
                    if simulation.current is not None:
                        task.joining.append(simulation.current)
                simulation.park()
            won = [task for task in attempts if task.done and task.error is None]
            if won:
                return won[0].result
            error = attempts[0].error
        raise error if isinstance(error, Exception) else TaskFailed("a task was killed too often")

    def _attempt(self, work: Callable[[], Any], way: Any) -> SimTask:
        """Starts an attempt in a Python worker of its own, which dies with the driver or by
        itself."""
        process = Process("worker")
        task = self.simulation.spawn(process, "task", work, way)
        self.process.hooks.append(lambda: self.simulation.kill(process))
        if self.faults.happens("task killed", self.simulation.time):
            self.simulation.tell("spark: a worker is killed")
            later = self.faults.of("task killed").random() * 0.1
            self.simulation.at(self.simulation.time + later, lambda: self.simulation.kill(process))
        return task

    # --- the source -------------------------------------------------------------

    def deliver(
        self,
        query: str,
        columns: pa.Schema,
        kept: Checkpoint,
        output: dict[int, pa.Table],
        over: Callable[[], bool],
    ) -> None:
        """Writes a query's results into files, one per batch, until there are no more. Some readers
        wait for several results."""
        simulation = self.simulation
        least = self.faults.of("results gathered").choice((1, 1, 30))
        results = BridgeResults(self.link, query, spark_schema(columns), False)
        reader = SourceReader(results, "spark", 50, None, least)
        pause = _LOOK
        while True:
            batch = kept.next
            if batch not in kept.offsets:
                start = kept.offsets[batch - 1][1] if batch else reader.initialOffset()
                end = reader.latestOffset(start, ReadMaxRows(50))
                if end == start:
                    if over():
                        return
                    simulation.park(pause)
                    pause = min(2 * pause, _LONGEST)
                    continue
                kept.offsets[batch] = (start, end)
                pause = _LOOK
            start, end = kept.offsets[batch]
            if self.faults.happens("reader slow", simulation.time):
                simulation.park(10.0)
            parts = [
                pa.Table.from_batches([rows], rows.schema)
                for part in reader.partitions(start, end)
                for rows in reader.read(part)
            ]
            rows = pa.concat_tables(parts)
            assert batch not in output or output[batch].equals(rows), f"{query}: another batch"
            assert rows.num_rows == end["0"] - start["0"], f"{query}: a batch is not whole"
            output[batch] = rows
            simulation.park(0.01)
            kept.done.add(batch)
            reader.commit(end)
