"""A keyed pattern as a stateful operator of Spark gives the matches of a single operator over all
events, also across restarts from a checkpoint, and on time without another row of the key.

Runs in a session of its own (`nox -s spark`), which installs Spark.
"""

from __future__ import annotations

import datetime
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from seustream.compiler.catalogue import Column, Stream
from seustream.compiler.language.types import INT, VARCHAR
from seustream.compiler.pattern.statements import compile_pattern
from seustream.engine.pattern.errors import PatternError
from seustream.engine.pattern.event import Event
from seustream.engine.pattern.operator import PatternOperator
from seustream.spark_feeder.patterns import match, settings

STREAM = Stream("s", (Column("type", VARCHAR), Column("k", VARCHAR), Column("x", INT)))
ROOT = Path(__file__).resolve().parents[2]
Row = tuple[int, str, str, int]


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = str(ROOT)
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    for name, value in {**settings, "spark.sql.shuffle.partitions": "1"}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


def put(folder: Path, name: str, rows: list[Row]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    utc = datetime.UTC
    times = [datetime.datetime.fromtimestamp(row[0], utc) for row in rows]
    table = pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "type": [row[1] for row in rows],
            "k": [row[2] for row in rows],
            "x": pa.array([row[3] for row in rows], pa.int32()),
        }
    )
    pq.write_table(table, folder / f"{name}.parquet")


def run(spark: Any, folder: Path, query: Any) -> list[dict[str, Any]]:
    """Processes all files that are there, from the last checkpoint on; returns everything found so
    far."""
    stream = (
        spark.readStream.schema("ts timestamp, type string, k string, x int")
        .option("maxFilesPerTrigger", 1)
        .parquet(str(folder / "in"))
    )
    writer = match(stream, query).writeStream.format("parquet")
    places = writer.option("path", str(folder / "out"))
    job = places.option("checkpointLocation", str(folder / "checkpoint"))
    job.trigger(availableNow=True).start().awaitTermination()
    found = spark.read.parquet(str(folder / "out")).collect()
    return sorted((row.asDict() for row in found), key=str)


@pytest.mark.campaign
@pytest.mark.parametrize(
    "text",
    [
        "PATTERN A a; B b; !C PARTITION BY k WITHIN 10 s RETURN a.k, a.x, b.x AS bx",
        "PATTERN A a; B+ bs; C c PARTITION BY k WITHIN 20 s USING NEXT"
        " RETURN a.k, count(bs) AS many, c.x",
    ],
)
def test_restarts_find_what_one_run_finds(spark: Any, tmp_path: Path, text: str) -> None:
    query = compile_pattern(text, STREAM)
    chance = random.Random(6)
    rows: list[Row] = []
    now = 1_000
    for _ in range(120):
        now += chance.choice((1, 1, 2, 4))
        rows.append((now, chance.choice("AABBC"), chance.choice("pqr"), chance.randint(0, 9)))
    rows.append((now + 1_000, "Z", "z", 0))  # moves the watermark past all the others
    rows.append((now + 1_001, "Z", "z", 0))
    operator = PatternOperator(query)
    for ts, kind, key, x in rows:
        operator.push(Event(ts * 1_000, 0, kind, {"type": kind, "k": key, "x": x}))
    table, times = operator.advance_table((now + 1_000) * 1_000 - 1)
    want = sorted(
        (
            {**row, "matched_at": at}
            for row, at in zip(table.to_pylist(), times.tolist(), strict=True)
        ),
        key=str,
    )
    assert want
    for part, begin in enumerate(range(0, 120, 40)):
        put(tmp_path / "in", f"part{part}", rows[begin : begin + 40])
        run(spark, tmp_path, query)
    put(tmp_path / "in", "part8", rows[120:121])
    run(spark, tmp_path, query)
    put(tmp_path / "in", "part9", rows[121:])
    assert run(spark, tmp_path, query) == want


def test_keys_and_a_window_are_needed() -> None:
    with pytest.raises(PatternError, match="keys"):
        match(None, compile_pattern("PATTERN A; B WITHIN 1 s RETURN *", STREAM))  # type: ignore[arg-type]
    text = "PATTERN A PARTITION BY k, ts WITHIN 1 s RETURN *"
    with pytest.raises(PatternError, match="the time is no key"):
        match(None, compile_pattern(text, STREAM))  # type: ignore[arg-type]
    text = "PATTERN A; B PARTITION BY k RETURN *"
    with pytest.raises(PatternError, match="no end"):
        match(None, compile_pattern(text, STREAM, bounded=True))  # type: ignore[arg-type]
