"""Groups held together: each query has the results and faults of a run in which its groups are held
apart."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from seustream.compiler.pipeline import Compilation, Options, compile_text
from seustream.engine.graph import GraphRun
from seustream.engine.host import cohorts, stages
from seustream.engine.host.families import Family
from seustream.engine.host.stages import SoftwareJoin
from tests.engine.host.test_families import STREAMS, condition, faulty, rows

LISTS = (
    ("R.k, count(*) AS n, sum(R.x) AS s, min(R.t) AS t", " GROUP BY R.k"),
    ("R.k, count(*) AS n, max(R.v) - min(R.v) AS s", " GROUP BY R.k HAVING count(*) > 1"),
    ("count(DISTINCT R.v) AS n, avg(R.d) AS s", ""),
    ("R.v / R.k AS q, sum(R.x / R.k) AS s", " GROUP BY R.v / R.k"),
    ("R.k, 6 / (count(*) - 2) AS q, sum(R.v) AS s", " GROUP BY R.k HAVING 8 / (sum(R.v) - 3) < 9"),
    ("R.k, sum(cast(1000000000 AS bigint) * 1000000000 * R.v) AS s", " GROUP BY R.k"),
)
"""SELECT lists with their GROUP BY; some have a fault in a key, an argument, HAVING, an item or a
sum."""
WINDOWS = ("RANGE 9", "ROWS 5", "UNBOUNDED")
Found = dict[str, list[tuple[Any, ...]]]


def query(number: int, join: bool, dice: random.Random) -> str:
    what, group = dice.choice(LISTS)
    terms = [f"R.v {dice.choice(['=', '>', '<'])} {dice.randint(-7, 7)}"]
    terms += [condition(dice)] if dice.random() < 0.3 else []
    terms += [faulty(dice)] if dice.random() < 0.1 else []
    terms += ["R.k = S.k"] if join else []
    where = f" WHERE {' AND '.join(terms)}" if terms else ""
    window = dice.choice(WINDOWS[:2] if join else WINDOWS)
    source = "R, S" if join else "R"
    return (
        f"REGISTER QUERY q{number} AS SELECT {what} FROM {source}{where}{group} WINDOW {window};\n"
    )


def added(found: Found, run: GraphRun, end: bool = False) -> None:
    for name, some in run.finish() if end else run.advance():
        columns = (column.to_pylist() for column in some.columns)
        found.setdefault(name, []).extend(zip(*columns, strict=True))


def together(run: GraphRun) -> int:
    """Counts the queries that share a grouping."""
    found = 0
    for operator in run.operators.values():
        if isinstance(operator, SoftwareJoin):
            found += sum(one.several for one in operator.groupings.values())
    return found


def nothing_alike(family: Family) -> list[Any]:
    return []


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("join", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_together_as_apart(
    seed: int, join: bool, strict: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    print(f"seed {seed}, join {join}, strict {strict}")
    chance, dice = np.random.default_rng(seed), random.Random(seed)
    count = dice.choice([60, 250])
    streams = rows(chance, count)
    text = STREAMS + "".join(query(number, join, dice) for number in range(40))
    c = compile_text(text, options=Options(devices=0))
    cuts = [*sorted(dice.sample(range(count), dice.randint(0, 5))), count]
    monkeypatch.setattr(cohorts, "_AT_ONCE", dice.choice([7, 100, 1 << 17]))
    found: list[Found] = []
    told = []
    for apart, lax in ((False, False), (False, True), (True, False)):
        if apart:
            monkeypatch.setattr(Family, "alike", nothing_alike)
        run = GraphRun(c, strict=strict and not lax, contained=True)
        assert together(run) == 0 if apart else together(run) > 10
        found.append({})
        begin = 0
        for end in cuts:
            for stream in run.streams:
                run.push(stream.name, streams[stream.name].slice(begin, end - begin))
            added(found[-1], run)
            begin = end
        added(found[-1], run, end=True)
        told.append((run.report.faults, run.failures.why))
    whole = found.pop(1)
    del told[1]
    assert sum(map(len, found[0].values())) > (50 if strict else 300)
    failed = [set(why) for _, why in told]
    assert failed[0] == failed[1]
    assert bool(failed[0]) == strict
    for name in failed[0]:  # the size of a step decides which results precede its fault
        for some in found:
            early = some.pop(name, [])
            assert early == whole.get(name, [])[: len(early)]
    assert found[0] == found[1]
    assert told[0][0] == told[1][0]


@pytest.mark.parametrize("living", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_queries_come_and_go(seed: int, living: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Queries come and go in place and through a state; on the way groups are joined and parted."""
    print(f"seed {seed}, living {living}")
    chance, dice = np.random.default_rng(seed), random.Random(seed)
    monkeypatch.setattr(stages, "_LOOSE", 2)
    streams = rows(chance, 150)
    standing = {number: query(number, number % 2 > 0, dice) for number in range(24)}
    always = "REGISTER QUERY keeper AS SELECT R.v FROM R, S WHERE R.k = S.k WINDOW RANGE 20;\n"
    c = compile_text(STREAMS + always + "".join(standing.values()), options=Options(devices=0))
    steps: list[tuple[int, Compilation | None]] = []
    number = len(standing)
    for end in sorted(dice.sample(range(150), 12)):
        said = ""
        for gone in [n for n in standing if dice.random() < 0.15]:
            said += f"DROP QUERY q{gone};\n"
            del standing[gone]
        for _ in range(dice.randint(0, 4)):
            standing[number] = query(number, dice.random() < 0.5, dice)
            said += standing[number]
            number += 1
        after = compile_text(said, after=steps[-1][1] or c if steps else c) if said else None
        steps.append((end, after))
    steps.append((150, None))
    ways = [dice.random() < 0.3 for _ in steps]  # true: through a state
    found: list[Found] = []
    shared = 0
    for apart in (False, True):
        if apart:
            monkeypatch.setattr(Family, "alike", nothing_alike)
        run, begin = GraphRun(c, contained=True, living=living), 0
        found.append({})
        for (end, after), by_state in zip(steps, ways, strict=True):
            for stream in run.streams:
                run.push(stream.name, streams[stream.name].slice(begin, end - begin))
            added(found[-1], run)
            begin = end
            if after is not None and (by_state or not run.change(after)):
                late = GraphRun(after, contained=True, living=living)
                late.resume(run.state())
                run = late
            elif by_state:
                late = GraphRun(run.compilation, contained=True, living=living)
                late.resume(run.state())
                run = late
            shared += together(run)
        added(found[-1], run, end=True)
    assert shared > 30
    assert sum(map(len, found[0].values())) > 300
    assert found[0] == found[1]
