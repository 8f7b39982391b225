"""Tests open exchanges: there is room for every client, and exchanges in which nothing comes are
ended."""

from __future__ import annotations

import contextlib
import socket

import pytest

from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.bridge.exchanges import Exchanges, Watched, cut


class Reader:
    """Takes its time for each chunk."""

    def __init__(self, clock: list[float], takes: float) -> None:
        self.clock, self.takes = clock, takes
        self.seen: list[str] = []

    def read_chunk(self) -> float:
        self.clock[0] += self.takes
        self.seen = self.exchanges.idle(10.0)
        return self.clock[0]

    exchanges: Exchanges


def test_only_waiting_for_the_client_is_idle() -> None:
    now = [0.0]
    exchanges = Exchanges(lambda: now[0])
    reader = Reader(now, 9.0)
    reader.exchanges = exchanges
    with exchanges.open("ipv4:10.0.0.1:5") as exchange:
        watched = exchange.watched(reader)
        assert isinstance(watched, Watched)
        for _ in range(3):
            watched.read_chunk()
            assert reader.seen == []
            now[0] += 1000  # the chunk is being worked on
            assert exchanges.idle(10.0) == []
        reader.takes = 11.0
        watched.read_chunk()
        assert reader.seen == ["ipv4:10.0.0.1:5"]
    assert exchanges.idle_ended == 1
    assert not exchanges


def test_a_host_leaves_room_for_others() -> None:
    exchanges = Exchanges(lambda: 0.0)
    with contextlib.ExitStack() as stack:
        for number in range(192):
            stack.enter_context(exchanges.open(f"ipv4:10.0.0.1:{number // 64}"))
        with (
            pytest.raises(BridgeError, match=r"192 exchanges of ipv4:10\.0\.0\.1 are open"),
            exchanges.open("ipv4:10.0.0.1:9"),
        ):
            pass
        for number in range(64):
            stack.enter_context(exchanges.open(f"ipv4:10.0.0.2:{number // 64}"))
        with (
            pytest.raises(BridgeError, match="256 exchanges are open"),
            exchanges.open("ipv4:10.0.0.3:9"),
        ):
            pass
    assert not exchanges


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
def test_a_connection_is_cut_and_no_other(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as listening:
        listening.bind((host.strip("[]"), 0))
        listening.listen()
        port = listening.getsockname()[1]
        ends = []
        for _ in range(3):
            near = socket.create_connection((host.strip("[]"), port))
            ends.append((near, listening.accept()[0]))
        spelt = host.replace("[", "%5B").replace("]", "%5D")
        peer = f"ipv{6 if ':' in host else 4}:{spelt}:{ends[1][0].getsockname()[1]}"
        assert cut(port, peer) == 1
        assert ends[1][0].recv(1) == b""
        ends[0][0].send(b"x")
        assert ends[0][1].recv(1) == b"x"
        assert cut(port + 1) == 0
        assert cut(port) >= 2
        for near, far in ends:
            assert near.recv(1) == b""
            near.close()
            far.close()
