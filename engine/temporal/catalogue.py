"""The resource catalogue: stream name -> state, schema, version, counters."""

from __future__ import annotations

import enum
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from seustream.compiler.apas.symbols import Schema
from seustream.compiler.apas.tree import Node


class StreamState(enum.Enum):
    UNCONNECTED = "UNCONNECTED"  # registered; no source has told a schema
    CONNECTED = "CONNECTED"
    DISCONNECTED = "DISCONNECTED"  # the channel is lost; the source may resume
    STOPPED = "STOPPED"  # the source said STOP, which is final


class CatalogueError(ValueError):
    """A name that is taken, or not there."""


@dataclass(slots=True)
class CatalogueEntry:
    name: str
    tree: Node
    state: StreamState = StreamState.UNCONNECTED
    version: int = 0
    address: str | None = None
    accepted: int = 0
    rejected: Counter[str] = field(default_factory=Counter)


class Catalogue:
    """A thread that changes an entry or compares versions holds `lock`."""

    def __init__(self) -> None:
        self.entries: dict[str, CatalogueEntry] = {}
        self.lock = threading.RLock()

    def register(self, name: str) -> CatalogueEntry:
        with self.lock:
            if name in self.entries:
                raise CatalogueError(f"stream {name} is registered already")
            if not (name.isidentifier() and name.isascii()):
                raise CatalogueError(f"{name!r} is no name of a stream")
            self.entries[name] = CatalogueEntry(name, Node(name))
            return self.entries[name]

    def remove(self, name: str) -> None:
        with self.lock:
            self.entries.pop(name, None)

    def __getitem__(self, name: str) -> CatalogueEntry:
        with self.lock:
            if name not in self.entries:
                raise CatalogueError(f"there is no stream {name}")
            return self.entries[name]

    def __iter__(self) -> Iterator[CatalogueEntry]:
        with self.lock:
            return iter(list(self.entries.values()))

    def schemas(self) -> dict[str, Schema]:
        """As the compiler wants them."""
        with self.lock:
            return {e.name: Schema(e.tree, e.version) for e in self.entries.values()}

    def adopt(self, name: str, tree: Node) -> bool:
        """A source's schema; whether it is another one than before."""
        with self.lock:
            entry = self[name]
            entry.state = StreamState.CONNECTED
            if entry.version and str(entry.tree) == str(tree):
                return False
            entry.tree, entry.version = tree, entry.version + 1
            return True
