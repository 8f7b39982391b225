"""Functions OVER the groups of a window, judged by DuckDB."""

from __future__ import annotations

import random
from collections import Counter

import duckdb
import pyarrow as pa
import pytest

import seustream
from seustream.compiler.errors import CompileError
from seustream.compiler.pipeline import compile_text

SIZE = 5
MADE = "CREATE STREAM r (a int, b int);"
FORMS = (
    "SELECT a, count(*) AS n, rank() OVER (PARTITION BY window_end ORDER BY count(*) DESC) AS x FROM r GROUP BY a, {w}",
    "SELECT a AS x, sum(b) AS y FROM r GROUP BY 1, {w}"
    " QUALIFY row_number() OVER (PARTITION BY window_end ORDER BY sum(b) DESC, a) <= 2",
    "SELECT r.a, sum(sum(b)) OVER w AS x, max(b) - min(b) AS y FROM r WHERE b > 1 GROUP BY r.a, {w}"
    " HAVING count(*) > 1 WINDOW w AS (PARTITION BY window_end)",
    "SELECT a % 2 AS k, count(DISTINCT b) AS y, lag(count(DISTINCT b)) OVER (PARTITION BY a % 2 ORDER BY ts) AS x"
    " FROM r GROUP BY a % 2, {w}",
    "SELECT sum(b) AS a, rank() OVER (PARTITION BY window_end ORDER BY a) AS x FROM r GROUP BY a, {w}",
    "SELECT a AS b, rank() OVER (PARTITION BY window_end ORDER BY b) AS x FROM r GROUP BY a, b, {w}",
    "SELECT a, count(*) AS n, rank() OVER (PARTITION BY window_end ORDER BY count(*) DESC) AS x FROM r GROUP BY a, {w}"
    " QUALIFY x = 1",
    "SELECT a, sum(b) AS y, dense_rank() OVER w AS x, rank() OVER w - 1 AS z FROM r GROUP BY a, {w}"
    " WINDOW w AS (PARTITION BY window_end ORDER BY sum(b)) QUALIFY x <= 2 AND z < 2 AND y > 1",
    "SELECT b, rank() OVER (PARTITION BY window_end ORDER BY sum(a)) AS a FROM r GROUP BY a, b, {w} QUALIFY a > 1",
    "SELECT count(*) AS n, first_value(count(*)) OVER (ORDER BY ts ROWS 2 PRECEDING) AS x FROM r GROUP BY {w}",
)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("form", FORMS)
def test_groups_are_looked_over(form: str, seed: int) -> None:
    print(f"seed {seed}")
    chance, size = random.Random(f"{seed} {form}"), SIZE
    rows = chance.randint(1, 40)
    ts = sorted(chance.randint(0, 40) for _ in range(rows))
    cells = {c: pa.array([chance.randint(0, 4) for _ in range(rows)], pa.int32()) for c in "ab"}
    table = pa.table({"ts": ts, **cells})
    ours = form.replace("a % 2", "mod(a, 2)").format(w=f"TUMBLE(ts, {size})")
    found = seustream.run(f"{MADE} REGISTER QUERY q AS {ours};", r=table)["q"].arrow()
    with duckdb.connect() as judge:
        judge.register("raw", table)
        judge.sql(
            f"CREATE VIEW r AS SELECT ts, a, b, (ts // {size} + 1) * {size} AS window_end FROM raw"
        )
        theirs = form.replace("ORDER BY ts", "ORDER BY window_end").format(w="window_end")
        times = ", min(ts), window_end - 1 FROM r"  # of the oldest row, and the last instant
        wanted = judge.sql(theirs.replace(" FROM r", times)).fetchall()
    assert Counter(tuple(row.values()) for row in found.to_pylist()) == Counter(wanted)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a, b, rank() OVER (ORDER BY count(*)) AS x FROM r GROUP BY a, TUMBLE(ts, 5)",
        "SELECT a, rank() OVER (ORDER BY count(*)) AS x FROM r GROUP BY a, TUMBLE(ts, 5) EMIT CHANGES",
    ],
)
def test_what_it_does_not_mean_is_refused(text: str) -> None:
    with pytest.raises(CompileError):
        compile_text(f"{MADE} REGISTER QUERY q AS {text};", "test")
