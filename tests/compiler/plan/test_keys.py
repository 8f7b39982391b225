"""Keys: found where the conditions imply them, and tuples divided by them join as they did."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from seustream.compiler.pipeline import compile_text
from seustream.compiler.plan.keys import keys
from seustream.cosim.golden import GoldenDevice
from seustream.engine.graph import GraphRun

STREAMS = """
CREATE STREAM R (a int, b bigint, c varchar(5), x real);
CREATE STREAM S (a smallint, b int, c char(5), x real);
CREATE STREAM T (a int, b int);
CREATE STREAM X (x real);
"""
DERIVED = "CREATE STREAM z AS SELECT a FROM T WINDOW 1;"


def found(*queries: str) -> tuple[dict[str, str] | None, str]:
    text = STREAMS + DERIVED + "".join(f"SELECT * FROM {query};" for query in queries)
    keys_of = keys(compile_text(text).program)
    return None if keys_of.columns is None else dict(keys_of.columns), keys_of.why


@pytest.mark.parametrize(
    ("queries", "columns"),
    [
        (["R, S WHERE R.a = S.b WINDOW RANGE 9"], {"R": "a", "S": "b"}),
        (["R, S WHERE R.c = S.c AND R.b > S.b WINDOW UNBOUNDED"], {"R": "c", "S": "c"}),
        (["R, S, T WHERE R.a = S.a AND S.a = T.b WINDOW NOW"], {"R": "a", "S": "a", "T": "b"}),
        (["R, S, T WHERE R.a = S.a AND R.a = T.b WINDOW NOW"], {"R": "a", "S": "a", "T": "b"}),
        (["R, S WHERE (R.a = S.a AND R.b > 1) OR (R.a = S.a AND R.b < 1) WINDOW NOW"],
         {"R": "a", "S": "a"}),
        (["R p, R q WHERE p.a = q.a WINDOW RANGE 9"], {"R": "a"}),
        (["R p, R q WHERE p.a = q.a WINDOW RANGE 9", "T WINDOW NOW"], {"R": "a", "T": "a"}),
        (["R, S WHERE R.a = S.a AND R.b = S.b WINDOW NOW", "S, T WHERE S.b = T.b WINDOW NOW"],
         {"R": "b", "S": "b", "T": "b"}),
        (["R, S WHERE R.a = S.a WINDOW NOW", "R, S WHERE 1 = 2 WINDOW ROWS 5"],
         {"R": "a", "S": "a"}),
        (["R WHERE R.a = 1 WINDOW ROWS 5"], {}),
    ],
)  # fmt: skip
def test_what_every_join_equates(queries: list[str], columns: dict[str, str]) -> None:
    assert found(*queries)[0] == columns


@pytest.mark.parametrize(
    ("queries", "why"),
    [
        (["R, S WHERE R.a < S.a WINDOW NOW"], "query q0 does not equate"),
        (["R, S WHERE R.a = S.a OR R.b = S.b WINDOW NOW"], "query q0 does not equate"),
        (["R, S WHERE R.x = S.x WINDOW NOW"], "query q0 does not equate"),
        (["R, S WHERE R.ts = S.b WINDOW NOW"], "query q0 does not equate"),
        (["R, S, T WHERE R.a = S.a AND S.b = T.b WINDOW NOW"], "query q0 does not equate"),
        (["R p, R q WHERE p.a = q.b WINDOW NOW"], "query q0 does not equate"),
        (["R, S WHERE R.a = S.a WINDOW ROWS 5, NOW"], "query q0 counts tuples"),
        (["R, S WHERE R.a = S.a WINDOW NOW", "R, S WHERE R.b = S.b WINDOW NOW"],
         "the queries equate different columns"),
        (["R, S WHERE R.a = S.a WINDOW NOW", "z WINDOW NOW"], "query q1 reads a derived stream"),
        (["R, S WHERE R.a = S.a WINDOW NOW", "X WINDOW NOW"], "stream X has no column that is a key"),
    ],
)  # fmt: skip
def test_what_cannot_be_divided(queries: list[str], why: str) -> None:
    columns, reason = found(*queries)
    assert columns is None
    assert why in reason


@pytest.mark.parametrize(
    ("query", "columns", "why"),
    [
        ("SELECT count(*) FROM R GROUP BY R.c WINDOW RANGE 9", {"R": "c"}, "every group has one"),
        ("SELECT count(*) FROM R WINDOW RANGE 9", None, "query q0 has groups of several keys"),
        ("SELECT count(*) FROM R GROUP BY R.x WINDOW NOW", None, "query q0 has groups of several"),
        ("SELECT count(*) FROM R GROUP BY R.c WINDOW ROWS 9", None, "query q0 counts tuples"),
        ("SELECT S.c, count(*) FROM R, S WHERE R.a = S.a AND R.c = S.c GROUP BY S.c WINDOW NOW",
         {"R": "c", "S": "c"}, "every join equates them"),
        ("SELECT R.b, count(*) FROM R, S WHERE R.a = S.a GROUP BY R.b WINDOW NOW", None,
         "query q0 has groups of several keys"),
        ("PATTERN ANY p; ANY q FROM R TYPE BY c PARTITION BY B WITHIN 9 ms RETURN p.a", {"R": "b"},
         "every group has one"),
        ("PATTERN ANY p; ANY q FROM R TYPE BY c WITHIN 9 ms RETURN p.a", None,
         "query q0 is not partitioned by a key"),
        ("PATTERN ANY p; ANY q FROM z2 TYPE BY c PARTITION BY c WITHIN 9 ms RETURN p.c", None,
         "query q0 reads a derived stream"),
    ],
)  # fmt: skip
def test_groups_and_patterns_are_of_one_key(
    query: str, columns: dict[str, str] | None, why: str
) -> None:
    derived = "CREATE STREAM z2 AS SELECT c FROM R WINDOW 1;"
    found = keys(compile_text(STREAMS + derived + query + ";").program)
    assert (None if found.columns is None else dict(found.columns)) == columns
    assert why in found.why


def test_divided_tuples_join_as_they_did() -> None:
    """Over 1, 2 and 5 devices, any way of sending keys to devices: the same results."""
    chance = np.random.default_rng(5)
    text = STREAMS + (
        "SELECT R.a, R.b, S.b FROM R, S WHERE R.a = S.a AND R.b <= S.b WINDOW RANGE 40;"
        "SELECT S.b, T.b FROM S, T WHERE T.a = S.a WINDOW UNBOUNDED, NOW;"
        "SELECT R.a, count(*), max(R.b) FROM R GROUP BY R.a WINDOW RANGE 30;"
        "SELECT S.a, S.b, count(*) FROM S, T WHERE T.a = S.a GROUP BY S.a, S.b WINDOW RANGE 20;"
        "PATTERN ANY p; ANY q FROM R TYPE BY c PARTITION BY a WITHIN 50 ms RETURN p.b, q.b AS r;"
    )
    compilation = compile_text(text)
    columns = dict(keys(compilation.program).columns or ())
    rows = {}
    for stream in compilation.streams[:3]:
        values = {"ts": pa.array(np.sort(chance.integers(0, 500, 150)))}
        for column in stream.columns:
            number = chance.integers(0, 12, 150)
            values[column.name] = pa.array(
                [str(n) for n in number] if column.name == "c" else number
            )
        rows[stream.name] = pa.table(values)
    want = None
    for devices in (1, 2, 5):
        got = []
        place = chance.integers(0, devices, 12)
        for device in range(devices):
            live = GraphRun(compilation, GoldenDevice(compilation.options.config))
            for name, table in rows.items():
                mine = place[np.asarray(table.column(columns[name]))] == device
                live.push(name, table.filter(pa.array(mine)))
                live.end(name)
            got += [(name, *row) for name, t in live.advance() for row in _rows(t)]
        assert {row[0] for row in got} == set(compilation.program.names)
        want = want or sorted(got)
        assert len(want) > 200
        assert sorted(got) == want


def _rows(table: pa.Table) -> list[tuple[object, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))
