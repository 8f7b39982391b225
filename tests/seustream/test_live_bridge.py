"""Queries behind a bridge: several clients, a writer that returns, results that were given up."""

from __future__ import annotations

import contextlib
import re
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import seustream as ss
from seustream.compiler.apas.libraries import Libraries
from seustream.compiler.apas.streams import WindowFunction
from seustream.compiler.apas.types import INTEGER
from seustream.cosim.bridge.client import BridgeClient
from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.bridge.limits import USUAL
from seustream.cosim.bridge.protocol import Commit, Statement
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
        with pytest.warns(ss.DataWarning, match="q: 7 results are not kept any more") as warned:
            ((_, rows),) = con.results()
        assert warned[0].filename == __file__
        assert [row[0] for row in rows.rows()] == [7, 8, 9, 10, 11]


def test_results_that_give_way_while_they_are_asked_for_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = replace(USUAL, live_rows=5)
    with (
        bridge(tmp_path, limits=limits) as (_, url),
        BridgeClient(url, None, None, 10) as client,
        ss.connect(url) as con,
        ss.connect(url) as reader,
    ):
        text = "CREATE STREAM R (a int); REGISTER QUERY q AS SELECT a FROM R"
        client.act("statement", Statement(text))
        reader.subscribe("q")
        read, fed = reader._client.read, list[int]()

        def feed(first: int, count: int) -> None:
            con.push(
                "R", {"ts": [*range(first, first + count)], "a": [*range(first, first + count)]}
            )
            con.watermark("R", first + count)
            client.flush()

        def late(name: str, *rest: int) -> pa.Table:
            if len(fed) < 3:  # between the two calls of the reader
                fed.append(7)
                feed(7 * len(fed), 7)
            elif len(fed) == 3:
                fed.append(0)
                client.act(
                    "statement", Statement(text.replace("REGISTER", "REGISTER OR REPLACE")[25:])
                )
                feed(100, 3)
            return read(name, *rest)

        feed(0, 7)
        monkeypatch.setattr(reader._client, "read", late)
        ((_, rows),) = reader.results()
        assert [row[0] for row in rows.rows()] == [100, 101, 102]


_QUERY = "CREATE STREAM R (a int); REGISTER QUERY q AS SELECT a FROM R WINDOW NOW"


def _rows(con: ss.LiveQueries) -> list[int]:
    return [row[0] for _, rows in con.results() for row in rows.rows()]


@pytest.mark.parametrize("text", ["DROP QUERY q; REGISTER QUERY q", "REGISTER OR REPLACE QUERY q"])
def test_a_name_that_returns_loses_no_results(tmp_path: Path, text: str) -> None:
    """Neither the client that had the query nor a subscriber takes the results of another query for
    those it has read."""
    with (
        bridge(tmp_path) as (_, url),
        ss.connect(url, writer="a") as one,
        ss.connect(url) as two,
        ss.connect(url) as three,
    ):
        one.sql(_QUERY)
        two.subscribe("q")
        one.push("R", {"ts": [1, 2, 3], "a": [1, 2, 3]})
        assert _rows(one) == _rows(two) == [1, 2, 3]
        for part in text.split("; "):  # also in two texts
            three.sql(part if part.startswith("DROP") else f"{part} AS SELECT a + 10 AS a FROM R")
        assert [query["run"] for query in one.queries()] == [2]
        one.push("R", {"ts": [*range(10, 15)], "a": [*range(5)]})
        one.watermark("R", 99)
        assert _rows(one) == _rows(two) == [*range(10, 15)]


def test_a_program_that_returns_goes_on_reading(tmp_path: Path) -> None:
    """Results it has read make room, also where others loaded the query. Those of the last call
    come again, since it may have ended before it used them."""
    limits = replace(USUAL, result_rows=50)
    with bridge(tmp_path, limits=limits) as (_, url):
        seen: list[int] = []
        for begin in range(0, 300, 60):
            with ss.connect(url, writer="w") as con:
                if begin == 0:
                    con.sql("CREATE STREAM R (a int)")
                    con.sql("REGISTER QUERY q AS SELECT a FROM R WINDOW NOW")
                else:
                    con.subscribe("q")
                for first in range(begin, begin + 60, 20):
                    numbers = [*range(first, first + 20)]
                    con.push("R", {"ts": numbers, "a": numbers})
                    seen += _rows(con)
        assert sorted({*seen}) == [*range(300)]
        assert len(seen) == 300 + 4 * 20


def test_more_results_than_are_kept_come_in_parts(tmp_path: Path) -> None:
    limits = replace(USUAL, result_rows=50)
    with bridge(tmp_path, limits=limits) as (_, url), ss.connect(url) as con:
        con.sql("CREATE STREAM R (a int); REGISTER QUERY q AS SELECT a FROM R WINDOW NOW")
        for first in range(0, 200, 40):
            numbers = [*range(first, first + 40)]
            con.push("R", {"ts": numbers, "a": numbers})
        seen = _rows(con)
        assert 0 < len(seen) < 200
        seen += [row[0] for _, rows in con.finish() for row in rows.rows()]
        assert seen == [*range(200)]


def test_what_a_program_did_not_take_of_the_end_waits_for_it(tmp_path: Path) -> None:
    """Nothing is freed before it is handed out. One that returns is where it was, also beside a
    slower reader."""
    limits = replace(USUAL, result_rows=50)
    with bridge(tmp_path, limits=limits) as (_, url):
        with ss.connect(url, writer="w") as con:
            con.sql(_QUERY)
            for first in range(0, 200, 40):
                numbers = [*range(first, first + 40)]
                con.push("R", {"ts": numbers, "a": numbers})
            seen = [row[0] for row in next(con.finish())[1].rows()]
            assert 0 < len(seen) < 200
        with BridgeClient(url, None, None, 10) as client, ss.connect(url, writer="w") as con:
            client.trim("q", 0, "slow")
            con.subscribe("q")
            again = _rows(con)
            assert again[: len(seen)] == seen  # the results of its last call
            client.trim("q", 40, "slow")
            more = _rows(con)
            assert more[0] == again[-1] + 1
        with ss.connect(url, writer="w") as con:
            con.subscribe("q")
            assert _rows(con)[0] == more[0]  # not all that waits for the slower reader


def test_a_bridge_that_is_away_for_a_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with bridge(tmp_path) as (_, url), ss.connect(url) as con:
        con.sql(_QUERY)
        con.push("R", {"ts": [1], "a": [7]})
        act, failures = BridgeClient.act, iter(["away"])

        def acted(
            self: BridgeClient, name: str, message: object = None, patience: float | None = None
        ) -> object:
            if name == "flush" and next(failures, None):
                raise BridgeError("unavailable", "nobody answers")
            return act(self, name, message, patience)

        monkeypatch.setattr(BridgeClient, "act", acted)
        assert _rows(con) == [7]


@pytest.mark.parametrize("arrived", [True, False])
@pytest.mark.parametrize("again", [[8], [9], [9, 8]])
def test_a_push_without_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arrived: bool, again: list[int]
) -> None:
    """Its rows come once if they are pushed again at once; other rows come whether it is in or not."""
    with bridge(tmp_path) as (_, url), ss.connect(url) as con:
        con.sql(_QUERY)
        con.push("R", {"ts": [1], "a": [7]})
        commit, failures = BridgeClient.commit, iter(["away"])

        def committed(self: BridgeClient, of: Commit) -> object:
            lost = next(failures, None)
            found = commit(self, of) if arrived or lost is None else None
            if lost is not None:
                raise BridgeError("unavailable", "nobody answers")
            return found

        monkeypatch.setattr(BridgeClient, "commit", committed)
        with pytest.raises(ss.Error, match="nobody answers") as error:
            con.push("R", {"ts": [1], "a": [8]})
        assert "taken once" in str(error.value.hint)
        for value in again:
            con.push("R", {"ts": [1], "a": [value]})
        in_before = [8] if arrived and again != [8] else []
        assert _rows(con) == [7, *in_before, *again]


def test_a_bridge_that_others_set_up_keeps_no_results_for_strangers(tmp_path: Path) -> None:
    """Such as a session that live sources began: a client that registers a query and leaves holds up
    nothing."""
    with bridge(tmp_path) as (_, url), BridgeClient(url, None, None, 10) as client:
        client.act("statement", Statement("CREATE STREAM R (a int)"))
        with ss.connect(url) as con:
            con.sql("REGISTER QUERY q AS SELECT a FROM R")
        assert client.latest("q")["bounded"]
        client.act("statement", Statement("DROP QUERY q"))
        with ss.connect(url, writer="w") as con:
            con.sql("REGISTER QUERY q AS SELECT a FROM R")
        assert not client.latest("q")["bounded"]


def test_results_that_were_read_survive_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a call that fails halfway nor a loop that is left early loses any."""
    with bridge(tmp_path) as (_, url), ss.connect(url) as con:
        names = [f"q{number}" for number in range(5)]
        queries = [f"REGISTER QUERY {name} AS SELECT a FROM R WINDOW NOW;" for name in names]
        con.sql("CREATE STREAM R (a int);" + "".join(queries))
        con.push("R", {"ts": [1], "a": [7]})
        read, count = BridgeClient.read, iter(range(99))

        def failing(self: BridgeClient, query: str, start: int, end: int, *run: int) -> pa.Table:
            if next(count) == 3:
                raise BridgeError("away", "gone")
            return read(self, query, start, end, *run)

        monkeypatch.setattr(BridgeClient, "read", failing)
        with pytest.raises(ss.Error, match="gone"):
            list(con.results())
        seen = [next(con.results())[0]]
        seen += [name for name, _ in con.results()]
        assert seen == names


def test_results_are_read_while_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They only take up room for longer."""
    with bridge(tmp_path) as (made, url), ss.connect(url) as con:
        con.sql(_QUERY)
        append, is_full = made.journal.append, [False]

        def appended(record: dict[str, object], sync: bool = True) -> None:
            if is_full[0] and record["kind"] == "trim":
                raise BridgeError("storage", "the journal cannot be written: no space left")
            append(record, sync)

        monkeypatch.setattr(made.journal, "append", appended)
        for a in range(4):
            con.push("R", {"ts": [a], "a": [a]})
            is_full[0] = 0 < a < 3
            assert _rows(con) == [a]
            kept = {0: 1, 1: 2, 2: 3, 3: 1}[a]
            found = [(query["results"], query["kept"]) for query in con.queries()]
            assert found == [(a + 1, kept)]
        made.session.delivery.logs["q"].trim("", 4)
        assert [(query["results"], query["kept"]) for query in con.queries()] == [(4, 0)]


def test_a_statement_counts_while_results_wait(tmp_path: Path) -> None:
    """It is carried out, so there is no error that asks for it again."""
    limits = replace(USUAL, result_rows=10, patience=0.2)
    with bridge(tmp_path, limits=limits) as (_, url), ss.connect(url) as con:
        con.sql(_QUERY)
        for first in range(0, 60, 20):
            numbers = [*range(first, first + 20)]
            con.push("R", {"ts": numbers, "a": numbers})
        con.sql("REGISTER QUERY late AS SELECT a FROM R WINDOW NOW")
        con.sql("DROP QUERY late")
        assert [query["name"] for query in con.queries()] == ["q"]


def test_streams_are_there_for_all_before_there_is_a_query(tmp_path: Path) -> None:
    with bridge(tmp_path) as (_, url), ss.connect(url, slack=5) as one, ss.connect(url) as other:
        one.sql("CREATE STREAM R (a int)")
        assert other.sql("SHOW STREAMS") == "stream R (a int)"
        other.sql("CREATE STREAM S (a int); REGISTER QUERY s AS SELECT a FROM S WINDOW NOW")
        one.sql("REGISTER QUERY q AS SELECT a FROM R WINDOW NOW")
        one.push("R", {"ts": [9, 4], "a": [1, 2]})  # in order, with the slack of the first
        for stream in "RS":
            one.watermark(stream, 20)
        assert _rows(one) == [2, 1]


@pytest.mark.parametrize("where", ["here", "bridge"])
def test_warnings_of_what_apas_does_not_take(where: str, tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(bridge(tmp_path))[1] if where == "bridge" else None
        con = stack.enter_context(ss.connect(url))
        con.sql(
            "CREATE STREAM s (id int, x int, te bigint); REGISTER QUERY q AS APAS"
            " $$ where window.table($s, $s.id) select o[v = agg.sum($s.x)] $$"
        )
        con.push("s", {"ts": [1, 2, 3], "id": [1, 0, 2], "x": [1, 1, 1], "te": [9, 9, 2]})
        with pytest.warns(ss.DataWarning) as seen:
            list(con.finish())
        assert [str(one.message) for one in seen] == [
            "stream s: 1 row not taken by APAS, te is before ts",
            "1 row with key 0 dropped from time-tables of q",
        ]


def test_a_token_may_have_the_line_end_of_its_file(tmp_path: Path) -> None:
    with bridge(tmp_path, token="0123456789abcdef") as (_, url):
        with ss.connect(url, token="0123456789abcdef\n") as con:
            assert con.queries() == []
        with pytest.raises(ss.QueryError, match="no line of ASCII text"):
            ss.connect(url, token="ä" * 16)


class _Until(WindowFunction):
    names = ("stream", "length")
    takes = (INTEGER,)

    def ends(self, ts: Any, te: Any, length: Any) -> Any:
        return ts + length


def test_queries_that_only_the_bridge_can_compile(tmp_path: Path) -> None:
    """They call a library of the bridge; those of other clients keep nobody out, and a program may
    register, read, replace and drop them."""
    libraries = Libraries()
    libraries.register("mine", {"until": _Until()})
    apas = "APAS $$ where mine.until($R, 5) select {}[v = $R.a] $$"
    with (
        bridge(tmp_path, libraries=libraries) as (_, url),
        ss.connect(url) as before,
        BridgeClient(url) as client,
    ):
        before.sql("CREATE STREAM R (a int); REGISTER QUERY plain AS SELECT a FROM R")
        client.act("statement", Statement(f"CREATE STREAM D AS {apas.format('D')}"))
        client.act("statement", Statement("REGISTER QUERY of_d AS SELECT v FROM D"))
        client.act("statement", Statement(f"REGISTER QUERY Mine AS {apas.format('')}"))
        with ss.connect(url) as con:
            con.subscribe("mine")
            with pytest.raises(ss.QueryError, match="Mine cannot be explained here"):
                con.explain("mine")
            assert "mine.until" in str(con.sql("EXPLAIN Mine"))
            with pytest.raises(ss.Error, match="stream d is defined by a query"):
                con.push("d", {"ts": [1], "v": [1]})
            con.sql(f"REGISTER QUERY own AS {apas.format('')}; SELECT a FROM R WHERE a > 4")
            before.push("R", {"ts": [1, 2], "a": [3, 5]})
            before.watermark("R", 9)
            found = {name: rows.arrow().to_pydict() for name, rows in con.results()}
            assert {found[name]["v"][-1] for name in ("Mine", "own")} == {5}
            assert found["q4"]["a"] == [5]
            assert {*found} == {"Mine", "own", "q4"}
            assert {name for name, _ in before.results()} == {"plain"}
            with pytest.raises(ss.QueryError, match=r"there is no function mine\.untill"):
                con.sql(f"REGISTER QUERY x AS {apas.format('').replace('until', 'untill')}")
            con.sql("REGISTER OR REPLACE QUERY own AS SELECT a FROM R")
            assert con.explain("own").json()["name"]
            con.sql("DROP QUERY MINE")
            con.sql("DROP QUERY own; DROP QUERY of_d; DROP STREAM D")
            names = [one["name"] for one in con.queries()]
            assert "Mine" not in names
            assert "own" not in names
            with pytest.raises(ss.QueryError, match="there is no query mine"):
                con.subscribe("mine")
            con.push("d", {"ts": [1], "v": [1]})


_OTHERS = "CREATE STREAM X (a int); REGISTER QUERY x AS SELECT a FROM X"


@pytest.mark.parametrize(
    ("options", "complaint", "hint"),
    [
        ({"slack": "1s"}, "slack=1000 has no effect here.*is each stream's own", "'1000 ms'"),
        ({"slack": 0}, "slack=0 has no effect here", "max_out_of_orderness"),
        ({"strict": True}, "strict=True has no effect here", "WITH \\(strict\\)"),
    ],
)
@pytest.mark.parametrize("is_first", [True, False])
def test_options_that_a_bridge_cannot_obey_are_refused(
    is_first: bool, options: dict[str, Any], complaint: str, hint: str, tmp_path: Path
) -> None:
    """Others have begun its queries without them, before the program connects or after. Whoever
    begins them may come again."""
    with bridge(tmp_path) as (_, url), contextlib.ExitStack() as stack:
        if is_first:
            stack.enter_context(ss.connect(url)).sql(_OTHERS)
            with pytest.raises(ss.QueryError, match=complaint) as caught:
                ss.connect(url, **options)
        else:
            con = stack.enter_context(ss.connect(url, **options))
            stack.enter_context(ss.connect(url)).sql(_OTHERS)
            with pytest.raises(ss.QueryError, match=complaint) as caught:
                con.sql(_QUERY)
        assert re.search(hint, str(caught.value.hint))
        with BridgeClient(url) as client:
            assert [one["name"] for one in client.act("query-list")["queries"]] == ["x"]
            client.forget()
        for text in (_QUERY, "DESCRIBE R"):
            with ss.connect(url, **options) as con:
                con.sql(text)
        with ss.connect(url) as con:
            con.sql("DESCRIBE R")


def test_a_bridge_without_statements_takes_the_first(tmp_path: Path) -> None:
    """Somebody has only asked for something, or dropped everything: the program is the first, and
    its results wait for it."""
    limits = replace(USUAL, live_rows=2)
    with bridge(tmp_path, limits=limits) as (_, url), ss.connect(url) as con:
        with BridgeClient(url) as client:
            client.act("statement", Statement("SHOW QUERIES"))
        con.sql(_QUERY)
        con.push("R", {"ts": [1, 2, 3], "a": [1, 2, 3]})
        con.watermark("R", 9)
        assert _rows(con) == [1, 2, 3]


def test_warnings_of_what_was_left_out(tmp_path: Path) -> None:
    """A program is warned as in its own process: of its own rows and queries, and what came since it
    connected."""
    text = (
        "CREATE STREAM {0} (at bigint, a int) WITH (time = 'at');"
        " REGISTER QUERY of_{0} AS SELECT 10 / a AS v FROM {0}"
    )

    def left_out(con: ss.LiveQueries, stream: str, at: int) -> None:
        con.push(stream, {"at": [at + 10], "a": [1]})
        con.push(stream, {"at": [at + 5], "a": [1]})
        con.push(stream, {"at": [None, at + 20], "a": [1, 0]})

    def warned(con: ss.LiveQueries) -> list[str]:
        with pytest.warns(ss.DataWarning) as seen:
            list(con.finish())
        return [str(one.message) for one in seen]

    with ss.connect() as con:
        con.sql(text.format("R"))
        left_out(con, "R", 0)
        wanted = warned(con)
    assert len(wanted) == 3
    with bridge(tmp_path) as (_, url), ss.connect(url) as other, ss.connect(url) as con:
        con.sql(text.format("R"))
        other.sql(text.format("S"))
        left_out(other, "S", 0)
        left_out(con, "R", 0)
        assert warned(con) == wanted
    with bridge(tmp_path / "two") as (_, url):
        with ss.connect(url, writer="w") as con:
            con.sql(text.format("R"))
            left_out(con, "R", 0)
            list(con.results())
        with ss.connect(url, writer="w") as con:
            con.subscribe("of_R")
            left_out(con, "R", 100)
            assert warned(con) == wanted
        with ss.connect(url) as con, warnings.catch_warnings():
            warnings.simplefilter("error")
            con.subscribe("of_R")
            list(con.finish())


def test_a_query_in_place_of_another_does_not_count_its_rows_as_kept(tmp_path: Path) -> None:
    text = "SELECT count(*) AS n, max(h.b) AS high FROM (SELECT b FROM R WHERE b = {}) AS h WINDOW RANGE 20"
    with bridge(tmp_path) as (_, url), ss.connect(url) as con:
        con.sql(f"CREATE STREAM R (b int); REGISTER QUERY q AS {text.format(3)}")
        con.push("R", {"ts": list(range(100)), "b": [at % 4 for at in range(100)]})
        con.watermark("R", 100)
        list(con.results())
        con.sql(f"REGISTER OR REPLACE QUERY q AS {text.format(0)}")
        (complete,) = (one["complete"] for one in con.queries())
        con.push("R", {"ts": [100, 104, 125], "b": [0, 0, 0]})
        found = [row[:2] for _, rows in con.finish() for row in rows.rows()]
    assert (complete, found) == ("from 120", [(1, 0), (2, 0), (1, 0)])
