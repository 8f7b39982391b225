"""Keys: found where the conditions imply them; tuples partitioned by them join as before."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from seustream.compiler.pipeline import compile_text
from seustream.compiler.plan.keys import Keys, keys, keys_of_each
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
        (["R, S WHERE R.a = S.a WINDOW NOW", "z WINDOW NOW"], {"R": "a", "S": "a", "T": "a"}),
        (["z, R WHERE z.a = R.b WINDOW NOW"], {"R": "b", "T": "a"}),
    ],
)  # fmt: skip
def test_what_every_join_equates(queries: list[str], columns: dict[str, str]) -> None:
    assert found(*queries)[0] == columns


@pytest.mark.parametrize(
    ("queries", "why"),
    [
        (["R, S WHERE R.a < S.a WINDOW NOW"], "query q0 does not equate"),
        (["R, S WHERE R.a = S.a OR R.b = S.b WINDOW NOW"], "query q0 does not equate"),
        (["R, S WHERE R.x = S.x WINDOW NOW"], "query q0 equates columns of type real, where a key is a whole"),
        (["R, S WHERE R.ts = S.b WINDOW NOW"], "query q0 does not equate"),
        (["R, S, T WHERE R.a = S.a AND S.b = T.b WINDOW NOW"], "query q0 does not equate"),
        (["R p, R q WHERE p.a = q.b WINDOW NOW"], "query q0 does not equate"),
        (["R, S WHERE R.a = S.a WINDOW ROWS 5, NOW"], "query q0 counts tuples"),
        (["R, S WHERE R.a = S.a WINDOW NOW", "R, S WHERE R.b = S.b WINDOW NOW"],
         "the queries equate different columns"),
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
        ("SELECT count(*) FROM R WINDOW RANGE 9", None, "query q0 has one group of all rows"),
        ("SELECT count(*) FROM R GROUP BY TUMBLE(ts, 9)", None, "query q0 has one group of all rows"),
        ("SELECT count(*) FROM R GROUP BY R.x WINDOW NOW", None, "query q0 groups by a column of type real"),
        ("SELECT count(*) FROM R GROUP BY R.c WINDOW ROWS 9", None, "query q0 counts tuples"),
        ("SELECT S.c, count(*) FROM R, S WHERE R.a = S.a AND R.c = S.c GROUP BY S.c WINDOW NOW",
         {"R": "c", "S": "c"}, "every join equates them"),
        ("SELECT R.b, count(*) FROM R, S WHERE R.a = S.a GROUP BY R.b WINDOW NOW", None,
         "query q0 has groups of several keys"),
        ("PATTERN ANY p; ANY q FROM R TYPE BY c PARTITION BY B WITHIN 9 ms RETURN p.a", {"R": "b"},
         "every group has one"),
        ("PATTERN ANY p; ANY q FROM R TYPE BY c WITHIN 9 ms RETURN p.a", None,
         "query q0 is not partitioned by a key"),
        ("PATTERN ANY p; ANY q FROM z2 TYPE BY c PARTITION BY c WITHIN 9 ms RETURN p.c", {"R": "c"},
         "every group has one"),
    ],
)  # fmt: skip
def test_groups_and_patterns_are_of_one_key(
    query: str, columns: dict[str, str] | None, why: str
) -> None:
    derived = "CREATE STREAM z2 AS SELECT c FROM R WINDOW 1;"
    found = keys(compile_text(STREAMS + derived + query + ";").program)
    assert (None if found.columns is None else dict(found.columns)) == columns
    assert why in found.why


DERIVED_STREAMS = """
CREATE STREAM j AS SELECT R.a AS left_key, R.a AS same, S.b, R.c FROM R, S WHERE R.a = S.a WINDOW RANGE 9;
CREATE STREAM outer_join AS SELECT R.a, S.a AS other, R.b FROM R LEFT JOIN S ON R.a = S.a WINDOW RANGE 9;
CREATE STREAM sums AS SELECT R.c, count(*) AS n FROM R GROUP BY R.c WINDOW RANGE 9;
"""


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        # trees of joins
        ("SELECT R.b FROM R LEFT JOIN S ON R.a = S.a AND R.b < S.b WINDOW RANGE 9", {"R": "a", "S": "a"}),
        ("SELECT R.b FROM R FULL JOIN S ON R.a = S.a WINDOW RANGE 9", {"R": "a", "S": "a"}),
        ("SELECT R.b FROM R LEFT JOIN S ON R.b < S.b WHERE R.a = S.a WINDOW RANGE 9", None),
        ("SELECT R.b FROM R LEFT JOIN S ON R.a = S.a LEFT JOIN T ON S.a = T.a WINDOW RANGE 9",
         {"R": "a", "S": "a", "T": "a"}),
        ("SELECT R.b FROM R LEFT JOIN S ON R.b = S.b LEFT JOIN T ON R.a = T.a AND S.a = T.a WINDOW RANGE 9",
         None),
        ("SELECT R.b FROM R WHERE NOT EXISTS (SELECT 1 FROM S WHERE S.a = R.a) WINDOW RANGE 9",
         {"R": "a", "S": "a"}),
        ("SELECT R.a, count(*) FROM R LEFT JOIN S ON R.a = S.a GROUP BY R.a WINDOW RANGE 9",
         {"R": "a", "S": "a"}),
        ("SELECT S.a, count(*) FROM R LEFT JOIN S ON R.a = S.a GROUP BY S.a WINDOW RANGE 9", None),
        # windows of the last rows of each partition
        ("SELECT a, count(*) FROM R GROUP BY a WINDOW PARTITION BY c ROWS 1", None),
        ("SELECT a, count(*) FROM R GROUP BY a WINDOW PARTITION BY b, A ROWS 1", {"R": "a"}),
        ("SELECT a, count(*) FROM R GROUP BY a, b WINDOW PARTITION BY b ROWS 1", {"R": "b"}),
        ("SELECT R.b FROM R, S WHERE R.a = S.a WINDOW NOW, PARTITION BY c ROWS 1", None),
        ("SELECT R.x FROM R, S WHERE R.a = S.a AND R.b = S.b WINDOW NOW, PARTITION BY b ROWS 1",
         {"R": "b", "S": "b"}),
        ("SELECT R.b FROM R LEFT JOIN S ON R.a = S.a WINDOW NOW, PARTITION BY c ROWS 1", None),
        ("SELECT R.b FROM R LEFT JOIN S ON R.a = S.a WINDOW NOW, PARTITION BY a ROWS 1",
         {"R": "a", "S": "a"}),
        ("SELECT left_key, count(*) FROM j GROUP BY left_key WINDOW PARTITION BY same ROWS 1",
         {"R": "a", "S": "a"}),
        ("SELECT left_key, count(*) FROM j GROUP BY left_key WINDOW PARTITION BY c ROWS 1", None),
        ("SELECT x FROM R WINDOW PARTITION BY c ROWS 1", {}),
        ("SELECT x FROM R WINDOW PARTITION BY c ROWS 1 EMIT CHANGES", {"R": "c"}),
        ("SELECT x FROM R WINDOW ROWS 1 EMIT CHANGES", None),
        ("SELECT x FROM R WINDOW RANGE 9 EMIT CHANGES", {}),
        # windows of groups, DISTINCT, UNION ALL, OVER
        ("SELECT R.a, count(*) FROM R GROUP BY TUMBLE(ts, 9 ms), R.a", {"R": "a"}),
        ("SELECT R.a + 1, count(*) FROM R GROUP BY TUMBLE(ts, 9 ms), R.a + 1", None),
        ("SELECT count(*) FROM R GROUP BY TUMBLE(ts, 9 ms)", None),
        ("SELECT R.a, count(*) AS n FROM R GROUP BY TUMBLE(ts, 9 ms), R.a ORDER BY n LIMIT 2", None),
        ("SELECT DISTINCT R.a, R.x FROM R WINDOW RANGE 9", {"R": "a"}),
        ("SELECT DISTINCT R.x FROM R WINDOW RANGE 9", None),
        ("SELECT DISTINCT R.a FROM R WINDOW ROWS 9", None),
        ("SELECT R.a FROM R WINDOW NOW UNION ALL SELECT T.a FROM T WINDOW NOW", {}),
        ("SELECT a, row_number() OVER (PARTITION BY a ORDER BY ts) AS n FROM R", {"R": "a"}),
        ("SELECT a, row_number() OVER (ORDER BY ts) AS n FROM R", None),
        ("SELECT a, sum(b) OVER (PARTITION BY a ORDER BY ts) AS n, row_number() OVER (PARTITION BY c ORDER BY ts)"
         " AS m FROM R", None),
        # keys that come through derived streams
        ("SELECT j.c, T.b FROM j, T WHERE j.left_key = T.b WINDOW NOW", {"R": "a", "S": "a", "T": "b"}),
        ("SELECT j.c, T.b FROM j, T WHERE j.b = T.b WINDOW NOW", None),
        ("SELECT j.left_key, count(*) FROM j GROUP BY j.left_key WINDOW RANGE 9", {"R": "a", "S": "a"}),
        ("SELECT o.a FROM outer_join o, T WHERE o.a = T.a WINDOW NOW", {"R": "a", "S": "a", "T": "a"}),
        ("SELECT o.a FROM outer_join o, T WHERE o.other = T.a WINDOW NOW", None),
        ("SELECT s.n FROM sums s, S t WHERE s.c = t.c WINDOW NOW", {"R": "c", "S": "c"}),
        ("SELECT s.n FROM sums s, R r WHERE s.n = r.a WINDOW NOW", None),
        ("SELECT a, count(*) FROM (SELECT a FROM R WINDOW NOW UNION ALL SELECT b FROM T WINDOW NOW) AS u"
         " GROUP BY TUMBLE(ts, 9 ms), a", {"R": "a", "T": "b"}),
    ],
)  # fmt: skip
def test_operations_and_derived_streams(query: str, columns: dict[str, str] | None) -> None:
    program = compile_text(STREAMS + DERIVED_STREAMS + f"REGISTER QUERY q AS {query};").program
    (found,) = keys_of_each(program).values()
    assert (None if found.columns is None else dict(found.columns)) == columns
    assert found.why


def test_an_apas_query_has_no_key() -> None:
    text = "CREATE STREAM h AS APAS $$ where window.range($R, 12) select h[n = agg.count($R)] $$;"
    found = keys(compile_text(STREAMS + text + "SELECT n FROM h WINDOW NOW;").program)
    assert found == Keys(None, "query h is APAS, whose tuples meet by their times alone")


def test_each_query_may_have_a_key_of_its_own() -> None:
    text = "SELECT 1 FROM R, S WHERE R.a = S.a WINDOW NOW; SELECT 1 FROM R, S WHERE R.b = S.b WINDOW NOW;"
    program = compile_text(STREAMS + text).program
    assert keys(program).columns is None
    assert {name: one.of("R") for name, one in keys_of_each(program).items()} == {
        "q0": "a",
        "q1": "b",
    }


def test_divided_tuples_join_as_they_did() -> None:
    """Gives the same results over 1, 2 and 5 devices, however keys are sent to devices."""
    chance = np.random.default_rng(5)
    text = STREAMS + (
        "SELECT R.a, R.b, S.b FROM R, S WHERE R.a = S.a AND R.b <= S.b WINDOW RANGE 40;"
        "SELECT S.b, T.b FROM S, T WHERE T.a = S.a WINDOW UNBOUNDED, NOW;"
        "SELECT R.a, count(*), max(R.b) FROM R GROUP BY R.a WINDOW RANGE 30;"
        "SELECT S.a, S.b, count(*) FROM S, T WHERE T.a = S.a GROUP BY S.a, S.b WINDOW RANGE 20;"
        "SELECT a, sum(b), count(*) FROM T GROUP BY a WINDOW PARTITION BY a, b ROWS 2;"
        "PATTERN ANY p; ANY q FROM R TYPE BY c PARTITION BY a WITHIN 50 ms RETURN p.b, q.b AS r;"
        "CREATE STREAM j AS SELECT R.a, R.b FROM R LEFT JOIN S ON R.a = S.a AND R.b < S.b WINDOW RANGE 20;"
        "SELECT j.a, T.b FROM j FULL JOIN T ON j.a = T.a WINDOW RANGE 9;"
        "SELECT a, count(*), max(b) FROM j GROUP BY TUMBLE(ts, 25 ms), a;"
        "SELECT DISTINCT a, b FROM T WINDOW RANGE 60;"
        "SELECT a, b, lag(b) OVER (PARTITION BY a ORDER BY ts) AS p FROM R;"
        "SELECT R.b FROM R WHERE NOT EXISTS (SELECT 1 FROM T WHERE T.a = R.a) WINDOW RANGE 15;"
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
    want: list[tuple[object, ...]] = []
    for devices in (1, 2, 5):
        got = []
        place = chance.integers(0, devices, 12)
        for device in range(devices):
            live = GraphRun(compilation, GoldenDevice(compilation.options.config))
            for name, table in rows.items():
                mine = place[np.asarray(table.column(columns[name]))] == device
                live.push(name, table.filter(pa.array(mine)))
                live.end(name)
            got += [(name, *row) for name, t in live.finish() for row in _rows(t)]
        assert {row[0] for row in got} == set(compilation.program.names)
        want = want or sorted(got, key=repr)
        assert len(want) > 200
        assert sorted(got, key=repr) == want


def _rows(table: pa.Table) -> list[tuple[object, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))
