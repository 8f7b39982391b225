"""Tests living queries of all three languages: they are registered, listed, stopped and dropped
over the wire, also after a restart; errors of one query stay with that query."""

from __future__ import annotations

import contextlib
import random
import re
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from seustream.compiler.apas.libraries import Libraries
from seustream.compiler.apas.streams import LiveWindow
from seustream.compiler.errors import CompileError, Problem, SourceText, Span
from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.bridge import Bridge
from seustream.cosim.bridge.client import BridgeClient
from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.bridge.limits import USUAL
from seustream.cosim.bridge.registry import shown
from seustream.cosim.bridge.service import IDLE
from seustream.cosim.bridge.session import Session
from seustream.cosim.bridge.shedding import Shedding
from seustream.cosim.bridge.world import World
from seustream.cosim.golden import GoldenDevice
from seustream.devices import SpareDevices
from seustream.engine.host.stages import SoftwareJoin
from seustream.hdl.config import CONFIGURATIONS
from seustream.hdl.device import Batch, Results, UnitCycles
from tests.cosim.bridge.catalogue import (
    FEW,
    STREAM,
    TEXT,
    Inserts,
    phases,
    register,
    say,
    served,
    values,
)
from tests.cosim.bridge.serving import (
    TINY,
    bridge,
    compiled,
    feed_epoch,
    refused,
    stage_epoch,
)
from tests.engine.temporal import windows

# --- errors of one query ------------------------------------------------------


class Raises(windows.Last):
    """A window function that fails."""

    def open(self, **constants: Any) -> Any:
        return Broken(super().open(**constants))


class Broken(LiveWindow):
    def __init__(self, window: LiveWindow) -> None:
        self.seen = 0

    def push(self, *arguments: Any) -> Any:
        raise RuntimeError("it broke")

    def finish(self) -> Any:
        raise RuntimeError("it broke")


class Unsavable(windows.Last):
    """A window function whose state no snapshot can hold."""

    def open(self, **constants: Any) -> Any:
        window = super().open(**constants)
        window.lock = threading.Lock()  # type: ignore[attr-defined]
        return window


BAD = {
    "strict fault": "REGISTER QUERY bad AS SELECT 7 / v AS x FROM I WINDOW NOW WITH (strict)",
    "of a group": "REGISTER QUERY bad AS SELECT sum(7 / v) AS x FROM I GROUP BY te WINDOW NOW WITH (strict)",
    "of a join": "REGISTER QUERY bad AS SELECT a.v / b.v AS x FROM I a, I b WHERE a.v = b.v WINDOW RANGE 5"
    " WITH (strict)",
    "of what it reads": "CREATE STREAM d AS SELECT 7 / v AS x FROM I WINDOW NOW WITH (strict);"
    "REGISTER QUERY bad AS SELECT x FROM d WINDOW NOW",
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("journal_bytes", [1, 1 << 30])
def test_a_query_that_fails_ends_no_other(case: str, journal_bytes: int, tmp_path: Path) -> None:
    """It does not end the session either, also after a restart over the journal; and it can be
    dropped."""
    limits = replace(USUAL, journal_bytes=journal_bytes)
    good = (
        "REGISTER QUERY good AS SELECT v FROM I WHERE v < 100 WINDOW NOW;"
        "REGISTER QUERY both AS SELECT a.v FROM I a, I b WHERE a.v = b.v WINDOW RANGE 0;"
        "CREATE STREAM e AS SELECT v FROM I WINDOW NOW;"
        "REGISTER QUERY after AS SELECT max(v) AS m FROM e WINDOW ROWS 2;"
    )
    want = [5, 0, 8]
    with served(tmp_path, limits) as (_, client):
        say(client, STREAM + good + BAD[case])
        feed = Inserts(client)
        feed(5, 0)
        assert phases(client) == dict.fromkeys(("good", "both", "after"), "RUNNING") | {
            "bad": "FAILED"
        }
        assert [row[0] for row in values(client, "good")] == want[:2]
    with served(tmp_path, limits) as (_, client):
        feed.client = client
        feed(8)
        assert phases(client)["bad"] == "FAILED"
        assert "division by zero" in client.act("query-log", p.QueryLog("bad"))["events"][-1][4]
        end = client.latest("bad")["end"]
        error = refused(lambda: client.latest("bad", end))
        assert error.kind == "failed"
        assert "division by zero" in str(error)
        for name in ("good", "both"):
            assert [row[0] for row in values(client, name)] == want
        assert [row[0] for row in values(client, "after")] == [5, 5, 8]
        say(client, "DROP QUERY bad")
    with served(tmp_path, limits) as (_, client):
        feed.client = client
        feed(6)
        assert phases(client) == dict.fromkeys(("good", "both", "after"), "RUNNING")
        assert [row[0] for row in values(client, "good")] == [*want, 6]


def test_a_function_of_a_user_that_raises_ends_its_query_alone(tmp_path: Path) -> None:
    libraries = Libraries()
    libraries.register("mine", {"last": Raises()})
    with served(tmp_path, libraries=libraries) as (made, client):
        say(client, STREAM)
        feed = Inserts(client)
        register(client, "bad", "where mine.last($I, 1) select [x = $I.v]")
        register(client, "good")
        feed(7, 8)
        assert phases(client) == {"bad": "FAILED", "good": "RUNNING"}
        assert made.session.failure is None
        assert [row[2] for row in values(client, "good")] == [7, 8]


class Exits(windows.Last):
    """A window function that ends the thread, as some libraries do."""

    def __init__(self, raises: BaseException) -> None:
        self.raises = raises

    def open(self, **constants: Any) -> Any:
        raise self.raises


@pytest.mark.parametrize("raises", [SystemExit(3), KeyboardInterrupt(), GeneratorExit()])
def test_a_function_of_a_user_that_exits_ends_its_query_alone(
    raises: BaseException, tmp_path: Path
) -> None:
    libraries = Libraries()
    libraries.register("mine", {"last": Exits(raises)})
    with served(tmp_path, libraries=libraries) as (made, client):
        say(client, STREAM)
        register(client, "good")
        register(client, "bad", "where mine.last($I, 1) select [x = $I.v]")
        Inserts(client)(7, 8)
        assert made.session.failure is None
        assert phases(client) == {"good": "RUNNING", "bad": "FAILED"}
        assert type(raises).__name__ in client.act("query-log", p.QueryLog("bad"))["events"][-1][4]
        assert [row[2] for row in values(client, "good")] == [7, 8]


def test_a_query_is_dropped_in_any_case(tmp_path: Path) -> None:
    """One that is gone holds up no other, and is not looked at any more."""
    limits = replace(USUAL, result_rows=1)
    for restart in range(2):
        with served(tmp_path, limits) as (_, client):
            if not restart:
                client.load(
                    compiled("CREATE STREAM I (v bigint); REGISTER QUERY one AS SELECT v FROM I")
                )
                say(client, "REGISTER QUERY two AS SELECT v FROM I")
                feed_epoch(client, 0, {"I": pa.table({"ts": [1, 2, 3], "v": [4, 5, 6]})})
                assert say(client, "DROP QUERY ONE")["dropped"] == ["one"]
            assert phases(client) == {"two": "RUNNING"}
            client.flush()
            assert [row[0] for row in values(client, "two")] == [4, 5, 6]
            assert refused(lambda: client.latest("one")).kind == "unknown"


def test_a_state_that_cannot_be_saved_ends_its_query_alone(tmp_path: Path) -> None:
    libraries = Libraries()
    libraries.register("mine", {"last": Unsavable()})
    limits = replace(USUAL, journal_bytes=1)
    for _ in range(2):
        with served(tmp_path, limits, libraries) as (made, client):
            if not client.act("query-list")["streams"]:
                say(client, STREAM)
                register(client, "good")
                register(client, "bad", "where mine.last($I, 1) select [x = $I.v]")
                Inserts(client)(7, 8)
            assert phases(client) == {"good": "RUNNING", "bad": "FAILED"}
            assert made.session.failure is None
            assert [row[2] for row in values(client, "good")] == [7, 8]


class Hangs(windows.Last):
    """A window function that does not return."""

    def open(self, **constants: Any) -> Any:
        while True:
            pass


def test_a_function_that_does_not_return_ends_its_query_alone(tmp_path: Path) -> None:
    libraries = Libraries()
    libraries.register("mine", {"last": Hangs()})
    with served(tmp_path, replace(USUAL, call_seconds=0), libraries) as (made, client):
        say(client, STREAM)
        feed = Inserts(client)
        register(client, "good")
        # It hangs when it is registered, or on the first row.
        register(client, "bad", "where mine.last($I, 1) select [x = $I.v]")
        feed(7, 8)
        assert made.session.failure is None
        assert phases(client) == {"good": "RUNNING", "bad": "FAILED"}
        assert "did not return" in client.act("query-log", p.QueryLog("bad"))["events"][-1][4]
        assert [row[2] for row in values(client, "good")] == [7, 8]


def test_a_text_that_is_no_number_ends_no_query_but_the_strict_one(tmp_path: Path) -> None:
    """Holds also after restarts over the journal, which keeps the text."""
    forms = {
        "fine": "SELECT name FROM P WINDOW NOW",
        "counted": "SELECT CAST(name AS int) AS n FROM P WINDOW NOW",
        "strict": "SELECT CAST(name AS int) AS n FROM P WINDOW NOW WITH (strict)",
    }
    for restart in range(3):
        with served(tmp_path) as (made, client):
            if not restart:
                say(client, "CREATE STREAM P (name varchar);")
                for name, form in forms.items():
                    say(client, f"REGISTER QUERY {name} AS {form}")
            names = [["7", "abc"], ["8"], ["9"]][restart]
            rows = {"ts": [10 * restart + n for n in range(len(names))], "name": names}
            feed_epoch(client, restart, {"P": pa.table(rows)})
            client.promise("P", 10 * restart + 9)
            client.flush()
            assert made.session.failure is None
            assert phases(client) == {"fine": "RUNNING", "counted": "RUNNING", "strict": "FAILED"}
            seen = ["7", "abc", "8", "9"][: restart + 2]
            assert [row[0] for row in values(client, "fine")] == seen
            numbers = [7, None, 8, 9][: restart + 2]
            assert [row[0] for row in values(client, "counted")] == numbers
    with served(tmp_path) as (_, client):
        say(client, "DROP QUERY strict; DROP QUERY counted")
        assert phases(client) == {"fine": "RUNNING"}


def test_a_late_row_that_may_not_be_ends_the_readers_of_its_stream_alone(tmp_path: Path) -> None:
    text = (
        "CREATE STREAM L (v bigint) WITH (late = 'error');"
        "REGISTER QUERY good AS SELECT v FROM I WINDOW NOW;"
        "REGISTER QUERY bad AS SELECT v FROM L WINDOW NOW;"
    )
    for restart in range(2):
        with served(tmp_path) as (made, client):
            if not restart:
                say(client, STREAM + text)
                for epoch, ts in enumerate((50, 20)):
                    feed_epoch(
                        client, epoch, {"L": pa.table({"ts": [ts], "v": [1]})}, writer="late"
                    )
                Inserts(client)(7)
            client.flush()
            assert made.session.failure is None
            assert phases(client) == {"good": "RUNNING", "bad": "FAILED"}
            assert (
                "1 late row, the stream had reached ts"
                in client.act("query-log", p.QueryLog("bad"))["events"][-1][4]
            )
            assert [row[0] for row in values(client, "good")] == [7]


def test_what_fails_in_a_join_of_all_is_no_end_of_the_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error that cannot be traced to one query ends all queries of the operator; they can be
    registered anew."""
    with served(tmp_path) as (_, client):
        say(client, STREAM + "REGISTER QUERY a AS SELECT v FROM I WINDOW NOW;")
        register(client, "other")
        feed = Inserts(client)
        feed(6)

        def broken(*arguments: object) -> Any:
            raise MemoryError("no room")

        with monkeypatch.context() as patched:
            patched.setattr(SoftwareJoin, "_of_stream", broken)
            feed(7)
        assert phases(client) == {"a": "FAILED", "other": "RUNNING"}
        assert [row[2] for row in values(client, "other")] == [6, 7]
        say(client, "DROP QUERY a; REGISTER QUERY a AS SELECT v FROM I WINDOW NOW;")
        feed(8)
        assert [row[0] for row in values(client, "a")] == [8]


# --- quality of service ---------------------------------------------------------


def test_queries_give_way_and_come_back_also_after_a_restart(tmp_path: Path) -> None:
    firm = "REGISTER QUERY firm AS SELECT v FROM I WINDOW NOW WITH (max_latency = '1 hour', priority = 2);"
    low = (
        "REGISTER QUERY low AS SELECT a.v FROM I a, I b WHERE a.v = b.v WINDOW RANGE 3;"
        "REGISTER QUERY group_ AS SELECT count(*) AS n FROM I WINDOW RANGE 2;"
        "REGISTER QUERY pairs AS PATTERN ANY x; ANY y FROM I WITHIN 1 ms RETURN x.v, y.v AS w;"
    )
    shed = dict.fromkeys(("low", "group_", "pairs"), "rows wait")
    with served(tmp_path) as (made, client):
        say(client, STREAM + firm + low)
        register(client, "apas")
        feed = Inserts(client)
        feed(7)
        made.session.give_way({**shed, "apas": "rows wait"})
        feed(8)
        assert phases(client) == dict.fromkeys((*shed, "apas"), "SHED") | {"firm": "RUNNING"}
        assert client.latest("low")["shed"] == "rows wait"
        shown_here = "\n".join(say(client, "SHOW QUERIES")["shown"])
        assert "low is SHED: " in shown_here, "the catalogue has them all"
        assert re.search(r"firm is RUNNING: \d+ results, .*% of the time", shown_here)
        assert refused(lambda: say(client, low)).kind == "compile"
        say(client, "DROP QUERY group_")
    with served(tmp_path) as (made, client):
        feed.client = client
        assert phases(client)["low"] == "SHED"
        feed(9)
        made.session.give_way({})
        feed(10)
        assert set(phases(client).values()) == {"RUNNING"}
        assert [row[0] for row in values(client, "firm")] == [7, 8, 9, 10]
        assert [row[0] for row in values(client, "low")] == [7, 10]
        assert values(client, "apas")[-1][2] == 10
        events = [event[3] for event in client.act("query-log", p.QueryLog("low"))["events"]]
        assert events == ["RUNNING", "SHED", "RUNNING"]
        listed = {one["name"]: one["complete"] for one in client.act("query-list")["queries"]}
        assert listed["low"] == "from 6"
        assert listed["firm"] == "from the beginning"


def test_a_load_beyond_max_latency_sheds_the_lower_priority(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Session, "behind", 900)
    with served(tmp_path) as (made, client):
        say(client, STREAM + "REGISTER QUERY low AS SELECT v FROM I WINDOW NOW;")
        feed = Inserts(client)
        made.registry()._balance()
        assert phases(client) == {"low": "RUNNING"}, "nobody is in need"
        firm = "SELECT v FROM I WINDOW NOW WITH (max_latency = '1 ms', priority = 2)"
        say(client, f"REGISTER QUERY firm AS {firm}")
        made.registry()._balance()
        feed(7)
        assert phases(client) == {"low": "SHED", "firm": "RUNNING"}
        assert [row[0] for row in values(client, "firm")] == [7]
        assert values(client, "low") == []
        samples = client.act("metrics")["text"]
        assert 'query_shed{query="low"} 1' in samples


def test_devices_are_made_as_queries_need_them_and_a_strict_fit_refuses(tmp_path: Path) -> None:
    streams = "CREATE STREAM R (a int, v int); CREATE STREAM S (a int);"
    query = (
        "REGISTER QUERY q{0} AS SELECT R.v FROM R, S WHERE R.a = S.a AND R.v > {0} WINDOW ROWS 9;"
    )
    many = "".join(query.format(number) for number in range(17))
    spare = SpareDevices(3, lambda: GoldenDevice(CONFIGURATIONS["default"]))
    made = Bridge(spare, tmp_path / "auto")
    assert not made.registry().statement(p.Statement(streams))["registered"]
    assert len(made.registry().statement(p.Statement(many))["registered"]) == 17
    assert len(made.session.compilation.devices) == len(list(spare)) == 2
    made.close()
    made = Bridge(GoldenDevice(CONFIGURATIONS["default"]), tmp_path / "strict", fit="strict")
    made.registry().statement(p.Statement(streams))
    error = refused(lambda: made.registry().statement(p.Statement(many)))
    assert error.kind == "compile"
    assert "the set needs 2 devices" in str(error)
    assert not made.listed()["queries"], "nothing half registered"
    assert made.registry().statement(p.Statement(query.format(1)))["registered"]
    made.close()


def test_functions_of_a_library(tmp_path: Path) -> None:
    libraries = Libraries()
    libraries.register("mine", windows.LIBRARIES["mine"])
    with served(tmp_path, libraries=libraries) as (_, client):
        say(client, STREAM)
        register(client, text="where mine.last($I, 1) select [x = $I.v]")
        Inserts(client)(7, 3, 9)
        assert values(client)[:2] == [(0, 1, 7), (1, 2, 3)]


@pytest.mark.parametrize("journal_bytes", [1 << 30, 1], ids=["records", "snapshots"])
def test_a_dropped_name_returns_in_a_later_run(journal_bytes: int, tmp_path: Path) -> None:
    """Also behind a restart, and where another name comes in between."""
    limits = replace(USUAL, journal_bytes=journal_bytes)
    query = "REGISTER QUERY q AS SELECT v FROM I"
    with served(tmp_path, limits) as (_, client):
        runs = say(client, STREAM + query)["registered"]
        say(client, "DROP QUERY q")
        Inserts(client)(1, 2)
    with served(tmp_path, limits) as (_, client):
        runs += say(client, query)["registered"]
        runs += say(client, f"DROP QUERY q; REGISTER QUERY r AS SELECT v FROM I; {query}")[
            "registered"
        ]
        runs += say(client, query.replace("QUERY", "OR REPLACE QUERY", 1))["registered"]
    assert [one["run"] for one in runs if one["name"] == "q"] == [1, 2, 3, 4]


def test_from_when_results_are_complete_is_the_same_after_a_restart(tmp_path: Path) -> None:
    """Although a replay knows that a query will be dropped when it comes to one that finds its
    rows."""
    join = "REGISTER QUERY j AS SELECT x.v FROM I x, I y WHERE x.v = y.v WINDOW RANGE 10"
    found = []
    for restart in range(2):
        with served(tmp_path) as (_, client):
            if not restart:
                say(client, STREAM + join)
                feed = Inserts(client)
                feed(*range(20))
                say(client, "REGISTER QUERY g AS SELECT sum(v) AS s FROM I WINDOW RANGE 8")
                say(client, "DROP QUERY j")
                say(client, "REGISTER QUERY h AS SELECT sum(v) AS s FROM I WINDOW RANGE 9")
            client.flush()
            listed = client.act("query-list")["queries"]
            found.append({one["name"]: one["complete"] for one in listed})
    assert found[0] == found[1]
    assert found[0]["g"] == "from 20"


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("early", ["", "REGISTER QUERY e AS SELECT v FROM D"])
def test_what_reads_an_incomplete_stream_is_incomplete(
    early: str, restarts: bool, tmp_path: Path
) -> None:
    """A derived stream begins with its first reader. What joins it later has missed what it had
    missed, also after a restart; and rows of the present time have gone by."""
    derived = "CREATE STREAM D AS SELECT x.v FROM I x, I y WHERE x.v = y.v WINDOW RANGE 10"
    with served(tmp_path) as (_, client):
        say(client, f"{STREAM}REGISTER QUERY a AS SELECT v FROM I")
        Inserts(client)(*range(20))
        say(client, f"{derived}; {early}")
        if not restarts:
            say(client, "REGISTER QUERY q AS SELECT v FROM D")
        client.flush()
    with served(tmp_path) as (_, client):
        if restarts:
            say(client, "REGISTER QUERY q AS SELECT v FROM D")
        client.flush()
        listed = {one["name"]: one["complete"] for one in client.act("query-list")["queries"]}
    want = {"a": "from the beginning", "q": "from 30"}
    assert listed == want | ({"e": "from 30"} if early else {})


def test_a_statement_may_follow_one_that_waits_and_changes_columns(tmp_path: Path) -> None:
    limits = replace(USUAL, result_rows=1, patience=0.2)
    query = "REGISTER OR REPLACE QUERY q AS SELECT v, v AS w FROM I WINDOW NOW"
    with served(tmp_path, limits) as (_, client):
        client.load(compiled(STREAM + "REGISTER QUERY q AS SELECT v FROM I WINDOW NOW;"))
        rows = pa.table({"ts": [1, 2], "te": [2, 3], "v": [4, 5]})
        for epoch in range(2):  # the second waits for a reader
            feed_epoch(client, epoch, {"I": rows})
        say(client, query)
        say(client, "CREATE STREAM T (a int)")
        with pytest.raises(BridgeError, match="query q has other columns now"):
            client.swap(compiled(STREAM + "REGISTER QUERY q AS SELECT te FROM I WINDOW NOW;"))


def test_the_end_of_all_streams_is_that_of_the_latest_too(tmp_path: Path) -> None:
    """Also while the statement that created it waits, as all do when a bridge starts again."""
    limits = replace(USUAL, result_rows=1, patience=0.2)
    with served(tmp_path, limits) as (made, client):
        client.load(compiled(STREAM + "REGISTER QUERY q AS SELECT v FROM I WINDOW NOW;"))
        rows = pa.table({"ts": [1, 2], "te": [2, 3], "v": [4, 5]})
        for epoch in range(2):  # the second waits for a reader
            feed_epoch(client, epoch, {"I": rows})
        say(client, "CREATE STREAM T (a int); REGISTER QUERY t AS SELECT a FROM T")
        assert {stream.name for stream in made.session.run.streams} == {"I"}
        say(client, "DROP QUERY t; DROP STREAM T")
        say(client, "CREATE STREAM T (b varchar); REGISTER QUERY t AS SELECT b FROM T")
        client.end()
        assert made.session.ended == {"I", "T"}


def test_a_failure_stays_with_the_run_that_failed(tmp_path: Path) -> None:
    """Also where a restart takes all statements before it processes the rows again."""
    for restart in range(2):
        with served(tmp_path) as (_, client):
            if not restart:
                query = "REGISTER QUERY q AS SELECT 1 / v AS x FROM I WITH (strict)"
                say(client, STREAM + query)
                Inserts(client)(0)
                assert phases(client) == {"q": "FAILED"}
                say(client, "DROP QUERY q; REGISTER QUERY q AS SELECT v FROM I")
            client.flush()
            assert phases(client) == {"q": "RUNNING"}


@pytest.mark.parametrize("journal_bytes", [1 << 30, 1], ids=["records", "snapshots"])
def test_results_of_a_statement_may_wait_for_readers(journal_bytes: int, tmp_path: Path) -> None:
    """Those of a query that is registered with `kept`, in the run that was, also after a restart."""
    limits = replace(USUAL, live_rows=5, journal_bytes=journal_bytes)
    query = "REGISTER OR REPLACE QUERY q AS SELECT v FROM I WINDOW NOW"
    with served(tmp_path, limits) as (_, client):
        client.act("statement", p.Statement(STREAM + query, kept=True))
        feed = Inserts(client)
        feed(*range(8))
    with served(tmp_path, limits) as (_, client):
        client.flush()
        feed.client = client
        feed(*range(8, 12))
        assert [row[0] for row in values(client)] == [*range(12)]
        assert not client.latest("q")["bounded"]
        say(client, query)
        feed(*range(12, 24))
        assert [row[0] for row in values(client)] == [*range(19, 24)]
        assert client.latest("q")["bounded"]


def test_results_that_nobody_reads_hold_up_no_other(tmp_path: Path) -> None:
    """Nor do the results of a query that is dropped while processing waits for their reader."""
    limits = replace(USUAL, result_rows=10, patience=0.3)
    with served(tmp_path, limits) as (made, client):
        client.load(compiled(STREAM + "REGISTER QUERY unread AS SELECT v FROM I WINDOW NOW;"))
        register(client, text="select [x = $I.v]")
        feed = Inserts(client)
        feed(*range(8))
        assert refused(lambda: feed(*range(8, 16))).kind == "busy"
        made.session.limits = replace(limits, patience=30.0)  # a busy machine must not refuse
        say(client, "DROP QUERY unread")
        client.flush()
        assert len(values(client)) >= 14
        assert client.act("query-list")["queries"][0]["name"] == "q"


# --- what is refused ----------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "select [" + ", ".join(f"x{i} = $I.missing{i}" for i in range(500)) + "]",
        "select [x = '" + "€" * 20_000 + "' + $I.missing]",
        "€" * 20_000,
        "\n".join(["€" * 400] * 50),
        "(" * 5000,
        "",
    ],
    ids=["wide", "text", "no text", "lines", "deep", "empty"],
)
def test_errors_of_any_size_come_through(tmp_path: Path, text: str) -> None:
    """gRPC allows an error a few thousand bytes."""
    with served(tmp_path) as (_, client):
        say(client, STREAM)
        error = refused(lambda: register(client, text=text))
        assert error.kind == "compile"
        assert str(error).startswith("some.apas:")


def test_more_problems_than_there_is_room_for() -> None:
    source = SourceText("x" * 100, "q")
    problems = [Problem("k", "bad" * 100, Span(i, i + 1)) for i in range(50)]
    text = shown(CompileError(source, problems))
    assert text.endswith(" more")
    assert len(text) < 4000


def test_what_is_refused(tmp_path: Path) -> None:
    with served(tmp_path, FEW) as (_, client):
        for action, message in (
            ("query-stop", p.Named("none")),
            ("query-log", p.QueryLog("none")),
        ):
            assert refused(lambda a=action, m=message: client.act(a, m)).kind == "unknown"
        assert client.act("query-list") == {"queries": [], "streams": []}
        say(client, STREAM)
        assert refused(lambda: register(client, text=TEXT + " " * 200)).kind == "too-large"
        assert refused(lambda: register(client, "a\nb")).kind == "malformed"
        assert refused(lambda: register(client, text="\ud800")).kind == "malformed"
        assert refused(lambda: register(client, text="$$ $$")).kind == "malformed"
        assert refused(lambda: register(client, "a/b")).kind == "compile"
        register(client, "q")
        register(client, "r")
        assert refused(lambda: register(client, "s")).kind == "refused"
        client.act("query-stop", p.Named("r"))
        assert register(client, "r")["run"] == 2
        assert refused(lambda: client.act("query-log", p.QueryLog("q", -1))).kind == "gap"
        assert phases(client) == {"q": "RUNNING", "r": "RUNNING"}


@pytest.mark.acceptance(7)
def test_nothing_is_left_of_a_bridge_that_closes(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    looking = threading.Event()
    for idle in (IDLE, 0.02):
        with served(tmp_path, idle=idle) as (made, client):
            if not client.act("query-list")["streams"]:
                say(client, STREAM)
                register(client)
            client.act("query-stop", p.Named("q"))
            if idle < 1:  # the bridge is closed while its watch looks for idle connections
                look = made.exchanges.idle

                def slowly(limit: float, look: Callable[[float], list[str]] = look) -> list[str]:
                    looking.set()
                    time.sleep(0.3)
                    return look(limit)

                made.exchanges.idle = slowly  # type: ignore[method-assign]
                assert looking.wait(10)
        # A thread of the RPC library counts once it asks for its name, and is not ours to end.
        left = set(threading.enumerate()) - before
        assert not [one.name for one in left if not isinstance(one, threading._DummyThread)]


def test_the_share_of_each_query_and_what_explain_analyze_shows(tmp_path: Path) -> None:
    """Holds also after a swap of the operators; the shares of all queries add up to the whole."""
    text = (
        "REGISTER QUERY {0} AS SELECT a.v FROM I a, I b WHERE a.v = b.v + {1} WINDOW RANGE 9;"
        "REGISTER QUERY {0}p AS PATTERN ANY x; ANY y FROM I WITHIN 2 ms RETURN x.v, y.v AS w;"
    )
    with served(tmp_path) as (made, client):
        say(client, STREAM + text.format("q", 0))
        feed = Inserts(client)
        feed(*range(50))
        say(client, text.format("late", 1) + "CREATE STREAM J (v int); DROP QUERY qp;")
        feed(*range(50))
        made.session.flush()
        with made.session.changed:
            made.session.saving.take()
        listed = {one["name"]: one for one in client.act("query-list")["queries"]}
        assert set(listed) == {"q", "late", "latep"}
        assert all(0 < one["time_share"] < 1 for one in listed.values()), listed
        assert all(one["state_bytes"] > 0 for one in listed.values()), listed
        assert listed["late"]["time_share"] + listed["latep"]["time_share"] < 1
        shown = "\n".join(say(client, "EXPLAIN ANALYZE latep")["shown"])
        assert "pattern latep" in shown
        assert "software join" not in shown.partition("rows in")[2]
        assert "query_time_share" in client.act("metrics")["text"]
        left = say(client, "EXPLAIN ANALYZE SELECT v FROM I WINDOW NOW")["shown"]
        assert left[-1].endswith("does not run: register it, and ask again")


class Counting(GoldenDevice):
    """A device that counts cycles, and notes who uses it."""

    def __init__(self) -> None:
        super().__init__(TINY)
        self.users: set[int] = set()

    def push(self, batch: Batch) -> Results:
        self.users.add(threading.get_ident())
        return super().push(batch)

    def units(self) -> dict[str, UnitCycles]:
        self.users.add(threading.get_ident())
        taken = self.status().taken
        return {"door": UnitCycles(taken, 100 - taken, 0)}


@pytest.mark.parametrize("full", [False, True])
def test_explain_analyze_has_the_units_read_by_the_thread_that_uses_the_device(
    tmp_path: Path, full: bool
) -> None:
    """Also while the thread waits for the readers of results."""
    device, limits = Counting(), replace(USUAL, patience=3, result_rows=10 if full else 1000)
    text = "REGISTER QUERY q AS SELECT a.v FROM I a, I b WHERE a.v = b.v WINDOW RANGE 99;"
    with bridge(tmp_path, device, limits) as (made, url), BridgeClient(url, patience=2) as client:
        client.load(compiled(STREAM + text))
        for epoch in range(2):  # if ten results are too many, the second waits for a reader
            ts = [20 * epoch + n for n in range(20)]
            rows = pa.table({"ts": ts, "te": [t + 1 for t in ts], "v": ts})
            feed_epoch(client, epoch, {"I": rows})
            client.promise("I", ts[-1] + 1)
        while device.status().taken < 80:
            time.sleep(0.01)
        shown = say(client, "EXPLAIN ANALYZE q")["shown"]
        assert made.session.delivery.full == full
        door = ["device", "join", "door", "80", "%", "20", "%", "0", "%"]
        assert shown[-1].split() == door
        assert len(device.users) == 1


@pytest.mark.parametrize(
    "text",
    [
        "SELECT v FROM I;\nDROP QUERY other;",
        "SELECT v FROM I;\nCREATE STREAM Q (b int)",
        "SELECT v FROM I;\nSHOW QUERIES",
    ],
)
def test_a_query_registered_by_name_is_one_statement(text: str, tmp_path: Path) -> None:
    with served(tmp_path) as (_, client):
        say(client, STREAM + "REGISTER QUERY other AS SELECT v FROM I")
        with pytest.raises(BridgeError) as caught:
            client.act("query-register", p.Register("x", text, "x.xsql", "sql"), patience=0)
        said = "there are 2 statements, want one SELECT or PATTERN"
        assert (caught.value.kind, str(caught.value).splitlines()[0]) == (
            "compile", f"x.xsql:2:1: {said}",
        )  # fmt: skip
        assert phases(client) == {"other": "RUNNING"}
        client.act("query-register", p.Register("x", "SELECT v FROM I;", "x.xsql", "sql"))
        assert phases(client) == {"other": "RUNNING", "x": "RUNNING"}


@pytest.mark.parametrize("text", ["DROP QUERY e -- bye", "DROP QUERY IF EXISTS E;", "drop query e"])
def test_a_query_that_has_ended_is_dropped_however_that_is_written(
    text: str, tmp_path: Path
) -> None:
    with served(tmp_path) as (_, client):
        say(client, STREAM + "REGISTER QUERY e AS SELECT v FROM I")
        client.act("query-stop", p.Named("e"))
        assert say(client, text)["dropped"] == ["e"]
        assert phases(client) == {}


def test_another_query_set_waits_for_the_statement_before_it(tmp_path: Path) -> None:
    """Otherwise the statement, compiled on the old set, would undo the swap."""
    with served(tmp_path) as (made, client):
        old = STREAM + "REGISTER QUERY old AS SELECT v FROM I;"
        client.load(compiled(old))
        registry, swapping = made.registry(), threading.Event()
        carried_out = registry._carried_out
        new = compiled(STREAM + "REGISTER QUERY new AS SELECT v FROM I;")

        def swap() -> None:
            swapping.set()
            client.swap(new)

        thread = threading.Thread(target=swap, daemon=True)

        def slow(*arguments: Any) -> Any:
            change = carried_out(*arguments)
            thread.start()
            swapping.wait()
            thread.join(0.3)
            assert thread.is_alive()
            return change

        registry._carried_out = slow  # type: ignore[method-assign]
        made.act("statement", p.write(p.Statement("REGISTER QUERY more AS SELECT v FROM I")))
        thread.join()
        assert phases(client) == {"old": "STOPPED", "more": "STOPPED", "new": "RUNNING"}
        assert "new" in made.catalogue()["text"]
        assert "more" not in made.catalogue()["text"]


class Jumping(World):
    """The clock of day is set at random; the other one is not."""

    def today(self) -> int:
        return random.randrange(1 << 40)


def test_the_clock_of_day_does_not_shed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with contextlib.closing(Bridge(GoldenDevice(TINY), tmp_path, world=Jumping())) as made:
        text = STREAM + "REGISTER QUERY a AS SELECT v FROM I WITH (max_latency = '1 minute')"
        made.act("statement", p.write(p.Statement(text)))
        seen = list[tuple[int, int]]()

        def look(shedding: Shedding, now: int, behind: int, *rest: Any) -> dict[str, str]:
            seen.append((now, behind))
            return {}

        monkeypatch.setattr(Shedding, "look", look)
        session = made.session
        with session.changed:
            stage_epoch(made, 0, {"I": pa.table({"ts": [1], "te": [2], "v": [3]})})
            begun = time.monotonic()
            while len(seen) < 3:
                made.registry()._balance()
        for now, behind in seen:
            assert 0 <= behind <= 1000 * (time.monotonic() - begun) + 100
            assert abs(now - 1000 * time.monotonic()) < 60_000
