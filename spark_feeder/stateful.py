"""The stateful operator of Spark that runs a query by key: its input, the operator, its output.

    rows of a stream → Packing → shard, Arrow bytes → ShardProcessor → Arrow bytes → Unpacking → results

Between Spark and Python rows are Arrow bytes, some thousands to a value, so that Spark moves values, not
rows. Each task reports to each shard the greatest time that it has seen of its stream.

The state of a shard is in Spark's state store: a base and a log, so that a micro-batch writes only what it
has brought, and now and then everything. The token identifies the run in memory that continues from this
state; a repeated task, or one in another process, finds none and rebuilds it from what is stored.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import StructType

from seustream.spark_feeder.errors import FeedError, as_feed_errors
from seustream.spark_feeder.shards import (
    KeyedGraph,
    MicroBatch,
    ShardPart,
    ShardRun,
    write,
)
from seustream.spark_feeder.split import key_of, places
from seustream.spark_feeder.types import for_bridge, for_spark
from seustream.spark_feeder.workers import settle

PACKED = (
    "shard int, stream string, task int, number int, highest bigint, rows binary, bounded boolean"
)
"""The columns of rows on their way to a shard."""
RESULT_ROWS = 1 << 16
"""The most results in one value."""
_LOG = 1 << 20
"""Bytes of a log that is kept whatever the size of its base."""
_RUNS: dict[tuple[str, str, int], tuple[str, ShardRun]] = {}
"""By Spark's query, graph and shard: the run in this process, with the token of the state that it
represents."""


@dataclass(frozen=True)
class Packing:
    """Packs rows of a stream by shard; `shards` are their names. `key` is the column that divides
    them; without one a batch goes to any shard. Without `read`, only their times are reported."""

    stream: str
    key: str | None
    shards: tuple[int, ...]
    read: bool = True

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        task = TaskContext.get()
        assert task is not None
        number, highest, at = 0, None, task.partitionId()
        packed = _Packed()
        for batch in batches:
            if not batch.num_rows:
                continue
            rows = for_bridge(batch)
            top = pc.max(rows.column("ts")).as_py()
            if top is not None:
                highest = top if highest is None else max(highest, top)
            for shard, mine in self._divided(rows, at + number) if self.read else ():
                packed.add(shard, self.stream, at, number, None, write(mine))
            number += 1
            yield packed.batch()
        for shard in self.shards:
            packed.add(shard, self.stream, at, number, highest, None)
        yield packed.batch()

    def _divided(self, rows: pa.RecordBatch, turn: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        many = len(self.shards)
        if self.key is None or many == 1:
            yield self.shards[turn % many], rows
            return
        where = places(key_of(rows, self.key), many)
        order = np.argsort(where, kind="stable")
        divided = rows.take(pa.array(order))
        bounds = np.searchsorted(where[order], np.arange(many + 1))
        for number, shard in enumerate(self.shards):
            begin, end = int(bounds[number]), int(bounds[number + 1])
            if begin < end:
                yield shard, divided.slice(begin, end - begin)


@dataclass(frozen=True)
class PackingRuns:
    """Packs the rows of `trigger.runs`, for each shard."""

    shards: tuple[int, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        packed = _Packed()
        for batch in batches:
            for bounded in batch.column(0).to_pylist():
                for shard in self.shards:
                    packed.add(shard, None, 0, 0, None, None, bounded)
        yield packed.batch()


class _Packed:
    """Gathers rows of `PACKED`."""

    def __init__(self) -> None:
        self._rows: list[tuple[Any, ...]] = []

    def add(self, *row: Any) -> None:
        self._rows.append((*row, None) if len(row) < len(_PACKED) else row)

    def batch(self) -> pa.RecordBatch:
        """Returns the rows that were added since the last batch."""
        columns = list(zip(*self._rows, strict=True)) or [()] * len(_PACKED)
        self._rows = []
        arrays = [
            pa.array(column, field.type) for column, field in zip(columns, _PACKED, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=_PACKED)


_PACKED = pa.schema(
    [
        ("shard", pa.int32()),
        ("stream", pa.string()),
        ("task", pa.int32()),
        ("number", pa.int32()),
        ("highest", pa.int64()),
        ("rows", pa.binary()),
        ("bounded", pa.bool_()),
    ]
)


def answered(streams: Iterable[str]) -> str:
    """Returns the columns of the operator's output: results, or counts since the last ones."""
    counts = "".join(f", taken_{n} bigint, late_{n} bigint" for n, _ in enumerate(streams))
    return f"rows binary, results bigint, faults string{counts}"


@dataclass(frozen=True)
class Unpacking:
    """Unpacks the results, with Spark's types."""

    columns: StructType

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        for batch in batches:
            for value in batch.column("rows"):
                if value.is_valid:
                    for rows in pa.ipc.open_stream(value.as_buffer()):
                        yield for_spark(rows, self.columns)


class ShardProcessor(StatefulProcessor):
    """Runs the shards of a task. With `ends`, the streams end with a bounded run."""

    def __init__(self, graph: KeyedGraph, shards: int, ends: bool) -> None:
        self.graph, self.shards, self.ends = graph, shards, ends

    def init(self, handle: Any) -> None:
        settle()
        self._handle = handle
        self._mark = handle.getValueState("mark", _MARK_TYPES)
        self._base = handle.getValueState("base", "snapshot binary")
        self._log = handle.getListState("log", "batch binary")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        bounded, parts = None, []
        for row in rows:
            if row["stream"] is None:
                bounded = row["bounded"]
            else:
                parts.append(ShardPart(*(row[name] for name in _PART)))
        mark = self._stored()
        with as_feed_errors():
            run = self._run(key, mark)
            batch = MicroBatch.of(parts)
            for answer in run.take(batch):
                yield from self._results(answer)
        if (counts := self._counts(run)) is not None:
            yield counts
        if bounded is None:
            bounded = mark["bounded"]
        now = timerValues.getCurrentWatermarkInMs()
        mark = {**mark, "bounded": bounded, "watermark": now}
        self._store(key, run, mark, batch.pack() if batch.highest else b"")
        for timer in list(self._handle.listTimers()):
            self._handle.deleteTimer(timer)
        if bounded and self.ends and not mark["ended"]:
            self._handle.registerTimer(now + 1)

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,
        timerValues: Any,  # noqa: N803
        expiredTimerInfo: Any,  # noqa: N803
    ) -> Iterator[Row]:
        """Ends the streams of a bounded run: Spark's last micro-batch has no rows at all, since all
        sources are exhausted."""
        mark = self._stored()
        if mark["ended"] or timerValues.getCurrentWatermarkInMs() <= mark["watermark"]:
            return
        with as_feed_errors():
            run = self._run(key, mark)
            for answer in run.end():
                yield from self._results(answer)
        if (counts := self._counts(run)) is not None:
            yield counts
        self._store(key, run, {**mark, "ended": True}, None)

    def close(self) -> None:
        """Does nothing, since no resources are held."""

    # --- state ------------------------------------------------------------------

    def _stored(self) -> dict[str, Any]:
        found = self._mark.get()
        if found is None:
            return {
                "token": None,
                "queries": self.graph.digest,
                "shards": self.shards,
                "bounded": False,
                "watermark": -1,
                "ended": False,
                "base": 0,
                "log": 0,
            }
        mark = dict(zip(_MARK, found, strict=True))
        with as_feed_errors():
            if mark["queries"] != self.graph.digest:
                raise FeedError(
                    f"conflict: the checkpoint is of another text of {self.graph.answer}"
                    " (name another one, or give the text it was begun with)"
                )
            if mark["shards"] != self.shards:
                raise FeedError(
                    f"conflict: the checkpoint divides keys among {mark['shards']} tasks, this session"
                    f" among {self.shards} (set spark.sql.shuffle.partitions={mark['shards']})"
                )
        return mark

    def _run(self, key: Any, mark: dict[str, Any]) -> ShardRun:
        """Returns the run that continues from the stored state."""
        token, run = _RUNS.pop(self._place(key), (None, None))
        if run is not None and token == mark["token"]:
            return run
        if mark["token"] is None:
            return ShardRun(self.graph)
        base = self._base.get() if mark["base"] else None
        log = [bytes(one[0]) for one in self._log.get()] if mark["log"] else []
        return ShardRun(self.graph, None if base is None else bytes(base[0]), log)

    def _store(self, key: Any, run: ShardRun, mark: dict[str, Any], batch: bytes | None) -> None:
        """Stores a micro-batch, or with None the whole state."""
        if batch is None or mark["log"] + len(batch) > max(_LOG, mark["base"]):
            base = run.pack()
            self._base.update((base,))
            self._log.clear()
            mark = {**mark, "base": len(base), "log": 0}
        elif batch:
            self._log.appendValue((batch,))
            mark = {**mark, "log": mark["log"] + len(batch)}
        token = uuid.uuid4().hex
        self._mark.update(tuple({**mark, "token": token}[name] for name in _MARK))
        _RUNS[self._place(key)] = (token, run)

    def _place(self, key: Any) -> tuple[str, str, int]:
        task = TaskContext.get()
        assert task is not None
        query = str(task.getLocalProperty("sql.streaming.queryId"))
        return query, self.graph.digest, int(key[0])

    # --- results ----------------------------------------------------------------

    def _results(self, rows: pa.Table) -> Iterator[Row]:
        for begin in range(0, rows.num_rows, RESULT_ROWS):
            some = rows.slice(begin, RESULT_ROWS).combine_chunks()
            yield self._row(rows=write(some), results=some.num_rows)

    def _counts(self, run: ShardRun) -> Row | None:
        counts = run.counts()
        if not (counts.taken or counts.late or counts.faults):
            return None
        given: dict[str, Any] = {"faults": json.dumps(counts.faults) if counts.faults else None}
        for number, stream in enumerate(self.graph.compilation.program.base):
            given[f"taken_{number}"] = counts.taken[stream.name]
            given[f"late_{number}"] = counts.late[stream.name]
        return self._row(**given)

    def _row(self, **given: Any) -> Row:
        streams = range(len(self.graph.compilation.program.base))
        names = [f"{what}_{number}" for number in streams for what in ("taken", "late")]
        return Row(**{name: given.get(name) for name in ("rows", "results", "faults", *names)})


_MARK_TYPES = (
    "token string, queries string, shards int, bounded boolean, watermark bigint, ended boolean,"
    " base bigint, log bigint"
)
"""The columns of a shard's own data: the name of this state, the graph it belongs to, how the last
micro-batch came, whether the streams have ended, bytes of the base and of the log."""
_MARK = tuple(part.split()[0] for part in _MARK_TYPES.split(","))
_PART = ("stream", "task", "number", "highest", "rows")
