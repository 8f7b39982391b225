"""Supervised queries behind a bridge: their lives, results and errors, over the wire and over the
sources' own channel."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from seustream.compiler.apas.libraries import Libraries
from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.client import BridgeClient
from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.bridge.limits import USUAL, Limits
from seustream.cosim.bridge.security import Address, AddressRefused
from seustream.cosim.bridge.supervised import MOST_EVENTS, MOST_ROWS, Supervised, source_address
from seustream.engine.temporal.elements import REMOVE, STOP, boundary, header, insertion
from tests.cosim.bridge.serving import bridge
from tests.engine.temporal import windows

TEXT = "where $I.v > 5 select [x = $I.v]"
DIVIDES = "select [x = 100 / $I.v]"
HEADER = {"type": "HEADER", "stream": "I", "schema": [["v", "INTEGER"]]}
FEW = replace(USUAL, queries=2, query_text=100, live_rows=5, sources=2)


@contextlib.contextmanager
def served(
    folder: Path, limits: Limits = USUAL, token: str | None = None
) -> Iterator[tuple[Supervised, BridgeClient]]:
    """A bridge that has met stream I, and a client."""
    supervised = Supervised(limits, strict=True)
    supervised.feed.register("I")
    supervised.feed.offer("I", header([["v", "INTEGER"]]))
    with (
        bridge(folder, limits=limits, token=token, supervised=supervised) as (_, url),
        BridgeClient(url, token, patience=2) as client,
    ):
        yield supervised, client


def register(client: BridgeClient, name: str = "q", text: str = TEXT) -> dict[str, Any]:
    return dict(client.act("query-register", p.Register(name, text, "some.apas"), patience=0))


def results(client: BridgeClient, name: str = "q", **where: int) -> dict[str, Any]:
    return dict(client.act("query-results", p.Results(name, **where)))


def refused(call: Callable[[], object]) -> BridgeError:
    with pytest.raises(BridgeError) as caught:
        call()
    return caught.value


def feed(supervised: Supervised, *values: int, start: int = 0) -> None:
    for place, value in enumerate(values):
        supervised.feed.offer("I", insertion(start + place, start + place + 1, value))


def test_functions_of_a_library(tmp_path: Path) -> None:
    libraries = Libraries()
    libraries.register("mine", windows.LIBRARIES["mine"])
    supervised = Supervised(libraries=libraries)
    supervised.feed.register("I")
    supervised.feed.offer("I", header([["v", "INTEGER"]]))
    with (
        bridge(tmp_path, supervised=supervised) as (_, url),
        BridgeClient(url, None, patience=2) as client,
    ):
        register(client, text="where mine.last($I, 1) select [x = $I.v]")
        feed(supervised, 7, 3, 9)
        assert results(client)["rows"] == [[0, 1, 7], [1, 2, 3]]


def test_a_query_lives_and_ends(tmp_path: Path) -> None:
    with served(tmp_path) as (supervised, client):
        assert register(client) == {"name": "q", "run": 1, "warnings": []}
        feed(supervised, 7, 3, 9)
        found = results(client)
        assert found == {
            "run": 1,
            "schema": [["x", "INTEGER"]],
            "start": 0,
            "rows": [[0, 1, 7], [2, 3, 9]],
            "end": 2,
            "over": False,
        }
        assert results(client, start=1)["rows"] == [[2, 3, 9]]
        (listed,) = client.act("query-list")["queries"]
        assert listed == {"name": "q", "phase": "RUNNING", "run": 1, "results": 2, "kept": 2}
        assert client.health()["live_queries"] == 1
        for _ in range(2):
            stopped = client.act("query-stop", p.Named("q"))
            assert stopped == {"name": "q", "phase": "STOPPED", "run": 1}
        feed(supervised, 8, start=3)
        assert results(client)["over"] is True
        assert results(client)["rows"] == found["rows"]
        events = client.act("query-log", p.QueryLog("q"))
        assert [event[3] for event in events["events"]] == [
            "COMPILING",
            "RUNNING",
            "STOPPING",
            "counters",
            "STOPPED",
        ]
        assert client.act("query-log", p.QueryLog("q", 4))["events"] == events["events"][4:]
        assert client.health()["live_queries"] == 0
        assert supervised.feed.subscriptions == 0


def test_no_element_passes_between_start_and_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(tmp_path) as (supervised, client):
        start = supervised.supervisor.start
        source = threading.Thread(target=feed, args=(supervised, 7))

        def started(name: str) -> None:
            start(name)
            source.start()
            source.join(0.3)  # it is kept out; if it were not, this would be time enough

        monkeypatch.setattr(supervised.supervisor, "start", started)
        register(client)
        source.join()
        assert results(client)["rows"] == [[0, 1, 7]]


def test_a_name_taken_again_is_another_run(tmp_path: Path) -> None:
    with served(tmp_path) as (supervised, client):
        register(client)
        assert refused(lambda: register(client)).kind == "in-use"
        feed(supervised, 7)
        client.act("query-stop", p.Named("q"))
        assert register(client)["run"] == 2
        assert results(client)["rows"] == []
        error = refused(lambda: results(client, run=1))
        assert (error.kind, error.hint) == ("trimmed", "run 2 is the latest")


def test_errors_of_a_text_keep_place_and_hint(tmp_path: Path) -> None:
    with served(tmp_path) as (_, client):
        error = refused(lambda: register(client, text="where $I.v > 5\nselect [x = $I.w]"))
        assert error.kind == "compile"
        assert "some.apas:2:" in str(error)
        assert "^" in str(error)
        (listed,) = client.act("query-list")["queries"]
        assert listed["phase"] == "FAILED"
        assert results(client)["over"] is True
        assert "FAILED" in json.dumps(client.act("query-log", p.QueryLog("q")))
        assert register(client)["run"] == 2


@pytest.mark.parametrize(
    "text",
    [
        "select [" + ", ".join(f"x{i} = $I.missing{i}" for i in range(500)) + "]",
        "select [\n" + ",\n".join(f"x{i} = $I.missing{i}" for i in range(500)) + "]",
        "select [x = '" + "€" * 20_000 + "' + $I.missing]",
        "€" * 20_000,
        "\n".join(["€" * 400] * 50),
        "select [\n" + ",\n".join(f"x{i} = '{'€' * 250}' + $I.missing{i}" for i in range(99)) + "]",
        "(" * 5000,
        "",
    ],
    ids=["wide", "long", "text", "no text", "lines", "many", "deep", "empty"],
)
def test_errors_of_any_size_come_through(tmp_path: Path, text: str) -> None:
    """gRPC gives an error a few thousand bytes."""
    with served(tmp_path) as (_, client):
        error = refused(lambda: register(client, text=text))
        assert error.kind == "compile"
        assert str(error).startswith("some.apas:1:") or "some.apas:2:" in str(error)


def test_what_is_refused(tmp_path: Path) -> None:
    with served(tmp_path, FEW) as (supervised, client):
        assert refused(lambda: register(client, text=TEXT + " " * 100)).kind == "too-large"
        assert refused(lambda: register(client, "a\nb")).kind == "malformed"
        assert refused(lambda: register(client, text="\ud800")).kind == "malformed"
        assert client.act("query-list")["queries"] == []
        for action, message in (
            ("query-stop", p.Named("none")),
            ("query-log", p.QueryLog("none")),
            ("query-results", p.Results("none")),
        ):
            assert refused(lambda a=action, m=message: client.act(a, m)).kind == "unknown"
        register(client, "q")
        register(client, "r")
        assert refused(lambda: register(client, "s")).kind == "refused"
        client.act("query-stop", p.Named("r"))
        assert register(client, "r")["run"] == 2
        assert refused(lambda: results(client, start=1)).kind == "gap"
        assert refused(lambda: results(client, start=-1)).kind == "gap"
        assert refused(lambda: client.act("query-log", p.QueryLog("q", -1))).kind == "gap"
        supervised.close()
        assert refused(lambda: register(client, "q")).kind == "stopping"


def test_a_bridge_without_sources_has_no_queries(tmp_path: Path) -> None:
    with bridge(tmp_path) as (_, url), BridgeClient(url) as client:
        error = refused(lambda: client.act("query-list"))
        assert error.kind == "refused"
        assert "--sources" in str(error.hint)
        assert client.health()["live_queries"] is None


def test_closing_ends_every_query() -> None:
    supervised = Supervised()
    supervised.feed.register("I")
    supervised.feed.offer("I", header([["v", "INTEGER"]]))
    for name in ("q", "r"):
        supervised.register(p.Register(name, TEXT))
    supervised.close()
    assert [phase for _, phase, _ in supervised.supervisor.list()] == ["STOPPED"] * 2
    assert supervised.feed.subscriptions == 0


def test_the_token_is_wanted_here_too(tmp_path: Path) -> None:
    with served(tmp_path, token="a token of this test") as (_, client):
        register(client)
        with BridgeClient(str(client.address), patience=0) as stranger:
            assert refused(lambda: stranger.act("query-list")).kind == "unauthenticated"


def test_results_are_bounded_and_the_loss_is_counted(tmp_path: Path) -> None:
    with served(tmp_path, FEW) as (supervised, client):
        register(client)
        feed(supervised, *range(10, 30))
        found = results(client, start=2)
        assert (found["start"], found["end"]) == (15, 20)
        assert [row[2] for row in found["rows"]] == list(range(25, 30))
        status = client.status()
        assert status["live_queries"] == 1
        assert status["live_results_total"] == {"q": 20}
        assert status["live_results_dropped_total"] == {"q": 15}
        supervised.feed.offer("I", insertion(0, 1, 1))
        assert client.status()["source_rejected_total"] == {"I/late": 1}
        assert 'source_accepted_total{stream="I"} 20' in client.metrics()


def test_answers_are_pages(tmp_path: Path) -> None:
    with served(tmp_path) as (supervised, client):
        register(client)
        feed(supervised, *[7] * (MOST_ROWS + 3))
        assert len(results(client)["rows"]) == MOST_ROWS
        assert len(results(client, start=MOST_ROWS)["rows"]) == 3
        for _ in range(MOST_EVENTS // 4):
            client.act("query-stop", p.Named("q"))
            register(client)
        found = client.act("query-log", p.QueryLog("q"))
        assert len(found["events"]) == MOST_EVENTS < found["end"]


def test_a_reader_waits_for_results_and_for_the_end(tmp_path: Path) -> None:
    with served(tmp_path) as (supervised, client):
        register(client)
        found: list[dict[str, Any]] = []
        waits = [{"start": 0}, {"start": 1}]
        for where in waits:
            reader = threading.Thread(
                target=lambda w=where: found.append(results(client, wait_ms=20_000, **w))
            )
            reader.start()
            while client.status()["calls_total"].get("query-results", 0) <= len(found):
                time.sleep(0.01)
            if where["start"] == 0:
                feed(supervised, 7)
            else:
                client.act("query-stop", p.Named("q"))
            reader.join(10)
            assert not reader.is_alive()
        assert [(f["rows"], f["over"]) for f in found] == [([[0, 1, 7]], False), ([], True)]


def test_the_end_of_the_input_ends_a_query(tmp_path: Path) -> None:
    with served(tmp_path) as (supervised, client):
        register(client)
        feed(supervised, 7)
        supervised.feed.offer("I", boundary(4))
        supervised.feed.offer("I", STOP)
        assert results(client)["over"] is True
        assert client.act("query-list")["queries"][0]["phase"] == "STOPPED"
        (warning,) = register(client, "late")["warnings"]
        assert warning == "stream I has stopped: nothing more comes of it"


def test_a_query_that_cannot_go_on_says_why_in_its_log(tmp_path: Path) -> None:
    with served(tmp_path) as (supervised, client):
        register(client, text=DIVIDES)
        register(client, "other")
        feed(supervised, 50, 0, 25)
        assert results(client)["rows"] == [[0, 1, 2]]
        assert results(client)["over"] is True
        assert "EXCEPTION" in [e[3] for e in client.act("query-log", p.QueryLog("q"))["events"]]
        assert len(results(client, "other")["rows"]) == 2
        supervised.feed.offer("I", REMOVE)
        assert client.health()["live_queries"] == 0
        assert client.act("query-list")["streams"] == []


# --- sources ------------------------------------------------------------------


def send(at: Address, *messages: dict[str, Any]) -> socket.socket:
    source = socket.create_connection((at.host, at.port))
    source.sendall(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
    return source


def hung_up(source: socket.socket) -> bool:
    """Whether the bridge closes the connection."""
    with source:
        source.settimeout(10)
        return source.recv(1) == b""


def test_sources_announce_themselves(tmp_path: Path) -> None:
    supervised = Supervised(FEW)
    at = supervised.listen(source_address("tcp://127.0.0.1:0"))
    with bridge(tmp_path, supervised=supervised) as (_, url), BridgeClient(url) as client:
        error = refused(lambda: register(client))
        assert error.kind == "compile"
        source = send(at, HEADER)
        while not any(s["state"] == "CONNECTED" for s in client.act("query-list")["streams"]):
            time.sleep(0.01)
        register(client)
        rows = [{"type": "INSERTION", "ts": t, "te": t + 1, "values": [t]} for t in range(4, 8)]
        source.sendall("".join(json.dumps(row) + "\n" for row in rows).encode())
        source.sendall(b'no JSON\n{"type": "STOP"}\n')
        found = results(client, start=1, wait_ms=20_000)
        while not found["over"]:
            found = results(client, wait_ms=20_000, start=1)
        assert results(client)["rows"] == [[6, 7, 6], [7, 8, 7]]
        assert client.status()["source_rejected_total"] == {"I/malformed": 1}
        source.close()


def test_strangers_cannot_make_streams_without_end() -> None:
    told: list[str] = []
    supervised = Supervised(FEW, lambda event, detail: told.append(f"{event}: {detail}"))
    at = supervised.listen(source_address("tcp://localhost:0"))
    try:
        sources = [send(at, {**HEADER, "stream": name}) for name in ("I", "J")]
        while len(list(supervised.feed.catalogue)) < 2:
            time.sleep(0.01)
        assert hung_up(send(at, {**HEADER, "stream": "K"}))
        assert hung_up(send(at, {"type": "STOP"}))
        assert hung_up(send(at, HEADER)), "it has a source"
        assert supervised.events["source refused"] == 3
        assert "there is no stream K" in "\n".join(told)
        for source in sources:
            source.close()
    finally:
        before = threading.active_count()
        supervised.close()
        supervised.close()
        assert threading.active_count() < before


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("tcp://0.0.0.0:1", "have no token"),
        ("tcp://example.org:1", "have no token"),
        ("grpc://127.0.0.1:1", "no address for sources"),
        ("tcp://127.0.0.1", "no address for sources"),
        ("tcp://127.0.0.1:99999", "no address for sources"),
        ("tcp://127.0.0.1:1/x", "no address for sources"),
        ("", "no address for sources"),
    ],
)
def test_addresses_for_sources(text: str, complaint: str) -> None:
    with pytest.raises(AddressRefused, match=complaint):
        source_address(text)
