"""Tests the lines of a source: each element survives its way, and anything that is no element is
named."""

from __future__ import annotations

import contextlib
import random
import socket
import threading

import pytest

from seustream.cosim.bridge.channels import MAX_LINE, LineMalformed, TcpChannel, decode, encode
from seustream.engine.temporal.elements import FOREVER, ElementKind, StreamElement


def test_elements_survive_their_way() -> None:
    chance = random.Random(5)
    values = (None, True, 7, -1.5, "ä\n", 2**62)
    for _ in range(300):
        kind = chance.choice(list(ElementKind))
        ts = chance.randint(-(10**15), 10**15) if kind.timed else 0
        x = StreamElement(kind)
        if kind is ElementKind.HEADER:
            x = StreamElement(kind, schema=[["v", "DOUBLE"], ["g", [["x", "INTEGER"]]]])
        elif kind is ElementKind.INSERTION:
            te = chance.choice((ts, ts + chance.randrange(99), FOREVER))
            x = StreamElement(kind, ts, te, tuple(chance.choices(values, k=3)))
        elif kind.timed:
            x = StreamElement(kind, ts, ts)
        found, stream = decode(encode(x, "S"))
        assert found == x
        assert stream == ("S" if kind is ElementKind.HEADER else None)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"\xff\n", "no JSON"),
        (b"{", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b"[1]", "want an object with a type of"),
        (b'{"type": "insertion"}', "want an object with a type of"),
        (b'{"type": "HEADER"}', "a HEADER names its stream"),
        (b'{"type": "BOUNDARY"}', "ts is None, want milliseconds"),
        (b'{"type": "BOUNDARY", "ts": true}', "ts is True"),
        (b'{"type": "BOUNDARY", "ts": "inf"}', "ts is inf"),
        (b'{"type": "INSERTION", "ts": 1, "te": 2.5}', "te is 2.5"),
        (b'{"type": "INSERTION", "ts": 99999999999999999999}', "ts is 99999999999999999999"),
        (b'{"type": "INSERTION", "ts": 1, "values": 3}', "values is no list"),
    ],
)
def test_what_is_no_element(line: bytes, why: str) -> None:
    with pytest.raises(LineMalformed, match=why.replace(".", r"\.")):
        decode(line)


def test_te_may_be_left_out() -> None:
    assert decode(b'{"type": "INSERTION", "ts": 4, "values": [1]}')[0].te == 4


def test_a_connection_goes_on_after_a_bad_line_and_ends_after_one_that_is_too_long() -> None:
    ours, theirs = socket.socketpair()
    channel = TcpChannel(ours, "here")
    first = encode(StreamElement(ElementKind.HEADER, schema=[["v", "DOUBLE"]]), "S")
    sent = first + b"nonsense\n" + encode(StreamElement(ElementKind.BOUNDARY, 3, 3)) + b"x" * (MAX_LINE + 1)  # fmt: skip

    def send() -> None:
        with contextlib.suppress(OSError):
            theirs.sendall(sent)
        theirs.close()

    thread = threading.Thread(target=send)
    thread.start()
    assert channel.recv() == StreamElement(ElementKind.HEADER, schema=[["v", "DOUBLE"]])
    assert channel.stream == "S"
    with pytest.raises(LineMalformed, match="no JSON"):
        channel.recv()
    assert channel.recv() == StreamElement(ElementKind.BOUNDARY, 3, 3)
    with pytest.raises(LineMalformed, match="a line of over"):
        channel.recv()
    assert channel.recv() is None
    thread.join()


def test_a_sender_of_a_line_without_end_is_stopped() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        theirs = socket.create_connection(server.getsockname())
        channel = TcpChannel(server.accept()[0], "there")
        stopped: list[OSError] = []

        def send() -> None:
            theirs.settimeout(20)
            try:
                theirs.sendall(b"x" * (32 * MAX_LINE))
            except OSError as error:
                stopped.append(error)

        thread = threading.Thread(target=send)
        thread.start()
        thread.join(0.5)  # until what it sends has filled all buffers
        assert thread.is_alive()
        with pytest.raises(LineMalformed, match="a line of over"):
            channel.recv()
        thread.join()
        theirs.close()
        assert isinstance(stopped[0], ConnectionError)
