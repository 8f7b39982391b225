"""Queries that come and go in a run: changed in place, changed through a state, or present from the
start; all give the same."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from seustream.compiler.pipeline import Compilation, Options, compile_text
from seustream.engine.graph import GraphRun
from tests.engine.host.test_families import STREAMS, condition, rows

OPERATIONS = {
    "period": "R.k, count(*) AS n FROM R WHERE {} GROUP BY R.k, TUMBLE(ts, 7)",
    "session": "R.k, count(*) AS n FROM R WHERE {} GROUP BY R.k, SESSION(ts, 3)",
    "over": "R.k, sum(R.v) OVER (PARTITION BY R.k ORDER BY ts RANGE 5 PRECEDING) AS s FROM R WHERE {}",
    "distinct": "DISTINCT R.v FROM R WHERE {} WINDOW RANGE 6",
    "outer": "R.v, S.w FROM R LEFT JOIN S ON R.k = S.k AND {} WINDOW RANGE 6",
    "changes": "R.k, count(*) AS n FROM R WHERE {} GROUP BY R.k WINDOW RANGE 6 EMIT CHANGES",
    "joined changes": "R.v, S.w FROM R LEFT JOIN S ON R.k = S.k AND {} WINDOW RANGE 6 EMIT CHANGES",
    "grouped changes": "R.k, first(S.w) AS f, count(*) AS n FROM R LEFT JOIN S ON R.k = S.k AND {}"
    " GROUP BY R.k WINDOW RANGE 6 EMIT CHANGES",
}
"""Statements that become operators of their own."""
Found = dict[str, list[tuple[Any, ...]]]


def query(number: int, dice: random.Random) -> str:
    where = " AND ".join(condition(dice) for _ in range(dice.randint(1, 2)))
    kind = dice.choice(["one", "join", "join", "group", "joined group", *OPERATIONS])
    if kind in OPERATIONS:
        return f"REGISTER QUERY q{number} AS SELECT {OPERATIONS[kind].format(where)}"
    what = "count(*) AS n, sum(R.v) AS s" if "group" in kind else "R.v, R.k"
    source, window = ("R, S", " WINDOW RANGE 9") if "join" in kind else ("R", " WINDOW RANGE 5")
    where += " AND R.k = S.k" if "join" in kind else ""
    return f"REGISTER QUERY q{number} AS SELECT {what} FROM {source} WHERE {where}{window}"


class Copying(GraphRun):
    """Goes through a state at every change."""

    def change(self, c: Compilation) -> bool:
        return False


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("keeps_both", [True, False])
def test_in_place_as_through_a_state(keeps_both: bool, seed: int) -> None:
    """Also where no query that stays keeps rows of a stream, and those of one that goes are left."""
    print(f"seed {seed}")
    chance, dice = np.random.default_rng(seed), random.Random(seed)
    streams = rows(chance, 120)
    standing = {number: query(number, dice) for number in range(4)}
    always = "SELECT R.v, S.w FROM R, S WHERE R.k = S.k WINDOW RANGE 20"
    if not keeps_both:
        always = "SELECT count(*) AS n FROM R WINDOW RANGE 20"
    text = f"{STREAMS}REGISTER QUERY keeper AS {always}; REGISTER QUERY s AS SELECT w FROM S;\n"
    text += "".join(f"{one};\n" for one in standing.values())
    c = compile_text(text, options=Options(devices=0))
    runs: list[GraphRun] = [GraphRun(c, living=True), Copying(c, living=True)]
    found: list[Found] = [{}, {}]
    whole: dict[int, str] = dict(standing)
    places = [*sorted(dice.sample(range(120), 8)), 120]
    start, in_place = 0, 0
    for end in places:
        for run, results in zip(runs, found, strict=True):
            for stream in run.streams:
                run.push(stream.name, streams[stream.name].slice(start, end - start))
            for name, some in run.advance():
                columns = (column.to_pylist() for column in some.columns)
                results.setdefault(name, []).extend(zip(*columns, strict=True))
        start = end
        said = ""
        for number in [n for n in standing if dice.random() < 0.2]:
            said += f"DROP QUERY q{number};\n"
            del standing[number]
        for _ in range(dice.randint(0, 3)):
            number = len(whole)
            whole[number] = standing[number] = query(number, dice)
            said += f"{standing[number]};\n"
        c = compile_text(said, after=c)
        again = compile_text(c.source.text, options=c.options)
        assert again.program == c.program
        assert again.image == c.image
        for place, run in enumerate(runs):
            if run.change(c):
                in_place += 1
                continue
            after = type(run)(c, living=True)
            after.resume(run.state())
            runs[place] = after
    for run, results in zip(runs, found, strict=True):
        for name, some in run.finish():
            columns = (column.to_pylist() for column in some.columns)
            results.setdefault(name, []).extend(zip(*columns, strict=True))
    assert in_place > 4
    assert found[0] == found[1]
    alone = GraphRun(compile_text(STREAMS + f"REGISTER QUERY keeper AS {always};"))
    for name in ("R", "S"):
        alone.push(name, streams[name])
    want = [row for _, some in alone.finish() for row in some.to_pylist()]
    assert [tuple(row.values()) for row in want] == found[0]["keeper"]


def test_a_late_group_sees_what_joins_keep() -> None:
    chance = np.random.default_rng(5)
    streams = rows(chance, 100)
    base = STREAMS + "SELECT R.v, S.w FROM R, S WHERE R.k = S.k WINDOW RANGE 50;\n"
    late = "REGISTER QUERY late AS SELECT R.k, count(*) AS n FROM R, S WHERE R.k = S.k GROUP BY R.k WINDOW RANGE 30;\n"
    early = compile_text(base, options=Options(devices=0))
    c = compile_text(late, after=early)
    begun, run = GraphRun(c), GraphRun(early)
    found = []
    for one in (begun, run):
        for name in ("R", "S"):
            one.push(name, streams[name].slice(0, 60))
        list(one.advance())
        if one is run:
            assert run.change(c)
        for name in ("R", "S"):
            one.push(name, streams[name].slice(60))
        found.append([some.to_pylist() for name, some in one.finish() if name == "late"])
    assert found[0] == found[1]
    assert sum(map(len, found[0])) > 30


@pytest.mark.parametrize(
    ("late", "there", "taken"),
    [
        ("SELECT k, count(*) AS n FROM R WHERE v > 1 GROUP BY k, TUMBLE(ts, 9)", "", True),
        ("SELECT R.v, S.w FROM R LEFT JOIN S ON R.k = S.k WINDOW RANGE 9", "", True),
        ("SELECT k, count(*) AS n FROM F GROUP BY k, TUMBLE(ts, 9)", "", False),
        ("SELECT J.v, S.w FROM J LEFT JOIN S ON J.k = S.k WINDOW RANGE 9", "", False),
        ("SELECT k FROM J", "", False),
        ("PATTERN ANY x; ANY y FROM R WHERE x.v < y.v WITHIN 35 ms RETURN y.v", "", False),
        ("SELECT R.v FROM R UNION ALL SELECT S.w FROM S", "", True),
        (
            "SELECT R.v FROM R",
            "REGISTER QUERY late AS SELECT DISTINCT v FROM R WINDOW RANGE 9",
            True,
        ),
        (
            "SELECT DISTINCT R.v FROM R WINDOW RANGE 9",
            "REGISTER QUERY late AS SELECT v FROM R",
            True,
        ),
    ],
)
def test_what_is_changed_in_place(late: str, there: str, taken: bool) -> None:
    """Operators over a stream that a join derives begin through a state, which has the join's
    rows."""
    streams = (
        f"{STREAMS}CREATE STREAM J AS SELECT R.k, R.v FROM R, S WHERE R.k = S.k WINDOW RANGE 5;"
        "CREATE STREAM F AS SELECT k, v FROM R WHERE v > 0;"
        "REGISTER QUERY a AS SELECT J.v FROM J, S WHERE J.k = S.k WINDOW RANGE 9;"
        f"REGISTER QUERY b AS SELECT F.v FROM F, R WHERE F.k = R.k WINDOW RANGE 9;{there};"
    )
    before = compile_text(streams, options=Options(devices=0))
    gone = "DROP QUERY late;" if there else ""
    after = compile_text(f"{gone}REGISTER QUERY late AS {late};", after=before)
    run = GraphRun(before)
    assert run.change(after) == taken
    if taken:
        assert run.operators.keys() == GraphRun(after).operators.keys()
