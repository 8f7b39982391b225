"""The data source with only its options, as Spark finds it itself."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructType

from seustream import connect
from seustream.cosim.bridge.client import BridgeClient
from seustream.spark_feeder.connection import Connection
from seustream.spark_feeder.errors import FeedError
from seustream.spark_feeder.source import (
    WORTH,
    BridgeResults,
    SourceReader,
)
from seustream.spark_feeder.types import spark_schema
from tests.cosim.bridge.serving import (
    QUERIES,
    bridge,
    compiled,
    feed_epoch,
    multiset,
    streams,
    wanted,
)


def test_both_ends_load_the_queries_and_read_to_the_end(
    spark: SparkSession, tmp_path: Path
) -> None:
    """R as a stream, S as a batch; `pairs` is read as a stream with `availableNow`, `large` as a
    batch. A batch does not see the results that a stream released."""
    rows, compilation = streams(300, 4), compiled()
    text = tmp_path / "q.xsql"
    text.write_text(QUERIES)
    for name, table in rows.items():
        (tmp_path / name).mkdir()
        pq.write_table(table, tmp_path / name / "all.parquet")
    whole = spark.read.parquet(str(tmp_path / "S"))
    arriving = spark.readStream.schema(spark.read.parquet(str(tmp_path / "R")).schema)
    with bridge(tmp_path / "journal") as (_, url):
        options = {"bridge": url, "queriesFile": str(text), "patience": "5"}
        into = arriving.parquet(str(tmp_path / "R")).writeStream.format("seustream")
        into = into.options(**options, stream="R", checkpointLocation=str(tmp_path / "fed"))
        into.trigger(availableNow=True).start().awaitTermination()
        to = whole.write.format("seustream").options(**options, stream="S")
        to.mode("append").save()
        out = spark.readStream.format("seustream").options(
            **options, query="pairs", endStreams="true"
        )
        delivered = out.load().writeStream.format("parquet").trigger(availableNow=True)
        delivered = delivered.option("checkpointLocation", str(tmp_path / "read"))
        delivered.start(str(tmp_path / "pairs")).awaitTermination()

        want = wanted(compilation, rows)
        pairs = spark.read.parquet(str(tmp_path / "pairs"))
        assert multiset(pa.Table.from_pandas(pairs.toPandas())) == want["pairs"]
        batch = spark.read.format("seustream").options(**options)
        large = batch.option("query", "large").load()
        assert multiset(pa.Table.from_pandas(large.toPandas())) == want["large"]
        assert Counter(large.columns) == Counter(["a", "b", "ts_oldest", "ts_newest"])
        gone = f"first {want['pairs'].total():,} results were read by a stream and given up"
        with pytest.raises(PySparkException, match=gone):
            batch.option("query", "pairs").load().collect()
        with pytest.raises(PySparkException) as unknown:
            batch.option("query", "piars").load()
        assert "FeedError: unknown: " in str(unknown.value)
        assert "Traceback" not in str(unknown.value)


def test_a_batch_waits_for_its_least_results_or_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bridge answers at once if it has them, after a second if it has fewer, and at once if no
    more can come."""
    asked: list[tuple[int, ...]] = []
    real = BridgeClient.latest

    def latest(client: BridgeClient, query: str, *given: int) -> object:
        asked.append(given)
        return real(client, query, *given)

    monkeypatch.setattr(BridgeClient, "latest", latest)
    with bridge(tmp_path / "journal") as (_, url), BridgeClient(url) as client:
        client.load(compiled())
        feed_epoch(client, 0, streams(300, 4))
        client.flush()
        there = real(client, "large")["end"]
        connection = Connection((url,))
        results = BridgeResults(connection, "large", StructType().add("a", LongType()), False)

        def found(at: int, least: int) -> int:
            reader = SourceReader(results, "spark", 1 << 20, None, least)
            end = reader.latestOffset({"0": at, "query": "large"}, reader.getDefaultReadLimit())
            return int(end["0"])

        assert found(3, there - 3) == found(3, there) == there
        assert asked == [(3, 1000, there - 3), (3, 1000, there)]
        client.end()
        assert found(3, 1 << 40) == real(client, "large")["end"]
        assert found(3, 1) == real(client, "large")["end"]
        assert asked[-1] == (3, 0, 1)


def test_a_second_reader_is_refused_what_is_not_all(tmp_path: Path) -> None:
    with bridge(tmp_path / "journal") as (_, url), BridgeClient(url) as client:
        client.load(compiled())
        feed_epoch(client, 0, streams(300, 4))
        client.flush()
        there = client.latest("large")["end"]
        columns = StructType().add("a", LongType())
        results = BridgeResults(Connection((url,)), "large", columns, False)

        def first(begin: int | None) -> object:
            reader = SourceReader(results, "spark", 1 << 20, None, begin=begin)
            return reader.initialOffset()["0"]

        assert first(0) == first(None) == 0
        client.trim("large", there - 1, "spark")
        with pytest.raises(FeedError, match=f"trimmed: large: its first {there - 1:,} results"):
            first(0)
        assert first(there - 1) == first(None) == there - 1


@pytest.mark.parametrize("text", ["REGISTER OR REPLACE QUERY q", "DROP QUERY q; REGISTER QUERY q"])
def test_results_of_another_run_are_not_read_on(text: str, tmp_path: Path) -> None:
    """Offsets count from 0 in each run, so those of the one before would leave out as many results
    of the new one, and trim them. Nothing is trimmed by mistake, whatever Spark calls."""
    with (
        bridge(tmp_path / "journal") as (_, url),
        BridgeClient(url) as client,
        connect(url) as con,
    ):
        con.sql("CREATE STREAM R (a int); REGISTER QUERY q AS SELECT a FROM R")
        columns = spark_schema(client.schema("query", "q"))
        results = BridgeResults(Connection((url,)), "q", columns, False)
        reader = SourceReader(results, "spark", 1 << 20, None)
        limit = reader.getDefaultReadLimit()

        def pushed(begin: int, end: int) -> None:
            con.push("R", {"ts": [*range(begin, end)], "a": [*range(begin, end)]})
            list(con.results())

        pushed(0, 10)
        start = reader.initialOffset()
        middle = reader.latestOffset(start, limit)
        assert (start["0"], middle["0"]) == (0, 10)
        (part,) = reader.partitions(start, middle)
        assert sum(batch.num_rows for batch in reader.read(part)) == 10
        pushed(10, 20)
        end = reader.latestOffset(middle, limit)
        (planned,) = reader.partitions(middle, end)
        con.sql(f"{text} AS SELECT a + 100 AS a FROM R")
        pushed(20, 60)
        replaced = "conflict: q was replaced: the checkpoint is of the results of run 1"
        for call in (
            lambda: reader.latestOffset(middle, limit),
            lambda: reader.partitions(middle, end),
            lambda: reader.commit(end),
            lambda: list(reader.read(planned)),
        ):
            with pytest.raises(FeedError, match=replaced):
                call()
        other = SourceReader(results, "other", 1 << 20, None)
        first = other.initialOffset()
        assert other.latestOffset(first, limit)["0"] - first["0"] == 40
        old = {"0": first["0"], "query": "q"}  # of an older checkpoint
        assert other.latestOffset(old, limit)["0"] - first["0"] == 40


class Growing:
    """Results whose end is the next of these numbers at each poll, and which are never all."""

    query, patience = "q", 60.0

    def __init__(self, *ends: int) -> None:
        self.ends, self.asked = list(ends), list[tuple[int, int]]()
        self.connection = self

    def latest(self, start: object = None, wait_ms: int = 0, least: int = 1) -> list[int]:
        self.asked.append((wait_ms, least))
        return [self.ends.pop(0)]

    def offset(self, latest: list[int], what: str) -> dict[str, object]:
        return {"0": latest[0], "query": "q"}

    def counts(self, offset: dict[str, int]) -> dict[str, int]:
        return {"0": offset["0"]}

    def check_runs(self, offset: object, latest: object) -> None: ...

    def processed(self) -> bool:
        return False

    def close_streams(self) -> None: ...

    def clients(self) -> list[object]:
        return []

    def client(self, number: int) -> Growing:
        return self

    def trim(self, query: str, offset: int, reader: str) -> None: ...


@pytest.mark.parametrize(
    ("ends", "most", "polls", "found"),
    [
        ((7, 7, 9, 9, 50), 1000, 4, 9),  # none yet, none, two, and no more
        ((8, 9, 10, 11, 12, 13), 1000, 5, 12),  # no longer than a second
        ((*6 * (7,), 8, 9, 10, 11, 12, 13), 1000, 11, 12),  # which begins with the first result
        ((40, 60, 99), 10, 2, 17),  # no more than a batch has
    ],
)
def test_batches_of_what_is_available_gather_results_while_they_grow(
    ends: tuple[int, ...], most: int, polls: int, found: int
) -> None:
    results = Growing(*ends)
    reader = SourceReader(results, "spark", most, None)  # type: ignore[arg-type]
    reader.prepareForTriggerAvailableNow()
    end = reader.latestOffset({"0": 7, "query": "q"}, reader.getDefaultReadLimit())
    assert end["0"] == found
    assert results.asked == polls * [(200, WORTH)]
