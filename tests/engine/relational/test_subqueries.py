"""WITH and FROM (SELECT ...) compared with the same query over derived streams, and with DuckDB."""

from __future__ import annotations

import random

import pytest

from tests.engine.relational.generate import (
    DEFINITIONS,
    judged,
    r_stream,
    rows_of,
    s_stream,
    same,
)
from tests.engine.relational.running import at_once, in_pieces

PARTS = (
    "SELECT a AS k, b AS v FROM R WHERE b > 0",
    "SELECT a AS k, sum(b) AS v FROM R GROUP BY a, TUMBLE(ts, 10)",
    "SELECT a AS k, lag(b) OVER (PARTITION BY a ORDER BY ts) AS v FROM R",
    "SELECT a AS k, b AS v FROM R UNION ALL SELECT k, v FROM S",
    "SELECT R.a AS k, S.v * 1.5 AS v FROM R, S WHERE R.a = S.k WINDOW RANGE 4",
    "SELECT a AS k, max(b) AS v FROM R GROUP BY a WINDOW ROWS 5",
)
USES = (
    "SELECT k, v + 1 AS w FROM {t} WHERE v > 1",
    "SELECT x.k, y.v FROM {t} x, {t} AS y WHERE x.k = y.k WINDOW RANGE 6",
    "SELECT t.k, S.v AS w FROM {t} AS t, S WHERE t.k = S.k WINDOW RANGE 9",
    "SELECT k, count(v) AS n FROM {t} GROUP BY k, SESSION(ts, 7)",
    "SELECT v FROM {t} UNION ALL SELECT b FROM R",
)


def check(seed: int) -> None:
    """Checks one subquery within another query, written in three ways."""
    chance = random.Random(seed)
    rows = {"R": r_stream(chance, 40), "S": s_stream(chance, 30)}
    part, use = chance.choice(PARTS), chance.choice(USES)
    inside = use.replace("{t} x", f"({part}) x").replace("{t} AS", f"({part}) AS")
    inside = inside.replace("{t}", f"({part}) t")
    text = f"""{DEFINITIONS}CREATE STREAM d AS {part};
    REGISTER QUERY want AS {use.format(t="d")};
    REGISTER QUERY common AS WITH t AS ({part}) {use.format(t="t")};
    REGISTER QUERY inside AS {inside}"""
    print(f"seed {seed}\n{text}")
    found = at_once(text, rows)
    want = rows_of(found.get("want"))
    same(rows_of(found.get("common")), want)
    same(rows_of(found.get("inside")), want)
    pieces = in_pieces(text, rows, seed)
    for name in ("common", "inside"):
        same(rows_of(pieces.get(name)), want)


@pytest.mark.parametrize("seed", range(12))
def test_as_over_derived_streams(seed: int) -> None:
    check(seed)


def test_as_duckdb_has_it() -> None:
    text = """WITH t AS (SELECT a, b * 2 AS twice FROM R WHERE a > 0), u AS (SELECT a, twice + 1 AS n FROM t)
    SELECT x.a, x.n FROM (SELECT a, n FROM u WHERE n > 2) AS x WHERE x.a < 4"""
    chance = random.Random(3)
    rows = {"R": r_stream(chance, 60), "S": s_stream(chance, 2)}
    found = at_once(f"{DEFINITIONS}REGISTER QUERY q AS {text}", rows)["q"]
    want = judged(text, R=rows["R"])
    assert len(want) > 5
    assert [row[:2] for row in rows_of(found)] == want


def test_a_name_is_that_of_the_part_around_it() -> None:
    """A part named like a stream hides it, but not within itself, nor after the query."""
    text = f"""{DEFINITIONS}
    REGISTER QUERY q AS WITH R AS (SELECT a FROM R WHERE a = 1) SELECT count(*) AS n FROM R WINDOW UNBOUNDED;
    REGISTER QUERY all_of AS SELECT count(*) AS n FROM R WINDOW UNBOUNDED"""
    chance = random.Random(4)
    rows = {"R": r_stream(chance, 60), "S": s_stream(chance, 2)}
    found = at_once(text, rows)
    ones = rows["R"].column("a").to_pylist().count(1)
    assert rows_of(found["q"])[-1][0] == ones
    assert rows_of(found["all_of"])[-1][0] == 60


@pytest.mark.parametrize(
    "where",
    [
        "a IS NOT NULL AND a NOT IN (SELECT k FROM S WHERE k IS NOT NULL)",
        "a > 1 AND a NOT IN (SELECT k FROM S WHERE v = k)",
        "coalesce(a, 0) NOT IN (SELECT coalesce(k, 2) FROM S)",
        "EXISTS (SELECT 1 FROM S WHERE S.k = R.a LIMIT 1)",
        "NOT EXISTS (SELECT 1 FROM S WHERE S.k = R.a AND v > 2 LIMIT 2)",
        "EXISTS (SELECT k AS key FROM S WHERE S.k = R.a ORDER BY key, v DESC LIMIT 3)",
        "a IN (SELECT k FROM S WHERE v > 1 ORDER BY v)",
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_not_in_without_null_and_what_changes_nothing(where: str, seed: int) -> None:
    chance = random.Random(seed)
    rows = {"R": r_stream(chance, 40), "S": s_stream(chance, 6)}
    asked = f"SELECT a, b FROM R WHERE {where}"
    text = f"{DEFINITIONS}REGISTER QUERY q AS {asked} WINDOW UNBOUNDED"
    found = [row[:2] for row in rows_of(at_once(text, rows).get("q"))]
    same(found, judged(asked, **rows))
    same([row[:2] for row in rows_of(in_pieces(text, rows, seed).get("q"))], found)
