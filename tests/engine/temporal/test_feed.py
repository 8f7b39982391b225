"""The gate and the channels: what is refused and why, and that no bytes crash anything."""

from __future__ import annotations

import contextlib
import datetime
import random
import socket
import time
from typing import Any

import pytest

from seustream.engine.temporal.catalogue import CatalogueError, StreamState
from seustream.engine.temporal.channels import MemoryChannel, encode
from seustream.engine.temporal.elements import (
    FOREVER,
    REMOVE,
    STOP,
    Element,
    ElementKind,
    boundary,
    header,
    insertion,
)
from seustream.engine.temporal.feed import MOST_UNANNOUNCED, Feed
from seustream.engine.temporal.values import told
from tests.engine.temporal.fuzz import KINDS, case

SCHEMA = header([["v", "INTEGER"]])


class Heard:
    def __init__(self) -> None:
        self.elements: list[Element] = []

    def feed(self, stream: str, x: Element) -> None:
        self.elements.append(x)


def fed() -> tuple[Feed, Heard, list[tuple[str, str]]]:
    dead: list[tuple[str, str]] = []
    feed = Feed(dead_letter=lambda stream, reason, x: dead.append((reason, repr(x))))
    feed.register("I")
    heard = Heard()
    feed.subscribe("I", heard)
    return feed, heard, dead


@pytest.mark.acceptance(4)
def test_the_example_of_the_gate() -> None:
    feed, heard, dead = fed()
    for x in [
        insertion(1, 3, 7), SCHEMA, insertion(1, 3, 7), insertion(2, 2, 3), Element(ElementKind.INSERTION, 2, 1, (3,)),
        boundary(4), boundary(3), insertion(3, 5, 9), insertion(4, 4, 6),
    ]:  # fmt: skip
        feed.offer("I", x)
    accepted = [repr(x) for x in heard.elements if x.kind.timed]
    assert accepted == ["[1,3) 7", "[2,2) 3", "B(4)", "[4,4) 6"]
    assert [reason for reason, _ in dead] == ["no_schema", "interval", "stale_boundary", "late"]
    entry = feed.catalogue["I"]
    assert entry.rejected == {"no_schema": 1, "interval": 1, "stale_boundary": 1, "late": 1}
    assert entry.accepted == 3


@pytest.mark.acceptance(4)
@pytest.mark.parametrize("values", [(), (1, 2), ("1",), (1.5,), (True,), (2**63,), ((),)])
def test_wrong_values(values: tuple[Any, ...]) -> None:
    feed, _heard, dead = fed()
    feed.offer("I", SCHEMA)
    assert not feed.offer("I", Element(ElementKind.INSERTION, 1, 2, values))
    assert [reason for reason, _ in dead] == ["schema"]
    assert feed.offer("I", insertion(1, 2, 5))


def test_null_is_a_value() -> None:
    feed, heard, _ = fed()
    feed.offer("I", header([["v", "DOUBLE"], ["t", "DATETIME"]]))
    assert feed.offer("I", insertion(1, 2, None, 1500.25))
    assert feed.offer("I", insertion(1, 2, float("nan"), None))
    at = datetime.datetime(1970, 1, 1, 0, 0, 1, 500250)
    assert [x.values for x in heard.elements[-2:]] == [(None, at), (None, None)]
    assert [told(value) for value in (None, at)] == [None, 1500.25]


def test_a_whole_number_may_be_a_double() -> None:
    feed, heard, _ = fed()
    feed.offer("I", header([["v", "DOUBLE"]]))
    feed.offer("I", insertion(1, 2, 5))
    assert heard.elements[-1].values == (5.0,)
    assert not feed.offer("I", Element(ElementKind.INSERTION, 1, 2, (10**400,)))


@pytest.mark.acceptance(2)
def test_headers() -> None:
    feed, _heard, dead = fed()
    feed.offer("I", SCHEMA)
    for bad in ([["ts", "INTEGER"]], [["v", "INTEGER"], ["v", "DOUBLE"]], [["v", "FLOAT"]], None):
        assert not feed.offer("I", header(bad))
    assert feed.catalogue["I"].version == 1
    assert feed.offer("I", header([["w", "STRING"]]))
    assert feed.catalogue["I"].version == 2
    assert feed.offer("I", insertion(1, 2, "x"))
    assert [reason for reason, _ in dead] == ["header"] * 4


@pytest.mark.acceptance(10)
def test_stop_is_final_and_remove_frees_the_name() -> None:
    feed, heard, _dead = fed()
    feed.offer("I", SCHEMA)
    feed.offer("I", STOP)
    assert not feed.offer("I", insertion(1, 2, 3))
    assert not feed.offer("I", SCHEMA)
    assert feed.catalogue["I"].state is StreamState.STOPPED
    assert feed.offer("I", REMOVE) is False
    feed.register("J")
    feed.offer("J", REMOVE)
    feed.register("J")
    assert [x.kind for x in heard.elements] == [ElementKind.HEADER, ElementKind.STOP]


# --- channels -----------------------------------------------------------------


def until(what: Any) -> None:
    """Waits for another thread; a failure is an assertion, not a time limit on the work."""
    for _ in range(2000):
        if what():
            return
        time.sleep(0.005)
    raise AssertionError("it never happened")


@pytest.mark.acceptance(3)
def test_one_channel_a_stream() -> None:
    feed, _, _ = fed()
    channel = MemoryChannel()
    feed.connect("I", channel)
    with pytest.raises(CatalogueError, match="has a channel already"):
        feed.connect("I", MemoryChannel())
    with pytest.raises(CatalogueError, match="no stream X"):
        feed.connect("X", MemoryChannel())
    feed.close()


def test_a_lost_channel_can_resume() -> None:
    feed, heard, _ = fed()
    for values in (1, 2):
        channel = MemoryChannel()
        feed.connect("I", channel)
        channel.send(SCHEMA)
        channel.send(insertion(values, 9, values))
        until(lambda: feed.catalogue["I"].state is StreamState.CONNECTED)
        channel.close()
        until(lambda: "I" not in feed.channels)
        assert feed.catalogue["I"].state is StreamState.DISCONNECTED
        assert feed.catalogue["I"].version == 1
    assert [x.values for x in heard.elements if x.kind is ElementKind.INSERTION] == [(1,), (2,)]
    feed.close()


def test_over_tcp() -> None:
    feed, heard, dead = fed()
    port = feed.listen()
    with socket.create_connection(("127.0.0.1", port)) as source:
        source.sendall(encode(SCHEMA, "I"))
        source.sendall(b'{"type": "INSERTION", "ts": 1, "values": [3]}\n')
        source.sendall(b'{"type": "INSERTION", "ts": 1, "te": "inf", "values": [4]}\n')
        source.sendall(b"garbage\n" + encode(boundary(7)))
        source.sendall(encode(insertion(7, FOREVER, 5)) + encode(STOP))
        until(lambda: feed.catalogue["I"].state is StreamState.STOPPED)
    assert [repr(x) for x in heard.elements[1:]] == [
        "[1,1) 3",
        "[1,inf) 4",
        "B(7)",
        "[7,inf) 5",
        "STOP",
    ]
    assert [reason for reason, _ in dead] == ["malformed"]
    feed.close()
    assert feed.channels == {}


def test_a_listener_goes_on_when_a_source_cannot_be_accepted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    feed, heard, _ = fed()
    accept, failures = socket.socket.accept, [OSError(24, "Too many open files")]

    def failing(server: socket.socket) -> Any:
        if failures:
            raise failures.pop()
        return accept(server)

    monkeypatch.setattr(socket.socket, "accept", failing)
    port = feed.listen()
    with socket.create_connection(("127.0.0.1", port)) as source:
        source.sendall(encode(SCHEMA, "I") + encode(insertion(1, 2, 3)))
        until(lambda: heard.elements[-1:] and heard.elements[-1].values == (3,))
    assert not failures
    feed.close()


def test_sources_that_are_refused() -> None:
    notes: list[str] = []
    feed = Feed(note=lambda event, detail: notes.append(event))
    feed.register("I")
    port = feed.listen()
    for first in (encode(SCHEMA, "X"), encode(boundary(1)), b"{}\n", b""):
        with socket.create_connection(("127.0.0.1", port)) as source:
            source.sendall(first)
            if first:
                assert source.recv(1) == b""  # the other end hung up
    until(lambda: notes.count("source refused") == 4)
    silent = socket.create_connection(("127.0.0.1", port))
    until(lambda: feed.unannounced)
    feed.close()
    silent.close()
    assert not feed.unannounced


def test_connections_that_announce_nothing_are_bounded() -> None:
    notes: list[str] = []
    feed = Feed(note=lambda event, detail: notes.append(event))
    feed.register("I")
    port = feed.listen()
    silent = [socket.create_connection(("127.0.0.1", port), 10) for _ in range(MOST_UNANNOUNCED)]
    until(lambda: len(feed.unannounced) == MOST_UNANNOUNCED)
    with socket.create_connection(("127.0.0.1", port), 10) as refused:
        assert refused.recv(1) == b""
    assert notes == ["source refused"]
    silent.pop().close()
    until(lambda: len(feed.unannounced) < MOST_UNANNOUNCED)
    with socket.create_connection(("127.0.0.1", port), 10) as source:
        source.sendall(encode(SCHEMA, "I"))
        until(lambda: "I" in feed.channels)
    feed.close()
    for connection in silent:
        connection.close()


def test_newcomers_register_their_streams_while_there_is_room() -> None:
    notes: list[str] = []
    feed = Feed(note=lambda event, detail: notes.append(f"{event}: {detail}"), newcomers=2)
    feed.register("I")
    port = feed.listen()
    with socket.create_connection(("127.0.0.1", port), 10) as first:
        first.sendall(encode(SCHEMA, "X"))
        until(lambda: "X" in feed.channels)
        with socket.create_connection(("127.0.0.1", port), 10) as second:
            second.sendall(encode(SCHEMA, "Y"))
            assert second.recv(1) == b""
        first.sendall(encode(REMOVE))
        until(lambda: "X" not in feed.gates)
        with socket.create_connection(("127.0.0.1", port), 10) as third:
            third.sendall(encode(SCHEMA, "Y"))
            until(lambda: "Y" in feed.channels)
        with socket.create_connection(("127.0.0.1", port), 10) as fourth:
            fourth.sendall(encode(SCHEMA, "no name"))
            assert fourth.recv(1) == b""
    until(lambda: sum(note.startswith("source refused") for note in notes) == 2)
    assert "there is no stream Y" in "\n".join(notes)
    feed.close()


@pytest.mark.acceptance(12)
@pytest.mark.parametrize("seed", range(4))
def test_random_bytes_crash_nothing(seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    feed, heard, _ = fed()
    port = feed.listen()
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", port)) as source:
            if chance.random() < 0.7:
                source.sendall(encode(SCHEMA, "I"))
            noise = bytes(chance.randrange(256) for _ in range(chance.randint(0, 3000)))
            with contextlib.suppress(ConnectionError):  # the other end may have heard enough
                source.sendall(noise)
                source.sendall(b"\n" + encode(insertion(seed, 9, 1)))
        until(lambda: not feed.channels and not feed.unannounced)
    channel = MemoryChannel()
    feed.connect("I", channel)
    channel.send(SCHEMA)
    channel.send(insertion(10, 11, 42))
    until(lambda: heard.elements and heard.elements[-1].values == (42,))
    feed.close()


@pytest.mark.acceptance(12)
@pytest.mark.parametrize("kind", KINDS)
def test_no_source_crashes_the_feed(kind: str) -> None:
    """A short slice of the campaign; `nox -s fuzz` runs many more."""
    for seed in range(20):
        print(f"{kind}, seed {seed}")
        case(kind, seed)


def test_a_line_without_end_is_refused() -> None:
    feed, _, dead = fed()
    port = feed.listen()
    with socket.create_connection(("127.0.0.1", port)) as source:
        source.sendall(encode(SCHEMA, "I"))
        until(lambda: "I" in feed.channels)
        source.sendall(b"x" * (1 << 20) + b"x")
        until(lambda: "I" not in feed.channels)
    assert [reason for reason, _ in dead] == ["malformed"]
    feed.close()
