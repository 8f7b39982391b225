"""A virtual board on a network: a UDP port of this machine with a simulated board behind it, in
this process. Datagrams reach its Ethernet port in packets in frames, as on a cable."""

from __future__ import annotations

import contextlib
import select
import socket

from seustream.cosim.boards.build import ADDRESS
from seustream.cosim.boards.simulated import SimulatedBoard
from seustream.cosim.boards.virtual import Behind
from seustream.cosim.boards.wire import Packet, enclosed, opened, packed, unpacked
from seustream.cosim.link.device import BoardDevice
from seustream.cosim.link.udp import UdpAddress, open_board
from seustream.hdl.boards.protocol import DATAGRAM
from seustream.hdl.config import DeviceConfig

_CLOCK = 100_000
"""Cycles per second of its host. By wall-clock time, a host would repeat its requests for what a
busy machine has not simulated yet."""
_WAIT, _PATIENCE = 0.1, 50.0
_MOST = 1 << 16
"""Bytes that may wait to enter the board; further datagrams are lost, as on a full link."""


class VirtualUdpBoard(Behind):
    """Answers at `port` of this machine. The board knows a host by its port and the last number of
    its address."""

    def __init__(self, board: SimulatedBoard, port: int = 0) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", port))
        self._socket.setblocking(False)
        self.port: int = self._socket.getsockname()[1]
        super().__init__(board)

    def now(self) -> float:
        """Returns seconds of simulated time."""
        return self._board.cycles / _CLOCK

    def device(self, config: DeviceConfig, address: UdpAddress | None = None) -> BoardDevice:
        """Opens the board, possibly through another address."""
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
        except OSError:  # a datagram sent to a host that is gone comes back as an error
            return
        if len(data) > DATAGRAM:  # a cable carries such a datagram only in fragments
            return
        host, port = sender
        frame = packed(enclosed(Packet((port, int(host.rpartition(".")[2])), data), ADDRESS))
        if self._board.waiting + len(frame) <= _MOST:
            self._board.put(frame)

    def _say(self, data: bytes) -> None:
        for frame in unpacked(data):
            packet = opened(frame)
            if packet is not None:
                port, last = packet.host
                with contextlib.suppress(OSError):  # what cannot be sent is lost
                    self._socket.sendto(packet.payload, (f"127.0.0.{last}", port))
