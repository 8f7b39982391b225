"""Tests query sets beyond every limit of a device: the results are the same wherever their queries run.

DuckDB judges. Each case runs in the engine alone, on one device that has no room for most of it, and
on several; and once more with a snapshot half-way, from which it goes on with another division of the
queries, so that windows and groups move between devices and the engine.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from seustream.compiler.errors import CompileError
from seustream.compiler.pipeline import Compilation, Options, compile_text
from seustream.cosim.golden import GoldenDevice
from seustream.engine.assembly import answer_schemas
from seustream.engine.graph import GraphRun, drive
from seustream.hdl.config import CONFIGURATIONS
from tests.system import oracle
from tests.system.differential import Difference
from tests.system.generate import Case, generate

FIRST = 77_000
NARROW = replace(
    CONFIGURATIONS["tiny"],
    name="narrow",
    streams=3,
    attributes=2,
    factors=3,
    scratch_registers=2,
    selections=2,
    probe_selections=2,
    tags=9,
    instructions=24,
    queries=3,
)
DIVISIONS = (0, 1, 2, None)
Found = dict[str, Counter[tuple[object, ...]]]


def compiled(case: Case, devices: int | None) -> Compilation:
    options = Options(NARROW, case.plan, case.max_terms, devices=devices)
    return compile_text(case.text, f"seed {case.seed}", options)


def made(compilation: Compilation, case: Case) -> GraphRun:
    devices = [GoldenDevice(one.options.config) for one in compilation.devices]
    return GraphRun(compilation, devices, slack=case.slack, slice_rows=case.slice_rows)


def results(case: Case, compilations: Iterable[Compilation]) -> Found:
    """Returns the results of a run that, where it is cut, goes on with the next division of the
    queries."""
    runs, parts = list(compilations), dict[str, list[pa.Table]]()
    chance, sent = random.Random(case.seed), {stream.name: 0 for stream in case.streams}
    run = made(runs.pop(0), case)

    def take() -> None:
        for name, rows in run.advance():
            parts.setdefault(name, []).append(rows)

    for turn in range(3 * len(case.streams)):
        stream = case.streams[turn % len(case.streams)]
        size = chance.randint(0, max(1, stream.arrivals.num_rows // 3))
        run.push(stream.name, stream.arrivals.slice(sent[stream.name], size))
        sent[stream.name] += size
        take()
        if runs and chance.random() < 0.5:
            state = run.state()
            run = made(runs.pop(0), case)
            run.resume(state)
    for stream in case.streams:
        run.push(stream.name, stream.arrivals.slice(sent[stream.name]))
        run.end(stream.name)
    take()
    return {
        name: oracle.multiset(pa.concat_tables(tables), tables[0].schema)
        for name, tables in parts.items()
    }


def check(seed: int) -> Counter[str]:
    """Compares a case with DuckDB, however it is divided; returns what it exercised."""
    case = generate(seed)
    compilations = {devices: compiled(case, devices) for devices in DIVISIONS}
    oracle.load(case)
    schemas = {q.name: answer_schemas(compilations[0].program)[q.name] for q in case.queries}
    wanted = {q.name: oracle.expected(q, schemas[q.name]) for q in case.queries}
    moving = random.Random(seed).sample(list(compilations.values()), len(compilations))
    for what, some in {**{str(n): [c] for n, c in compilations.items()}, "moved": moving}.items():
        found = results(case, some)
        for name, rows in wanted.items():
            if found.get(name, Counter()) != rows:
                raise Difference(f"seed {seed}, devices {what}, query {name}\n{case.text}")
    one, every = compilations[1], compilations[None]
    return Counter(
        results=sum(rows.total() for rows in wanted.values()),
        left_over=len(one.placement.software),
        placed=len(one.device_queries),
        several=len(every.devices) > 1,
    )


@pytest.mark.parametrize("seed", range(FIRST, FIRST + 60))
def test_case(seed: int) -> None:
    print(f"seed {seed}")
    check(seed)


def test_the_cases_exceed_the_device() -> None:
    total = sum((check(seed) for seed in range(FIRST, FIRST + 12)), Counter[str]())
    assert all(total[what] > 3 for what in ("results", "left_over", "placed", "several")), total


# --- the cases of the issue ---------------------------------------------------

STREAMS = "CREATE STREAM R (a int, b int); CREATE STREAM S (d int, e int);\n"


def rows(seed: int, count: int = 300) -> dict[str, pa.Table]:
    chance = np.random.default_rng(seed)

    def table(*names: str) -> pa.Table:
        columns = {name: chance.integers(0, 40, count).astype(np.int32) for name in names}
        return pa.table({"ts": np.cumsum(chance.integers(0, 3, count)), **columns})

    return {"R": table("a", "b"), "S": table("d", "e")}


def run(text: str, tables: dict[str, pa.Table], devices: int | None) -> dict[str, pa.Table]:
    c = compile_text(text, options=Options(devices=devices))
    graph = GraphRun(c, [GoldenDevice(one.options.config) for one in c.devices])
    parts: dict[str, list[pa.Table]] = {}
    for name, found in drive(graph, tables):
        parts.setdefault(name, []).append(found)
    return {name: pa.concat_tables(found) for name, found in parts.items()}


def test_a_fit_that_is_strict_is_an_error_with_advice() -> None:
    text = STREAMS + "".join(
        f"REGISTER QUERY q{n} AS SELECT R.a FROM R, S WHERE R.a = S.d AND R.b > {n} WINDOW 9;"
        for n in range(20)
    )
    with pytest.raises(CompileError, match="query q15 exceeds a limit") as caught:
        compile_text(text, options=Options(fit="strict"))
    assert "the set needs 2 devices" in str(caught.value.problems[0].hint)
    assert len(compile_text(text, options=Options(fit="strict", devices=2)).devices) == 2
