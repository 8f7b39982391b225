"""Simulates a cable, with faults, between a host and the Ethernet port of a simulated board."""

from __future__ import annotations

import functools
import hashlib
import itertools
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from amaranth.back import verilog

from seustream.cosim.boards import build
from seustream.cosim.boards.build import ADDRESS, BoardKind, library, verilog_of
from seustream.cosim.boards.netlist import CELLS, ethernet_pins
from seustream.cosim.boards.simulated import SimulatedBoard
from seustream.cosim.boards.wire import Packet, enclosed, opened, packed, unpacked
from seustream.cosim.link.udp import datagrams
from seustream.cosim.verilated.build import cache, missing, simpler, sound
from seustream.hdl.boards.board import BOARDS
from seustream.hdl.boards.linked import Networked
from seustream.hdl.boards.protocol import NETWORK_RING
from seustream.hdl.boards.tops import BoardTop, Setting
from seustream.hdl.config import CONFIGURATIONS, DeviceConfig
from tests.cosim.boards.mirror import Mirror

CONFIG = CONFIGURATIONS["default3"]
PHY_CYCLE = 8e-9
KINDS = ("lost", "twice", "late", "damaged")


def mirror(clock: float = 125.0) -> SimulatedBoard:
    """Returns a board whose Ethernet port answers each tuple with a result; `clock` is in MHz."""
    return SimulatedBoard(mirroring(), round(1e6 / clock))


def networked(config: DeviceConfig) -> SimulatedBoard:
    """Returns a processor with an Ethernet port, or skips the test if tools are missing."""
    if missing():
        pytest.skip(f"without {' and '.join(missing())}; nox -s tests installs them")
    return SimulatedBoard(build.networked(config), build.PERIOD)


@functools.cache
def mirroring() -> Path:
    if missing():
        pytest.skip(f"without {' and '.join(missing())}; nox -s tests installs them")
    port = Mirror(CONFIG, build.identity_of(CONFIG), NETWORK_RING)
    text = verilog_of(Networked(port, ADDRESS))
    key = hashlib.sha256((text + build.SHIM.read_text()).encode()).hexdigest()
    return kept(f"mirror-{key[:32]}", text, BoardKind.NETWORK)


def mirror_at_pins() -> SimulatedBoard:
    """Returns the same on an ECPIX-5, as its PHY sees it: four bits at each clock edge, from reset
    on."""
    setting = Setting(BOARDS["ecpix5"], CONFIG, address=ADDRESS)
    return SimulatedBoard(_at_pins(setting), round(1e6 / setting.clock))


@functools.cache
def _at_pins(setting: Setting) -> Path:
    if missing():
        pytest.skip(f"without {' and '.join(missing())}; nox -s tests installs them")
    top = BoardTop(setting, Mirror(CONFIG, setting.identity, NETWORK_RING))
    gateware = str(verilog.convert(top, name="top", ports=top.ports, emit_src=False))
    text = "\n".join([simpler(gateware), CELLS.read_text(), ethernet_pins(setting.board)])
    key = hashlib.sha256((text + build.SHIM.read_text()).encode()).hexdigest()
    return kept(f"rgmii-{key[:32]}", text, BoardKind.RGMII)


def kept(name: str, text: str, kind: BoardKind) -> Path:
    """Returns a library, and builds it if necessary: only a process that builds waits for others
    that do."""
    named = cache() / name
    if sound(named / "board.so"):
        return named / "board.so"
    return library(text, kind, named, print)


class Cable:
    """Carries a session's bytes. Time is the PHY's: a cycle is 8 ns at a gigabit. Each kind of
    fault hits its share of the frames."""

    def __init__(
        self, board: SimulatedBoard, share: float = 0.0, seed: int = 0, port: int = 5000
    ) -> None:
        self.board, self._share, self._port = board, share, port
        self._chance = random.Random(seed)
        self._kinds = itertools.cycle(KINDS)
        self._late: list[bytes | None] = [None, None]
        self.sent = 0
        self.happened = dict.fromkeys(KINDS, 0)

    def now(self) -> float:
        return self.board.cycles * PHY_CYCLE

    def write(self, data: bytes) -> None:
        for datagram in datagrams(data):
            for line in self._changed(0, enclosed(Packet((self._port, 10), datagram), ADDRESS)):
                self.board.put(packed(line))
                self.sent += 1

    def read(self, timeout: float) -> bytes:
        end = self.now() + timeout
        while True:
            self.board.run(125)
            data = b""
            for line in unpacked(self.board.take()):
                for changed in self._changed(1, line):
                    packet = opened(changed)
                    if packet is not None and packet.host == (self._port, 10):
                        data += packet.payload
            if data or self.now() >= end:
                return data

    def _changed(self, way: int, line: bytes) -> Iterator[bytes]:
        held, self._late[way] = self._late[way], None
        kind = next(self._kinds) if self._chance.random() < len(KINDS) * self._share else ""
        if kind:
            self.happened[kind] += 1
        if kind == "twice":
            yield from (line, line)
        elif kind == "late":
            self._late[way] = line
        elif kind == "damaged":
            at = self._chance.randrange(8, len(line))
            yield line[:at] + bytes([line[at] ^ 1 << self._chance.randrange(8)]) + line[at + 1 :]
        elif kind != "lost":
            yield line
        if held is not None:
            yield held

    def close(self) -> None:
        self.board.close()
