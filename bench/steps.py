"""The cost of a step: the same queries with 1 to 262,144 rows at a time, from push to results.

Streams have one row per tick of 10 ms, values are uniform, and the seed is 21. Each query first
takes the rows of a tenth of its steps. The steps are then measured in five rounds: processor time
per step in the best and in the worst round, and per row in the best; the ratio of the latter to the
cost of a row in the largest steps; and the wall-clock time of the median step and of the slowest
hundredth. `bench steps:join,pattern` measures some of the queries anew.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from seustream.commands.bench import Measurement, measured_before
from seustream.compiler.pipeline import Options, compile_text
from seustream.engine.assembly import streams_read
from seustream.engine.graph import GraphRun

TITLE = "steps: what a step of 1 to 262,144 rows costs, by query"
LONG = True

STEPS = {1: 2_000, 64: 500, 1_024: 50, 4_096: 20, 262_144: 5}
"""By rows per step, the number of steps measured."""
ROUNDS = 5

STREAMS = """CREATE STREAM E (type varchar, id int, v double, k int);
CREATE STREAM R (k int, b int); CREATE STREAM S (k int, c int);
"""
_SEQUENCE = "PATTERN A; B; C; D FROM E WHERE {} WITHIN 120 s RETURN a.id"
WORK = {
    "filter": "SELECT id, v FROM E WHERE v > 0.5",
    "join": "SELECT R.b, S.c FROM R, S WHERE R.k = S.k WINDOW ROWS 2000",
    "group": "SELECT k, sum(v), min(v), max(v) FROM E GROUP BY k WINDOW ROWS 10000",
    "tumble": "SELECT k, sum(v), window_end FROM E GROUP BY k, TUMBLE(ts, INTERVAL '1' SECOND)",
    "tumble changes": "SELECT k, sum(v), window_end FROM E GROUP BY k, TUMBLE(ts, INTERVAL '1' SECOND) EMIT CHANGES",
    "hop": "SELECT k, sum(v), window_end FROM E GROUP BY k, HOP(ts, INTERVAL '1' SECOND, INTERVAL '10' SECOND)",
    "session": "SELECT k, sum(v), window_end FROM E GROUP BY k, SESSION(ts, INTERVAL '1' SECOND)",
    "pattern": _SEQUENCE.format("a.id = b.id AND a.id = c.id AND a.id = d.id"),
    "ordered pattern": _SEQUENCE.format(
        "a.v > 0.9 AND b.v > 1.01 * a.v AND c.id = b.id AND d.id = c.id"
    ),
    "NEXT group": "PATTERN A a; B+ b; C c FROM E WHERE b[i].v > b[i-1].v AND c.v > a.v WITHIN 5 s"
    " USING NEXT RETURN a.id, count(b) AS n, c.id AS z",
    "STRICT group": "PATTERN ANY a; ANY+ b; ANY c FROM E PARTITION BY k WHERE a.v > 0.9 AND b[1].v < a.v"
    " AND b[i].v > b[i-1].v AND c.v < last(b).v WITHIN 60 s USING STRICT RETURN a.id, count(b) AS n",
    "ANY SUBSETS": "PATTERN A a; B+ b; C c FROM E PARTITION BY k WITHIN 60 s USING ANY SUBSETS"
    " RETURN a.id, count(b) AS n, c.id AS z",
    "MATCH_RECOGNIZE": "SELECT * FROM E MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES LAST(u.v) AS l"
    " PATTERN (s d+ u+) WITHIN INTERVAL '60' SECOND DEFINE d AS d.v < PREV(d.v), u AS u.v > PREV(u.v))",
}
PARTS = tuple(WORK)
HEAD = (
    "query", "rows a step", "results", "best cpu us/step", "worst", "best cpu us/row", "x largest",
    "p50 us", "p99 us",
)  # fmt: skip


def _tables(count: int) -> dict[str, pa.Table]:
    chance, ts = np.random.default_rng(21), np.arange(count) * 10

    def column(below: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
        return chance.integers(0, below, count, np.int32)

    kinds = pa.array([*"ABCD", *(f"T{number}" for number in range(4, 20))])
    events = pa.table(
        {
            "ts": ts,
            "type": kinds.take(pa.array(column(20))),
            "id": column(1_000),
            "v": chance.random(count),
            "k": column(100),
        }
    )
    two = {
        name: pa.table({"ts": ts, "k": column(2_000), other: column(1_000)})
        for name, other in (("R", "b"), ("S", "c"))
    }
    return {"E": events, **two}


def measure(parts: Sequence[str] = PARTS) -> Measurement:
    pa.set_cpu_count(1)
    rows = measured_before("steps", HEAD, lambda row: row[0] not in parts)
    for name in parts:
        found = {size: _steps(WORK[name], size, steps) for size, steps in STEPS.items()}
        streams = 2 if "R, S" in WORK[name] else 1
        largest = found[max(STEPS)][1] / max(STEPS)
        for size, (results, best, worst, *walls) in found.items():
            times = best / size / streams, best / size / largest
            rows.append((name, size, results, best, worst, *times, *walls))
    rows.sort(key=lambda row: PARTS.index(str(row[0])))
    return Measurement(HEAD, rows, {}, "one thread, the engine alone, seed 21")


def _steps(query: str, size: int, steps: int) -> tuple[int, float, float, float, float]:
    """Returns the results, the processor time of a step in the best and the worst round, and the
    wall-clock times."""
    c = compile_text(f"{STREAMS}REGISTER QUERY q AS {query};", options=Options(devices=0))
    run, before, results = GraphRun(c), max(steps // 10, 2_000 // size), 0
    read = streams_read(c.program)
    tables = {
        stream: rows for stream, rows in _tables((steps + before) * size).items() if stream in read
    }
    rounds, walls = [0.0] * ROUNDS, []
    for step in range(before + steps):
        begun, wall = time.process_time(), time.perf_counter()
        for stream, some in tables.items():
            run.push(stream, some.slice(step * size, size))
        found = sum(part.num_rows for _, part in run.advance())
        if step >= before:
            rounds[(step - before) * ROUNDS // steps] += time.process_time() - begun
            results += found
            walls.append(time.perf_counter() - wall)
    each = 1e6 * ROUNDS / steps
    p50, p99 = np.quantile(walls, (0.5, 0.99)) * 1e6
    return results, min(rounds) * each, max(rounds) * each, float(p50), float(p99)
