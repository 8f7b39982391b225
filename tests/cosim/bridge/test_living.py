"""Tests the life of a query: registered, listed, ended, taken up again, also after a restart."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from seustream.compiler.pipeline import Options, compile_text
from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.bridge.limits import USUAL
from seustream.cosim.bridge.living import RUNNING, STOPPED, Book
from seustream.hdl.config import CONFIGURATIONS
from tests.cosim.bridge.catalogue import (
    FEW,
    STREAM,
    Inserts,
    phases,
    register,
    say,
    served,
    values,
)
from tests.cosim.bridge.serving import refused


@pytest.mark.acceptance(9)
def test_a_query_lives_and_ends(tmp_path: Path) -> None:
    with served(tmp_path) as (_, client):
        say(client, STREAM)
        feed = Inserts(client)
        told = {"name": "q", "run": 1, "phase": "RUNNING", "until": None}
        assert register(client) == told | {"complete": "from the beginning"}
        feed(7, 3, 9)
        assert values(client) == [(0, 1, 7), (2, 3, 9)]
        (listed,) = client.act("query-list")["queries"]
        assert (listed["phase"], listed["run"], listed["results"]) == ("RUNNING", 1, 2)
        assert listed["selectivity"] == pytest.approx(2 / 3, abs=1e-6)
        assert 0 < listed["p50_ms"] <= listed["p99_ms"] < 60_000
        assert client.health()["queries"] == 1
        for _ in range(2):
            stopped = client.act("query-stop", p.Named("q"))
            assert stopped == {"name": "q", "phase": "STOPPED", "run": 1}
        feed(8)
        assert client.latest("q")["over"] is True
        assert values(client) == [(0, 1, 7), (2, 3, 9)]
        register(client, "other")
        events = client.act("query-log", p.QueryLog("q"))["events"]
        assert [event[3] for event in events] == ["RUNNING", "STOPPED"]
        assert client.act("query-log", p.QueryLog("q", 1))["events"] == events[1:]


@pytest.mark.parametrize("journal_bytes", [1, 1 << 30])
def test_the_catalogue_lasts_with_the_journal(journal_bytes: int, tmp_path: Path) -> None:
    limits = replace(USUAL, journal_bytes=journal_bytes)
    with served(tmp_path, limits) as (_, client):
        say(client, STREAM + "CREATE STREAM d AS SELECT I.v + 1 AS w FROM I WINDOW NOW;")
        feed = Inserts(client)
        register(client)
        say(client, "REGISTER QUERY s AS SELECT v FROM I WHERE v > 8 WINDOW NOW; "
                    "REGISTER QUERY gone AS SELECT w FROM d WINDOW NOW;")  # fmt: skip
        feed(7, 9)
        client.act("query-stop", p.Named("gone"))
        register(client, "again")
        client.act("query-stop", p.Named("again"))
        assert register(client, "again")["run"] == 2
        logs = {n: client.act("query-log", p.QueryLog(n))["events"] for n in phases(client)}
    for _ in range(2):
        with served(tmp_path, limits) as (_, client):
            client.flush()
            assert phases(client) == {
                "q": "RUNNING", "s": "RUNNING", "gone": "STOPPED", "again": "RUNNING"
            }  # fmt: skip
            assert {n: client.act("query-log", p.QueryLog(n))["events"] for n in logs} == logs
            assert values(client) == [(0, 1, 7), (1, 2, 9)]
            assert [row[0] for row in values(client, "s")] == [9]
            assert [row[0] for row in values(client, "gone")] == [8, 10]
            assert client.latest("again")["run"] == 2
            error = refused(lambda c=client: say(c, "DROP STREAM I"))
            assert "stream I is used by query s" in str(error)
    with served(tmp_path, limits) as (_, client):
        found = say(client, "DROP QUERY s; DROP QUERY gone; DROP QUERY q; DROP QUERY again;"
                            "DROP STREAM d; DROP STREAM I;")  # fmt: skip
        say(client, "CREATE STREAM I (v int)")
        assert sorted(found["dropped"]) == ["again", "gone", "q", "s"]
        assert client.act("query-list")["queries"] == []
        assert refused(lambda: client.latest("s")).kind == "unknown"


def test_a_name_taken_again_is_another_run(tmp_path: Path) -> None:
    with served(tmp_path) as (_, client):
        say(client, STREAM)
        feed = Inserts(client)
        register(client)
        assert refused(lambda: register(client)).kind == "in-use"
        feed(7)
        client.act("query-stop", p.Named("q"))
        assert register(client, text="select [a = $I.v, b = $I.v]")["run"] == 2
        assert values(client) == []
        feed(4)
        assert values(client) == [(1, 2, 4, 4)]


def test_a_query_ends_when_its_time_is_over(tmp_path: Path) -> None:
    with served(tmp_path) as (_, client):
        say(client, STREAM)
        say(client, "REGISTER QUERY brief FOR 300 ms AS SELECT v FROM I WINDOW NOW")
        say(client, "REGISTER QUERY hour FOR 1 hour AS APAS $$ select [x = $I.v] $$")
        until = {one["name"]: one["until"] for one in client.act("query-list")["queries"]}
        assert 3_500_000 < until["hour"] - time.time() * 1000 < 3_700_000
        begun = time.monotonic()
        while phases(client)["brief"] == "RUNNING" and time.monotonic() < begun + 20:
            time.sleep(0.02)
        assert phases(client) == {"brief": "STOPPED", "hour": "RUNNING"}
        assert client.act("query-log", p.QueryLog("brief"))["events"][-1][4] == "its time is over"
        error = refused(
            lambda: say(client, "REGISTER QUERY x FOR 3 yaers AS SELECT v FROM I WINDOW NOW")
        )
        assert "some.xsql:1:22: FOR 3 yaers is no time" in str(error)


def test_a_query_of_a_whole_set_ends_when_its_time_is_over(tmp_path: Path) -> None:
    """Holds also after a restart in between, which does not begin its time anew."""
    text = f"{STREAM};REGISTER QUERY brief FOR 2 s AS SELECT v FROM I WINDOW NOW;"
    text += "REGISTER QUERY hour FOR 1 hour AS SELECT v FROM I WINDOW NOW"
    untils = []
    for restart in range(2):
        with served(tmp_path) as (_, client):
            if not restart:
                client.load(compile_text(text, options=Options(CONFIGURATIONS["tiny"])))
            untils.append([one["until"] for one in client.act("query-list")["queries"]])
            begun = time.monotonic()
            while restart and phases(client)["brief"] == "RUNNING":
                assert time.monotonic() < begun + 20
                time.sleep(0.02)
    assert untils[0] == untils[1]
    assert untils[0][1] - untils[0][0] == 3_598_000


def test_reset_begins_living_queries_anew(tmp_path: Path) -> None:
    with served(tmp_path, FEW) as (made, client):
        say(client, STREAM)
        register(client)
        Inserts(client)(*range(10, 30))
        client.reset()
        assert client.latest("q")["end"] == 0
        Inserts(client)(*range(10, 30))
        assert len(values(client)) == 5  # the last ones, as before
        assert made.session.book["q"].bounded


def test_a_name_is_found_as_it_is_written_or_else_where_it_runs() -> None:
    book = Book()
    phases = {"Fast": RUNNING, "fast": STOPPED, "Slow": RUNNING, "SLOW": STOPPED}
    book.loaded(phases, 0)
    for name, phase in phases.items():
        book.queries[name].phase = phase
    for asked, found in {"Fast": "Fast", "fast": "fast", "FAST": "Fast", "slow": "Slow"}.items():
        assert book.find(asked).name == found
    with pytest.raises(BridgeError, match="there is no query none"):
        book.find("none")
