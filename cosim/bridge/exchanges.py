"""The open exchanges: their clients, and since when nothing has arrived on each.

Flight waits for a client's next message indefinitely, and offers no way to end such a wait. The end
of the connection does, so a connection is cut at its socket. All its calls end then, as if the
client had gone; a client that is alive repeats what can be repeated.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seustream.cosim.bridge.errors import BridgeError

MOST = 256
"""The most exchanges open at a time."""
MOST_OF_A_CONNECTION = 64
MOST_OF_A_HOST = 192


@dataclass(eq=False, slots=True)
class Exchange:
    """An open exchange; `waiting` is the time since which it waits for the client."""

    peer: str
    clock: Callable[[], float]
    waiting: float | None = None

    def watched(self, reader: Any) -> Watched:
        return Watched(self, reader)


class Watched:
    """A reader that records when it waits."""

    def __init__(self, exchange: Exchange, reader: Any) -> None:
        self._exchange, self._reader = exchange, reader

    def read_chunk(self) -> Any:
        self._exchange.waiting = self._exchange.clock()
        try:
            return self._reader.read_chunk()
        finally:
            self._exchange.waiting = None


class Exchanges:
    """All open exchanges; thread-safe."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.idle_ended = 0
        self._lock = threading.Lock()
        self._open: dict[Exchange, None] = {}

    def __len__(self) -> int:
        return len(self._open)

    @contextlib.contextmanager
    def open(self, peer: str) -> Iterator[Exchange]:
        """Opens an exchange, if this client may have another one."""
        exchange = Exchange(peer, self.clock)
        with self._lock:
            self._check_room(peer)
            self._open[exchange] = None
        try:
            yield exchange
        finally:
            with self._lock:
                self._open.pop(exchange, None)

    def _check_room(self, peer: str) -> None:
        host = host_of(peer)
        of_host = sum(host_of(one.peer) == host for one in self._open)
        of_connection = sum(one.peer == peer for one in self._open)
        for count, most, whose in (
            (of_connection, MOST_OF_A_CONNECTION, "of this connection "),
            (of_host, MOST_OF_A_HOST, f"of {host} " if host else ""),
            (len(self._open), MOST, ""),
        ):
            if count >= most:
                raise BridgeError("busy", f"{most} exchanges {whose}are open")

    def idle(self, longest: float) -> list[str]:
        """Returns the peers with an exchange on which nothing has arrived for longer than this."""
        now = self.clock()
        with self._lock:
            found = {
                one.peer: 1
                for one in self._open
                if one.waiting is not None and now - one.waiting > longest
            }
            self.idle_ended += len(found)
            return list(found)


def host_of(peer: str) -> str:
    """Returns the peer without its port, which differs for each connection."""
    return peer.rpartition(":")[0]


def cut(port: int, peer: str | None = None) -> int:
    """Ends the connections to a port of this process, or the one from a peer as gRPC names it
    ("ipv4:127.0.0.1:5000"). Returns their number."""
    count = 0
    folder = Path("/proc/self/fd") if Path("/proc/self/fd").exists() else Path("/dev/fd")
    for name in os.listdir(folder):
        with contextlib.suppress(OSError):  # closed meanwhile, or not connected
            if not stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                continue
            with socket.socket(fileno=os.dup(int(name))) as one:
                if one.family not in (socket.AF_INET, socket.AF_INET6):
                    continue
                here, there = one.getsockname(), one.getpeername()
                if here[1] == port and (peer is None or _same(there, peer)):
                    one.shutdown(socket.SHUT_RDWR)
                    count += 1
    return count


def _same(address: tuple[Any, ...], peer: str) -> bool:
    host, _, port = peer.partition(":")[2].rpartition(":")
    if str(address[1]) != port:
        return False
    # gRPC spells the brackets of an IPv6 address as in a URL.
    named = host.replace("%5B", "").replace("%5D", "").strip("[]").partition("%25")[0]
    return _plain(named) == _plain(address[0].partition("%")[0])


def _plain(host: str) -> object:
    found = ipaddress.ip_address(host)
    return getattr(found, "ipv4_mapped", None) or found
