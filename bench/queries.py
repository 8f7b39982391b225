"""Many queries of the engine that differ in a constant, from 1 to 1,000.

Streams R (k, v) and S (k, w) have 1,000 values of each column, uniform; the seed is 20. *Selective*: each tuple
of R interests one of a thousand queries (`v = 17`, `v` in a range of ten, a join with `v = 17`).
*Unselective*: every query wants nearly all (`v > 1`), so results grow with the queries, and results a second
say more than tuples. *Shared*: a join whose queries differ in a condition on both streams. Figures are
processor time of one run each; `beside one` is tuples a second over those of one such query. At the end: what
the compiler takes, and one statement more to a bridge without a device.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from seustream.commands.bench import FigureTable, Measurement
from seustream.compiler.pipeline import Options, compile_text
from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.bridge import Bridge
from seustream.cosim.bridge.limits import Limits
from seustream.engine.graph import GraphRun, drive

TITLE = "queries: many of them that differ in a constant, 1 to 1,000"
LONG = True

STREAMS = "CREATE STREAM R (k int, v int); CREATE STREAM S (k int, w int);\n"
JOIN = "SELECT R.v, S.w FROM R, S WHERE R.k = S.k AND {} WINDOW ROWS 1000"
WORK = {
    "equality, selective": ("SELECT v FROM R WHERE v = {n}", 100_000),
    "range, selective": ("SELECT v FROM R WHERE v >= {n} AND v < {n} + 10", 100_000),
    "threshold, unselective": ("SELECT v FROM R WHERE v > {n} - 999", 8_000),
    "join, selective": (JOIN.format("R.v = {n}"), 50_000),
    "join, unselective": (JOIN.format("R.v > {n} - 999"), 4_000),
    "join, shared factor": (JOIN.format("R.v + S.w > 1900 + {n} / 10"), 50_000),
}
"""By name a query, n its number, and tuples of each stream; of the unselective ones few, for a
thousand give a thousand times as many results."""
COUNTS = (1, 64, 1000)


def _queries(form: str, count: int) -> str:
    texts = (form.replace("{n}", str(number)) for number in range(count))
    return "".join(f"REGISTER QUERY q{n} AS {text};\n" for n, text in enumerate(texts))


def measure() -> Measurement:
    rows: list[tuple[object, ...]] = []
    ratios = {}
    for name, (form, tuples) in WORK.items():
        chance = np.random.default_rng(20)
        tables = {
            stream: pa.table(
                [np.arange(tuples), *(chance.integers(0, 1000, tuples) for _ in range(2))],
                names=["ts", "k", column],
            )
            for stream, column in (("R", "v"), ("S", "w"))[: 2 if "JOIN" in name.upper() else 1]
        }
        one = 0.0
        for count in COUNTS:
            c = compile_text(STREAMS + _queries(form, count), options=Options(devices=0))
            list(drive(GraphRun(c), {s: some.slice(0, tuples // 10) for s, some in tables.items()}))
            run, results = GraphRun(c), 0
            begun = time.process_time()
            for _, some in drive(run, tables):
                results += some.num_rows
            took = time.process_time() - begun
            speed = tuples * len(tables) / took
            one = one or speed
            rows.append((name, count, results, round(speed), round(results / took), speed / one))
            ratios[f"{name}: {count} beside one"] = speed / one
    return Measurement(
        ("work", "queries", "results", "tuples/s", "results/s", "beside one"),
        rows,
        ratios,
        "processor time, one thread, slices of 8,192, of 65,536 for 64 selections or more, seed 20",
        (_changes(),),
    )


def _changes() -> FigureTable:
    """Returns what a thousand queries cost before the first tuple, and the next one."""
    form, rows = WORK["join, selective"][0], []
    begun = time.process_time()
    compile_text(STREAMS + _queries(form, 1000), options=Options(devices=0))
    rows.append(("compile 1,000", 1000 * (time.process_time() - begun)))
    with tempfile.TemporaryDirectory() as folder:
        limits = Limits(queries=2000, query_text=1 << 22)
        bridge = Bridge((), Path(folder), "engine", limits)
        catalogue = bridge.registry()
        catalogue.statement(p.Statement(STREAMS + _queries(form, 1000)))
        for what, text in (
            ("register one more", "REGISTER QUERY more AS " + form.replace("{n}", "77")),
            ("drop it", "DROP QUERY more"),
            ("drop the third", "DROP QUERY q3"),
        ):
            begun = time.process_time()
            catalogue.statement(p.Statement(text))
            rows.append((what, 1000 * (time.process_time() - begun)))
        bridge.close()
    return FigureTable("statements, processor time", ("what", "ms"), rows)
