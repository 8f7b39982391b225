"""Joins of each kind in the engine, beside the inner one on the same rows.

Streams R and S have one tuple per tick each, and a window of 2,000 ticks. Keys are uniform, from as
many values as give one match per tuple, or from a hundred times as many. The engine's own join runs
INNER; the operator for trees of joins runs all others. The cost of that operator shows in the LEFT
JOIN with a condition that keeps only the matches. Figures are processor time of one run after a
warm-up on a tenth of the tuples; seed 20.
"""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa

from seustream.commands.bench import Measurement
from seustream.compiler.pipeline import Options, compile_text
from seustream.engine.graph import GraphRun, drive

TITLE = "outer: LEFT, FULL, SEMI and ANTI beside INNER on the same rows"
LONG = True

COUNT, WINDOW = 200_000, 2_000
KEYS = {"a match a tuple": WINDOW, "few match": 100 * WINDOW}
JOIN = "SELECT R.b, S.c FROM R {} JOIN S ON R.a = S.a"
KINDS = {
    "INNER": JOIN.format("INNER"),
    "INNER in a tree": "SELECT R.b, S.c FROM R LEFT JOIN S ON R.a = S.a WHERE S.c IS NOT NULL",
    "LEFT": JOIN.format("LEFT"),
    "FULL": JOIN.format("FULL"),
    "SEMI": "SELECT R.b FROM R LEFT SEMI JOIN S ON R.a = S.a",
    "ANTI": "SELECT R.b FROM R LEFT ANTI JOIN S ON R.a = S.a",
}


def measure() -> Measurement:
    rows: list[tuple[object, ...]] = []
    ratios = {}
    for work, keys in KEYS.items():
        chance = np.random.default_rng(20)
        tables = {
            stream: pa.table(
                [np.arange(COUNT), *(chance.integers(0, most, COUNT) for most in (keys, 1000))],
                names=["ts", "a", column],
            )
            for stream, column in (("R", "b"), ("S", "c"))
        }
        inner = 0.0
        for kind, query in KINDS.items():
            text = "CREATE STREAM R (a int, b int); CREATE STREAM S (a int, c int);"
            c = compile_text(f"{text} {query} WINDOW RANGE {WINDOW}", options=Options(devices=0))
            list(
                drive(GraphRun(c), {n: table.slice(0, COUNT // 10) for n, table in tables.items()})
            )
            run, begun = GraphRun(c), time.process_time()
            results = sum(some.num_rows for _, some in drive(run, tables))
            took = time.process_time() - begun
            inner = inner or took
            rows.append((work, kind, results, took / (2 * COUNT) * 1e6, took / inner))
            ratios[f"{kind} beside INNER, {work}"] = took / inner
    return Measurement(
        ("work", "join", "results", "cpu us/tuple", "beside INNER"),
        rows,
        ratios,
        f"one thread, slices of 8,192, {COUNT:,} tuples a stream, seed 20",
    )
