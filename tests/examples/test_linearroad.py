"""Linear Road's answers compared with DuckDB's, which evaluates the benchmark's definitions over
all reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import seustream as ss
from examples.linearroad.generate import streams

TEXT = (Path(__file__).parents[2] / "examples" / "linearroad" / "linearroad.xsql").read_text(
    "utf-8"
)
LAG = "lag({0}, {1}) OVER (PARTITION BY vid ORDER BY ts)"
SAME = " AND ".join(f"{c} = {LAG.format(c, n)}" for c in ("pos", "lane") for n in (1, 2, 3))
AHEAD = """x.xway = e.xway AND x.dir = e.dir AND x.ts BETWEEN e.ts - 60000 AND e.ts
  AND (CASE e.dir WHEN 0 THEN x.seg - e.seg ELSE e.seg - x.seg END) BETWEEN 0 AND 4"""
VIEWS = {
    "stopped": f"FROM position QUALIFY {SAME}",
    "accident": """SELECT a.xway, a.dir, a.seg, greatest(a.ts, b.ts) AS ts FROM stopped a JOIN stopped b
      USING (xway, lane, dir, pos) WHERE a.vid < b.vid AND abs(a.ts - b.ts) <= 30000""",
    # Mean speeds: of each car in a minute, of these over all cars, of those over five minutes.
    "car": """SELECT vid, xway, dir, seg, ts // 60000 AS minute, avg(spd) AS spd FROM position
      GROUP BY ALL""",
    "minutes": "SELECT xway, dir, seg, minute, count(*) AS cars, avg(spd) AS spd FROM car GROUP BY ALL",
    "pace": """SELECT m.*, (SELECT avg(o.spd) FROM minutes o WHERE o.xway = m.xway AND o.dir = m.dir
      AND o.seg = m.seg AND o.minute BETWEEN m.minute - 4 AND m.minute) AS lav FROM minutes m""",
    "entry": f"FROM position WHERE lane <> 4 QUALIFY seg IS DISTINCT FROM {LAG.format('seg', 1)}",
    "toll": f"""SELECT e.vid, e.xway, e.dir, e.seg, round(p.lav, 6) AS lav, p.cars, 2 * (p.cars - 50) ** 2 AS toll, e.ts
      FROM entry e JOIN pace p ON e.xway = p.xway AND e.dir = p.dir AND e.seg = p.seg
      AND p.minute = e.ts // 60000 - 1 AND p.cars > 50 AND p.lav < 40
      WHERE NOT EXISTS (FROM accident x WHERE {AHEAD})""",
}
JUDGED = {
    "warning": f"SELECT vid, xway, dir, seg, ts FROM entry e WHERE EXISTS (FROM accident x WHERE {AHEAD})",
    "tolls": "FROM toll",
    "balances": """SELECT qid, vid, (SELECT coalesce(sum(toll), 0) FROM toll t WHERE t.vid = b.vid AND t.ts <= b.ts),
      ts FROM balance b""",
    "expenditures": """SELECT e.qid, e.vid, h.toll, ts FROM expenditure e JOIN history h
      ON e.vid = h.vid AND e.day = h.day AND e.xway = h.xway""",
}


@pytest.fixture(scope="module")
def found() -> Iterator[tuple[dict[str, Any], duckdb.DuckDBPyConnection]]:
    tables = streams(12_000, 5)
    with duckdb.connect(config={"threads": 1}) as connection:
        for name, rows in tables.items():
            connection.register("given", rows)
            times = " REPLACE (epoch_us(ts) // 1000 AS ts)" if "ts" in rows.column_names else ""
            connection.execute(f"CREATE TABLE {name} AS SELECT *{times} FROM given")
        for name, text in VIEWS.items():
            connection.execute(f"CREATE TABLE {name} AS {text}")
        yield ss.run(TEXT, **tables), connection


@pytest.mark.parametrize("name", JUDGED)
def test_answers_are_those_of_duckdb(
    found: tuple[dict[str, Any], duckdb.DuckDBPyConnection], name: str
) -> None:
    results, connection = found
    given = results[name].arrow()
    connection.register("given", given)
    rounded = ["round(lav, 6)" if c == "lav" else c for c in given.column_names[:-2]]
    got = connection.sql(
        f"SELECT {', '.join(rounded)}, epoch_us(ts_newest) // 1000 FROM given"
    ).fetchall()
    want = connection.sql(JUDGED[name]).fetchall()
    assert Counter(got) == Counter(want)
    assert len(want) > 20, "too few: this shows nothing"
