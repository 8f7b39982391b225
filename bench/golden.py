"""A windowed join on the golden model, in DuckDB, and as nested loops in plain Python.

All three get the same two streams and the query `R.a = S.d AND R.b <> S.e` over RANGE windows of
about 2,048 tuples. The loops run on a part of the tuples, and their time is scaled up. DuckDB
computes the whole join as a batch, from tables already loaded, while the model processes tuples in
arrival order.
"""

from __future__ import annotations

import time
from collections import deque

import duckdb
import numpy as np
import pyarrow as pa

from seustream.commands.bench import Measurement
from seustream.compiler.pipeline import compile_text
from seustream.cosim.golden import GoldenDevice
from seustream.engine.graph import GraphRun

TITLE = "golden: windowed join of 100,000 tuples over windows of 2,048"

TUPLES = 50_000  # per stream
WINDOW = 2_047 * 3  # ticks; a stream has a tuple every 3
LOOPED = 2_000  # tuples of each stream for the nested loops

QUERIES = f"""
CREATE STREAM R (a int, b int);
CREATE STREAM S (d int, e int);
SELECT * FROM R, S WHERE R.a = S.d AND R.b <> S.e WINDOW RANGE {WINDOW};
"""


def measure() -> Measurement:
    chance = np.random.default_rng(2006)
    streams = {"R": _stream(chance, ("a", "b")), "S": _stream(chance, ("d", "e"))}
    seconds, results = {}, {}
    for name, run in (("golden model", _golden), ("DuckDB", _duckdb)):
        began = time.perf_counter()
        results[name] = run(streams)
        seconds[name] = time.perf_counter() - began
    began = time.perf_counter()
    results["nested loops"] = _loops({k: v.slice(0, LOOPED) for k, v in streams.items()})
    # Scale by pairs, not by tuples: during most of a short run the windows are not yet full.
    pairs = sum(min(i, 2_048) for i in range(LOOPED)) * 2
    all_pairs = sum(min(i, 2_048) for i in range(TUPLES)) * 2
    seconds["nested loops"] = (time.perf_counter() - began) * all_pairs / pairs
    assert results["golden model"] == results["DuckDB"]
    rate = {name: 2 * TUPLES / s for name, s in seconds.items()}
    return Measurement(
        ("engine", "seconds", "tuples/s", "results"),
        [(name, seconds[name], rate[name], results[name]) for name in seconds],
        {
            "golden model over DuckDB, tuples/s": rate["golden model"] / rate["DuckDB"],
            "golden model over nested loops": rate["golden model"] / rate["nested loops"],
        },
        f"{2 * TUPLES:,} tuples, results equal; nested loops measured on {2 * LOOPED:,} tuples"
        " and scaled by pairs; seed 2006",
    )


def _stream(chance: np.random.Generator, columns: tuple[str, ...]) -> pa.Table:
    ts = np.arange(TUPLES) * 3 + chance.integers(0, 3, TUPLES)
    values = {c: pa.array(chance.integers(0, 2_000, TUPLES).astype(np.int32)) for c in columns}
    return pa.table({"ts": pa.array(ts), **values})


def _golden(streams: dict[str, pa.Table]) -> int:
    compilation = compile_text(QUERIES)
    driver = GraphRun(compilation, GoldenDevice(compilation.options.config))
    for name, rows in streams.items():
        driver.push(name, rows)
    return sum(results.num_rows for _, results in driver.finish())


def _duckdb(streams: dict[str, pa.Table]) -> int:
    connection = duckdb.connect(config={"threads": 1})
    for name, rows in streams.items():
        connection.register(name, rows)
    rows = connection.sql(
        "SELECT R.*, S.* FROM R, S WHERE R.a = S.d AND R.b <> S.e"
        f" AND greatest(R.ts, S.ts) - R.ts <= {WINDOW} AND greatest(R.ts, S.ts) - S.ts <= {WINDOW}"
    ).to_arrow_table()
    return rows.num_rows


def _loops(streams: dict[str, pa.Table]) -> int:
    """Joins as a first attempt would: a deque per window, and a look at every pair."""
    arrivals = sorted(
        (row["ts"], index, tuple(row.values())[1:])
        for index, rows in enumerate(streams.values())
        for row in rows.to_pylist()
    )
    windows: list[deque[tuple[int, tuple[int, int]]]] = [deque(), deque()]
    found = 0
    for now, mine, row in arrivals:
        for window in windows:
            while window and window[0][0] < now - WINDOW:
                window.popleft()
        for _, other in windows[1 - mine]:
            if row[0] == other[0] and row[1] != other[1]:
                found += 1
        windows[mine].append((now, row))
    return found
