"""Queries that begin late see the windows as they stand: their results are compared with those of a query that was
there from the beginning, over random rows."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from seustream.compiler.pipeline import Compilation, Options, compile_text
from seustream.engine.completeness import complete_from
from seustream.engine.graph import GraphRun

STREAMS = "CREATE STREAM R (a int, b int); CREATE STREAM S (d int);"
BEGIN = 100
KEEPERS = {
    "join": "REGISTER QUERY k AS SELECT R.a FROM R, S WHERE R.a = S.d WINDOW RANGE 40;",
    "groups": "REGISTER QUERY k AS SELECT a, count(*) AS n FROM R GROUP BY a WINDOW RANGE 40;"
    "REGISTER QUERY l AS SELECT max(d) AS n FROM S WINDOW RANGE 40;",
}
FORMS = {
    "SELECT R.a FROM R, S WHERE R.a = S.d WINDOW RANGE 20, RANGE 30": BEGIN,
    "SELECT a, count(*) AS n FROM R GROUP BY a WINDOW RANGE 40": BEGIN,
    "SELECT a, count(*) AS n FROM R GROUP BY a WINDOW RANGE 41": BEGIN + 41,
    "SELECT a, count(*) AS n FROM R GROUP BY a WINDOW RANGE 40 EMIT CHANGES": BEGIN,
    "SELECT a, sum(b) AS n FROM R WHERE b > 1 GROUP BY a, TUMBLE(ts, 30 ms)": BEGIN,
    "SELECT count(*) AS n FROM R GROUP BY HOP(ts, 10 ms, 30 ms)": BEGIN,
    "SELECT count(*) AS n FROM R WINDOW RANGE 20 SLIDE 10": BEGIN,
    "SELECT count(*) AS n FROM R GROUP BY TUMBLE(ts, 50 ms)": BEGIN + 49,
    "SELECT a, sum(b) OVER (PARTITION BY a ORDER BY ts RANGE 25 PRECEDING) AS s FROM R WHERE b < 3": BEGIN,
    "SELECT a FROM R WHERE b = 2 QUALIFY count(*) OVER (ORDER BY ts RANGE 9 PRECEDING) > 1": BEGIN,
    "SELECT R.a, R.b, S.d FROM R LEFT JOIN S ON R.a = S.d AND R.b = 1 WINDOW RANGE 20": BEGIN,
    "SELECT R.a, S.d FROM R FULL JOIN S ON R.a = S.d AND b = 1 WINDOW RANGE 40": BEGIN,
    "SELECT a, b FROM R WHERE NOT EXISTS (SELECT * FROM S WHERE d = a) WINDOW RANGE 3": BEGIN,
    "SELECT R.a, S.d FROM R LEFT JOIN S ON R.a = S.d WINDOW RANGE 20, RANGE 41": BEGIN + 41,
    "SELECT R.a, count(d) AS n FROM R LEFT JOIN S ON a = d GROUP BY R.a WINDOW RANGE 20": BEGIN,
    "SELECT R.a, count(d) AS n FROM R LEFT JOIN S ON a = d GROUP BY R.a WINDOW RANGE 40": BEGIN + 80,
    "SELECT a, count(*) AS n FROM R GROUP BY a WINDOW RANGE 20 EMIT CHANGES": BEGIN,
    "PATTERN ANY x; ANY y FROM R WHERE x.a < y.a WITHIN 35 ms RETURN y.a, y.ts AS ts_newest": BEGIN,
}  # fmt: skip


def rows(chance: random.Random, ts: int) -> dict[str, pa.Table]:
    def some() -> pa.Array:
        return pa.array([chance.randrange(4)], pa.int32())

    return {
        "R": pa.table({"ts": [ts], "a": some(), "b": some()}),
        "S": pa.table({"ts": [ts], "d": some()}),
    }


def results(
    before: Compilation, after: Compilation, tables: dict[int, dict[str, pa.Table]]
) -> list[dict[str, Any]]:
    """What q gives when a run of `before` goes on with `after`."""
    run, found = GraphRun(before, living=True), []
    for ts, some in tables.items():
        if ts == BEGIN:
            for stream in ("R", "S"):
                run.promise(stream, BEGIN)
            list(run.advance())
            late = GraphRun(after, living=True)
            late.resume(run.state())
            run = late
        for stream, table in some.items():
            run.push(stream, table)
        if ts % 20 == 19:
            found += list(run.advance())
    found += list(run.finish())
    return [row for name, one in found if name == "q" for row in one.to_pylist()]


@pytest.mark.parametrize("keeper", KEEPERS)
@pytest.mark.parametrize("form", FORMS)
def test_what_joins_and_groups_keep_is_seen_by_what_begins_late(form: str, keeper: str) -> None:
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    chance = random.Random(seed)
    tables = {ts: rows(chance, ts) for ts in range(240)}
    before = compile_text(STREAMS + KEEPERS[keeper], options=Options(devices=0))
    after = compile_text(f"REGISTER QUERY q AS {form};", after=before)
    past = {"R": BEGIN, "S": BEGIN}
    (said,) = complete_from(after, ["q"], past, before.program.queries).values()
    since = FORMS[form]
    assert said == f"from {since}"
    always, late = results(after, after, tables), results(before, after, tables)

    def known(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [row for row in found if row["ts_newest"] >= since]

    assert known(always)
    assert known(late) == known(always)


def test_a_query_of_another_text_under_the_same_name_begins_anew() -> None:
    tables = {ts: rows(random.Random(ts), ts) for ts in range(200)}
    forms = ("LEFT JOIN S ON R.a = S.d", "LEFT JOIN S ON R.b = S.d")
    before, after = (
        compile_text(
            f"{STREAMS}{KEEPERS['join']}REGISTER QUERY q AS SELECT R.a, S.d FROM R {one} WINDOW RANGE 9"
        )
        for one in forms
    )
    always, late = results(after, after, tables), results(before, after, tables)
    assert [row for row in late if row["ts_newest"] >= BEGIN] == [
        row for row in always if row["ts_newest"] >= BEGIN
    ]
