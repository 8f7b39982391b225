"""Living queries of all three languages: registered, listed, stopped, dropped over the wire, also after
a restart; errors of one query stay with that query."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from seustream.compiler.apas.libraries import Libraries
from seustream.compiler.apas.streams import LiveWindow
from seustream.compiler.errors import CompileError, Problem, SourceText, Span
from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.client import BridgeClient
from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.bridge.limits import USUAL, Limits
from seustream.cosim.bridge.registry import shown
from seustream.cosim.bridge.service import Bridge
from tests.cosim.bridge.serving import (
    EVERYTHING,
    Rows,
    bridge,
    compiled,
    cut,
    feed_epoch,
    multiset,
    streams,
    wanted,
)
from tests.engine.temporal import windows

STREAM = "CREATE STREAM I (te bigint, v bigint);"
TEXT = "where $I.v > 5 select [x = $I.v]"
FEW = replace(USUAL, queries=2, query_text=200, live_rows=5, sources=2)


@contextlib.contextmanager
def served(
    folder: Path, limits: Limits = USUAL, libraries: Libraries | None = None
) -> Iterator[tuple[Bridge, BridgeClient]]:
    with (
        bridge(folder, limits=limits, libraries=libraries) as (made, url),
        BridgeClient(url, patience=2) as client,
    ):
        yield made, client


def say(client: BridgeClient, text: str) -> dict[str, Any]:
    return dict(client.act("statement", p.Statement(text, "some.xsql"), patience=0))


def register(client: BridgeClient, name: str = "q", text: str = TEXT) -> dict[str, Any]:
    return dict(client.act("query-register", p.Register(name, text, "some.apas"), patience=0))


def phases(client: BridgeClient) -> dict[str, str]:
    return {one["name"]: one["phase"] for one in client.act("query-list")["queries"]}


def refused(call: Callable[[], object]) -> BridgeError:
    with pytest.raises(BridgeError) as caught:
        call()
    return caught.value


class Inserts:
    """Feeds stream I."""

    def __init__(self, client: BridgeClient) -> None:
        self.client, self.epoch, self.now = client, 0, 0

    def __call__(self, *values: int) -> None:
        """Values, a millisecond after each other; and the stream is known to be past them."""
        ts = [self.now + place for place in range(len(values))]
        rows = pa.table({"ts": ts, "te": [t + 1 for t in ts], "v": list(values)})
        self.now += len(values)
        feed_epoch(self.client, self.epoch, {"I": rows})
        self.epoch += 1
        self.client.promise("I", self.now)
        self.client.flush()


def values(client: BridgeClient, name: str = "q", start: int = 0) -> list[tuple[object, ...]]:
    found = client.latest(name)
    rows = client.read(name, max(start, found["first"]), found["end"])
    return list(zip(*(column.to_pylist() for column in rows.columns), strict=True))


# --- lives --------------------------------------------------------------------


@pytest.mark.acceptance(9)
def test_a_query_lives_and_ends(tmp_path: Path) -> None:
    with served(tmp_path) as (_, client):
        say(client, STREAM)
        feed = Inserts(client)
        assert register(client) == {"name": "q", "run": 1, "phase": "RUNNING", "until": None}
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


@pytest.mark.parametrize("seed", range(6))
def test_registered_one_by_one_as_loaded_at_once(seed: int, tmp_path: Path) -> None:
    """Statements of all three languages, in pieces, and restarts between them; from then on the
    results are those of the set run over files."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    rows = streams(200, seed)
    compilation = compiled(EVERYTHING)
    limits = replace(USUAL, journal_bytes=chance.choice((1, 20_000, 1 << 30)), live_rows=100_000)
    pieces = [piece for piece in EVERYTHING.split(";\n") if piece.strip()]
    with contextlib.ExitStack() as stack:
        _, client = stack.enter_context(served(tmp_path, limits))
        while pieces:
            count = chance.randint(1, 5)
            say(client, ";\n".join(pieces[:count]))
            del pieces[:count]
            if chance.random() < 0.3:
                stack.close()
                _, client = stack.enter_context(served(tmp_path, limits))
        found: dict[str, Rows] = {}
        for epoch, part in enumerate(cut(rows, 5)):
            feed_epoch(client, epoch, part)
            if chance.random() < 0.3:
                stack.close()
                _, client = stack.enter_context(served(tmp_path, limits))
        client.end()
        client.flush()
        for name in compilation.program.names:
            found[name] = multiset(client.read(name, 0, client.latest(name)["end"]))
    assert found == wanted(compilation, rows)


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
    """A window function with a state that no snapshot holds."""

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
    """Nor the session, also after a restart over the journal; and it can be dropped."""
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


def test_functions_of_a_library(tmp_path: Path) -> None:
    libraries = Libraries()
    libraries.register("mine", windows.LIBRARIES["mine"])
    with served(tmp_path, libraries=libraries) as (_, client):
        say(client, STREAM)
        register(client, text="where mine.last($I, 1) select [x = $I.v]")
        Inserts(client)(7, 3, 9)
        assert values(client)[:2] == [(0, 1, 7), (1, 2, 3)]


def test_results_that_nobody_reads_hold_up_no_other(tmp_path: Path) -> None:
    """Those of a query that is dropped while processing waits for their reader, too."""
    limits = replace(USUAL, result_rows=10, patience=0.3)
    with served(tmp_path, limits) as (_, client):
        client.load(compiled(STREAM + "REGISTER QUERY unread AS SELECT v FROM I WINDOW NOW;"))
        register(client, text="select [x = $I.v]")
        feed = Inserts(client)
        feed(*range(8))
        assert refused(lambda: feed(*range(8, 16))).kind == "busy"
        say(client, "DROP QUERY unread")
        client.flush()
        assert len(values(client)) >= 14
        assert client.act("query-list")["queries"][0]["name"] == "q"


# --- what is refused ----------------------------------------------------------


def test_errors_of_a_text_keep_place_and_hint_and_change_nothing(tmp_path: Path) -> None:
    with served(tmp_path) as (_, client):
        say(client, STREAM)
        error = refused(lambda: register(client, text="where $I.v > 5\nselect [x = $I.w]"))
        assert error.kind == "compile"
        assert "some.apas:2:" in str(error)
        assert "^" in str(error)
        text = "REGISTER QUERY a AS SELECT v FROM I WINDOW NOW;\nREGISTER QUERY b AS SELECT w FROM I WINDOW NOW"
        error = refused(lambda: say(client, text))
        assert str(error).startswith("some.xsql:2:28: no stream of this query has a column w")
        assert phases(client) == {}


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
    """gRPC gives an error a few thousand bytes."""
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
    before = threading.active_count()
    for _ in range(2):
        with served(tmp_path) as (_, client):
            if not client.act("query-list")["streams"]:
                say(client, STREAM)
                register(client)
            client.act("query-stop", p.Named("q"))
    assert threading.active_count() <= before


def test_show_and_explain_are_answered_and_change_nothing(tmp_path: Path) -> None:
    with served(tmp_path) as (_, client):
        say(client, STREAM)
        register(client)
        assert say(client, "SHOW STREAMS")["shown"] == ["stream I (te bigint, v bigint)"]
        assert any("q" in line for line in say(client, "SHOW QUERIES")["shown"])
        assert say(client, "EXPLAIN SELECT v FROM I WINDOW NOW")["shown"]
        assert say(client, "EXPLAIN q")["shown"]
        assert phases(client) == {"q": "RUNNING"}


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
