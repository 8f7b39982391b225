"""The representations of results and explanations."""

from __future__ import annotations

import datetime
import json
from xml.etree import ElementTree

import pyarrow as pa
import pytest

import seustream as ss
from seustream.results import QueryResult


def test_a_notebook_shows_the_first_rows() -> None:
    table = pa.table({"a<b": [None, *["<i>"] * 24]})
    shown = QueryResult("q&a", table)._repr_html_()
    root = ElementTree.fromstring(f"<div>{shown}</div>")
    assert root.findtext("table/caption") == "q&a, 25 rows"
    assert root.findtext("table/tr/th") == "a<b"
    assert len(root.findall("table/tr")) == 21
    assert root.findtext("table/tr/td/i") == "NULL"
    assert root.findtext("p") == "… 5 more rows"


def test_frames_and_tuples_hold_the_same() -> None:
    table = pa.table({"a": [1, 2], "b": ["x", None]})
    found = QueryResult("q", table)
    assert found.arrow() is table
    assert found.df().a.tolist() == [1, 2]
    assert found.pl().rows() == found.rows() == [(1, "x"), (2, None)]
    assert repr(found) == "q: 2 rows of a, b"


def test_an_explanation_of_each_kind_of_query() -> None:
    with ss.connect() as con:
        con.sql(
            "CREATE STREAM R (a int, kind varchar(1)); REGISTER QUERY low AS SELECT a FROM R WINDOW NOW;"
            "REGISTER QUERY up AS PATTERN A x; B y FROM R TYPE BY kind WITHIN 5 s RETURN x.a"
        )
        for query, said in (("LOW", "low"), ("up", "up"), (None, "low")):
            found = con.explain(query)
            assert said in str(found)
            assert repr(found) == str(found)
            assert json.dumps(found.json())
            assert ElementTree.fromstring(found.svg()).tag.endswith("svg")
            assert "<svg" in found._repr_html_()


def test_a_name_that_is_not_there_is_a_mistake_with_a_hint() -> None:
    found = ss.run("REGISTER QUERY low AS SELECT a FROM R", R={"ts": [1], "a": [5]})
    with pytest.raises(ss.Error, match="there is no query lo") as caught:
        found["lo"]
    assert isinstance(caught.value, KeyError)
    assert caught.value.hint == "did you mean low?"
    assert found.get("lo") is None


def test_times_that_python_lacks_are_texts() -> None:
    last = datetime.datetime(9999, 12, 31)
    text = "SELECT window_start, window_end, count(*) AS n FROM R GROUP BY TUMBLE(ts, 1 day)"
    found = ss.run(text, R={"ts": [last - datetime.timedelta(days=1), last], "a": [1, 1]})["q0"]
    assert [row[:3] for row in found.rows()] == [
        (last - datetime.timedelta(days=1), last, 1),
        (last, "10000-01-01T00:00:00.000000", 1),
    ]
    assert "10000-01-01T00:00:00" in found._repr_html_()
    far = pa.table({"a": pa.array([[0, 1 << 60], None], pa.list_(pa.timestamp("ms")))})
    (times,), (none,) = QueryResult("q", far).rows()
    assert times == [datetime.datetime(1970, 1, 1), "36536598-01-28T21:54:06.976"]
    assert none is None
