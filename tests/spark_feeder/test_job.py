"""Whole jobs in Spark, through bridges: exactly once, whatever happens on the way."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from cosim.bridge.client import BridgeClient
from cosim.bridge.protocol import Run
from cosim.golden import GoldenDevice
from engine.host.driver import HostDriver
from spark_feeder.errors import FeedError
from spark_feeder.job import files, run
from tests.cosim.bridge.serving import QUERIES, TINY, bridge, compiled, streams, wanted
from tests.spark_feeder.feeding import found, frames, write

NAMES = ["pairs", "large"]


def test_a_job_stopped_and_gone_on_with(spark: SparkSession, tmp_path: Path) -> None:
    """Stopped in the middle, gone on with from its checkpoint, repeated when all is done: the
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
        shares = [made.session.driver.report.taken["R"] for made in (one, other)]
        assert sum(shares) == 400
        assert min(shares) > 50
        with BridgeClient(first) as client:
            assert client.status()["late_total"] == {"R": 0, "S": 0}


def test_windows_larger_than_one_devices_buffer(spark: SparkSession, tmp_path: Path) -> None:
    """A window of 33 tuples and devices of 16: too many for one; four that share the keys take it,
    without a tuple handed to software."""
    compilation = compiled(QUERIES.replace("RANGE 30", "RANGE 32"))
    ts, key = pa.array(range(200)), [i % 40 for i in range(200)]
    number = pa.array(range(200), pa.int32())
    text = pa.array([f"n{i % 7}" for i in range(200)])
    rows = {
        "R": pa.table({"ts": ts, "a": pa.array(key, pa.int32()), "b": number}),
        "S": pa.table({"ts": ts, "d": pa.array(key[5:] + key[:5], pa.int32()), "name": text}),
    }
    alone = HostDriver(compilation, GoldenDevice(TINY))
    for name, table in rows.items():
        alone.push(name, table)
    list(alone.finish())
    assert {overflow.needed for overflow in alone.report.overflow.values()} == {33}
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
        shares = [made.session.driver.report for made, _ in served]
        assert all(report.taken["R"] for report in shares)
        assert not any(report.overflow for report in shares)


def test_what_is_wrong_with_a_job_is_said_first(spark: SparkSession, tmp_path: Path) -> None:
    compilation = compiled()
    write(tmp_path, streams(10, 1), 1)
    good = frames(spark, compilation, tmp_path)
    crossed = compiled(QUERIES.replace("R.a = S.d", "R.a < S.d"))
    with bridge(tmp_path / "journal") as (_, url):
        for queries, sources, options, complaint in (
            (compilation, {}, {}, "no sources"),
            (compilation, {"R": good["R"]}, {}, "no source for stream S"),
            (compilation, {**good, "T": good["R"]}, {}, "there is no stream T"),
            (compilation, {**good, "S": good["R"]}, {}, "stream S: no column d, name"),
            (compilation, good, {"select": {"R": "nothing"}}, "stream R: .*nothing"),
            (crossed, good, {"bridge": (url, url)}, "query pairs does not equate"),
        ):
            with pytest.raises(FeedError, match=complaint):
                run(queries, sources, files("x"), **{"bridge": url, **options})
