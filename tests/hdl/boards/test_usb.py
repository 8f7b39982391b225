"""Tests the USB port at its wires: its throughput, in the time of the line. Its packets and the
effects of damaged ones are in `tests/cosim/boards/test_usb.py`."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

import pytest

from seustream.cosim.boards import build
from seustream.cosim.boards.build import BoardKind, verilog_of
from seustream.cosim.link.processor import LinkProcessor
from seustream.cosim.link.session import LinkSession
from seustream.cosim.verilated.build import missing
from seustream.hdl.boards.protocol import RING
from tests.cosim.boards.cable import CONFIG, kept
from tests.cosim.boards.mirror import Mirror
from tests.hdl.boards.test_mac_and_packets_and_network import mirrored

usb = pytest.importorskip("seustream.cosim.boards.usb", reason="nox -s tests installs pyusb")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # from LUNA, at elaboration

BITS = 12e6
"""Bits per second on the wires."""


@functools.cache
def mirroring() -> Path:
    """Builds a board with a USB port that gives a result for each tuple."""
    if missing():
        pytest.skip(f"without {' and '.join(missing())}; nox -s tests installs them")
    from seustream.hdl.boards.usb import UsbLinked

    text = verilog_of(UsbLinked(Mirror(CONFIG, build.identity_of(CONFIG), RING)))
    sources = text + build.SHIM.read_text() + build.USB_HOST.read_text()
    return kept(f"usb-{hashlib.sha256(sources.encode()).hexdigest()[:32]}", text, BoardKind.USB)


class Wires:
    """The line of a session; its time is that of the bits."""

    def __init__(self, share: float, seed: int) -> None:
        self.board = usb.SimulatedUsbBoard(mirroring(), round(1e6 / 80))
        self.board.damage(share, seed)

    def now(self) -> float:
        return float(self.board.cycles / BITS)

    def write(self, data: bytes) -> None:
        self.board.put(data)

    def read(self, timeout: float) -> bytes:
        end = self.now() + timeout
        while True:
            self.board.run(100)
            data: bytes = self.board.take()
            if data or self.now() >= end:
                return data

    def close(self) -> None:
        self.board.close()


@pytest.mark.parametrize(("share", "rate"), [(0.0, 4e4), (0.01, 3e4), (0.1, 1e4)])
def test_tuples_a_second_each_way(share: float, rate: float) -> None:
    """Measured with this share of packets damaged, at the clock of a ULX3S."""
    seed = 1
    print(f"seed {seed}")
    wires = Wires(share, seed)
    session = LinkSession(wires, wait=0.05, now=wires.now)
    processor = LinkProcessor(session, CONFIG, 60.0)
    before, count = wires.now(), 1_000
    mirrored(processor, count, seed)
    reached = count / (wires.now() - before)
    print(f"{reached:,.0f} tuples/s, {wires.board.damaged} damaged, {session.resent} times again")
    assert reached > rate
    assert bool(wires.board.damaged) == bool(share)
    wires.close()
