"""The engines that are Python packages, each run in a process of its own.

    python -m bench.peer_engines.python ENGINE FOLDER WORK WINDOW

Reads the streams from Arrow files in the folder. Runs once on a tenth of the rows, so that what is loaded late is
loaded, and once on all. Prints, as JSON: the version, the number of results, their digest, and the seconds of
processor time and of the clock, from rows in memory (for Pathway from CSV files) to results in memory.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import resource
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather as feather

from bench.peer_engines import STEP, Columns, columns, digest, transposed

Streams = Mapping[str, pa.Table]
Run = Callable[[], Callable[[], Columns]]
"""What is timed; it returns what gives its results in the form in which they are compared."""

_MEMORY = 12 << 30
"""What an engine may take; without a limit, one that keeps all pairs of a window could take the machine's."""
_ONE = ("POLARS_MAX_THREADS", "PATHWAY_THREADS", "OMP_NUM_THREADS")


def _bucketed(window: int) -> str:
    """Returns the tables of the join. Rows within a window lie in the same bucket of its size, or in
    two adjacent ones."""
    size = window + 1
    near = f"[ts // {size} - 1, ts // {size}, ts // {size} + 1]"
    return (
        f"(SELECT *, ts // {size} AS bucket FROM R) R,"
        f" (SELECT *, unnest({near}) AS bucket FROM S) S"
    )


def query(work: str, window: int) -> str:
    """Returns the work in the SQL of DuckDB; DataFusion has `/` for `//`."""
    if work == "sum":
        return (
            "SELECT ts, a, sum(b) OVER (PARTITION BY a ORDER BY ts"
            f" RANGE BETWEEN {window} PRECEDING AND CURRENT ROW) AS s FROM R"
        )
    return (
        "SELECT R.a, b, c, least(R.ts, S.ts) AS oldest, greatest(R.ts, S.ts) AS newest"
        f" FROM {_bucketed(window)} WHERE R.a = S.a AND R.bucket = S.bucket"
        f" AND abs(R.ts - S.ts) <= {window}"
    )


def duckdb(work: str, streams: Streams, window: int) -> Run:
    import duckdb

    def run() -> Callable[[], Columns]:
        with duckdb.connect(config={"threads": 1}) as connection:
            for name, rows in streams.items():
                connection.register(name, rows)
            found = connection.sql(query(work, window)).to_arrow_table()
        return lambda: columns(found, work)

    return run


def datafusion(work: str, streams: Streams, window: int) -> Run:
    from datafusion import SessionConfig, SessionContext

    def run() -> Callable[[], Columns]:
        context = SessionContext(SessionConfig().with_target_partitions(1))
        for name, rows in streams.items():
            context.from_arrow(rows, name.lower())
        found = context.sql(query(work, window).replace("//", "/")).to_arrow_table()
        return lambda: columns(found, work)

    return run


def polars(work: str, streams: Streams, window: int) -> Run:
    import polars as pl

    def joined() -> Any:
        bucket = pl.col("ts") // (window + 1)
        r, s = (pl.from_arrow(streams[name]).lazy() for name in "RS")
        near = pl.concat([s.with_columns(bucket=bucket + k) for k in (-1, 0, 1)])
        both = r.with_columns(bucket=bucket).join(near, on=["a", "bucket"])
        within = both.filter((pl.col("ts") - pl.col("ts_right")).abs() <= window)
        times = pl.col("ts"), pl.col("ts_right")
        oldest, newest = pl.min_horizontal(*times), pl.max_horizontal(*times)
        return within.select("a", "b", "c", oldest=oldest, newest=newest).collect()

    def summed() -> Any:
        frame = pl.from_arrow(streams["R"])
        rolling = frame.rolling("ts", period=f"{window}i", group_by="a", closed="both")
        return rolling.agg(s=pl.col("b").sum())

    def run() -> Callable[[], Columns]:
        found = (joined if work == "join" else summed)().to_arrow()
        return lambda: columns(found, work)

    return run


_OURS = {
    "join": "CREATE STREAM R (a int NOT NULL, b int NOT NULL); CREATE STREAM S (a int NOT NULL, c int NOT NULL);"
    " SELECT R.a, R.b, S.c FROM R, S WHERE R.a = S.a WINDOW RANGE {}",
    "sum": "CREATE STREAM R (a int NOT NULL, b int NOT NULL); SELECT a, sum(b) AS s FROM R GROUP BY a WINDOW RANGE {}",
}


def _named(found: pa.Table, work: str) -> Columns:
    last = {"join": ["oldest", "newest"], "sum": ["oldest", "ts"]}[work]
    return columns(found.rename_columns([*found.column_names[:-2], *last]), work)


def seustream(work: str, streams: Streams, window: int) -> Run:
    import seustream as ss

    def run() -> Callable[[], Columns]:
        found = ss.run(_OURS[work].format(window), streams=streams)["q0"].arrow()
        return lambda: _named(found, work)

    return run


def steps(work: str, streams: Streams, window: int) -> Run:
    import seustream as ss

    def run() -> Callable[[], Columns]:
        parts = []
        with ss.connect() as connection:
            connection.sql(_OURS[work].format(window))
            for start in range(0, streams["R"].num_rows, STEP):
                for name, rows in streams.items():
                    connection.push(name, rows.slice(start, STEP))
                    connection.watermark(name, start + STEP)
                parts += [rows.arrow() for _, rows in connection.results()]
            parts += [rows.arrow() for _, rows in connection.finish()]
        return lambda: _named(pa.concat_tables(parts), work)

    return run


def pathway(work: str, streams: Streams, window: int) -> Run:
    import pathway as pw

    folder = Path(tempfile.mkdtemp(dir=sys.argv[2]))
    for name, rows in streams.items():
        rows.to_pandas().to_csv(folder / f"{name}.csv", index=False)

    def read(name: str) -> Any:
        schema = pw.schema_from_types(**dict.fromkeys(streams[name].column_names, int))
        return pw.io.csv.read(str(folder / f"{name}.csv"), schema=schema, mode="static")

    def run() -> Callable[[], Columns]:
        pw.internals.parse_graph.G.clear()
        found: list[dict[str, int]] = []
        r = read("R")
        if work == "join":
            s, within = read("S"), pw.temporal.interval(-window, window)
            both = r.interval_join(s, r.ts, s.ts, within, r.a == s.a)
            result = both.select(r.a, r.b, s.c, ts=r.ts, other=s.ts)
        else:
            # Its windows over intervals would give a result for each row and each key.
            s, behind = r.copy(), pw.temporal.interval(-window, 0)
            pairs = r.interval_join(s, r.ts, s.ts, behind, r.a == s.a).select(r.ts, r.a, s.b)
            result = pairs.groupby(pairs.ts, pairs.a).reduce(
                pairs.ts, pairs.a, s=pw.reducers.sum(pairs.b)
            )
        pw.io.subscribe(result, lambda key, row, time, is_addition: found.append(row))
        pw.run(monitoring_level=pw.MonitoringLevel.NONE)
        return lambda: transposed(map(shaped, found), work)

    def shaped(row: dict[str, int]) -> tuple[int, ...]:
        if work == "sum":
            return row["ts"], row["a"], row["s"]
        times = row["ts"], row["other"]
        return row["a"], row["b"], row["c"], min(times), max(times)

    return run


def bytewax(work: str, streams: Streams, window: int) -> Run:
    import bytewax.operators as op
    from bytewax.dataflow import Dataflow
    from bytewax.testing import TestingSink, TestingSource, run_main

    # One input with the rows of both streams in their order, as a topic would have them.
    lists = [list(zip(*rows.to_pydict().values(), strict=True)) for rows in streams.values()]
    given = [
        (str(row[1]), (side, row))
        for tick in zip(*lists, strict=True)
        for side, row in enumerate(tick)
    ]

    def joined(state: tuple[deque[Any], ...] | None, value: tuple[int, Any]) -> Any:
        state = state or (deque(), deque())
        side, row = value
        (ts, a, own), there = row, state[1 - side]
        while there and there[0][0] < ts - window:
            there.popleft()
        state[side].append(row)
        if side == 0:
            found = [(a, own, c, other, ts) for other, _, c in there]
        else:
            found = [(a, b, own, other, ts) for other, _, b in there]
        return state, found

    def summed(state: list[Any] | None, value: tuple[int, Any]) -> Any:
        live, total = state or (deque(), 0)
        _, (ts, a, b) = value
        while live and live[0][0] < ts - window:
            total -= live.popleft()[1]
        live.append((ts, b))
        total += b
        return (live, total), [(ts, a, total)]

    def run() -> Callable[[], Columns]:
        found: list[Any] = []
        flow = Dataflow("peers")
        rows = op.input("rows", flow, TestingSource(given, STEP))
        results = op.stateful_flat_map("work", rows, joined if work == "join" else summed)
        op.output("results", results, TestingSink(found))
        run_main(flow)
        return lambda: transposed((row for _, row in found), work)

    return run


ENGINES: dict[str, Callable[[str, Streams, int], Run]] = {
    "seustream": seustream, "steps": steps, "duckdb": duckdb, "datafusion": datafusion, "polars": polars,
    "pathway": pathway, "bytewax": bytewax,
}  # fmt: skip
PACKAGES = {"steps": "seustream"}
"""The package of an engine, if it has another name."""


def main() -> None:
    engine, folder, work, window = sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
    os.environ.update(dict.fromkeys(_ONE, "1"))  # read when a package is imported
    pa.set_cpu_count(1)
    streams = {path.stem: feather.read_table(path) for path in sorted(folder.glob("*.arrow"))}
    tenth = {name: rows.slice(0, rows.num_rows // 10) for name, rows in streams.items()}
    ENGINES[engine](work, tenth, window)()
    run = ENGINES[engine](work, streams, window)
    cpu, clock = time.process_time(), time.perf_counter()
    found = run()
    cpu, clock = time.process_time() - cpu, time.perf_counter() - clock
    results = found()
    version = importlib.metadata.version(PACKAGES.get(engine, engine))
    said = (version, len(results[0]), digest(results), cpu, clock)
    print(json.dumps(said))


if __name__ == "__main__":
    main()
