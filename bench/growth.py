"""What a step costs beside what is kept: small steps of each kind of query, over windows of 10,000 to a
million rows.

Streams have one row per tick of 10 ms. Keys are uniform, from half as many values as the window has rows, so
that a row has two matches, or is one of two in its group. Before the steps come as many rows as the window
has, in steps of 16,384. The figures are the processor time of the mean of 200 steps of 64 rows a stream, and
that of the slowest beside the largest window. A query that keeps nothing would have the same mean everywhere.
`bench growth:left,session` measures some queries anew.
"""

from __future__ import annotations

import time
from collections.abc import Container, Mapping, Sequence

import numpy as np
import pyarrow as pa

from seustream.commands.bench import Measurement, measured_before
from seustream.compiler.pipeline import Compilation, Options, compile_text
from seustream.engine.assembly import streams_read
from seustream.engine.graph import GraphRun

TITLE = "growth: what a step of 64 rows costs beside 10,000 to 1,000,000 kept rows, by query"
LONG = True

KEPT = (10_000, 100_000, 1_000_000)
STEPS, ROWS, AT_ONCE = 200, 64, 16_384

STREAMS = """CREATE STREAM R (k int, b int); CREATE STREAM S (k int, c int);
"""
_ON = "ON R.k = S.k WINDOW RANGE {s} s"
WORK = {
    "join": f"SELECT b, c FROM R JOIN S {_ON}",
    "left": f"SELECT b, c FROM R LEFT JOIN S {_ON}",
    "exists": f"SELECT b FROM R LEFT SEMI JOIN S {_ON}",
    "partition": "SELECT b, c FROM R JOIN S ON R.k = S.k WINDOW PARTITION BY k ROWS 2",
    "asof": "SELECT b, c FROM R ASOF JOIN S ON R.k = S.k AND R.ts >= S.ts AND R.ts - S.ts < {s}000",
    "join changes": f"SELECT b, c FROM R JOIN S {_ON} EMIT CHANGES",
    "left changes": f"SELECT b, c FROM R LEFT JOIN S {_ON} EMIT CHANGES",
    "group": "SELECT k, sum(b), min(b) FROM R GROUP BY k WINDOW RANGE {s} s",
    "group changes": "SELECT k, sum(b), min(b) FROM R GROUP BY k WINDOW RANGE {s} s EMIT CHANGES",
    "tumble": "SELECT k, sum(b) FROM R GROUP BY k, TUMBLE(ts, INTERVAL '{s}' SECOND)",
    "tumble changes": "SELECT k, sum(b) FROM R GROUP BY k, TUMBLE(ts, INTERVAL '{s}' SECOND) EMIT CHANGES",
    "hop": "SELECT k, sum(b) FROM R GROUP BY k, HOP(ts, INTERVAL '{s}00' MS, INTERVAL '{s}' SECOND)",
    "session": "SELECT k, sum(b) FROM R GROUP BY k, SESSION(ts, INTERVAL '{s}' SECOND)",
    "over": "SELECT k, sum(b) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '{s}' SECOND PRECEDING"
    " AND CURRENT ROW) FROM R",
    "best three": "SELECT k, b FROM R QUALIFY row_number() OVER (PARTITION BY k ORDER BY b DESC) <= 3 EMIT CHANGES",
    "distinct": "SELECT DISTINCT k FROM R WINDOW RANGE {s} s",
    "MATCH_RECOGNIZE": "SELECT * FROM R MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES LAST(u.b) AS l"
    " PATTERN (a u u) WITHIN INTERVAL '{s}' SECOND DEFINE u AS u.b > PREV(u.b))",
}
PARTS = tuple(WORK)
SHORT = {"PARTS": ("join", "left", "session")}
HEAD = (
    "query", *(f"cpu us/step beside {kept:,}" for kept in KEPT), "most beside least",
    f"slowest beside {KEPT[-1]:,}",
)  # fmt: skip


def measure(parts: Sequence[str] = PARTS) -> Measurement:
    pa.set_cpu_count(1)
    rows = measured_before("growth", HEAD, lambda row: row[0] not in parts)
    for name in parts:
        times = [_steps(WORK[name], kept) for kept in KEPT]
        mean = [float(np.mean(one)) for one in times]
        rows.append((name, *mean, max(mean) / min(mean), max(times[-1])))
    rows.sort(key=lambda row: PARTS.index(str(row[0])))
    return Measurement(HEAD, rows, {}, "one thread, the engine alone, seed 23")


def compiled(query: str, kept: int) -> Compilation:
    """Compiles a query over windows of so many rows."""
    text = f"{STREAMS}REGISTER QUERY q AS {query.format(s=kept // 100)};"
    return compile_text(text, options=Options(devices=0))


def rows_of(
    read: Container[str], came: int, size: int, kept: int, chance: np.random.Generator
) -> dict[str, pa.Table]:
    """Returns the next rows of the streams that a query reads."""
    return {
        stream: pa.table(
            {
                "ts": (came + np.arange(size)) * 10,
                "k": chance.integers(0, kept // 2, size, np.int32),
                column: chance.integers(0, 1_000, size, np.int32),
            }
        )
        for stream, column in (("R", "b"), ("S", "c"))
        if stream in read
    }


def step(run: GraphRun, tables: Mapping[str, pa.Table]) -> float:
    """Takes rows, and drops the results; returns the processor time."""
    begun = time.process_time()
    for stream, rows in tables.items():
        run.push(stream, rows)
    for _ in run.advance():
        pass
    return time.process_time() - begun


def _steps(query: str, kept: int) -> list[float]:
    """Returns the processor time of each step of few rows, in microseconds."""
    c = compiled(query, kept)
    run, read, chance = GraphRun(c), streams_read(c.program), np.random.default_rng(23)
    came, times = 0, list[float]()
    sizes = [AT_ONCE] * (kept // AT_ONCE) + [kept % AT_ONCE] + [ROWS] * STEPS
    for size in sizes:
        times.append(step(run, rows_of(read, came, size, kept, chance)))
        came += size
    return [1e6 * took for took in times[-STEPS:]]
