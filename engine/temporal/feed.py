"""The feed layer: accepts sources, checks elements, updates the catalogue, feeds networks.

The gate drops, counts by reason and offers to a dead-letter sink each bad element, but stops
nothing: one faulty sensor must not end a long query.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from seustream.compiler.apas.tree import Node, SchemaRefused, from_lists
from seustream.compiler.language.types import Type
from seustream.engine.temporal.catalogue import Catalogue, CatalogueError, StreamState
from seustream.engine.temporal.channels import Channel, LineMalformed, TcpChannel
from seustream.engine.temporal.elements import Element, ElementKind, Key, Value, header
from seustream.engine.temporal.values import NoSuchValue, taken

MOST_UNANNOUNCED = 64
"""Connections that have not said which stream they are: each has a thread."""

DeadLetter = Callable[[str, str, Element | None], None]
"""A stream, a reason, and the element, if it was one."""

Note = Callable[[str, str], None]
"""An event and its detail, for a log."""


class Fed(Protocol):
    """A network, to the feed."""

    def feed(self, stream: str, x: Element) -> None: ...


@dataclass(slots=True)
class _Gate:
    """The gate's memory of a stream."""

    last: Key | None = None
    types: tuple[Type, ...] | None = None
    stopped: bool = False


class Feed:
    """`newcomers`: streams may be as many before a source that announces one not registered is
    refused, as it is with 0; below that it registers its stream."""

    def __init__(
        self,
        catalogue: Catalogue | None = None,
        dead_letter: DeadLetter | None = None,
        note: Note | None = None,
        newcomers: int = 0,
    ) -> None:
        self.newcomers = newcomers
        self.catalogue = catalogue or Catalogue()
        self.dead_letter = dead_letter
        self.note: Note = note or (lambda event, detail: None)
        self.gates: dict[str, _Gate] = {}
        self.networks: dict[str, list[Fed]] = {}
        self.channels: dict[str, tuple[Channel, threading.Thread]] = {}
        self.lock = threading.RLock()
        self.listeners: list[tuple[socket.socket, threading.Thread]] = []
        self.unannounced: dict[TcpChannel, threading.Thread] = {}
        self.closing = threading.Event()

    # --- names and networks ---------------------------------------------------

    def register(self, name: str) -> None:
        """Makes a stream known before any source has connected."""
        self.catalogue.register(name)
        self.gates[name] = _Gate()

    def subscribe(self, name: str, network: Fed) -> None:
        with self.lock:
            self.networks.setdefault(name, []).append(network)

    def unsubscribe(self, network: Fed) -> None:
        with self.lock:
            for name in list(self.networks):
                self.networks[name] = [n for n in self.networks[name] if n is not network]
                if not self.networks[name]:
                    del self.networks[name]

    @property
    def subscriptions(self) -> int:
        with self.lock:
            return sum(map(len, self.networks.values()))

    # --- the gate -------------------------------------------------------------

    def offer(self, name: str, x: Element) -> bool:
        """An element of a stream; whether it was accepted. Networks get it in this call."""
        with self.lock:
            entry = self.catalogue[name]
            gate = self.gates[name]
            checked = self._header(name, gate, x) if x.kind is ElementKind.HEADER else None
            if checked is None:
                checked, reason = self._checked(gate, x)
                if checked is None:
                    self._reject(name, reason, x)
                    return False
            entry.accepted += checked.kind is ElementKind.INSERTION
            if checked.kind is ElementKind.STOP:
                gate.stopped, entry.state = True, StreamState.STOPPED
            for network in list(self.networks.get(name, ())):
                network.feed(name, checked)
            if checked.kind is ElementKind.REMOVE:
                self.catalogue.remove(name)
                del self.gates[name]
            return True

    def _header(self, name: str, gate: _Gate, x: Element) -> Element | None:
        """A HEADER with its schema as a tree, None of one that is refused."""
        if gate.stopped:
            return None
        try:
            tree = x.schema if isinstance(x.schema, Node) else from_lists(name, x.schema)
        except SchemaRefused as error:
            self.note("header refused", f"stream {name}: {error}")
            return None
        changed = self.catalogue.adopt(name, tree)
        gate.types = tuple(tree.types)
        if changed:
            self.note("schema", f"stream {name}: version {self.catalogue[name].version}: {tree}")
        return header(tree)

    def _checked(self, gate: _Gate, x: Element) -> tuple[Element | None, str]:
        """The element as it goes on, or the reason it does not."""
        if x.kind is ElementKind.HEADER:
            return None, "header"
        if gate.stopped:
            return None, "stopped"
        if not x.kind.timed:
            return x, ""
        if x.kind is ElementKind.INSERTION and gate.types is None:
            return None, "no_schema"
        if x.te < x.ts:
            return None, "interval"
        if x.kind is ElementKind.INSERTION and gate.types is not None:
            values = _typed(x.values, gate.types)
            if values is None:
                return None, "schema"
            x = Element(x.kind, x.ts, x.te, values)
        if gate.last is not None and x.key < gate.last:
            return None, "stale_boundary" if x.kind is ElementKind.BOUNDARY else "late"
        gate.last = x.key
        return x, ""

    def _reject(self, name: str, reason: str, x: Element | None) -> None:
        self.catalogue[name].rejected[reason] += 1
        self.note("rejected", f"stream {name}: {reason}: {x!r:.200}")
        if self.dead_letter is not None:
            self.dead_letter(name, reason, x)

    # --- channels -------------------------------------------------------------

    def connect(self, name: str, channel: Channel, address: str = "memory") -> None:
        """A source announces itself: a thread takes its elements until the channel ends. Refused
        for a stream that is not registered or has a channel."""
        with self.lock:
            entry = self.catalogue[name]
            if name in self.channels:
                raise CatalogueError(f"stream {name} has a channel already, from {entry.address}")
            entry.address = address
            thread = threading.Thread(
                target=self._take, args=(name, channel), name=f"source {name}", daemon=True
            )
            self.channels[name] = (channel, thread)
        thread.start()

    def disconnect(self, name: str) -> None:
        """Ends a stream's channel, if it has one."""
        with self.lock:
            channel, thread = self.channels.get(name, (None, None))
        if channel is not None and thread is not None:
            channel.close()
            thread.join()

    def close(self) -> None:
        """Ends all channels and listeners. Idempotent."""
        self.closing.set()
        for server, thread in self.listeners:
            server.close()
            thread.join()
        self.listeners.clear()
        for waiting, thread in list(self.unannounced.items()):
            waiting.close()
            thread.join()
        for name in list(self.channels):
            self.disconnect(name)

    def _take(self, name: str, channel: Channel) -> None:
        try:
            while True:
                try:
                    x = channel.recv()
                except LineMalformed as error:
                    self.note("malformed", f"stream {name}: {error}")
                    with self.lock:
                        if name in self.gates:
                            self._reject(name, "malformed", None)
                    continue
                if x is None or name not in self.gates:
                    return
                self.offer(name, x)
        finally:
            channel.close()
            with self.lock:
                self.channels.pop(name, None)
                if name in self.gates and self.catalogue[name].state is StreamState.CONNECTED:
                    self.catalogue[name].state = StreamState.DISCONNECTED
            self.note("channel closed", f"stream {name}")

    # --- TCP ------------------------------------------------------------------

    def listen(self, host: str = "127.0.0.1", port: int = 0) -> int:
        """Takes sources on a port, which it gives."""
        server = socket.create_server((host, port))
        server.settimeout(0.2)
        self.closing.clear()
        thread = threading.Thread(target=self._serve, args=(server,), name="sources", daemon=True)
        self.listeners.append((server, thread))
        thread.start()
        found: int = server.getsockname()[1]
        return found

    def _serve(self, server: socket.socket) -> None:
        while True:
            try:
                connection, where = server.accept()
            except TimeoutError:
                continue
            except OSError as error:
                if server.fileno() < 0:
                    return  # closed
                # A source that has hung up already, or too many of them: others may still come.
                self.note("source refused", f"not accepted: {error}")
                self.closing.wait(0.2)
                continue
            connection.settimeout(None)
            address = f"{where[0]}:{where[1]}"
            channel = TcpChannel(connection, address)
            if len(self.unannounced) >= MOST_UNANNOUNCED:
                self.note("source refused", f"{address}: too many connections announce nothing")
                channel.close()
                continue
            thread = threading.Thread(
                target=self._announced, args=(channel, address), name="source", daemon=True
            )
            self.unannounced[channel] = thread
            thread.start()

    def _announced(self, channel: TcpChannel, address: str) -> None:
        """A connection whose first line says which stream it is."""
        try:
            first = channel.recv()
            if first is None or channel.stream is None:
                raise LineMalformed("the first line is no HEADER")
            self._admit(channel.stream)
            self.connect(channel.stream, _Pushed(first, channel), address)
        except (LineMalformed, CatalogueError) as error:
            self.note("source refused", f"{address}: {error}")
            channel.close()
        finally:
            self.unannounced.pop(channel, None)

    def _admit(self, stream: str) -> None:
        with self.lock:
            if stream not in self.gates and len(self.gates) < self.newcomers:
                self.register(stream)


class _Pushed:
    """A channel whose first element was read already."""

    def __init__(self, first: Element, channel: Channel) -> None:
        self.first: Element | None = first
        self.channel = channel

    def recv(self) -> Element | None:
        first, self.first = self.first, None
        return first or self.channel.recv()

    def close(self) -> None:
        self.channel.close()


def _typed(values: tuple[Any, ...], types: tuple[Type, ...]) -> tuple[Value, ...] | None:
    """Values of these types; a whole number may stand for a DOUBLE, as JSON writes it so."""
    if len(values) != len(types):
        return None
    try:
        return tuple(taken(value, of) for value, of in zip(values, types, strict=True))
    except NoSuchValue:
        return None
