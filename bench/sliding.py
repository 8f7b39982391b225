"""Grouped sliding aggregates by window, keys, order and rows a step, beside Polars and DuckDB.

A stream has one row per tick, its key and its value are uniform, and each row asks for `sum`, `avg`, `min` and
`max` of the rows with its key in the last so many ticks. The engine takes the rows in steps, once as many rows
as the window has came in steps of 16,384, and is measured from push to results. Out of order, a row comes up to
1,000 ticks late, and the engine waits as long for it. Polars and DuckDB get all rows at once, in order. Figures
are times per row: of the engine the best of five rounds, of the others the best of two runs. All results are
compared by value. One thread each; the seed is 22. `bench sliding:1000000` measures some windows anew.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence

import duckdb
import numpy as np
import pyarrow as pa

from seustream.commands.bench import Measurement, measured_before
from seustream.compiler.pipeline import Options, compile_text
from seustream.engine.graph import GraphRun

TITLE = "sliding: grouped sliding aggregates by window, keys, order and rows a step"
LONG = True

WINDOWS, KEYS = (100, 10_000, 1_000_000), (1, 1_000)
STEPS = {64: 500, 1_024: 100, 8_192: 20, 65_536: 5}
"""By rows per step, the number of steps measured."""
ROUNDS, FILLED_BY, LATE = 5, 16_384, 1_000
PARTS = tuple(map(str, WINDOWS))
SHORT = {"PARTS": ("100",), "STEPS": {64: 20, 1_024: 5}}
HEAD = (
    "keys", "window", "order", "engine", "rows a step", "cpu us/row", "wall us/row", "worst cpu us/row",
    "beside Polars",
)  # fmt: skip
COLUMNS = ("s", "a", "lo", "hi")
COMPARED = 1e-9


def measure(parts: Sequence[str] = PARTS) -> Measurement:
    pa.set_cpu_count(1)
    rows = measured_before("sliding", HEAD, lambda row: str(row[1]) not in parts)
    for window in map(int, parts):
        for keys in KEYS:
            rows += _measured(keys, window)
    rows.sort(key=lambda row: (row[0], row[1]))
    conditions = "one thread each, seed 22, all results compared by value"
    return Measurement(HEAD, rows, {}, conditions)


def _measured(keys: int, window: int) -> list[tuple[object, ...]]:
    most = window + max(rows * steps for rows, steps in STEPS.items())
    data, truth = _data(most, keys), pa.table({})
    found = list[tuple[object, ...]]()
    for name, way in (("DuckDB", _duckdb), ("Polars", _polars)):
        answer, cpu, wall = _best(way, data, window)
        if truth.num_rows:
            _compare(answer, truth)
        else:
            truth = answer
        found.append((keys, window, "in order", name, "all", cpu, wall, None))
    for order in ("in order", "out of order"):
        for size, steps in STEPS.items():
            some = data.slice(0, window + size * steps)
            answer, cpu, worst, wall = _engine(some, window, size, order == "out of order")
            _compare(answer, truth)
            found.append((keys, window, order, "engine", size, cpu, wall, worst))
    theirs = next(float(str(row[5])) for row in found if row[3] == "Polars")
    return [(*row, float(str(row[5])) / theirs) for row in found]


def _data(count: int, keys: int) -> pa.Table:
    chance = np.random.default_rng([22, keys, count])
    return pa.table(
        {
            "ts": np.arange(count),
            "k": chance.integers(0, keys, count).astype(np.int32),
            "v": chance.normal(50, 10, count),
        }
    )


def _engine(
    data: pa.Table, window: int, size: int, disorder: bool
) -> tuple[pa.Table, float, float, float]:
    """Returns the results of the measured steps, and times per row: processor time in the best and in the
    worst round, and wall-clock time."""
    c = compile_text(
        "CREATE STREAM R (k int NOT NULL, v double precision NOT NULL); SELECT sum(v) AS s,"
        f" avg(v) AS a, min(v) AS lo, max(v) AS hi FROM R GROUP BY R.k WINDOW RANGE {window};",
        options=Options(devices=0),
    )
    run = GraphRun(c, slack=LATE if disorder else 0)
    if disorder:
        late = np.random.default_rng(23).integers(0, LATE, data.num_rows)
        data = data.take(np.argsort(np.arange(data.num_rows) + late, kind="stable"))
    for start in range(0, window, FILLED_BY):
        run.push("R", data.slice(start, min(FILLED_BY, window - start)))
        for _ in run.advance():
            pass
    found, rounds, wall = list[pa.Table](), [0.0] * ROUNDS, time.perf_counter()
    steps = (data.num_rows - window) // size
    for step in range(steps):
        begun = time.process_time()
        run.push("R", data.slice(window + step * size, size))
        found += [part for _, part in run.advance()]
        rounds[step * ROUNDS // steps] += time.process_time() - begun
    each = 1e6 / (data.num_rows - window)
    wall = (time.perf_counter() - wall) * each
    return pa.concat_tables(found), min(rounds) * ROUNDS * each, max(rounds) * ROUNDS * each, wall


def _best(
    way: Callable[[pa.Table, int], pa.Table], data: pa.Table, window: int
) -> tuple[pa.Table, float, float]:
    times = []
    for _ in range(2):
        cpu, wall = time.process_time(), time.perf_counter()
        found = way(data, window)
        times.append((time.process_time() - cpu, time.perf_counter() - wall))
    each = 1e6 / data.num_rows
    return found, min(cpu for cpu, _ in times) * each, min(wall for _, wall in times) * each


def _polars(data: pa.Table, window: int) -> pa.Table:
    os.environ.setdefault("POLARS_MAX_THREADS", "1")  # read when Polars is imported
    import polars as pl  # in a group of its own: the other benchmarks do without it

    v = pl.col("v")
    found = (
        pl.DataFrame(data)
        .rolling("ts", period=f"{window}i", group_by="k", closed="both")
        .agg(s=v.sum(), a=v.mean(), lo=v.min(), hi=v.max())
        .sort("ts")
        .rename({"ts": "ts_newest"})
    )
    return found.to_arrow()


def _duckdb(data: pa.Table, window: int) -> pa.Table:
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("r", data)
        return connection.sql(
            f"""SELECT ts AS ts_newest, sum(v) OVER w AS s, avg(v) OVER w AS a, min(v) OVER w AS lo, max(v) OVER w AS hi
                FROM r WINDOW w AS (PARTITION BY k ORDER BY ts
                RANGE BETWEEN {window} PRECEDING AND CURRENT ROW) ORDER BY ts"""
        ).to_arrow_table()


def _compare(found: pa.Table, truth: pa.Table) -> None:
    """Compares results with those of the same ticks."""
    ticks = np.asarray(found.column("ts_newest"))
    if len(np.unique(ticks)) != len(ticks) or not len(ticks):
        raise AssertionError(f"{len(ticks)} results of {len(np.unique(ticks))} ticks")
    for column in COLUMNS:
        ours, theirs = np.asarray(found.column(column)), np.asarray(truth.column(column))[ticks]
        if not np.allclose(ours, theirs, rtol=COMPARED):
            raise AssertionError(f"the results differ in {column}")
