"""ORDER BY and LIMIT after UNION and DISTINCT, and the names in ORDER BY, judged by DuckDB."""

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


NAMED = (
    "SELECT a, -b AS b FROM r",
    "SELECT a AS b, b AS a FROM r",
    "SELECT a + b AS a, b, n AS ts FROM r",
    "SELECT b AS x, -a AS a, r.b FROM r",
    "SELECT *, 3 - b AS x, -a AS y FROM r",
    "SELECT a, sum(-b) OVER (ORDER BY n ROWS 1 PRECEDING) AS b FROM r",
    "SELECT n, max(-b) AS b, sum(a) AS a FROM r GROUP BY n",
)
KEYS = ("b DESC, a", "a, b", "2 DESC, 1", "1, b DESC", "b NULLS FIRST, 1 DESC")


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("form", NAMED)
def test_a_name_is_first_that_of_a_result_column(form: str, seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(f"{seed} {form}")
    size = chance.randint(1, 20)
    cells = {c: [chance.choice([None, *range(5)]) for _ in range(size)] for c in "ab"}
    rows = pa.table(
        {
            "ts": range(size),
            **{c: pa.array(v, pa.int32()) for c, v in cells.items()},
            "n": pa.array(range(size), pa.int32()),
        }
    )
    keys = chance.choice(KEYS if "*" not in form else ("b DESC, a", "x, y", "y DESC, b"))
    last = f" ORDER BY {keys}, r.n LIMIT {chance.randint(1, 20)}"
    with duckdb.connect() as judge:
        judge.register("r", rows.drop_columns(["ts"]))
        wanted = judge.sql(form + last).fetchall()
    ours = form.replace("ORDER BY n", "ORDER BY ts").replace(
        "GROUP BY n", "GROUP BY n, TUMBLE(ts, 99)"
    )
    ours = f"CREATE STREAM r (a int, b int, n int); REGISTER QUERY q AS {ours}{last};"
    found = seustream.run(ours, r=rows)["q"].arrow()
    assert [tuple(row.values())[: len(wanted[0])] for row in found.to_pylist()] == wanted


def order_of(last: str, select: str = "a, -b AS b") -> list[object]:
    rows = pa.table({"ts": [1, 2, 3], "a": [1, 2, 3], "b": [5, 7, 6]})
    text = f"CREATE STREAM r (a int, b int); REGISTER QUERY q AS SELECT {select} FROM r {last};"
    return seustream.run(text, r=rows)["q"].arrow()["a"].to_pylist()  # type: ignore[no-any-return]  # of pyarrow


def test_a_name_within_an_expression_is_first_that_of_a_stream() -> None:
    assert order_of("ORDER BY b") == [2, 3, 1]
    assert order_of("ORDER BY r.b") == [1, 3, 2]
    assert order_of("ORDER BY b + 0") == [1, 3, 2]


def test_the_time_is_not_that_of_a_result_column_that_is_called_so() -> None:
    assert order_of("ORDER BY ts", "a, -b AS ts") == [2, 3, 1]
    assert order_of("ORDER BY ts DESC", "a, ts") == [3, 2, 1]
    assert order_of("ORDER BY 2", "a, -b AS ts") == [2, 3, 1]


TWO = "CREATE STREAM r (a int, b int); CREATE STREAM s (k int, v int);"
ROWS = {
    "r": {"ts": [1, 2, 9], "a": [3, 2, 0], "b": [1, 1, 2]},
    "s": {"ts": [1, 4], "k": [3, 5], "v": [7, 8]},
}


def result(text: str) -> tuple[list[str], list[tuple[object, ...]]]:
    found = seustream.run(TWO + text, **ROWS)["q0"]
    return found.columns[:-2], [row[:-2] for row in found.rows()]


@pytest.mark.parametrize(
    ("plain", "order"),
    [
        ("SELECT a, ts FROM r UNION ALL SELECT k, ts FROM s", "ts DESC, a"),
        ("SELECT a, ts FROM r UNION ALL SELECT k, ts FROM s", "2, 1"),
        ("SELECT a AS ts FROM r UNION ALL SELECT k FROM s", "ts"),
        ("SELECT DISTINCT a, ts FROM r", "a"),
        ("SELECT a, ts FROM r UNION SELECT k, ts FROM s", "ts, a"),
        ("SELECT DISTINCT k, a FROM r JOIN s ON a <= k", "1, 2"),
        ("SELECT DISTINCT r.ts, s.ts, a FROM r JOIN s ON a <= k", "2, s.ts, r_ts"),
        ("SELECT DISTINCT x.a, y.a FROM r x JOIN r y ON x.a <= y.a", "y.a, 1"),
    ],
)
def test_an_order_leaves_the_columns_as_they_are(plain: str, order: str) -> None:
    last = " WINDOW UNBOUNDED" * ("UNION ALL" not in plain)
    columns, rows = result(plain + last)
    ordered, sorted_rows = result(f"{plain} ORDER BY {order}{last}")
    assert (ordered, Counter(sorted_rows)) == (columns, Counter(rows))
    assert result(f"{plain} ORDER BY {order} LIMIT 2{last}") == (columns, sorted_rows[:2])


def test_changes_of_an_ordered_union_are_those_of_its_first_rows() -> None:
    union = "SELECT a FROM r UNION ALL SELECT k FROM s"
    direct = result(f"{union} ORDER BY a LIMIT 2 EMIT CHANGES")
    assert direct == result(f"SELECT a FROM ({union}) AS u ORDER BY a LIMIT 2 EMIT CHANGES")
    left = Counter[object]()
    for op, a in direct[1]:
        left[a] += 1 if op == "+" else -1
    assert sorted((+left).elements()) == [0, 2]  # type: ignore[type-var]  # numbers


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "SELECT a FROM r UNION ALL SELECT k FROM s ORDER BY a EMIT CHANGES",
            "in the order of time",
        ),
        (
            "SELECT a FROM r WINDOW RANGE 1 UNION ALL SELECT k FROM s ORDER BY a LIMIT 2 EMIT CHANGES",
            "do not know of those that leave",
        ),
        (
            "SELECT a, count(*) AS n FROM r GROUP BY a WINDOW UNBOUNDED"
            " UNION ALL SELECT k, v FROM s ORDER BY a LIMIT 2 EMIT CHANGES",
            "do not know of those that leave",
        ),
        ("SELECT DISTINCT *, -b AS c FROM r ORDER BY 2 WINDOW UNBOUNDED", "is several columns"),
        (
            "SELECT a FROM r UNION SELECT b FROM r WINDOW UNBOUNDED UNION ALL SELECT k FROM s"
            " ORDER BY a LIMIT 2 WINDOW RANGE 1 EMIT CHANGES",
            "do not know of those that leave",
        ),
        ("SELECT a FROM r UNION ALL SELECT k FROM s ORDER BY 2", "SELECT has no item 2"),
        (
            "SELECT DISTINCT x.a, y.a FROM r x JOIN r y ON x.a <= y.a ORDER BY a WINDOW UNBOUNDED",
            "no stream of this query has a column a",
        ),
        (
            "SELECT a AS x FROM r UNION ALL SELECT k FROM s ORDER BY nosuch.a",
            "nosuch is not in FROM",
        ),
        ("SELECT a AS x FROM r UNION ALL SELECT k FROM s ORDER BY s.a", "s is not in FROM"),
    ],
)
def test_an_order_that_means_nothing(text: str, said: str) -> None:
    with pytest.raises(seustream.QueryError, match=said):
        seustream.run(TWO + text, **ROWS)
