"""Whole jobs in Spark, through bridges: results exactly once, whatever happens on the way."""

from __future__ import annotations

import contextlib
import datetime
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQueryListener

from seustream.compiler.pipeline import compile_text
from seustream.cosim.bridge.client import BridgeClient
from seustream.cosim.bridge.protocol import Run
from seustream.cosim.golden import GoldenDevice
from seustream.engine.graph import GraphRun
from seustream.reading import read as read_file
from seustream.spark_feeder.errors import FeedError
from seustream.spark_feeder.inputs import InputSource, read, rows_of
from seustream.spark_feeder.job import SHORT, files, run, session
from seustream.spark_feeder.progress import OBSERVED
from tests.cosim.bridge.serving import QUERIES, TINY, bridge, compiled, multiset, streams, wanted
from tests.spark_feeder.feeding import FIRST, found, frames, write

NAMES = ["pairs", "large"]


def test_a_session_that_is_there_is_given_as_it_is(spark: SparkSession) -> None:
    zone = spark.conf.get("spark.sql.session.timeZone")
    assert session("local[7]", **{"spark.sql.session.timeZone": "Asia/Tokyo"}) is spark
    assert spark.conf.get("spark.sql.session.timeZone") == zone
    assert spark.sparkContext.master != "local[7]"


@pytest.mark.parametrize("own", [None, "SPARK_HOME", "SPARK_CONF_DIR"])
def test_a_new_session_is_quiet_unless_the_environment_sets_spark_up(
    own: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SPARK_HOME", "SPARK_CONF_DIR"):
        monkeypatch.setenv(name, "theirs")
        if name != own:
            monkeypatch.delenv(name)
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    given: dict[str, str] = {}
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", lambda b: given.update(b._options))
    session(**SHORT)
    options = given["spark.driver.extraJavaOptions"].split()
    short = SHORT["spark.driver.extraJavaOptions"].split()
    assert options[-2:] == short
    if own is not None:
        assert options == short
    else:
        name, _, where = options[0].partition("=")
        assert name == "-Dlog4j2.configurationFile"
        assert "rootLogger.level = fatal" in urlopen(where).read().decode()


def test_java_can_take_classes_from_an_archive(spark: SparkSession) -> None:
    """It does so only if its path names no folder; the tests start Spark from an archive."""
    jvm = spark._jvm
    assert jvm is not None
    path = jvm.java.lang.System.getProperty("java.class.path").split(os.pathsep)
    assert len(path) > 100
    assert not any(Path(entry).is_dir() for entry in path)


def test_checkpoints_here_are_renamed_without_processes(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The manager that Spark makes for a local folder, and its error for a file that exists."""
    jvm = spark._jvm
    assert jvm is not None
    package = jvm.org.apache.spark.sql.execution.streaming.checkpointing
    path = jvm.org.apache.hadoop.fs.Path(f"file:{tmp_path}/0")
    made = package.CheckpointFileManager.create(
        path, spark._jsparkSession.sessionState().newHadoopConf()
    )
    assert made.getClass().getSimpleName() == "FileSystemBasedCheckpointFileManager"
    first, second = (made.createAtomic(path, False) for _ in range(2))
    first.write(b"once")
    first.close()
    with pytest.raises(Exception, match="FileAlreadyExists"):
        second.close()
    assert (tmp_path / "0").read_bytes() == b"once"


@pytest.mark.parametrize("format", ["csv", "json", "parquet"])
def test_values_in_files_are_read_again(format: str, spark: SparkSession, tmp_path: Path) -> None:
    """By `seustream run`, and by Spark as the source of another job."""
    stream = compile_text("CREATE STREAM T (s varchar, at timestamp); SELECT s FROM T;").streams[0]
    texts = [" lead", "tab\t", 'say "hi"', "back\\", "x\n2,y", "", None, "#", "日本"]
    first = datetime.datetime(2026, 1, 1, 0, 0, 0, 1)
    rows = [(n, s, first + datetime.timedelta(microseconds=n)) for n, s in enumerate(texts)]
    columns = "ts bigint, s string, at timestamp_ntz"
    spark.createDataFrame(rows, columns).coalesce(1).write.parquet(str(tmp_path / "in"))
    given = spark.readStream.schema(columns).parquet(str(tmp_path / "in"))
    writer = files(tmp_path, format)("out", given)
    writer = writer.option("checkpointLocation", str(tmp_path / "state"))
    writer.trigger(availableNow=True).start().awaitTermination()
    (written,) = (tmp_path / "out").glob(f"*.{format}")
    again = written.rename(tmp_path / f"again.{format}")
    found = read_file(again, stream, lambda text: None)
    assert [tuple(row.values()) for row in found.to_pylist()] == rows
    source = rows_of(read(spark, InputSource.parse(str(again)), stream), stream)
    query = source.writeStream.format("memory").queryName(f"again_{format}")
    query.trigger(availableNow=True).start().awaitTermination()
    assert sorted(tuple(row) for row in spark.table(f"again_{format}").collect()) == rows


def test_a_job_stopped_and_gone_on_with(spark: SparkSession, tmp_path: Path) -> None:
    """Stopped in the middle, continued from its checkpoint, and repeated after all is done: the
    files hold every result once."""
    rows, compilation = streams(600, 1), compiled()
    write(tmp_path / "in", rows, 4)
    with bridge(tmp_path / "journal") as (made, url):

        def job() -> object:
            return run(
                compilation,
                frames(spark, compilation, tmp_path / "in"),
                files(tmp_path / "out"),
                bridge=url,
                checkpoint=tmp_path / "state",
            )

        first = job()
        for _ in range(200):
            if made.has_session and made.session.committed >= 2:
                break
            first.writers[0].query.processAllAvailable()  # type: ignore[attr-defined]
        first.stop()  # type: ignore[attr-defined]
        counts = job().wait(timeout=120)  # type: ignore[attr-defined]
        assert found(tmp_path / "out", NAMES) == wanted(compilation, rows)
        assert counts.rows == {"R": 600, "S": 600}
        assert counts.results == {q: n.total() for q, n in wanted(compilation, rows).items()}
        with pytest.raises(FeedError, match="rows of an earlier job"):
            run(compilation, frames(spark, compilation, tmp_path / "in"), files("x"), bridge=url)


class Listening(StreamingQueryListener):
    """Records what Spark reports of each query: the rows observed, and their first and last
    timestamp."""

    def __init__(self) -> None:
        self.rows: Counter[str] = Counter()
        self.last: dict[str, int] = {}

    def onQueryStarted(self, event: object) -> None:  # noqa: N802
        pass

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        found = event.progress.observedMetrics.get(OBSERVED)
        if found is not None and found["rows"]:
            name = event.progress.name
            self.rows[name] += found["rows"]
            self.last[name] = max(found["last"], self.last.get(name, 0))

    def onQueryTerminated(self, event: object) -> None:  # noqa: N802
        pass


def test_skew_late_rows_bursts_and_a_silent_stream(spark: SparkSession, tmp_path: Path) -> None:
    """R runs far ahead of S, in bursts of very different size, one of them long overdue; S sends
    everything at once and is silent. Results are exact; late rows are counted, reported and
    kept."""
    rows, compilation = streams(400, 7), compiled()
    sizes, overdue = (2, 190, 5, 3, 200), 3
    ends = np.cumsum(sizes)
    parts = [rows["R"].slice(end - size, size) for size, end in zip(sizes, ends, strict=True)]
    slack = 40
    # The last burst but one comes far too late, except for its last row.
    ts = parts[overdue].column("ts").to_numpy().copy()
    ts[:-1] = parts[1].column("ts").to_numpy()[0]
    parts[overdue] = parts[overdue].set_column(0, "ts", pa.array(ts))
    late = parts[overdue].slice(0, sizes[overdue] - 1)
    assert pc.max(parts[1].column("ts")).as_py() - ts[0] > slack
    on_time = pa.concat_tables(
        [*parts[:overdue], parts[overdue].slice(sizes[overdue] - 1), parts[4]]
    )
    write(tmp_path / "in", {"S": rows["S"]}, 1)
    (tmp_path / "in" / "R").mkdir()
    for number, part in enumerate(parts):
        path = tmp_path / "in" / "R" / f"{number}.parquet"
        pq.write_table(part, path)
        os.utime(path, (FIRST + number, FIRST + number))
    listening = Listening()
    spark.streams.addListener(listening)
    try:
        with bridge(tmp_path / "journal") as (_, url):
            job = run(
                compilation,
                frames(spark, compilation, tmp_path / "in"),
                files(tmp_path / "out"),
                bridge=url,
                how=Run(slack=slack, lag=10_000),
                late=files(tmp_path / "late"),
            )
            counts = job.wait(timeout=120)
        want = wanted(compilation, {"R": on_time, "S": rows["S"]})
        assert found(tmp_path / "out", NAMES) == want
        assert counts.late == {"R": late.num_rows, "S": 0}
        assert counts.results == {name: rows.total() for name, rows in want.items()}
        assert found(tmp_path / "late", ["R"])["R"] == multiset(late)
        told = {f"query {name}": rows.total() for name, rows in want.items()}
        told |= {"stream R": 400, "stream S": 400, "late R": late.num_rows}
        for _ in range(100):  # listeners learn of it a little later
            if listening.rows == told:
                break
            time.sleep(0.1)
        assert listening.rows == told
        assert listening.last["stream R"] == rows["R"].column("ts")[-1].as_py()
    finally:
        spark.streams.removeListener(listening)


def test_streams_without_an_end_are_ended_by_hand(spark: SparkSession, tmp_path: Path) -> None:
    """Everything about the rate source is known in advance except how many rows it gives."""
    compilation = compiled()
    source = read(spark, InputSource.parse("rate:300"), compilation.streams[0])
    how = {
        "R": "value * 2 AS ts, CAST(value % 5 AS int) AS a, CAST(value * 7 % 1000 AS int) AS b",
        "S": "value * 3 AS ts, CAST(value % 4 AS int) AS d, concat('n', value % 3) AS name",
    }
    with bridge(tmp_path / "journal") as (_, url):
        job = run(
            compilation,
            {"R": source, "S": source},
            files(tmp_path / "out"),
            bridge=url,
            bounded=False,
            select=how,
        )
        until = time.monotonic() + 120
        while min(job.counts().rows.values()) < 300 and time.monotonic() < until:
            job.look()
            time.sleep(0.2)
        counts = job.finish()
    n, m = (np.arange(counts.rows[name]) for name in "RS")
    assert min(len(n), len(m)) >= 300
    rows = {
        "R": pa.table({"ts": n * 2, "a": n % 5, "b": n * 7 % 1000}),
        "S": pa.table({"ts": m * 3, "d": m % 4, "name": [f"n{i % 3}" for i in m]}),
    }
    want = wanted(compilation, rows)
    assert found(tmp_path / "out", NAMES) == want
    assert counts.results == {name: rows.total() for name, rows in want.items()}


def test_over_two_bridges_by_key(spark: SparkSession, tmp_path: Path) -> None:
    rows, compilation = streams(400, 2), compiled()
    write(tmp_path / "in", rows, 2)
    with bridge(tmp_path / "1") as (one, first), bridge(tmp_path / "2") as (other, second):
        job = run(
            compilation,
            frames(spark, compilation, tmp_path / "in", None),
            files(tmp_path / "out"),
            bridge=(first, second),
        )
        job.wait(timeout=120)
        assert found(tmp_path / "out", NAMES) == wanted(compilation, rows)
        shares = [made.session.run.report.taken["R"] for made in (one, other)]
        assert sum(shares) == 400
        assert min(shares) > 50
        with BridgeClient(first) as client:
            assert client.status()["late_total"] == {"R": 0, "S": 0}


def test_windows_larger_than_one_devices_buffer(spark: SparkSession, tmp_path: Path) -> None:
    """A window of 33 tuples and devices of 16 are too small one by one; four devices that share the
    keys hold it, and no tuple goes to software."""
    compilation = compiled(QUERIES.replace("RANGE 30", "RANGE 32"))
    ts, key = pa.array(range(200)), [i % 40 for i in range(200)]
    number = pa.array(range(200), pa.int32())
    text = pa.array([f"n{i % 7}" for i in range(200)])
    rows = {
        "R": pa.table({"ts": ts, "a": pa.array(key, pa.int32()), "b": number}),
        "S": pa.table({"ts": ts, "d": pa.array(key[5:] + key[:5], pa.int32()), "name": text}),
    }
    alone = GraphRun(compilation, GoldenDevice(TINY))
    for name, table in rows.items():
        alone.push(name, table)
    list(alone.finish())
    assert {overflow.needed for overflow in alone.report.join.overflow.values()} == {33}
    write(tmp_path / "in", rows, 1)
    with contextlib.ExitStack() as stack:
        served = [stack.enter_context(bridge(tmp_path / f"{number}")) for number in range(4)]
        job = run(
            compilation,
            frames(spark, compilation, tmp_path / "in", None),
            files(tmp_path / "out"),
            bridge=tuple(url for _, url in served),
            how=Run("error"),
        )
        counts = job.wait(timeout=200)
        assert found(tmp_path / "out", NAMES) == wanted(compilation, rows)
        assert wanted(compilation, rows)["pairs"].total() > 100
        assert counts.device["handed_over"] == 0
        shares = [made.session.run.report for made, _ in served]
        assert all(report.taken["R"] for report in shares)
        assert not any(report.join.overflow for report in shares)
