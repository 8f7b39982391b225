"""Joins of each kind in the engine, beside the inner one on the same rows.

Streams R and S have one tuple per tick each. Keys are uniform, from as many values as give one match
per tuple, a hundredth of one, or a hundred; with `b` and `c` equal as an alternative; or with a large
window that is stepped through 64 rows a stream at a time. The engine's own join runs INNER; the
operator for trees of joins runs all others. The cost of that operator shows in the LEFT JOIN with a
condition that keeps only the matches. Figures are processor time of one run after a warm-up on a tenth
of the tuples; seed 20.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from seustream.commands.bench import Measurement
from seustream.compiler.pipeline import Compilation, Options, compile_text
from seustream.engine.graph import GraphRun, drive

TITLE = "outer: LEFT, FULL, SEMI and ANTI beside INNER on the same rows"
LONG = True


class Work(NamedTuple):
    """Tuples a stream, ticks of the window, values of the key, rows of a stream in a step (None: in
    slices of the engine), and the condition."""

    count: int
    window: int
    keys: int
    step: int | None = None
    on: str = "R.a = S.a"


WORKS = {
    "a match a tuple": Work(200_000, 2_000, 2_000),
    "few match": Work(200_000, 2_000, 200_000),
    "a hundred match": Work(20_000, 2_000, 20),
    "either of two": Work(20_000, 2_000, 200_000, None, "(R.a = S.a OR R.b = S.c)"),
    "large window, small steps": Work(50_000, 20_000, 20_000, 64),
}
JOIN = "SELECT R.b, S.c FROM R {} JOIN S ON {{}}"
KINDS = {
    "INNER": JOIN.format("INNER"),
    "INNER in a tree": f"{JOIN.format('LEFT')} WHERE S.c IS NOT NULL",
    "LEFT": JOIN.format("LEFT"),
    "FULL": JOIN.format("FULL"),
    "SEMI": "SELECT R.b FROM R LEFT SEMI JOIN S ON {}",
    "ANTI": "SELECT R.b FROM R LEFT ANTI JOIN S ON {}",
}


def _results(c: Compilation, tables: dict[str, pa.Table], count: int, step: int | None) -> int:
    """Runs the query over the first tuples; returns the number of its results."""
    run, some = GraphRun(c), {name: table.slice(0, count) for name, table in tables.items()}
    if step is None:
        return sum(found.num_rows for _, found in drive(run, some))
    results = 0
    for begin in range(0, count, step):
        for name, table in some.items():
            run.push(name, table.slice(begin, step))
        results += sum(found.num_rows for _, found in run.advance())
    return results + sum(found.num_rows for _, found in run.finish())


def measure() -> Measurement:
    rows: list[tuple[object, ...]] = []
    ratios = {}
    for name, work in WORKS.items():
        chance = np.random.default_rng(20)
        tables = {
            stream: pa.table(
                [
                    np.arange(work.count),
                    *(chance.integers(0, most, work.count) for most in (work.keys, 1_000)),
                ],
                names=["ts", "a", column],
            )
            for stream, column in (("R", "b"), ("S", "c"))
        }
        inner = 0.0
        for kind, query in KINDS.items():
            text = "CREATE STREAM R (a int, b int); CREATE STREAM S (a int, c int);"
            text += f"{query.format(work.on)} WINDOW RANGE {work.window}"
            c = compile_text(text, options=Options(devices=0))
            _results(c, tables, work.count // 10, work.step)
            begun = time.process_time()
            results = _results(c, tables, work.count, work.step)
            took = time.process_time() - begun
            inner = inner or took
            rows.append((name, kind, results, took / (2 * work.count) * 1e6, took / inner))
            ratios[f"{kind} beside INNER, {name}"] = took / inner
    return Measurement(
        ("work", "join", "results", "cpu us/tuple", "beside INNER"),
        rows,
        ratios,
        "one thread, slices of 8,192, 20,000 to 200,000 tuples a stream, seed 20",
    )
