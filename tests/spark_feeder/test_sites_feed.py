"""Spark into a join across sites: batches run again, rows that come late, compared with the
definition."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from seustream.engine.sites.model import BlockRows, EquiJoin
from seustream.spark_feeder.errors import FeedError
from seustream.spark_feeder.sites_feed import SitesFeed, of_stream, together
from tests.engine.sites.oracle import answer
from tests.engine.sites.running import found, network

WINDOWS = [40, 25]
JOIN = EquiJoin.on_one_key(WINDOWS)
SCHEMA = "ts bigint, v int"


def test_statement_42_batches_run_again_in_spark(spark: SparkSession, tmp_path: Path) -> None:
    chance = np.random.default_rng(1)
    net, given = network(JOIN, 1), dict[tuple[int, int | None], BlockRows]()
    went: list[BlockRows] = []

    def submit(block: BlockRows) -> None:
        went.append(block)
        given[block.stream, block.no] = block
        net.submit(block)
        net.run()

    def feed() -> SitesFeed:
        return SitesFeed(JOIN, submit, tmp_path / "numbers", unit=10)

    for number in range(2):
        # The second batch has rows that belong to the first.
        low = 30 * number - 15
        frames = {
            f"R{k}": spark.createDataFrame(
                pa.table(
                    {
                        "ts": pa.array(chance.integers(max(low, 0), low + 45, 12)),
                        "v": pa.array(chance.integers(0, 3, 12).astype(np.int32)),
                    }
                ),
                SCHEMA,
            )
            for k in range(2)
        }
        batch = together(frames)
        feed().take(batch, number)
        once = list(went)
        went.clear()
        feed().take(batch.repartition(3), number)
        assert went == once
        went.clear()
    blocks = sorted(given.values(), key=lambda b: (b.tau, b.stream, b.no))
    assert sum(len(block.rows) for block in blocks) == 48
    assert any(row.t <= block.tau - 10 for block in blocks for row in block.rows)
    assert found(net) == answer(WINDOWS, blocks)
    assert found(net)


def test_names_that_spark_reads_otherwise(spark: SparkSession) -> None:
    frames = {
        "stream": spark.createDataFrame([(1, 2)], "ts bigint, `x.y` int"),
        "a`b": spark.createDataFrame([(3, 4)], "ts bigint, stream int"),
    }
    batch = together(frames)
    for name, frame in frames.items():
        mine = of_stream(batch, name)
        assert mine.columns == frame.columns
        assert mine.collect() == frame.collect()


def test_every_stream_has_a_source(tmp_path: Path) -> None:
    feed = SitesFeed(JOIN, lambda block: None, tmp_path / "numbers")
    with pytest.raises(FeedError, match="no source for stream R0, R1"):
        feed.start({}, tmp_path / "state")


def test_times_are_milliseconds(spark: SparkSession, tmp_path: Path) -> None:
    went: list[BlockRows] = []
    feed = SitesFeed(JOIN, went.append, tmp_path / "numbers", unit=10)
    times = ("TIMESTAMP'1970-01-01 00:00:00.0059'", "TIMESTAMP_NTZ'1970-01-01 00:00:00.007'")
    frames = {f"R{k}": spark.sql(f"SELECT {ts} AS ts, 1 AS v") for k, ts in enumerate(times)}
    feed.take(together(frames), 0)
    assert sorted(row.t for block in went for row in block.rows) == [5, 7]
    frames["R0"] = spark.sql("SELECT CAST(NULL AS timestamp) AS ts, 1 AS v")
    with pytest.raises(FeedError, match="stream R0, column ts: NULL, where none may be"):
        feed.take(together(frames), 1)
