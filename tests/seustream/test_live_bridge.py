"""Queries behind a bridge: several clients, a writer that returns, results that were given up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import seustream as ss
from seustream.cosim.bridge.client import BridgeClient
from seustream.cosim.bridge.limits import USUAL
from seustream.cosim.bridge.protocol import Statement
from tests.cosim.bridge.serving import bridge


def test_rows_for_queries_that_others_registered(tmp_path: Path) -> None:
    """Rows pushed to a stream that another client created reach its queries; none is lost."""
    with bridge(tmp_path) as (_, url), BridgeClient(url, None, None, 10) as client:
        text = "CREATE STREAM R (a int); REGISTER QUERY q AS SELECT a FROM R WINDOW NOW"
        client.act("statement", Statement(text))
        with ss.connect(url) as con:
            con.push("R", {"ts": [1, 2], "a": [7, 8]})
            con.push("r", {"ts": [3], "a": [9]})
            con.watermark("R", 10)
        client.flush()
        assert client.read("q", 0, 3).column("a").to_pylist() == [7, 8, 9]


def test_the_catalogue_of_a_bridge_is_that_of_all_clients(tmp_path: Path) -> None:
    with bridge(tmp_path) as (_, url), ss.connect(url) as one, ss.connect(url) as other:
        one.sql("CREATE STREAM R (a int); REGISTER QUERY q AS SELECT a FROM R WHERE a > 5")
        other.sql("REGISTER QUERY low AS SELECT a FROM R WHERE a < 5")
        assert other.sql("DESCRIBE R; SHOW CREATE STREAM R") == (
            "ts bigint NOT NULL\na int\nCREATE STREAM R (a int)"
        )
        one.sql("CREATE STREAM S (b int)")
        assert [(q["name"], q["phase"]) for q in one.queries()] == [
            ("q", "RUNNING"), ("low", "RUNNING"),
        ]  # fmt: skip
        other.subscribe("Q")
        one.push("R", {"ts": [1, 2], "a": [3, 7]})
        one.watermark("R", 5)
        assert [(name, rows.rows()) for name, rows in one.results()] == [("q", [(7, 2, 2)])]
        assert sorted((name, rows.rows()) for name, rows in other.results()) == [
            ("low", [(3, 1, 1)]), ("q", [(7, 2, 2)]),
        ]  # fmt: skip
        other.sql("DROP QUERY q; REGISTER OR REPLACE QUERY low AS SELECT a, a + 1 AS b FROM R")
        assert [q["name"] for q in one.queries()] == ["low"]
        with pytest.raises(ss.Error, match="there is no query q"):
            one.explain("q")
        other.push("S", {"ts": [1], "b": [3]})
        one.subscribe("low")
        one.push("R", {"ts": [7], "a": [9]})
        one.watermark("R", 8)
        for con in (one, other):
            assert [(n, rows.rows()) for n, rows in con.results()] == [("low", [(9, 10, 7, 7)])]
        with pytest.raises(ss.Error, match="there is no stream T") as caught:
            other.sql("REGISTER QUERY x AS SELECT a FROM T")
        assert (caught.value.line, caught.value.column) == (1, 35)


def test_a_program_that_names_its_writer_goes_on(tmp_path: Path) -> None:
    with bridge(tmp_path) as (_, url):
        with ss.connect(url, writer="till 3") as con:
            con.sql("CREATE STREAM R (a int); REGISTER QUERY q AS SELECT a FROM R")
            con.push("R", {"ts": [1], "a": [1]})
            con.push("R", {"ts": [2], "a": [2]})
        with (
            ss.connect(url) as con,
            pytest.raises(ss.Error, match="fed by writer till 3, up to epoch 1"),
        ):
            con.push("R", {"ts": [3], "a": [3]})
        with ss.connect(url, writer="till 3") as con:
            con.push("R", {"ts": [3], "a": [3]})
            con.watermark("R", 9)
            con.subscribe("q")
            assert [rows.rows() for _, rows in con.results()] == [[(1, 1, 1), (2, 2, 2), (3, 3, 3)]]


def test_results_that_gave_way_to_newer_ones_are_counted(tmp_path: Path) -> None:
    limits = replace(USUAL, live_rows=5)
    with (
        bridge(tmp_path, limits=limits) as (_, url),
        BridgeClient(url, None, None, 10) as client,
        ss.connect(url) as con,
    ):
        text = "CREATE STREAM R (a int); REGISTER QUERY q AS SELECT a FROM R"
        client.act("statement", Statement(text))
        con.subscribe("q")
        for a in range(12):
            con.push("R", {"ts": [a], "a": [a]})
        con.watermark("R", 99)
        with pytest.warns(ss.DataWarning, match="q: 7 results are not kept any more"):
            ((_, rows),) = con.results()
        assert [row[0] for row in rows.rows()] == [7, 8, 9, 10, 11]
