"""Many queries of the engine that differ in a constant, from 1 to 1,000.

Streams R (k, v) and S (k, w) have 1,000 values in each column, uniform; the seed is 20.
*Selective*: each tuple of R matters to one of a thousand queries (`v = 17`, `v` in a range of ten,
a join with `v = 17`). *Half*: each query wants a different part of the tuples, half of them on
average. *All*: every query wants nearly every tuple. *Shared*: a join whose queries differ in a
condition on both streams. *Groups* count by key in sliding windows, or since the beginning;
*periods* in windows that follow one another.

`tuples beside one` is the tuples per second over those of a single such query, `results beside one`
the same for results: where a tuple has hundreds of results, these make up the cost. Figures are
processor time, the best of five runs, alternating between the counts, after a first run and a
garbage collection: compiling leaves so many objects that Python's next full collection, in the
first run or a later one, would take longer than the run. The last table has the time of the
compiler, and of one more statement to a bridge without a device.
"""

from __future__ import annotations

import gc
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from seustream.commands.bench import FigureTable, Measurement
from seustream.compiler.pipeline import Compilation, Options, compile_text
from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.bridge import Bridge
from seustream.cosim.bridge.limits import Limits
from seustream.cosim.bridge.registry import Catalogue
from seustream.engine.graph import GraphRun, drive

TITLE = "queries: many of them that differ in a constant, 1 to 1,000"
LONG = True

STREAMS = "CREATE STREAM R (k int, v int); CREATE STREAM S (k int, w int);\n"
JOIN = "SELECT R.v, S.w FROM R, S WHERE R.k = S.k AND {} WINDOW ROWS 1000"
GROUPS = "SELECT k, count(*) AS n, sum(v) AS s FROM R WHERE {} GROUP BY k WINDOW {}"
WORK = {
    "equality, selective": ("SELECT v FROM R WHERE v = {n}", 100_000),
    "range, selective": ("SELECT v FROM R WHERE v >= {n} AND v < {n} + 10", 100_000),
    "threshold, half": ("SELECT v FROM R WHERE v >= {spread}", 8_000),
    "threshold, all": ("SELECT v FROM R WHERE v > {n} - 999", 8_000),
    "join, selective": (JOIN.format("R.v = {n}"), 50_000),
    "join, all": (JOIN.format("R.v > {n} - 999"), 4_000),
    "groups, selective": (GROUPS.format("v = {n}", "RANGE 1000"), 100_000),
    "groups so far, selective": (GROUPS.format("v = {n}", "UNBOUNDED"), 100_000),
    "groups, half": (GROUPS.format("v >= {spread}", "RANGE 1000"), 4_000),
    "groups of a join, selective": (
        "SELECT R.k, count(*) AS n FROM R, S WHERE R.k = S.k AND R.v = {n} GROUP BY R.k WINDOW ROWS 1000",
        50_000,
    ),
    "periods, selective": (
        "SELECT k, count(*) AS n FROM TUMBLE(TABLE R, DESCRIPTOR(ts), 1000) WHERE v = {n}"
        " GROUP BY window_start, window_end, k",
        100_000,
    ),
    "join, shared factor": (JOIN.format("R.v + S.w > 1900 + {n} / 10"), 50_000),
}
"""By name, a query and the number of tuples of each stream. `n` is the query's number; `spread` is
too, but in an order that begins in the middle. Where a thousand queries give hundreds of results
per tuple, there are few tuples."""
COUNTS = (1, 64, 1000)
RUNS = 5


def _queries(form: str, count: int) -> str:
    texts = (
        form.replace("{n}", str(number)).replace("{spread}", str((500 + 611 * number) % 1000))
        for number in range(count)
    )
    return "".join(f"REGISTER QUERY q{n} AS {text};\n" for n, text in enumerate(texts))


def measure() -> Measurement:
    rows: list[tuple[object, ...]] = []
    ratios = {}
    for name, (form, tuples) in WORK.items():
        tables = _tables(("R", "S") if "JOIN" in name.upper() else ("R",), tuples)
        compiled = {
            count: compile_text(STREAMS + _queries(form, count), options=Options(devices=0))
            for count in COUNTS
        }
        for c in compiled.values():
            _run(c, tables)
        best: dict[int, tuple[float, int]] = {}
        for _ in range(RUNS):
            for count, c in compiled.items():
                gc.collect()
                found = _run(c, tables)
                best[count] = min(found, best.get(count, found))
        alone = best[1]
        for count, (took, results) in best.items():
            by_tuple, by_result = alone[0] / took, alone[0] / took * results / alone[1]
            speeds = round(tuples * len(tables) / took), round(results / took)
            rows.append((name, count, results, *speeds, by_tuple, by_result))
            ratios[f"{name}: tuples/s of {count} beside one"] = by_tuple
            ratios[f"{name}: results/s of {count} beside one"] = by_result
    head = ("work", "queries", "results", "tuples/s", "results/s")
    return Measurement(
        (*head, "tuples beside one", "results beside one"),
        rows,
        ratios,
        f"processor time, the best of {RUNS} alternated runs after a first, one thread, slices of 8,192, of 65,536 for 64"
        " selections or more, seed 20",
        (_changes(),),
    )


def _tables(names: Sequence[str], tuples: int) -> dict[str, pa.Table]:
    chance = np.random.default_rng(20)
    return {
        stream: pa.table(
            [np.arange(tuples), *(chance.integers(0, 1000, tuples) for _ in range(2))],
            names=["ts", "k", column],
        )
        for stream, column in zip(names, "vw", strict=False)
    }


def _run(c: Compilation, tables: dict[str, pa.Table]) -> tuple[float, int]:
    """Returns the seconds that the tuples of one run take, and the number of its results."""
    run, results = GraphRun(c), 0
    begun = time.process_time()
    for _, some in drive(run, tables):
        results += some.num_rows
    return time.process_time() - begun, results


def _changes() -> FigureTable:
    """Measures a thousand queries before the first tuple, and one more query."""
    rows: list[tuple[object, ...]] = []
    for name in ("join, selective", "periods, selective"):
        form = WORK[name][0]
        text = STREAMS + _queries(form, 1000)
        with tempfile.TemporaryDirectory() as folder:
            limits = Limits(queries=2000, query_text=1 << 22)
            bridge = Bridge((), Path(folder), "engine", limits)
            catalogue = bridge.registry()
            compiled = compile_text(text, options=Options(devices=0))
            for what, work in (
                ("compile 1,000", partial(compile_text, text, options=Options(devices=0))),
                ("make their operators", partial(GraphRun, compiled)),
                ("register 1,000", partial(catalogue.statement, p.Statement(text))),
                ("register one more", _statement(catalogue, "REGISTER QUERY more AS ", form)),
                ("drop it", _statement(catalogue, "DROP QUERY more")),
                ("drop the third", _statement(catalogue, "DROP QUERY q3")),
            ):
                gc.collect()
                begun = time.process_time()
                work()
                rows.append((name, what, 1000 * (time.process_time() - begun)))
            bridge.close()
    return FigureTable("statements, processor time", ("queries", "what", "ms"), rows)


def _statement(catalogue: Catalogue, text: str, form: str = "") -> Callable[[], object]:
    return partial(catalogue.statement, p.Statement(text + form.replace("{n}", "77")))
