"""A UDP port as a line: `udp://HOST`, or `udp://HOST:PORT`. A datagram holds whole frames of the
host link, which repairs what a network loses, repeats or delays as it does on a serial line."""

from __future__ import annotations

import contextlib
import select
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from seustream.cosim.link.device import BoardDevice
from seustream.cosim.link.errors import LinkError, NoPort
from seustream.cosim.link.session import LinkSession
from seustream.hdl.boards.protocol import DATAGRAM, FLAG, MOST, NETWORK_RING, PORT
from seustream.hdl.config import DeviceConfig

SCHEME = "udp"
AHEAD = NETWORK_RING // MOST
"""Frames sent ahead: as many as a board buffers."""
_AT_ONCE = 64
"""Datagrams read before their content is processed."""
_ADVICE = (
    "is it powered and on this network, has no other host opened it since, and does it hold a bitstream"
    " with an Ethernet port?"
)


@dataclass(frozen=True, slots=True)
class UdpAddress:
    host: str
    port: int = PORT

    @classmethod
    def parse(cls, text: str) -> UdpAddress:
        example = f"udp://192.168.1.50, or udp://192.168.1.50:{PORT}"
        try:
            parts = urlsplit(text)
            host, port = parts.hostname, parts.port
        except ValueError as error:
            raise LinkError(f"{text}: {error}", example) from None
        if parts.scheme != SCHEME or not host or port == 0 or any((*parts[2:], parts.username)):
            raise LinkError(f"{text}: want udp://HOST:PORT", example)
        return cls(host, PORT if port is None else port)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{SCHEME}://{host}:{self.port}"


def datagrams(data: bytes) -> Iterator[bytes]:
    """Splits a sequence of frames into datagrams of whole frames."""
    while len(data) > DATAGRAM:
        # Between two frames there are two flags, as nowhere else.
        end = data.rfind(bytes([FLAG, FLAG]), 0, DATAGRAM + 1) + 1
        yield data[:end]
        data = data[end:]
    yield data


class UdpLine:
    """A socket connected to one board, so that no other host can reach this one through it."""

    def __init__(self, address: UdpAddress) -> None:
        try:
            found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_DGRAM)
            family, kind, protocol, _, where = found[0]
            self._socket = socket.socket(family, kind, protocol)
            self._socket.connect(where)
        except OSError as error:
            raise NoPort(
                f"{address}: {error.strerror}", "is the name right, and is there a way to it?"
            ) from None
        self._socket.setblocking(False)

    def read(self, timeout: float) -> bytes:
        until = time.monotonic() + timeout
        while not (data := self._waiting()) and (left := until - time.monotonic()) > 0:
            select.select([self._socket], [], [], left)
        return data

    def _waiting(self) -> bytes:
        data = b""
        for _ in range(_AT_ONCE):
            try:
                data += self._socket.recv(65535)
            except OSError:  # nothing more; or the other end does not listen yet
                break
        return data

    def write(self, data: bytes) -> None:
        """Sends frames. What cannot be sent is lost, like any datagram on a network."""
        for datagram in datagrams(data):
            with contextlib.suppress(OSError):
                self._socket.send(datagram)

    def close(self) -> None:
        self._socket.close()


def open_board(
    address: UdpAddress,
    config: DeviceConfig,
    wait: float = 0.02,
    patience: float = 5.0,
    now: Callable[[], float] = time.monotonic,
) -> BoardDevice:
    """Opens the board at an address and checks that it is the expected one.

    wait, patience, now   as for the session
    """
    line = UdpLine(address)
    try:
        advice = f"{address}: {_ADVICE}"
        session = LinkSession(
            line, wait=wait, patience=patience, ahead=AHEAD, now=now, advice=advice
        )
        return BoardDevice(session, config)
    except BaseException:
        line.close()
        raise
