"""The synopsis filter in Spark: the results are those without it, and it saves tuples and bytes,
whatever happens on the way."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from seustream.compiler.pipeline import Compilation
from seustream.engine.stream.schema import stream_schema
from seustream.spark_feeder.errors import FeedError, cause
from seustream.spark_feeder.job import Job, files, run
from seustream.spark_feeder.prefilter import Prefilter
from seustream.spark_feeder.types import spark_schema
from tests.cosim.bridge.serving import bridge, compiled, wanted
from tests.spark_feeder.feeding import found, frames, write

QUERIES = """
CREATE STREAM R (a int, b int);
CREATE STREAM S (d int, name varchar(9));
REGISTER QUERY pairs AS SELECT R.b, S.name FROM R, S WHERE R.a = S.d WINDOW RANGE 60;
"""


def streams(seed: int, rows: int = 300) -> dict[str, pa.Table]:
    """Most keys have no partner within the window."""
    chance = np.random.default_rng(seed)

    def ts() -> pa.Array:
        return pa.array(np.sort(chance.integers(0, 4 * rows, rows)))

    keys = [chance.integers(0, 120, rows).astype(np.int32) for _ in range(2)]
    some = chance.random(rows) < 0.05
    r = {"a": pa.array(keys[0], mask=some), "b": pa.array(np.arange(rows, dtype=np.int32))}
    s = {"d": pa.array(keys[1]), "name": pa.array([f"n{i % 7}" for i in range(rows)])}
    return {"R": pa.table({"ts": ts(), **r}), "S": pa.table({"ts": ts(), **s})}


def whole(compilation: Compilation, rows: dict[str, pa.Table]) -> tuple[int, int]:
    """By definition: counts the tuples with a partner in the window, and in a window one stretch of
    time longer."""
    r, s = rows["R"].to_pylist(), rows["S"].to_pylist()
    least = most = 0
    for mine, others, key, other in ((r, s, "a", "d"), (s, r, "d", "a")):
        for row in mine:
            apart = [abs(o["ts"] - row["ts"]) for o in others if o[other] == row[key]]
            least += any(a <= 60 for a in apart)
            most += any(a <= 60 + 4 for a in apart)
    return least, most


def test_statement_42_a_filtered_feed_stopped_and_gone_on_with(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows, compilation = streams(1), compiled(QUERIES)
    write(tmp_path / "in", rows, 2)
    with bridge(tmp_path / "journal") as (_, url):

        def job() -> Job:
            return run(
                compilation,
                frames(spark, compilation, tmp_path / "in"),
                files(tmp_path / "out"),
                bridge=url,
                checkpoint=tmp_path / "state",
                prefilter=True,
            )

        first = job()
        states = tmp_path / "state" / "prefilter"
        while not list(states.glob("state-*.npz")):
            assert first.writers[0].query.exception() is None
        first.stop()
        counts = job().wait(timeout=200)
        assert found(tmp_path / "out", ["pairs"]) == wanted(compilation, rows)
        assert wanted(compilation, rows)["pairs"].total() > 20
        saved = counts.saved
        assert {name: one.tuples for name, one in saved.items()} == {"R": 300, "S": 300}
        least, most = whole(compilation, rows)
        passed = sum(one.tuples - one.dropped for one in saved.values())
        assert least <= passed <= most < 500
        assert sum(counts.rows.values()) == passed
        assert not any(counts.late.values())
        assert all(0 < one.dropped_bytes < one.bytes for one in saved.values())
        # Every row has been decided: another run finds nothing to do, though a file came since.
        write(tmp_path / "more", {"R": rows["R"]}, 1)
        (tmp_path / "more" / "R" / "0.parquet").rename(tmp_path / "in" / "R" / "9.parquet")
        again = job()
        assert again.writers == []
        again.stop()


def test_queries_that_need_every_tuple_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    compilation = compiled(QUERIES.replace("R.a = S.d", "R.a < S.d"))
    write(tmp_path / "in", streams(1, 10), 1)
    with (
        bridge(tmp_path / "journal") as (_, url),
        pytest.raises(FeedError, match="every stream is needed whole"),
    ):
        run(
            compilation,
            frames(spark, compilation, tmp_path / "in"),
            files("x"),
            bridge=url,
            prefilter=True,
        )


def test_a_batch_run_again_does_what_it_did(spark: SparkSession, tmp_path: Path) -> None:
    """In one run and in the next; it sends rows in the order of time, so that a bridge takes none
    for late."""
    compilation = compiled(QUERIES)
    rows = streams(2, 120)
    sent: list[tuple[str, int, list[int]]] = []

    def put(stream: str, frame: object, writer: str, epoch: int) -> None:
        ts = sorted(row["ts"] for row in frame.collect())  # type: ignore[attr-defined]
        sent.append((stream, epoch, ts))

    def prefilter() -> Prefilter:
        frames = {name: spark.createDataFrame(table, schemas[name]) for name, table in rows.items()}
        return Prefilter(compilation, frames, tmp_path, put)

    schemas = {s.name: spark_schema(stream_schema(s)) for s in compilation.streams}
    whole = prefilter()
    batches = [
        whole.rows().where(f"coalesce(`rows of R`.ts, `rows of S`.ts) {part}")
        for part in ("< 240", ">= 240")
    ]
    (tmp_path / "writer").write_text("w")
    whole.take(batches[0], 0)
    once = list(sent)
    saved = {name: (one.tuples, one.dropped) for name, one in whole.saved.items()}
    whole.take(batches[0], 0)
    assert sent == once * 2
    assert {name: (one.tuples, one.dropped) for name, one in whole.saved.items()} == saved
    whole.take(batches[1], 1)
    second = sent[4:]
    next_life = prefilter()
    assert next_life.state.batch == 1
    next_life.take(batches[1], 1)
    assert sent[6:] == second
    next_life.finish()
    assert next_life.ended
    for name in ("R", "S"):
        epochs = [ts for stream, _, ts in once + second + sent[8:] if stream == name]
        flat = [t for ts in epochs for t in ts]
        assert flat == sorted(flat)
        kept = sum(map(len, epochs))
        one = next_life.saved[name]
        assert (one.tuples, one.dropped) == (120, 120 - kept)
    with pytest.raises(FeedError, match=r"state-7.npz is missing"):
        next_life.take(batches[1], 8)
    assert math.isfinite(next_life.saved["R"].saved_bytes)

    def torn(stream: str, frame: object, writer: str, epoch: int) -> None:
        raise ConnectionError(stream)

    # The streams may only end between two batches.
    next_life.put = torn
    with pytest.raises(ConnectionError, match="R"):
        next_life.take(batches[1], 2)
    with pytest.raises(FeedError, match="batch 2 is half done"):
        next_life.close(0)
    next_life.put = put
    next_life.take(batches[1], 2)
    assert next_life.close(0)
    with pytest.raises(FeedError, match="batch 3 came after the end"):
        next_life.take(batches[1], 3)


def test_static_frames_are_no_partners(spark: SparkSession, tmp_path: Path) -> None:
    """A table is none, nor is a stream whose frame is not streaming: their rows go whole."""
    table = "CREATE TABLE T (k int, v int);"
    join = "SELECT R.b, S.name, T.v FROM R, S, T WHERE R.a = S.d AND R.a = T.k WINDOW RANGE 60"
    text = QUERIES.replace("REGISTER", f"{table} REGISTER", 1)
    compilation = compiled(f"{text} REGISTER QUERY more AS {join};")
    rows = streams(3, 40)
    frames = {
        s.name: spark.createDataFrame(rows[s.name], spark_schema(stream_schema(s)))
        for s in compilation.streams
        if not s.table
    }
    sent: list[int] = []

    def put(stream: str, frame: object, writer: str, epoch: int) -> None:
        sent.append(len(frame.collect()))  # type: ignore[attr-defined]

    made = Prefilter(compilation, frames, tmp_path, put)
    (tmp_path / "writer").write_text("w")
    made.take(made.rows(), 0)
    made.finish()
    assert 0 < sum(sent) < 80
    with pytest.raises(FeedError, match="every stream is needed whole"):
        Prefilter(compilation, {"R": frames["R"]}, tmp_path / "one", put)


def test_a_row_without_a_time_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    compilation = compiled(QUERIES)
    texts = {
        "R": "SELECT 1L AS ts, 5 AS a, 6 AS b",
        "S": "SELECT CAST(NULL AS bigint) AS ts, 5 AS d, 'x' AS name",
    }
    frames = {name: spark.sql(text) for name, text in texts.items()}
    made = Prefilter(compilation, frames, tmp_path, lambda *given: None)
    with pytest.raises(PySparkException) as caught:
        made.take(made.rows(), 0)
    assert cause(str(caught.value)) == (
        "schema",
        "schema: stream S, column ts: NULL, where none may be",
    )
