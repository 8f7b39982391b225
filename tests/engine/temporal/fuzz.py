"""Faulty sources at a feed, many more than the tests try: `python -m tests.engine.temporal.fuzz`.

A case has a stream whose sources send damaged lines, bytes at random and too long a line, over TCP
in pieces of any size or from memory, hang up, and come again; and a stream with an honest source.
The honest one loses nothing, no thread dies, and what the gate counts, hands to the dead-letter sink
and lets through is what the same lines give one by one at a gate without channels.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import random
import socket
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from seustream.engine.temporal.channels import (
    MAX_LINE,
    LineMalformed,
    MemoryChannel,
    decode,
    encode,
)
from seustream.engine.temporal.elements import (
    REMOVE,
    STOP,
    Element,
    ElementKind,
    boundary,
    header,
    insertion,
)
from seustream.engine.temporal.feed import Feed

SCHEMA = header([["v", "INTEGER"]])
HONEST = 12
VALUES: list[Any] = [
    None, -1, 2**70, "inf", "", [], {}, 1.5, True, [["a", [["b", [[]]]]]], "HEADER", [[1, 2]],
    float("nan"), float("inf"), "\ud800", 10**400, [1], [2.5], ["x"], [[]],
]  # fmt: skip


def mutated(chance: random.Random) -> bytes:
    """A line with something wrong in it, or nothing."""
    ts = chance.randint(0, 9)
    message: dict[str, Any] = chance.choice([
        {"type": "INSERTION", "ts": ts, "te": ts + 3, "values": [1]},
        {"type": "INSERTION", "ts": ts, "values": [1, 2.5]},
        {"type": "BOUNDARY", "ts": ts},
        {"type": "HEADER", "stream": "I", "schema": [["v", "INTEGER"]]},
        {"type": "HEADER", "stream": "I", "schema": [["v", "INTEGER"], ["g", [["x", "DOUBLE"]]]]},
        {"type": chance.choice(("STOP", "REMOVE")) if chance.random() < 0.02 else "BOUNDARY"},
    ])  # fmt: skip
    for _ in range(chance.choice((0, 0, 1, 2))):
        key = chance.choice([*message, "te", "ts", "schema"])
        message[key] = chance.choice(VALUES)
    line = json.dumps(message).encode()
    if chance.random() < 0.2:
        at = chance.randrange(len(line))
        line = line[:at] + bytes([chance.randrange(256)]) + line[at + 1 :]
    return line


def sent(chance: random.Random) -> bytes:
    """All that one connection says."""
    parts = [encode(SCHEMA, "I")] if chance.random() < 0.8 else []
    for _ in range(chance.randint(0, 25)):
        match chance.randrange(12):
            case 0:
                parts.append(chance.randbytes(chance.randint(0, 200)) + b"\n")
            case 1:
                parts.append(b"[" * chance.choice((10, 5_000)) + b"\n")
            case _:
                parts.append(mutated(chance) + b"\n")
    if chance.random() < 0.01:
        parts.insert(chance.randint(1, 9), b"x" * (MAX_LINE + chance.randint(-1, 1)) + b"\n")
    whole = b"".join(parts)
    return whole[: chance.randrange(len(whole) + 1)] if chance.random() < 0.2 else whole


class Gate:
    """A feed with a faulty stream I and an honest one J, and all that comes of it."""

    def __init__(self) -> None:
        self.notes: Counter[str] = Counter()
        self.dead: list[tuple[str, str]] = []
        self.heard: list[str] = []
        self.honest: list[tuple[Any, ...]] = []
        self.feed_ = Feed(dead_letter=self._dead, note=self._note)
        for name in "IJ":
            self.feed_.register(name)
            self.feed_.subscribe(name, self)

    def feed(self, stream: str, x: Element) -> None:
        if stream == "I":
            self.heard.append(repr(x))
        elif x.kind is ElementKind.INSERTION:
            self.honest.append(x.values)

    def _dead(self, stream: str, reason: str, x: Element | None) -> None:
        self.dead.append((reason, repr(x)))

    def _note(self, event: str, detail: str) -> None:
        self.notes[event] += 1

    @property
    def closed(self) -> int:
        """Connections that have come to their end, each in one way."""
        return self.notes["source refused"] + self.notes["channel closed"]

    @property
    def found(self) -> tuple[object, ...]:
        entries = {entry.name: entry for entry in self.feed_.catalogue}
        entry = entries.get("I")
        counts = (entry.accepted, dict(entry.rejected), entry.version) if entry else None
        return counts, self.dead, self.heard

    def check(self) -> None:
        for entry in self.feed_.catalogue:
            if entry.name == "I":
                assert Counter(reason for reason, _ in self.dead) == entry.rejected


def offered(gate: Gate, data: bytes) -> None:
    """The lines one by one, without channels: what a connection should come to."""
    lines = io.BytesIO(data)
    first = True
    while line := lines.readline(MAX_LINE):
        long = len(line) == MAX_LINE and not line.endswith(b"\n")
        try:
            if long:
                raise LineMalformed("too long")
            x, stream = decode(line)
        except LineMalformed:
            if not first and "I" in gate.feed_.gates:
                gate.feed_._reject("I", "malformed", None)
            if first or long:
                return
            continue
        if first and (stream != "I" or "I" not in gate.feed_.gates):
            return
        if "I" not in gate.feed_.gates:
            return
        gate.feed_.offer("I", x)
        first = False


def over_tcp(chance: random.Random, gate: Gate, port: int, data: bytes, reset: bool) -> None:
    closed = gate.closed
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)) as source:
        # The feed may hang up first.
        at = 0
        while at < len(data):
            size = chance.choice((1, 7, 100, 5_000, MAX_LINE))
            source.sendall(data[at : at + size])
            at += size
        if reset:
            source.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        else:
            source.shutdown(socket.SHUT_WR)
            source.settimeout(30)
            assert not source.recv(1)
    until(lambda: gate.closed > closed)


def tcp(seed: int) -> None:
    """Connections one after the other, beside an honest one."""
    chance = random.Random(seed)
    gate, twin = Gate(), Gate()
    port = gate.feed_.listen()
    resets = chance.random() < 0.2
    with socket.create_connection(("127.0.0.1", port)) as honest:
        honest.sendall(encode(SCHEMA, "J"))
        for k in range(HONEST // 3):
            for i in range(3 * k, 3 * k + 3):
                honest.sendall(encode(insertion(i, i + 1, i)))
            data = sent(chance)
            over_tcp(chance, gate, port, data, resets and chance.random() < 0.5)
            offered(twin, data)
        until(lambda: len(gate.honest) == HONEST)
    until(lambda: gate.feed_.catalogue["J"].state.value == "DISCONNECTED")
    gate.feed_.close()
    assert gate.honest == [(i,) for i in range(HONEST)]
    gate.check()
    if not resets:  # what a reset takes with it is not known
        assert gate.found == twin.found


def memory(seed: int) -> None:
    """Elements no line could be, from Python, through channels one after the other."""
    chance = random.Random(seed)
    gate, twin = Gate(), Gate()
    honest = MemoryChannel()
    gate.feed_.connect("J", honest)
    honest.send(SCHEMA)
    for k in range(HONEST):
        honest.send(insertion(k, k + 1, k))
        coming = [element(chance) for _ in range(chance.randint(0, 30))]
        if "I" not in gate.feed_.gates:
            continue
        closed = gate.closed
        channel = MemoryChannel()
        gate.feed_.connect("I", channel)
        for x in coming:
            channel.send(x)
        channel.close()
        until(lambda closed=closed: gate.closed > closed)
        for x in coming:
            if "I" in twin.feed_.gates:
                twin.feed_.offer("I", x)
    until(lambda: len(gate.honest) == HONEST)
    gate.feed_.close()
    gate.check()
    assert gate.found == twin.found


def element(chance: random.Random) -> Element:
    match chance.randrange(8):
        case 0:
            types = ("INTEGER", "DOUBLE", "STRING")
            good = [[["v", type]] for type in types]
            return header(chance.choice([*VALUES, *good, *good, *good]))
        case 1:
            return boundary(chance.randint(0, 9))
        case 2 if chance.random() < 0.05:
            return chance.choice((STOP, REMOVE))
        case _:
            width = chance.choice((0, 1, 1, 1, 2))
            values = tuple(chance.choice([*VALUES, 1, 2]) for _ in range(width))
            return Element(
                ElementKind.INSERTION, chance.randint(0, 9), chance.randint(0, 12), values
            )


def until(what: Callable[[], object]) -> None:
    """Waits for another thread; never in vain, unless there is a fault."""
    for _ in range(15_000):
        if what():
            return
        time.sleep(0.002)
    raise AssertionError("it never happened")


KINDS: dict[str, Callable[[int], None]] = {"tcp": tcp, "memory": memory}


def case(kind: str, seed: int) -> None:
    """Raises what goes wrong, also in a thread of the feed, and if one of them is left."""
    died: list[threading.ExceptHookArgs] = []
    before, hook = set(threading.enumerate()), threading.excepthook
    threading.excepthook = died.append
    try:
        KINDS[kind](seed)
        until(lambda: set(threading.enumerate()) <= before)
    finally:
        threading.excepthook = hook
        for each in died:
            print(f"{kind}, seed {seed}: a thread died of {each.exc_value!r}", flush=True)
    assert not died


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1_000, help="of each kind")
    parser.add_argument("--first", type=int, default=0, help="first seed")
    options = parser.parse_args(arguments)
    for kind in KINDS:
        for seed in range(options.first, options.first + options.cases):
            try:
                case(kind, seed)
            except BaseException:
                print(f"{kind}, seed {seed}", flush=True)
                raise
    print(f"{len(KINDS) * options.cases} feeds against faulty sources, none fell")
    return 0


if __name__ == "__main__":
    sys.exit(main())
