"""A virtual board on a network: a UDP port with a simulated board behind it, in this process."""

from __future__ import annotations

import contextlib
import select
import socket
from typing import Any

from seustream.cosim.boards.simulated import SimulatedBoard
from seustream.cosim.boards.virtual import Behind
from seustream.cosim.link.device import BoardDevice
from seustream.cosim.link.udp import UdpAddress, open_board
from seustream.hdl.boards.protocol import DATAGRAM, FLAG, FrameKind, LinkFrame
from seustream.hdl.config import DeviceConfig

_CLOCK = 100_000
"""Cycles in a second of its host. By a clock on the wall a host would ask again and again for what a
busy machine has not simulated yet."""
_WAIT, _PATIENCE = 0.1, 50.0
_MOST = 1 << 16
"""Bytes that wait to go into the board; datagrams beyond them are lost, as on a full link."""


class VirtualUdpBoard(Behind):
    """Answers at `port` of this machine. Its host is who last opened a session; datagrams of others
    are dropped and counted in `strangers`."""

    def __init__(self, board: SimulatedBoard, port: int = 0) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", port))
        self._socket.setblocking(False)
        self.port: int = self._socket.getsockname()[1]
        self._host: Any = None
        self._out = bytearray()
        self.strangers = 0
        super().__init__(board)

    def now(self) -> float:
        """Seconds of simulated time."""
        return self._board.cycles / _CLOCK

    def device(self, config: DeviceConfig, address: UdpAddress | None = None) -> BoardDevice:
        """Opens it, perhaps by way of another address."""
        address = address or UdpAddress("127.0.0.1", self.port)
        return open_board(address, config, _WAIT, _PATIENCE, self.now)

    def close(self) -> None:
        super().close()
        self._socket.close()

    def _hear(self, wait: float) -> bool:
        heard = False
        while select.select([self._socket], [], [], 0.0 if heard else wait)[0]:
            self._take()
            heard = True
        return heard

    def _take(self) -> None:
        try:
            data, sender = self._socket.recvfrom(65535)
        except OSError:  # what was sent to a host that is gone comes back as an error
            return
        if sender != self._host:
            if not _opens(data):
                self.strangers += 1
                return
            self._host = sender
        if self._board.waiting + len(data) <= _MOST:
            self._board.put(data)

    def _say(self, data: bytes) -> None:
        """Sends what ends with a frame's end, in datagrams of whole frames."""
        self._out += data
        while (end := self._out.rfind(FLAG, 0, DATAGRAM) + 1) > 0:
            with contextlib.suppress(OSError):  # what cannot leave is lost
                self._socket.sendto(self._out[:end], self._host)
            del self._out[:end]


def _opens(data: bytes) -> bool:
    frames = map(LinkFrame.decode, data.split(bytes([FLAG])))
    return any(frame is not None and frame.kind == FrameKind.OPEN for frame in frames)
