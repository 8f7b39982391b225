"""ORDER BY and LIMIT after UNION and DISTINCT, judged by DuckDB."""

from __future__ import annotations

import random
from collections import Counter

import duckdb
import pyarrow as pa
import pytest

import seustream

DEFINITIONS = "CREATE STREAM r (a int, b int); CREATE STREAM s (k int, v int);"
FORMS = (
    "SELECT a, b FROM r UNION ALL SELECT k, v FROM s ORDER BY {} LIMIT {}",
    "SELECT r.a AS x, b FROM r UNION ALL SELECT k, v FROM s UNION ALL SELECT k, 1 FROM s ORDER BY {} LIMIT {}",
    "SELECT a AS b, b AS a FROM r UNION ALL SELECT k, v FROM s ORDER BY {} LIMIT {}",
    "SELECT DISTINCT a + 1, b FROM r ORDER BY {} LIMIT {}",
    "SELECT a, b FROM r UNION SELECT k, v FROM s ORDER BY {} LIMIT {}",
    "SELECT DISTINCT r.a, b FROM r WHERE b > 1 ORDER BY {} LIMIT {}",
)
ORDERS = ("1, 2", "2 DESC, 1", "b, 1 DESC, 2", "1 DESC, b DESC, 2")


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("form", FORMS)
def test_the_order_is_of_the_whole(form: str, seed: int) -> None:
    chance = random.Random(f"{seed} {form}")
    print(f"seed {seed}")
    inputs = {}
    for name, columns in (("r", "ab"), ("s", "kv")):
        size = chance.randint(1, 20)
        cells = {c: [chance.randint(0, 4) for _ in range(size)] for c in columns}
        ts = sorted(chance.randint(0, 30) for _ in range(size))
        inputs[name] = pa.table(
            {"ts": ts, **{c: pa.array(v, pa.int32()) for c, v in cells.items()}}
        )
    text = form.format(chance.choice(ORDERS), chance.randint(1, 30))
    with duckdb.connect() as judge:
        for name, rows in inputs.items():
            judge.register(name, rows)
        wanted = judge.sql(text).fetchall()
    forever = "" if "UNION ALL" in text else " WINDOW UNBOUNDED"
    found = seustream.run(f"{DEFINITIONS} REGISTER QUERY q AS {text}{forever};", **inputs)[
        "q"
    ].arrow()
    rows = [tuple(row.values())[:2] for row in found.to_pylist()]
    assert Counter(rows) == Counter(wanted)
    assert len(rows) == len(wanted)
