"""Queries with a key inside Spark: without a bridge or a device, each a stateful operator of its frames.

    spark.readStream… → shards by the hash of the key → the engine's graph → results

Each query is a streaming frame of its own, with what it reads and nothing else. Its state is in Spark's
state store, and therefore in the checkpoint of whichever query reads the frame. The keys have one shard
for each of `spark.sql.shuffle.partitions`.

The end of a bounded run is Spark's last micro-batch, which has no rows. Spark runs it because the
operator's watermark is the time of the previous micro-batch. No source has rows any more by then, so the
streams end, and the rest of the results comes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f

from seustream.compiler.logical.levels import part
from seustream.compiler.logical.program import Program
from seustream.compiler.pipeline import Compilation
from seustream.compiler.plan.keys import Keys
from seustream.cosim.bridge.protocol import LATE, PLAIN, Run
from seustream.engine.times import Times
from seustream.spark_feeder.bridged import check_times, columns_of, frames_of, spark_of
from seustream.spark_feeder.errors import FeedError
from seustream.spark_feeder.progress import OBSERVED, observed
from seustream.spark_feeder.queries import keys_inside
from seustream.spark_feeder.shards import KeyedGraph
from seustream.spark_feeder.stateful import (
    PACKED,
    Packing,
    PackingRuns,
    ShardProcessor,
    Unpacking,
    answered,
)
from seustream.spark_feeder.trigger import runs
from seustream.spark_feeder.types import spark_schema, timed

SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.noDataMicroBatches.enabled": "true",
}
"""Settings that queries inside Spark require of a session."""
INSIDE = "spark"
"""Takes the place of a bridge's address: the queries run inside Spark."""
FOLDER = "inside"
"""The folder of a checkpoint for the queries of a job inside Spark."""
_WHOLE = "whole"
"""The folder of a checkpoint for the rows of static frames."""
COUNTED = "seustream_counts_"
"""Followed by the name of a query, or of a stream whose late rows it has: the counts of its operator."""
_BEGIN = 1_735_689_600_000
"""Milliseconds, 2025. Times of micro-batches count from here."""
_DELAY = "30 days"
"""The clock may be set back by this much. Spark would drop rows of an earlier time."""


@dataclass(frozen=True, slots=True)
class KeyedQueries:
    """A query set inside Spark. `place` is the folder for the rows of static frames; with `ends`,
    the streams end with a bounded run."""

    spark: SparkSession
    compilation: Compilation
    frames: Mapping[str, DataFrame]
    keys: Mapping[str, Keys]
    columns: Mapping[str, pa.Schema]
    times: Times
    place: Path
    how: Run
    ends: bool
    shards: tuple[int, ...]

    @property
    def names(self) -> list[str]:
        return self.compilation.program.names

    def results(self, query: str, name: str = OBSERVED) -> DataFrame:
        """Returns the results of a query as a stream; their counts are observed under a name."""
        program = part(self.compilation.program, query)
        rows = self._operator(query, replace(self.compilation, program=program), late=False)
        rows = observed(self._unpacked(rows, query), name)
        return timed(rows, self.times.schema(query, self.columns[query]))

    def late(self, stream: str) -> DataFrame:
        """Returns the late rows of a stream."""
        (own,) = (one for one in self.compilation.program.base if one.name == stream)
        program = type(self.compilation.program)(streams=(own,))
        rows = self._operator(stream, replace(self.compilation, program=program), late=True)
        what = LATE + stream
        rows = observed(self._unpacked(rows, what))
        return timed(rows, self.times.schema(what, self.columns[what]))

    def _operator(self, answer: str, c: Compilation, late: bool) -> DataFrame:
        bare = Compilation(c.source, c.options, program=replace(c.program, requests=()))
        read = {stream.name for stream in bare.program.base}
        bare = replace(bare, program=self._bounded(bare.program))
        by = None if late else self.keys[answer]
        packed = runs(self.spark).mapInArrow(PackingRuns(self.shards), PACKED)
        whole = set()
        for stream in bare.program.base:
            rows = self.frames[stream.name]
            if not rows.isStreaming:
                rows = self._whole(stream.name, rows)
                whole.add(stream.name)
            key = None if by is None else by.of(stream.name)
            pack = Packing(stream.name, key, self.shards, stream.name in read)
            for frame in (rows, *_partitions(rows)):
                packed = packed.unionByName(frame.mapInArrow(pack, PACKED))
        at = f.timestamp_millis(f.unix_millis(f.current_timestamp()) - _BEGIN)
        packed = packed.withColumn("at", at).withWatermark("at", _DELAY)
        how = self.how
        graph = KeyedGraph(bare, answer, frozenset(whole), how.slack, how.lag, how.strict, late)
        rows = packed.groupBy("shard").transformWithState(
            statefulProcessor=ShardProcessor(graph, len(self.shards), self.ends),
            outputStructType=answered(stream.name for stream in bare.program.base),
            outputMode="Append",
            timeMode="EventTime",
        )
        counts = [f.sum("results").alias("results"), f.collect_list("faults").alias("faults")]
        for number, stream in enumerate(bare.program.base):
            counts.append(f.sum(f"taken_{number}").alias(f"taken {stream.name}"))
            counts.append(f.sum(f"late_{number}").alias(f"late {stream.name}"))
        return rows.observe(COUNTED + answer, *counts)

    def _bounded(self, program: Program) -> Program:
        """Adds the streams that bound those of a program: with a lag, all there are."""
        if self.how.lag is None:
            return program
        named = {s.name for s in program.streams}
        named |= {name for name, rows in self.frames.items() if rows.isStreaming}
        all_streams = self.compilation.program.streams
        return replace(program, streams=tuple(s for s in all_streams if s.name in named))

    def _unpacked(self, rows: DataFrame, what: str) -> DataFrame:
        schema = spark_schema(self.columns[what])
        return rows.select("rows").mapInArrow(Unpacking(schema), schema)

    def _whole(self, name: str, rows: DataFrame) -> DataFrame:
        """Returns a static frame as one micro-batch, from files beside the checkpoint."""
        folder = self.place / _WHOLE / name
        if not (folder / "_SUCCESS").exists():
            rows.write.mode("overwrite").parquet(str(folder))
        return self.spark.readStream.schema(rows.schema).parquet(str(folder))


def keyed(
    compilation: Compilation,
    sources: Mapping[str, DataFrame],
    place: Path,
    how: Run = PLAIN,
    select: Mapping[str, str] | None = None,
    ends: bool = True,
) -> KeyedQueries:
    """Returns a query set over these sources inside Spark; raises `FeedError` for a query without a
    key."""
    spark = spark_of(sources)
    found = keys_inside(compilation.program)
    for name, wanted in SETTINGS.items():
        if spark.conf.get(name) != wanted:
            raise FeedError(
                "queries inside Spark need a setting that this Spark session does not have",
                f"set {name}={wanted}, as seustream.spark.session does",
            )
    frames, times = frames_of(compilation, sources, select or {})
    for stream in compilation.program.base:
        if stream.table and stream.name in frames and frames[stream.name].isStreaming:
            raise FeedError(f"table {stream.name}: its frame is streaming", "spark.read it")
    for name, rows in frames.items():
        if rows.isStreaming and _has_watermark(rows._jdf.queryExecution().analyzed()):
            raise FeedError(
                f"stream {name}: its frame has a watermark, which Spark would mix with that of the queries",
                "leave withWatermark out: slack bounds how late rows may be; or run it at a bridge",
            )
        _check_whole(place / _WHOLE / name, name, rows)
    columns = columns_of(compilation, times, frames)
    check_times(spark, columns)
    return KeyedQueries(
        spark, compilation, frames, found, columns, times, place, how, ends, _shards(spark)
    )


def _has_watermark(plan: Any) -> bool:
    children = plan.children()
    return plan.getClass().getSimpleName() == "EventTimeWatermark" or any(
        _has_watermark(children.apply(place)) for place in range(children.size())
    )


def _partitions(rows: DataFrame) -> Iterator[DataFrame]:
    """Yields frames without rows that have a partition whenever Spark reads files of a frame. Empty
    files have none, so that no task would report to the shards, as in Spark's last micro-batch."""
    spark = rows.sparkSession
    assert spark._jvm is not None
    of_plan = spark._jvm.org.apache.spark.sql.classic.Dataset.ofRows
    leaves = rows._jdf.queryExecution().analyzed().collectLeaves()
    for place in range(leaves.size()):
        source = DataFrame(of_plan(spark._jsparkSession, leaves.apply(place)), spark)
        with contextlib.suppress(AnalysisException):  # no files
            yield source.where(f.col("_metadata.file_path") == "").coalesce(1)


def _check_whole(folder: Path, name: str, rows: DataFrame) -> None:
    """Raises if a static frame has other rows than the checkpoint, in any order."""
    if rows.isStreaming or not (folder / "_SUCCESS").exists():
        return
    before = rows.sparkSession.read.schema(rows.schema).parquet(str(folder))
    if _digest(rows) != _digest(before):
        raise FeedError(
            f"conflict: the checkpoint has other rows of {name}, a frame that is not streaming",
            "name another checkpoint",
        )


def _digest(rows: DataFrame) -> Row | None:
    digest = f.xxhash64(f.struct("*")).cast("decimal(20, 0)")
    return rows.agg(f.count("*"), f.sum(digest)).first()


def _shards(spark: SparkSession) -> tuple[int, ...]:
    """Returns the names of the shards, one for each partition of a shuffle: Spark places them by
    their hash."""
    many = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    found: dict[int, int] = {}
    size = 8 * many
    while len(found) < many:
        numbers = spark.range(size).select(f.col("id").cast("int").alias("shard"))
        where = f.pmod(f.hash("shard"), f.lit(many)).alias("place")
        for shard, place in numbers.select("shard", where).collect():
            found.setdefault(place, shard)
        size *= 4
    return tuple(found[place] for place in range(many))
