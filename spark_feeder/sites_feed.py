"""Feeds streams from Spark into a join across sites, in micro-batches.

    with Cluster(layout, folder) as cluster:
        feed = SitesFeed(join, cluster.submit, folder / "numbers", unit=1000)
        query = feed.start({"r": r, "s": s}, checkpoint="state")

Each batch's rows go to their sites as blocks, one for each unit of time and stream, in the order of
their closing times. The sites keep the rows, ask the centre, and send on what may join. The numbers of
blocks are written down before any goes out: a batch that Spark runs again submits the same blocks, which
sites ignore, so results stay exact.

A row that comes after later ones of an earlier batch is in the first block after those: it is late
for nothing but its window.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from seustream.engine.sites.model import BlockRows, EquiJoin
from seustream.engine.sites.query import BlockNumbers, blocks_of_batch
from seustream.spark_feeder.checkpoints import location
from seustream.spark_feeder.errors import FeedError
from seustream.spark_feeder.inputs import times_of
from seustream.spark_feeder.types import for_bridge, quoted

STREAM = "stream"
"""The column of the common frame that names a row's stream."""


def together(frames: Mapping[str, DataFrame]) -> DataFrame:
    """Combines several streams into one frame: each row's stream, and its columns."""
    tagged = [
        frame.select(
            f.lit(name).alias(STREAM), f.struct(*map(quoted, frame.columns)).alias(_rows(name))
        )
        for name, frame in frames.items()
    ]
    whole = tagged[0]
    for other in tagged[1:]:
        whole = whole.unionByName(other, allowMissingColumns=True)
    return whole


def of_stream(batch: DataFrame, name: str) -> DataFrame:
    """Extracts one of these streams."""
    return batch.where(f.col(STREAM) == name).select(f"{quoted(_rows(name))}.*")


def _rows(name: str) -> str:
    """Names the column of a stream's rows, which may be called as the column beside it."""
    return f"rows of {name}"


class SitesFeed:
    """Feeds sites. `submit` takes a block for its site, and waits while that is full. `numbers` is
    the file of block numbers, which belongs to the sites as Spark's checkpoint does to the job."""

    def __init__(
        self, join: EquiJoin, submit: Callable[[BlockRows], None], numbers: Path, unit: int = 1
    ) -> None:
        self.join, self.submit, self.unit = join, submit, unit
        self.numbers = BlockNumbers(numbers)
        self.names = [stream.name for stream in join.streams]

    def start(
        self, frames: Mapping[str, DataFrame], checkpoint: str | Path, bounded: bool = True
    ) -> StreamingQuery:
        """Starts the streaming query that feeds the sites, with each stream's frame by its alias."""
        if missing := [name for name in self.names if name not in frames]:
            raise FeedError(f"no source for stream {', '.join(missing)}")
        rows = together({name: frames[name] for name in self.names})
        writer = rows.writeStream.foreachBatch(self.take).queryName("sites")
        writer = writer.option("checkpointLocation", location(checkpoint))
        return (writer.trigger(availableNow=True) if bounded else writer).start()

    def take(self, batch: DataFrame, number: int) -> None:
        """Processes a micro-batch; for foreachBatch."""
        batch.persist()
        try:
            tables = {
                k: _in_order(name, of_stream(batch, name)) for k, name in enumerate(self.names)
            }
        finally:
            batch.unpersist()
        for block in blocks_of_batch(self.join, self.numbers, number, tables, self.unit):
            self.submit(block)


def _in_order(name: str, rows: DataFrame) -> pa.Table:
    """Returns rows in an order that is the same whenever the batch is run, their times in
    milliseconds."""
    whole = rows.withColumn("ts", times_of(rows, "ts", f"stream {name}")).toArrow()
    if whole.column("ts").null_count:
        raise FeedError(f"schema: stream {name}, column ts: NULL, where none may be")
    batches = [for_bridge(batch) for batch in whole.to_batches()]
    table = pa.Table.from_batches(batches) if batches else whole
    others = [name for name in table.column_names if name != "ts"]
    return table.sort_by([(name, "ascending") for name in ("ts", *others)])
