"""Tests a board on a network: the RTL behind its link, over real sockets. Datagrams are lost,
duplicated, delayed and damaged, and strangers send some, too."""

from __future__ import annotations

import contextlib
import itertools
import random
import select
import socket
import threading
from collections.abc import Iterator

import pytest

from seustream.cosim.boards.datagrams import VirtualUdpBoard
from seustream.cosim.link.device import BoardDevice
from seustream.cosim.link.errors import BoardRefused
from seustream.cosim.link.udp import UdpAddress
from seustream.hdl.boards.protocol import FrameKind, LinkCounter, LinkFrame
from seustream.hdl.config import CONFIGURATIONS
from tests.cosim.boards.cable import networked as board
from tests.cosim.contract import LINKED
from tests.cosim.link.test_device_faults import same_as_golden


class Network:
    """Relays datagrams between host and board, with faults. Each kind of fault hits the same share
    of them, and the kinds take turns, so that none is left to chance."""

    def __init__(self, port: int, seed: int, share: float, strangers: float = 0.0) -> None:
        self._board, self._chance = ("127.0.0.1", port), random.Random(seed)
        self._share, self._strangers = share, strangers
        self._near = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._far = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._stranger = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._near.bind(("127.0.0.1", 0))
        self.address = UdpAddress(*self._near.getsockname())
        self._kinds = itertools.cycle(("lost", "twice", "late", "damaged"))
        self.happened = dict.fromkeys(("lost", "twice", "late", "damaged", "strange"), 0)
        self._host: object = None
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._ending.set()
        self._thread.join()
        for each in (self._near, self._far, self._stranger):
            each.close()

    def _run(self) -> None:
        late: dict[socket.socket, bytes] = {}
        while not self._ending.is_set():
            for ready in select.select([self._near, self._far], [], [], 0.05)[0]:
                data, sender = ready.recvfrom(65535)
                if ready is self._near:
                    self._host = sender
                for piece in self._changed(ready, data, late):
                    if ready is self._near:
                        self._far.sendto(piece, self._board)
                    else:
                        self._near.sendto(piece, self._host)  # type: ignore[arg-type]
            if self._chance.random() < self._strangers:
                noise = self._chance.randbytes(self._chance.randrange(600))
                spoofed = LinkFrame(
                    FrameKind.DATA, self._chance.getrandbits(16), payload=noise[:99]
                )
                data = self._chance.choice([noise, spoofed.encode()])
                self._stranger.sendto(data, self._board)
                self.happened["strange"] += 1

    def _changed(
        self, way: socket.socket, data: bytes, late: dict[socket.socket, bytes]
    ) -> Iterator[bytes]:
        held = late.pop(way, None)
        happens = data and self._chance.random() < 4 * self._share
        kind = next(self._kinds) if happens else ""
        if kind:
            self.happened[kind] += 1
        if kind == "twice":
            yield from (data, data)
        elif kind == "late":
            late[way] = data
        elif kind == "damaged":
            at = self._chance.randrange(len(data))
            yield data[:at] + bytes([data[at] ^ 1 << self._chance.randrange(8)]) + data[at + 1 :]
        elif kind != "lost":
            yield data
        if held is not None:
            yield held


@contextlib.contextmanager
def networked(
    seed: int, share: float, strangers: float = 0.0
) -> Iterator[tuple[BoardDevice, Network]]:
    """Yields a device at the other end of a network."""
    with VirtualUdpBoard(board(LINKED)) as virtual:
        network = Network(virtual.port, seed, share, strangers)
        device = virtual.device(LINKED, network.address)
        try:
            yield device, network
        finally:
            device.close()
            network.close()


def test_a_network_changes_nothing_but_time() -> None:
    seed = 4
    print(f"seed {seed}")
    with networked(seed, 0.02, strangers=0.3) as (device, network):
        same_as_golden(device, random.Random(seed))
        assert all(network.happened.values()), network.happened
        assert device.session.resent
        counts = device.counts()
        assert counts[LinkCounter.STRANGERS]
        # The counters are read one after the other, and each read is itself a datagram.
        assert counts[LinkCounter.DATAGRAMS] >= counts[LinkCounter.WHOLE] > counts[LinkCounter.GAPS]
        assert counts[LinkCounter.BROKEN] == counts[LinkCounter.PASSED] == 0


def test_another_host_takes_the_board() -> None:
    with VirtualUdpBoard(board(LINKED)) as virtual:
        first, second = virtual.device(LINKED), virtual.device(LINKED)
        assert not second.status().taken
        before = second.counts()[LinkCounter.STRANGERS]
        first.session.put(b"?")
        first.session.step(0.1)
        assert second.counts()[LinkCounter.STRANGERS] > before, "the first is no longer heard"
        with pytest.raises(BoardRefused, match="not thesis"):
            virtual.device(CONFIGURATIONS["thesis"])
        first.close()
        second.close()
