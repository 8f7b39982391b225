"""Checkpoints that are damaged, missing, of another job or in use: a job reports them before it
begins.

The short tests write files as Spark would; the jobs of the campaign go on from Spark's own
checkpoints.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from seustream.spark_feeder.checkpoints import check, held, location
from seustream.spark_feeder.connection import Connection
from seustream.spark_feeder.errors import FeedError
from seustream.spark_feeder.job import files, run
from seustream.spark_feeder.source import BridgeResults
from tests.cosim.bridge.serving import bridge, compiled, streams, wanted
from tests.spark_feeder.feeding import found, frames, write

NAMES = ["pairs", "large"]


def put(path: Path, *lines: object) -> None:
    """Writes a file of a checkpoint with its checksums, as Hadoop does."""
    text = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    data = "\n".join(text).encode()
    sums = [zlib.crc32(data[at : at + 512]) for at in range(0, len(data), 512)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    said = b"crc\0" + struct.pack(f">I{len(sums)}I", 512, *sums)
    path.with_name(f".{path.name}.crc").write_bytes(said)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Makes a checkpoint of two batches of a stream."""
    place = tmp_path / "state" / "streams" / "R"
    put(place / "metadata", {"id": "0db1"})
    for batch in range(2):
        conf = {"conf": {f"spark.sql.setting{i}": "x" * 20 for i in range(20)}}
        put(place / f"offsets/{batch}", "v1", conf, {"logOffset": batch})
        put(place / f"commits/{batch}", "v1", {"nextBatchWatermarkMs": 0})
        put(place / f"sources/0/{batch}", "v1", {"path": "a", "batchId": batch})
    check(tmp_path / "state")
    return tmp_path / "state"


def logged(state: Path) -> list[Path]:
    """Returns the files that are checked."""
    place = state / "streams" / "R"
    return [place / "metadata", *(p for p in place.rglob("*") if p.is_file() and p.name.isdigit())]


def refused(state: Path, path: Path) -> str:
    with pytest.raises(FeedError, match=re.escape(f"checkpoint: {path}: ")) as error:
        check(state)
    assert error.value.hint
    return str(error.value)


def test_flipped_bits_are_found_and_where(state: Path) -> None:
    chance, files = random.Random(1), logged(state)
    assert len(files) == 7
    for path in files:
        data = path.read_bytes()
        for at in range(len(data)):
            path.write_bytes(
                data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]
            )
            assert "byte " in refused(state, path)
        path.write_bytes(data)
    check(state)


@pytest.mark.parametrize("sums", [True, False], ids=["with checksums", "without"])
def test_cuts_are_found(state: Path, sums: bool) -> None:
    """Without checksums a cut after a complete line is no damage: Spark may have written no
    more."""
    for path in logged(state):
        data = path.read_bytes()
        crc = path.with_name(f".{path.name}.crc")
        said = crc.read_bytes()
        if not sums:
            crc.unlink()
        for at in range(0, len(data), 1 + len(data) // 30):
            if sums or not data[:at].endswith((b"\n", b"}")):
                path.write_bytes(data[:at])
                assert "byte " in refused(state, path)
        path.write_bytes(data)
        crc.write_bytes(said)


@pytest.mark.parametrize(
    "gone", ["metadata", "offsets/0", "offsets/1", "sources/0/0", "sources/0/1"]
)
def test_a_file_that_is_gone_is_named(state: Path, gone: str) -> None:
    path = state / "streams" / "R" / gone
    path.unlink()
    assert "is missing" in refused(state, path)


def test_what_a_compact_entry_has_may_be_gone(state: Path) -> None:
    place = state / "streams" / "R"
    (place / "sources/0/0").unlink()
    (place / "sources/0/1").rename(place / "sources/0/1.compact")
    (place / "sources/0/.1.crc").rename(place / "sources/0/.1.compact.crc")
    check(state)


def test_a_batch_that_is_not_done_is_no_damage(state: Path) -> None:
    for path in (state / "streams" / "R" / "commits").glob("*1*"):
        path.unlink()
    check(state)


def test_a_checkpoint_has_one_job(tmp_path: Path) -> None:
    with held(tmp_path), pytest.raises(FeedError, match="of a job that is running"), held(tmp_path):
        raise AssertionError("two jobs")
    with held(tmp_path):
        pass
    (tmp_path / "file").write_text("")
    with pytest.raises(FeedError, match=r"checkpoint: .*/file: "), held(tmp_path / "file"):
        pass


def test_offsets_are_of_one_query() -> None:
    results = BridgeResults(Connection(("grpc://127.0.0.1:1",)), "pairs", None, False)  # type: ignore[arg-type]
    offset = results.offset([{"end": 5}, {"end": 7}], "end")
    assert results.counts(offset) == {"0": 5, "1": 7}
    assert results.counts({"0": 5}) == {"0": 5}
    with pytest.raises(FeedError, match="conflict: the checkpoint is of the results of large"):
        results.counts({**offset, "query": "large"})


# --- whole jobs -------------------------------------------------------------------


def _gone(name: str) -> Callable[[Path], None]:
    return lambda state: shutil.rmtree(state / name)


def _swapped(one: str, other: str) -> Callable[[Path], None]:
    def change(state: Path) -> None:
        (state / one).rename(state / "aside")
        (state / other).rename(state / one)
        (state / "aside").rename(state / other)

    return change


def _cut(state: Path) -> None:
    path = state / "streams/R/offsets/1"
    path.write_bytes(path.read_bytes()[:-9])


CHANGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "none": (lambda state: None, ""),
    "cut": (_cut, "checkpoint: .*/offsets/1: byte [0-9,]+: "),
    "a stream is gone": (_gone("streams/R"), "stream R: conflict: stream R is fed by writer"),
    "streams swapped": (
        _swapped("streams/R", "streams/S"),
        "stream .: conflict: stream . is fed by",
    ),
    "readers swapped": (_swapped("queries/pairs", "queries/large"), "is of the results of"),
    "a reader is gone": (_gone("queries/large"), ""),
    "all is gone": (_gone("."), "stream .: conflict: stream . is fed by writer"),
}


@pytest.mark.campaign
@pytest.mark.parametrize("change", CHANGES)
def test_a_job_goes_on_or_ends_with_one_message(
    change: str, spark: SparkSession, tmp_path: Path
) -> None:
    """Feeds half of the rows, changes the checkpoint, then feeds the rest; if a query is refused,
    those already started are stopped."""
    rows, compilation = streams(200, 1), compiled()
    write(tmp_path / "in", rows, 4)
    # Keep them outside the folder: under any name inside, Spark would read them at once.
    later = {
        path: tmp_path / f"{name}-{path.name}"
        for name in rows
        for path in (tmp_path / "in" / name).glob("[23].parquet")
    }
    for path, aside in later.items():
        path.rename(aside)
    with bridge(tmp_path / "journal") as (made, url):

        def job(bounded: bool):  # type: ignore[no-untyped-def]
            sources = frames(spark, compilation, tmp_path / "in")
            place = tmp_path / "state"
            out = files(tmp_path / "out")
            return run(compilation, sources, out, bridge=url, checkpoint=place, bounded=bounded)

        with job(bounded=False) as first:
            while made.session.committed < 4:
                first.look()
            with pytest.raises(FeedError, match="of a job that is running"):
                job(bounded=True)
            while not all(flow.query.lastProgress for flow in first.readers):
                first.look()
        for path, aside in later.items():
            aside.rename(path)
        damage, complaint = CHANGES[change]
        damage(tmp_path / "state")
        if not complaint:
            job(bounded=True).wait(timeout=120)
            assert found(tmp_path / "out", NAMES) == wanted(compilation, rows)
            return
        with pytest.raises(FeedError, match=complaint) as error, job(bounded=True) as second:
            second.wait(timeout=60)
        assert "\n" not in str(error.value)
        assert not spark.streams.active


def test_a_first_entry_that_was_cut_off(spark: SparkSession, tmp_path: Path) -> None:
    """A query that was stopped in its first write starts again; other checkpoints stay as they
    are."""
    place = tmp_path / "state"
    put(place / "offsets" / ".0.5f0c.tmp", "v1")
    rows = spark.readStream.format("rate").option("rowsPerSecond", 1).load()
    out = rows.writeStream.format("noop").trigger(availableNow=True)
    out.option("checkpointLocation", location(place)).start().awaitTermination()
    assert (place / "offsets" / "0").is_file()
    left = place / "offsets" / ".1.5f0c.tmp"
    put(left, "v1")
    before = sorted(place.rglob("*"))
    assert location(place) == str(place)
    assert location("hdfs://host/x") == "hdfs://host/x"
    assert sorted(place.rglob("*")) == before
