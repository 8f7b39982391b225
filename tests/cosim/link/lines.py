"""Lines to a simulated board for tests, with faults of every kind, each drawn from a seed."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from seustream.cosim.boards import build
from seustream.cosim.boards.simulated import SimulatedBoard
from seustream.cosim.link.device import BoardDevice
from seustream.cosim.link.session import LinkLine, LinkSession
from seustream.cosim.verilated.build import missing
from seustream.hdl.config import DeviceConfig


class SimulatedLine:
    """A line to a simulated board, which runs while the line is read. Time is the board's (`now`), so
    that a run is the same every time.

    clock  cycles per second: few, because every second that a host waits is simulated
    """

    def __init__(self, board: SimulatedBoard, clock: float = 10_000, chunk: int = 400) -> None:
        self.board, self._clock, self._chunk = board, clock, chunk

    def now(self) -> float:
        return self.board.cycles / self._clock

    def read(self, timeout: float) -> bytes:
        end = self.board.cycles + timeout * self._clock
        while True:
            self.board.run(self._chunk)
            data = self.board.take()
            if data or self.board.cycles >= end:
                return data

    def write(self, data: bytes) -> None:
        self.board.put(data)

    def close(self) -> None:
        self.board.close()


@dataclass(frozen=True, slots=True)
class Faults:
    """Chances per byte: a bit is changed, the byte is lost, it comes twice; and chances per piece
    that is written or read at once: it is lost, it comes twice, noise precedes it."""

    changed: float = 0.0
    lost: float = 0.0
    twice: float = 0.0
    piece_lost: float = 0.0
    piece_twice: float = 0.0
    noise: float = 0.0


NONE = Faults()
KINDS = {
    "changed": Faults(changed=0.003),
    "lost": Faults(lost=0.003),
    "twice": Faults(twice=0.003),
    "pieces lost": Faults(piece_lost=0.05),
    "pieces twice": Faults(piece_twice=0.2),
    "noise": Faults(noise=0.1),
    "everything": Faults(0.001, 0.001, 0.001, 0.02, 0.02, 0.02),
}


class FaultyLine:
    """A line with faults in both directions. `faults` counts them."""

    def __init__(self, line: LinkLine, faults: Faults, seed: int) -> None:
        self._line, self._of = line, faults
        self._chance = random.Random(seed)
        self.faults = 0

    def read(self, timeout: float) -> bytes:
        return self._damaged(self._line.read(timeout))

    def write(self, data: bytes) -> None:
        self._line.write(self._damaged(data))

    def close(self) -> None:
        self._line.close()

    def _damaged(self, data: bytes) -> bytes:
        chance, of = self._chance, self._of
        if not data or of == NONE:
            return data
        out = bytearray()
        if chance.random() < of.noise:
            out += chance.randbytes(chance.randrange(1, 40))
            self.faults += 1
        for byte in data:
            kind = chance.random()
            if kind < of.lost:
                self.faults += 1
                continue
            out.append(byte)
            if kind < of.lost + of.twice:
                out.append(byte)
                self.faults += 1
            elif kind < of.lost + of.twice + of.changed:
                out[-1] ^= 1 << chance.randrange(8)
                self.faults += 1
        if chance.random() < of.piece_lost:
            self.faults += 1
            return b""
        if chance.random() < of.piece_twice:
            self.faults += 1
            out += bytes(out)
        return bytes(out)


def board(config: DeviceConfig) -> SimulatedBoard:
    """Returns a processor with its link, or skips the test if tools are missing."""
    if missing():
        pytest.skip(f"without {' and '.join(missing())}; nox -s tests installs them")
    return SimulatedBoard(build.linked(config))


def connect(
    board: SimulatedBoard, config: DeviceConfig, faults: Faults = NONE, seed: int = 0
) -> tuple[BoardDevice, FaultyLine]:
    """Connects a device to the board; time is the board's."""
    inner = SimulatedLine(board)
    line = FaultyLine(inner, faults, seed)
    session = LinkSession(line, patience=30.0, now=inner.now, chance=random.Random(seed))
    return BoardDevice(session, config), line
