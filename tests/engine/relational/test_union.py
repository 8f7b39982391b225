"""UNION ALL compared with all rows put together."""

from __future__ import annotations

import random
from collections import Counter

import duckdb
import pyarrow as pa
import pytest

from seustream.compiler.pipeline import compile_text
from seustream.engine.stream.answers import result_schema
from tests.engine.relational.running import at_once, in_pieces

TEXT = """
CREATE STREAM R (a int, b varchar(5));
CREATE STREAM S (c bigint, d varchar(9));
REGISTER QUERY both AS
SELECT a, b FROM R WHERE a > 3 UNION ALL SELECT c, d FROM S UNION ALL SELECT -a AS z, 'again' FROM R;
CREATE STREAM u AS SELECT a AS k, ts AS at FROM R UNION ALL SELECT c, ts FROM S;
REGISTER QUERY counted AS SELECT k, count(*) AS n FROM u GROUP BY k WINDOW UNBOUNDED;
REGISTER QUERY joined AS
SELECT R.a FROM R, S WHERE R.a = S.c WINDOW RANGE 5 UNION ALL SELECT c FROM S;
"""


def streams(seed: int) -> dict[str, pa.Table]:
    chance = random.Random(seed)

    def column(kind: str, rows: int) -> list[object]:
        some = [None, *range(6)] if kind == "number" else [None, "x", "yy"]
        return [chance.choice(some) for _ in range(rows)]

    def times(rows: int) -> list[int]:
        return sorted(chance.randint(0, rows) for _ in range(rows))

    return {
        "R": pa.table({"ts": times(90), "a": column("number", 90), "b": column("text", 90)}),
        "S": pa.table({"ts": times(60), "c": column("number", 60), "d": column("text", 60)}),
    }


@pytest.mark.parametrize("seed", range(5))
def test_all_rows_by_time_then_by_part(seed: int) -> None:
    print(f"seed {seed}")
    rows = streams(seed)
    r, s = rows["R"].to_pylist(), rows["S"].to_pylist()
    parts = [
        [(row["ts"], row["a"], row["b"]) for row in r if row["a"] is not None and row["a"] > 3],
        [(row["ts"], row["c"], row["d"]) for row in s],
        [(row["ts"], None if row["a"] is None else -row["a"], "again") for row in r],
    ]
    want = sorted((row for part in parts for row in part), key=lambda row: row[0])
    found = at_once(TEXT, rows)
    both = [tuple(row.values()) for row in found["both"].to_pylist()]
    assert both == [(a, b, ts, ts) for ts, a, b in want]
    assert found == in_pieces(TEXT, rows, seed)
    last = {row["k"]: row["n"] for row in found["counted"].to_pylist()}
    keys = [row["a"] for row in r] + [row["c"] for row in s]
    assert last == {key: keys.count(key) for key in keys}


def test_the_oldest_component_of_a_join_is_kept() -> None:
    rows = {
        "R": pa.table({"ts": [1], "a": [7], "b": ["x"]}),
        "S": pa.table({"ts": [4], "c": [7], "d": ["y"]}),
    }
    found = at_once(TEXT, rows)["joined"].to_pylist()
    assert [(row["ts_oldest"], row["ts_newest"]) for row in found] == [(1, 4), (4, 4)]


def test_types_meet() -> None:
    operation = compile_text(TEXT).program.operations[-1]
    assert result_schema(operation).field(0).type == pa.int64()


@pytest.mark.parametrize(
    ("second", "sql"),
    [
        ("SELECT a, NULL, NULL FROM R", None),
        ("SELECT a, a, a FROM R", None),
        ("SELECT a AS k, b AS k, 1 FROM R", None),
        ("SELECT DISTINCT 1, 1, 1 FROM R WINDOW UNBOUNDED", "SELECT DISTINCT 1, 1, 1 FROM R"),
        ("SELECT count(*), count(*), 1 FROM R GROUP BY TUMBLE(ts, 10)", "SELECT count(*), count(*), 1 FROM R GROUP BY ts // 10"),
    ],
)  # fmt: skip
def test_a_later_part_has_the_names_of_the_first(second: str, sql: str | None) -> None:
    rows = {"R": streams(3)["R"].drop(["b"]).append_column("b", pa.array(range(90), pa.int64()))}
    first = "SELECT a, b, a + b AS x FROM R UNION ALL "
    found = at_once(f"CREATE STREAM R (a int, b int); REGISTER QUERY q AS {first}{second}", rows)[
        "q"
    ]
    with duckdb.connect() as connection:
        connection.register("R", rows["R"])
        want = connection.execute(first + (sql or second)).fetchall()
    assert found.column_names[:3] == ["a", "b", "x"]
    assert Counter(zip(*found.select([0, 1, 2]).to_pydict().values(), strict=True)) == Counter(want)
