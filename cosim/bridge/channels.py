"""Channels bring a source's elements: any object with `recv()` and `close()`.

`recv` returns the next element, None at the end. `TcpChannel` reads one
JSON object per line:

    {"type": "HEADER", "stream": "I", "schema": [["val", "DOUBLE"], ["at", [["x", "INTEGER"]]]]}
    {"type": "INSERTION", "ts": 2, "te": 10, "values": [40.0, 7]}
    {"type": "BOUNDARY", "ts": 24}
    {"type": "STOP"}

A missing te equals ts; "inf" is never. The first line of a connection is the HEADER with its name.
"""

from __future__ import annotations

import contextlib
import json
import socket

from seustream.engine.temporal.elements import EARLIEST, FOREVER, ElementKind, StreamElement
from seustream.engine.temporal.values import Spelled
from seustream.engine.temporal.values import shown_value as told_as

MAX_LINE = 1 << 20


class LineMalformed(ValueError):
    """A malformed message."""


class TcpChannel:
    """One connection of a source."""

    def __init__(self, connection: socket.socket, address: str) -> None:
        self.connection, self.address = connection, address
        self.stream: str | None = None  # as named in its last HEADER
        self.lines = connection.makefile("rb")
        self.ended = False

    def recv(self) -> StreamElement | None:
        if self.ended:
            return None
        try:
            line = self.lines.readline(MAX_LINE)
            if len(line) == MAX_LINE and not line.endswith(b"\n"):
                self.close()
                raise LineMalformed(f"a line of over {MAX_LINE} bytes")
        except (OSError, ValueError) as error:
            if isinstance(error, LineMalformed):
                raise
            return None
        if not line:
            return None
        x, stream = decode(line)
        self.stream = stream or self.stream
        return x

    def close(self) -> None:
        self.ended = True
        with contextlib.suppress(OSError):  # the other end was faster
            self.connection.shutdown(socket.SHUT_RDWR)
        # Both hold the socket. While one does, a source that still sends is not stopped.
        self.lines.close()
        self.connection.close()


def decode(line: bytes) -> tuple[StreamElement, str | None]:
    """Decodes a line to an element, and the stream that a HEADER names."""
    try:
        found = json.loads(line.decode("utf-8"), parse_float=Spelled)
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise LineMalformed(f"no JSON: {error}") from None
    if not isinstance(found, dict) or str(found.get("type")) not in ElementKind.__members__:
        raise LineMalformed(f"want an object with a type of {', '.join(ElementKind.__members__)}")
    kind = ElementKind[str(found["type"])]
    if kind is ElementKind.HEADER:
        stream = found.get("stream")
        if not isinstance(stream, str):
            raise LineMalformed("a HEADER names its stream")
        return StreamElement(kind, schema=found.get("schema")), stream
    if not kind.timed:
        return StreamElement(kind), None
    ts = _time(found, "ts")
    te = ts if kind is ElementKind.BOUNDARY or "te" not in found else _time(found, "te")
    values = found.get("values", [])
    if not isinstance(values, list):
        raise LineMalformed("values is no list")
    return StreamElement(kind, ts, te, tuple(values) if kind is ElementKind.INSERTION else ()), None


def encode(x: StreamElement, stream: str | None = None) -> bytes:
    """Encodes an element as a line."""
    told: dict[str, object] = {"type": x.kind.name}
    if x.kind is ElementKind.HEADER:
        told |= {"stream": stream, "schema": x.schema}
    elif x.kind.timed:
        told["ts"] = x.ts
    if x.kind is ElementKind.INSERTION:
        told |= {"te": "inf" if x.te == FOREVER else x.te, "values": list(map(told_as, x.values))}
    return json.dumps(told).encode() + b"\n"


def _time(found: dict[str, object], name: str) -> int:
    value = found.get(name)
    if value == "inf" and name == "te":
        return FOREVER
    if not isinstance(value, int) or isinstance(value, bool) or not EARLIEST <= value <= FOREVER:
        raise LineMalformed(f"{name} is {str(value)[:40]}, want milliseconds")
    return value
