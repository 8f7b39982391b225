"""Live sources over TCP: each line, a JSON object, becomes a row of the session, in epochs of its own.

    sources = Sources(bridge)
    address = sources.listen(source_address("tcp://127.0.0.1:0"))

A source announces its stream with a HEADER (`seustream.cosim.bridge.channels`); a stream that the catalogue
does not have is created with its columns and a column te, the end of a tuple's interval. Elements are
checked, collected for some milliseconds (`collecting`), and committed like any writer's epoch, so they are
in the journal before a query reads them. A bad element is dropped and counted by its reason, since one faulty
sensor must not end a long query. The channel has no authentication, so it is restricted to loopback.
"""

from __future__ import annotations

import contextlib
import datetime
import math
import socket
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import urlsplit

import pyarrow as pa

from seustream.compiler.apas.tree import Node, SchemaRefused, from_lists
from seustream.compiler.catalogue import Column, Stream
from seustream.compiler.language.types import Type
from seustream.compiler.xsql.descriptions import quoted
from seustream.compiler.xsql.intervals import END, leaves, tree_of
from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.channels import LineMalformed, TcpChannel
from seustream.cosim.bridge.epochs import PartWriter
from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.bridge.limits import Limits
from seustream.cosim.bridge.registry import Catalogue
from seustream.cosim.bridge.security import Address, AddressRefused
from seustream.cosim.bridge.session import Session
from seustream.engine.stream.schema import stream_schema
from seustream.engine.temporal.elements import ElementKind, StreamElement, milliseconds
from seustream.engine.temporal.values import NoSuchValue, taken

MOST_UNANNOUNCED = 64
"""Connections that have not announced a stream; each has a thread."""
_SOON = 2
"""Milliseconds in which elements are collected to one epoch, while nothing waits."""
_MOST_WAITING = 1 << 14
"""Rows of a stream that wait for their epoch before its source waits."""

Note = Callable[[str, str], None]
"""Called with an event and its detail, for a log."""


class Fed(Protocol):
    """A bridge as its sources see it."""

    limits: Limits

    @property
    def session(self) -> Session: ...
    def registry(self) -> Catalogue: ...


def source_address(text: str) -> Address:
    """Parses `tcp://127.0.0.1:PORT`; raises `AddressRefused`."""
    refused = AddressRefused(f"{text}: no address for sources", "want tcp://127.0.0.1:PORT")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:  # of an unclosed bracket, or a port that is none
        raise refused from None
    if parts.scheme != "tcp" or not parts.hostname or port is None or parts.path.strip("/"):
        raise refused
    address = Address(parts.hostname, port)
    if not address.loopback:
        raise AddressRefused(
            f"{text}: others can reach this address, and sources have no token to give",
            "listen on 127.0.0.1; sources elsewhere can come through a tunnel",
        )
    return address


@dataclass(slots=True)
class _Entering:
    """A stream that a source brings: the columns to check against, the type of the ends of
    intervals, if it has them, and the elements that wait for their epoch. The times of tuples may
    fall back by `slack`. Tuples of an `ordered` stream come in order or are dropped here; of any
    other stream the session decides which are late, by the stream's options."""

    stream: Stream
    slack: int
    ordered: bool = field(init=False)
    columns: tuple[Column, ...] = field(init=False)
    end: Type | None = field(init=False)
    time: int | None = field(init=False)
    """The place of the column that holds the times of tuples, if there is one."""

    channel: TcpChannel | None = None
    last: tuple[int, int] | None = None
    promise: int | None = None
    told: int | None = None  # the promise that the session knows
    stopped: bool = False
    ended: bool = False  # the session knows
    accepted: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    waiting: list[StreamElement] = field(default_factory=list)

    def __post_init__(self) -> None:
        of = self.stream
        self.ordered = not self.slack and of.time is None and of.late == "drop"
        self.columns = tuple(leaves(of))
        self.end = next((c.type for c in self.stream.columns if c.name == END), None)
        names = [column.name.lower() for column in self.columns]
        self.time = None if of.time is None else names.index(of.time.lower())

    def checked(self, x: StreamElement) -> tuple[StreamElement | None, str]:
        """Returns the element to pass on, or the reason for dropping it."""
        if self.stopped:
            return None, "stopped"
        if not x.kind.timed:
            return x, ""
        if x.te < x.ts:
            return None, "interval"
        if x.kind is ElementKind.INSERTION:
            try:
                x = StreamElement(x.kind, x.ts, x.te, self._values(x))
            except NoSuchValue:
                return None, "schema"
        if self.ordered:
            if self.last is not None and x.key < self.last:
                return None, "stale_boundary" if x.kind is ElementKind.BOUNDARY else "late"
            self.last = x.key
        elif x.kind is ElementKind.BOUNDARY and self.promise is not None and x.ts < self.promise:
            return None, "stale_boundary"
        return x, ""

    def promised(self, x: StreamElement) -> int | None:
        """Returns the time before which nothing comes after the element. A tuple promises nothing
        for a stream that has its time in a column."""
        if x.kind is ElementKind.BOUNDARY:
            return x.ts
        return None if self.stream.time is not None else x.ts - self.slack

    def _values(self, x: StreamElement) -> tuple[Any, ...]:
        """Returns the values as the columns hold them; raises `NoSuchValue` if one does not."""
        if len(x.values) != len(self.columns):
            raise NoSuchValue(f"{len(x.values)} values, want {len(self.columns)}")
        if self.end is not None:
            taken(x.te, self.end)
        found = tuple(taken(v, c.type) for v, c in zip(x.values, self.columns, strict=True))
        for value, column in zip(found, self.columns, strict=True):
            if value is None and not column.nullable:
                raise NoSuchValue(f"{column.name} is NULL")
        return found

    def _time(self, x: StreamElement) -> int:
        """Returns the time of a tuple, by which its epoch is sorted."""
        time = None if self.time is None else x.values[self.time]
        if isinstance(time, datetime.datetime):
            return math.floor(milliseconds(time))
        return time if isinstance(time, int) else x.ts

    def table(self, elements: list[StreamElement]) -> pa.Table:
        columns: dict[str, Any] = {"ts": list(map(self._time, elements))}
        if self.end is not None:
            columns[END] = [taken(x.te, self.end) for x in elements]
        schema = stream_schema(self.stream)
        for number, column in enumerate(self.columns):
            columns[column.name] = [x.values[number] for x in elements]
        arrays = [pa.array(columns[f.name], f.type) for f in schema]
        return pa.table(arrays, schema=schema)


def collecting(behind: int, max_latency: int) -> int:
    """Returns the milliseconds in which elements are collected to one epoch: a few while rows are
    processed soon, otherwise as long as rows wait to be processed, since larger epochs are more
    efficient; at most half of `max_latency`."""
    return max(1, min(max(behind, _SOON), max_latency // 2))


class Sources:
    """All sources of a bridge. Thread-safe."""

    def __init__(self, bridge: Fed, note: Note | None = None) -> None:
        self.bridge = bridge
        self.note: Note = note or (lambda event, detail: None)
        self.events: Counter[str] = Counter()
        self.streams: dict[str, _Entering] = {}
        self._changed = threading.Condition(threading.RLock())
        self._listening: list[tuple[socket.socket, threading.Thread]] = []
        self._connections: dict[TcpChannel, threading.Thread] = {}
        self._closing = threading.Event()
        self._load: p.Load | None = None  # with which `streams` agree
        self._flusher = threading.Thread(target=self._flush_on, name="sources", daemon=True)
        self._flusher.start()

    def listen(self, address: Address) -> Address:
        """Accepts sources at an address; returns it with the port."""
        family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        server = socket.create_server((address.host, address.port), family=family)
        server.settimeout(0.2)
        thread = threading.Thread(target=self._accept, args=(server,), name="accept", daemon=True)
        self._listening.append((server, thread))
        thread.start()
        return Address(address.host, server.getsockname()[1])

    def close(self) -> None:
        """Ends listeners and connections; commits what was accepted. Idempotent."""
        self._closing.set()
        for server, thread in self._listening:
            server.close()
            thread.join()
        self._listening.clear()
        with self._changed:
            self._changed.notify_all()
        for channel, thread in list(self._connections.items()):
            channel.close()
            thread.join()
        self._flusher.join()

    def forget(self) -> None:
        """Forgets the sources of a session that is gone; they announce themselves again."""
        with self._changed:
            for one in self.streams.values():
                if one.channel is not None:
                    one.channel.close()
            self.streams.clear()

    def states(self) -> dict[str, dict[str, Any]]:
        """Returns by stream whether its source is connected, and counters of its elements."""
        with self._changed:
            return {
                name: {
                    "state": "STOPPED"
                    if one.stopped
                    else "CONNECTED"
                    if one.channel
                    else "DISCONNECTED",
                    "accepted": one.accepted,
                    "rejected": dict(one.rejected),
                }
                for name, one in self.streams.items()
            }

    # --- connections ----------------------------------------------------------

    def _accept(self, server: socket.socket) -> None:
        while True:
            try:
                connection, where = server.accept()
            except TimeoutError:
                continue
            except OSError as error:
                if server.fileno() < 0:
                    return  # closed
                # The source has hung up already, or there are too many; others may still come.
                self._tell("source refused", f"not accepted: {error}")
                self._closing.wait(0.2)
                continue
            connection.settimeout(None)
            channel = TcpChannel(connection, f"{where[0]}:{where[1]}")
            if len(self._connections) >= MOST_UNANNOUNCED + self.bridge.limits.sources:
                self._tell("source refused", f"{channel.address}: too many connections")
                channel.close()
                continue
            thread = threading.Thread(
                target=self._take, args=(channel,), name="source", daemon=True
            )
            self._connections[channel] = thread
            try:
                thread.start()
            except RuntimeError as error:  # there are too many threads
                self._tell("source refused", f"{channel.address}: {error}")
                self._connections.pop(channel, None)
                channel.close()

    def _take(self, channel: TcpChannel) -> None:
        """Takes everything that one source sends."""
        one: _Entering | None = None
        try:
            first = channel.recv()
            if first is None or channel.stream is None:
                raise LineMalformed("the first line is no HEADER")
            one = self._announced(channel.stream, first, channel)
            while True:
                try:
                    x = channel.recv()
                except LineMalformed as error:
                    self._tell("malformed", f"stream {one.stream.name}: {error}")
                    with self._changed:
                        one.rejected["malformed"] += 1
                    continue
                if x is None:
                    return
                if x.kind is ElementKind.HEADER:
                    self._again(one, x)
                    continue
                self._offer(one, x)
        except (LineMalformed, BridgeError, SchemaRefused) as error:
            self._tell("source refused", f"{channel.address}: {error}")
        except Exception as error:
            # A fault of the bridge, which ends this source alone.
            self._tell("source failed", f"{channel.address}: {type(error).__name__}: {error}")
        finally:
            channel.close()
            with self._changed:
                if one is not None and one.channel is channel:
                    one.channel = None
                self._connections.pop(channel, None)
            if one is not None:
                self._tell("channel closed", f"stream {one.stream.name}")

    def _announced(self, name: str, x: StreamElement, channel: TcpChannel) -> _Entering:
        """Returns the stream of a HEADER: the catalogue's, if it has these columns, or a new one."""
        if not (name.isidentifier() and name.isascii()):
            raise LineMalformed(f"{name!r:.60} is no name of a stream")
        tree = from_lists(name, x.schema)
        with self._changed:
            self._leave_dropped()  # its source before this one may not have hung up yet
            one = self.streams.get(name)
            if one is not None and one.channel is not None:
                raise LineMalformed(f"stream {name} has a source already, {one.channel.address}")
            if one is None and len(self.streams) >= self.bridge.limits.sources:
                raise LineMalformed(f"there are {len(self.streams):,} streams of sources already")
            stream, session = self._stream(name, tree), self.bridge.session
            ended, slack = name in session.ended, session.load.run.slack
            if one is None or one.stream != stream or (one.ended and not ended):
                one = _Entering(stream, stream.out_of_orderness if slack is None else slack)
                one.stopped = one.ended = ended
                self.streams[name] = one
            one.channel = channel
            return one

    def _stream(self, name: str, tree: Node) -> Stream:
        registry = self.bridge.registry()
        known = {s.name: s for s in registry.session.compilation.program.base}
        if name not in known:
            columns = [f"{END} bigint"] + [
                f"{quoted('.'.join(path))} {type}"
                for path, type in zip(tree.paths, tree.types, strict=True)
            ]
            text = f"CREATE STREAM {quoted(name)} ({', '.join(columns)})"
            registry.statement(p.Statement(text, f"<header of {name:.150}>"))
            known = {s.name: s for s in registry.session.compilation.program.base}
        stream = known[name]
        # A source knows few types; a value that the column's own type does not hold is a bad tuple.
        if str(tree_of(stream)) != str(tree):
            raise LineMalformed(f"stream {name} is {tree_of(stream)}, the source says {tree}")
        return stream

    def _again(self, one: _Entering, x: StreamElement) -> None:
        """Handles a repeated HEADER, which must not change the schema."""
        try:
            self._stream(one.stream.name, from_lists(one.stream.name, x.schema))
        except (LineMalformed, SchemaRefused, BridgeError) as error:
            self._tell("header refused", f"stream {one.stream.name}: {error}")

    def _offer(self, one: _Entering, x: StreamElement) -> None:
        with self._changed:
            while len(one.waiting) >= _MOST_WAITING and not self._closing.is_set():
                self._changed.wait()
            checked, reason = one.checked(x)
            if checked is None:
                one.rejected[reason] += 1
                self._tell("rejected", f"stream {one.stream.name}: {reason}: {x!r:.200}")
                return
            if checked.kind is ElementKind.INSERTION:
                one.accepted += 1
                one.waiting.append(checked)
            if not checked.kind.timed:
                one.stopped = True
            elif (promised := one.promised(checked)) is not None:
                one.promise = promised if one.promise is None else max(promised, one.promise)

    def _tell(self, event: str, detail: str) -> None:
        with self._changed:
            self.events[event] += 1
        self.note(event, detail)

    # --- epochs ---------------------------------------------------------------

    def _flush_on(self) -> None:
        pause, last = _SOON, False
        while not last:
            last = self._closing.wait(pause / 1000)
            try:
                self._leave_dropped()
                self._flush_all()
                pause = collecting(self._behind(), self.bridge.limits.max_latency)
            except Exception as error:
                # A fault of the bridge: rows are lost from here on, which every client must learn.
                with contextlib.suppress(BridgeError):
                    self.bridge.session.fail(error)
                self._tell("failed", f"{type(error).__name__}: {error}")

    def _flush_all(self) -> None:
        for one in list(self.streams.values()):
            try:
                self._flush(one)
            except BridgeError as error:
                if not error.retriable:
                    self._reject(one, error.kind, str(error))

    def _reject(self, one: _Entering, kind: str, why: str) -> None:
        """Drops and counts the elements that wait."""
        with self._changed:
            one.rejected[kind] += len(one.waiting)
            one.waiting.clear()
            one.told = one.promise
            self._changed.notify_all()
        self._tell("rejected", f"stream {one.stream.name}: {why}")

    def _leave_dropped(self) -> None:
        """Closes the channels of streams that are no longer in the catalogue."""
        with contextlib.suppress(BridgeError), self._changed:
            session = self.bridge.session  # there is none yet, or no longer: BridgeError
            load = session.latest_load
            if load is self._load:
                return
            base = {stream.name: stream for stream in session.compiled(load).program.base}
            for name, one in list(self.streams.items()):
                if base.get(name) != one.stream:
                    del self.streams[name]
                    if one.channel is not None:
                        one.channel.close()
                    self._reject(one, "unknown", "it is dropped")
            self._load = load

    def _behind(self) -> int:
        """Returns the milliseconds that rows have waited to be processed."""
        try:
            return self.bridge.session.behind if self.streams else 0
        except BridgeError:  # no session yet, or no longer
            return 0

    def _flush(self, one: _Entering) -> None:
        """Commits the waiting elements of a stream as an epoch; a retriable error leaves them
        waiting."""
        session, name = self.bridge.session, one.stream.name
        with self._changed:
            elements, promise, stopped = list(one.waiting), one.promise, one.stopped
        if elements or one.told != promise:
            session.check_running()
            writer = f"source {name}"
            epoch = session.epochs.last(writer) + 1
            parts: tuple[p.StagedPart, ...] = ()
            if elements:
                stage = p.Stage(writer, name, epoch, 0, f"{writer} {epoch}")
                with PartWriter(session.journal, stage, stream_schema(one.stream)) as part:
                    part.write(one.table(elements))
                    staged = session.keep(part)
                parts = (p.StagedPart(staged.staging, staged.rows),)
            # The run takes the slack off what is seen.
            seen = {} if promise is None else {name: promise + one.slack}
            session.commit(p.Commit(writer, epoch, parts, seen))
            one.told = promise
            with self._changed:
                del one.waiting[: len(elements)]
                self._changed.notify_all()
        if stopped and not one.ended and not one.waiting:
            try:
                session.end(p.End((name,)))
                one.ended = True
            except BridgeError as error:
                one.ended = not error.retriable
                raise
