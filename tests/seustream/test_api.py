"""`seustream.run`, and the examples in the docstring of every public name."""

from __future__ import annotations

import datetime
import doctest
import subprocess
import sys
import traceback
import warnings
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import hypothesis
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import strategies as st

import seustream as ss
from seustream.errors import InputError

Row = tuple[int, int, int]
JOIN = "REGISTER QUERY j AS SELECT R.a, R.b, S.c FROM R, S WHERE R.a = S.a WINDOW RANGE 50"


@pytest.mark.parametrize("name", ss.__all__)
def test_every_public_name_has_an_example(name: str) -> None:
    found = doctest.DocTestFinder().find(getattr(ss, name), name, globs={})
    examples = [one for one in found if one.examples]
    assert examples
    for example in examples:
        assert doctest.DocTestRunner().run(example).failed == 0


def test_names_are_listed_and_others_refused() -> None:
    assert set(ss.__all__) <= set(dir(ss))
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        ss.nothing  # noqa: B018


ROWS = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 3), st.integers(0, 999)), max_size=20)
"""Milliseconds, key and value; Hypothesis shrinks a failing case."""


@hypothesis.settings(max_examples=15, deadline=None, database=None)
@hypothesis.given(ROWS, ROWS)
def test_joins_against_duckdb(ours: list[Row], theirs: list[Row]) -> None:
    begin = datetime.datetime(2026, 1, 1)

    def rows(value: str, given: list[Row]) -> pa.Table:
        ms, keys, values = zip(*sorted(given), strict=True) if given else ((), (), ())
        ts = pa.array(
            [begin + datetime.timedelta(milliseconds=at) for at in ms], pa.timestamp("us")
        )
        return pa.table(
            {"ts": ts, "a": pa.array(keys, pa.int64()), value: pa.array(values, pa.int64())}
        )

    r, s = rows("b", ours), rows("c", theirs)
    found = ss.run(JOIN, R=r.to_pandas(), S=s)["j"]
    with duckdb.connect() as connection:
        connection.register("R", r)
        connection.register("S", s)
        wanted = connection.execute(
            "SELECT R.a, R.b, S.c, least(R.ts, S.ts), greatest(R.ts, S.ts) FROM R, S"
            " WHERE R.a = S.a AND abs(epoch_us(R.ts) - epoch_us(S.ts)) <= 50000"
        ).fetchall()
    assert sorted(found.rows()) == sorted(wanted)


def test_a_file_a_declared_stream_and_a_pattern(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("ts,kind,x\n1,A,1\n2,B,5\n3,B,7\n")
    (tmp_path / "q.xsql").write_text(
        "CREATE STREAM S (kind varchar(1), x smallint);\n"
        "REGISTER QUERY up AS PATTERN A a; B b FROM S TYPE BY kind WHERE b.x > a.x WITHIN 9 s RETURN a.x, b.x AS y"
    )
    found = ss.run(tmp_path / "q.xsql", S=tmp_path / "s.csv", backend="iss")
    assert set(found["up"].rows()) == {(1, 5), (1, 7)}


def test_a_query_without_results_has_its_columns() -> None:
    found = ss.run("SELECT a FROM R WHERE a > 9 WINDOW NOW", streams={"R": {"ts": [1], "a": [5]}})
    assert (len(found["q0"]), found["q0"].columns) == (0, ["a", "ts_oldest", "ts_newest"])


def test_late_rows_are_said_and_slack_takes_them() -> None:
    rows = {"ts": [5, 3], "a": [1, 2]}
    with pytest.warns(ss.DataWarning, match="stream R: 1 late row left out"):
        assert len(ss.run("SELECT a FROM R WINDOW NOW", R=rows)["q0"]) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(ss.run("SELECT a FROM R WINDOW NOW", R=rows, slack=2)["q0"]) == 2


def test_rows_that_apas_does_not_take_are_said() -> None:
    rows = {"ts": [1, 2, 3, 4, 5], "id": [1, 0, 2, 3, 4], "x": [1] * 5, "te": [9, 9, 9, 3, 4]}
    with pytest.warns(ss.DataWarning) as seen:
        ss.run(
            "CREATE STREAM s (id int, x int, te bigint); REGISTER QUERY q AS APAS"
            " $$ where window.table($s, $s.id) select o[v = agg.sum($s.x)] $$",
            s=rows,
        )
    assert [str(one.message) for one in seen] == [
        "stream s: 2 rows not taken by APAS, te is before ts",
        "1 row with key 0 dropped from time-tables of q",
    ]


R = {"ts": [1], "a": [0]}


@pytest.mark.parametrize(
    ("sql", "options", "message", "hint"),
    [
        ("SELECT b FROM R WINDOW NOW", {}, "no stream of this query has a column b", "known columns: a"),
        ("SELECT a FRM R", {}, "<sql>:1:10", None),
        ("", {}, "there are no queries in it", "SELECT"),
        ("SELECT a FROM R WINDOW NOW", {"backend": "gold"}, "there is no backend 'gold'", "golden"),
        ("SELECT a FROM R WINDOW NOW", {"backend": None}, "backend = None: want a text", None),
        ("SELECT a FROM R WINDOW NOW", {"streams": [5]}, "streams = [5]: want a dict", None),
        ("SELECT a FROM R WINDOW NOW", {"streams": {5: R}}, "stream = 5: want a text", None),
        ("SELECT a FROM R WINDOW NOW", {"config": "tin"}, "there is no configuration", "tiny"),
        ("SELECT 1 / a AS b FROM R WINDOW NOW", {"strict": True}, "division by zero", "exclude"),
        ("CREATE STREAM S (b int); SELECT b FROM S WINDOW NOW", {}, "no rows for stream S", "S=frame"),
        ("CREATE STREAM J AS SELECT a FROM R WINDOW NOW; SELECT a FROM J WINDOW NOW", {"J": R}, "J is defined by a query", None),
        ("SELECT a FROM R WINDOW NOW", {"r": R}, "given twice", None),
        (Path("none.xsql"), {}, "none.xsql: cannot be read", None),
        (None, {}, "queries are a text or the Path of a file, not NoneType", "SELECT"),
        ("SELECT * FROM S", {"S": {"ts": [1], "a": [1], "x": [1], "X": [2]}}, "S: column x is there 2 times: 'x', 'X'", "rename one"),
        ("SELECT a FROM R WINDOW NOW", {"slak": 5}, "slak: int is no table", "did you mean slack=?"),
        ("SELECT a FROM R WINDOW NOW", {"config": 5}, "there is no configuration 5", "tiny"),
        ("SELECT a FROM R WINDOW NOW", {"config": "no.json"}, "no.json: cannot be read: No such file", None),
        ("SELECT a FROM R WHERE a > :x", {"parameters": [5]}, "parameters = [5]: want a dict", None),
        ("SELECT a FROM R WHERE a > :x", {"parameters": {"x": [5]}}, "parameter :x (list) is no constant", "a number, text"),
        ("SELECT a FROM R WINDOW NOW", {"slack": -5}, "slack = -5 is no duration", "5s"),
        ("SELECT a FROM R WINDOW NOW", {"devices": "two"}, "devices = 'two': want a number up to 64", None),
        ("SELECT a FROM R WINDOW NOW", {"devices": -1}, "devices = -1: want a number up to 64", None),
        ("SELECT a FROM S", {"S": {"ts": [1], "a": [2**70]}}, "S: column a: Python int too large", None),
        ("SELECT a FROM S", {"S": {"ts": [1, 2], "a": ["x", 5]}}, "S: column a: ", None),
        ('CREATE STREAM S (a int) WITH (time="t"); SELECT a FROM S', {"S": {"a": [1]}}, "'\"t\"' is unexpected", "CREATE STREAM name"),
        ("SELECT a FROM R WINDOW NOW", {"stream": {"a": [1]}}, "no time column", "did you mean streams=?"),
        ("SELECT a FROM stream WINDOW NOW", {"stream": {"a": [1]}}, "no time column", "milliseconds"),
    ],
)  # fmt: skip
def test_mistakes(
    sql: str | None, options: dict[str, object], message: str, hint: str | None
) -> None:
    with pytest.raises(ss.Error) as caught:
        ss.run(sql, R=R, **options)  # type: ignore[arg-type]
    assert message in str(caught.value)
    assert hint is None or hint in (caught.value.hint or "")


def test_devices_are_counted_as_on_the_command_line() -> None:
    text = "SELECT R.a FROM R, S WHERE R.a = S.a WINDOW RANGE 10"
    found = [
        ss.run(text, R=R, S=R, backend="golden", devices=n)["q0"].rows() for n in (1, 0, 2, "auto")
    ]
    assert found[0]
    assert found == 4 * found[:1]


def test_a_traceback_shows_the_hint_once() -> None:
    for sql, rows in (("SELECT a FROM R", {"a": [1]}), ("SELECT b FROM R WINDOW NOW", R)):
        with pytest.raises(ss.Error) as caught:
            ss.run(sql, R=rows)
        shown = "".join(traceback.format_exception(caught.value))
        assert shown.count(f"  hint: {caught.value.hint}\n") == 1


def test_a_mistake_has_its_place() -> None:
    with pytest.raises(ss.Error) as caught:
        ss.run("SELECT a,\n  x FROM R WINDOW NOW", R=R)
    assert (caught.value.line, caught.value.column) == (2, 3)
    with pytest.raises(InputError):
        ss.run("SELECT a FROM R WINDOW NOW", R={"a": [1]})


def test_importing_the_package_imports_none_of_it() -> None:
    code = (
        "import sys, seustream; print(sorted(n for n in sys.modules if n.startswith('seustream.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['seustream.version']"


def test_a_table_has_no_times(tmp_path: Path) -> None:
    """Given as a frame, as a file, or by the path in its statement."""
    (tmp_path / "t.csv").write_text("n,a\none,1\ntwo,2\n")
    named = tmp_path / "t.csv"
    text = "CREATE TABLE t (a int, n varchar){}; REGISTER QUERY q AS SELECT t.n FROM R JOIN t ON R.a = t.a"
    rows = pa.table({"ts": pa.array([5], pa.timestamp("ms")), "a": [2]})
    at = datetime.datetime(1970, 1, 1, 0, 0, 0, 5000)
    frame = pa.table({"a": [1, 2], "n": ["one", "two"]})
    for given in ({"t": frame}, {"t": named}, {}):
        said = "" if given else f" WITH (path = '{named}')"
        assert ss.run(text.format(said), R=rows, **given)["q"].rows() == [("two", at, at)]
    with pytest.raises(InputError, match="no rows for stream t"):
        ss.run(text.format(""), R=rows)


def test_a_reader_is_read_once() -> None:
    """Its columns define the stream, and its rows are taken."""
    table = pa.table({"ts": [1, 2], "a": [5, 6]})
    found = ss.run("SELECT a FROM R", R=table.to_reader())["q0"]
    assert found.rows() == [(5, 1, 1), (6, 2, 2)]
    with ss.connect() as con:
        con.push("R", table.to_reader())
        con.sql("SELECT a FROM R")
        con.push("R", pa.table({"ts": [3], "a": [7]}).to_reader())
        assert [rows.rows() for _, rows in con.finish()] == [[(7, 3, 3)]]


def test_a_configuration_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text('{"name": "mine", "depth": 16}')
    text = "SELECT R.a FROM R, S WHERE R.a = S.a WINDOW 1"
    for config in (tmp_path / "mine.json", str(tmp_path / "mine.json")):
        found = ss.run(text, R=R, S=R, backend="golden", config=config)
        assert found["q0"].rows() == [(0, 1, 1)]


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (np.int64(2), 2),
        (np.float64(0.5), 0.5),
        (float("nan"), None),
        (Decimal("nan"), None),
        (pd.NaT, None),
        (True, True),
    ],
)
def test_parameters(value: Any, found: object) -> None:
    (row,) = ss.run("SELECT :x AS v FROM R", R=R, parameters={"x": value})["q0"].rows()
    assert row[0] == found


@pytest.mark.parametrize(
    "value",
    [
        datetime.datetime.min.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=1))),
        datetime.time(1, tzinfo=datetime.UTC),
        Decimal("inf"),
    ],
)
def test_parameters_that_no_constant_holds(value: Any) -> None:
    with pytest.raises(ss.Error, match=r"parameter :x \(.*\) is no constant"):
        ss.run("SELECT :x AS v FROM R", R=R, parameters={"x": value})


def test_a_percentage_of_a_time() -> None:
    for value in (datetime.timedelta(1), float("inf")):
        with pytest.raises(ss.Error, match="% after :x, which is no number"):
            ss.run("SELECT a FROM R WHERE a < :x%", R=R, parameters={"x": value})


def test_times_of_python_are_constants() -> None:
    day = datetime.date(2026, 1, 2)
    at = datetime.datetime(2026, 1, 2, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=1)))
    noon, hour = datetime.time(12, 0, 0, 1_500), datetime.timedelta(hours=1, microseconds=7)
    text = "SELECT :day AS d, :at AS t, :noon AS c, :hour AS h FROM R"
    found = ss.run(text, R=R, parameters={"day": day, "at": at, "noon": noon, "hour": hour})
    (row,) = found["q0"].rows()
    moment, clock = datetime.datetime(2026, 1, 2), datetime.time(12, 0, 0, 1_000)
    assert row[:4] == (day, moment, clock, datetime.timedelta(hours=1))
