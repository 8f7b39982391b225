"""A site's rows: found by key, deleted once no window can reach them.

`Store` is the interface that a site needs. `BlockStore` keeps the rows in memory,
`seustream.engine.sites.device_store.DeviceStore` on a device, here or behind a bridge.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator
from typing import Protocol

from seustream.engine.sites.keys import Key
from seustream.engine.sites.model import EquiJoin, Partial, Stored, admitted, extend


class Store(Protocol):
    def store(self, rows: Iterable[Stored]) -> None: ...
    def probe(self, parts: Iterable[Partial], visible: int) -> list[Partial]:
        """Returns partials extended by stored rows of blocks up to number `visible`."""

    def expire(self, watermark: float) -> list[Stored]:
        """Deletes and returns the rows that end before a time."""

    def rows(self) -> Iterator[Stored]: ...
    def clear(self) -> None: ...


class Ends:
    """Rows by the time after which no window can reach them."""

    def __init__(self) -> None:
        self.heap: list[tuple[float, tuple[int, int, int], Stored]] = []

    def add(self, row: Stored) -> None:
        if row.end != math.inf:
            heapq.heappush(self.heap, (row.end, row.tid, row))

    def before(self, watermark: float) -> Iterator[Stored]:
        """Removes and yields the rows that end before a time."""
        while self.heap and self.heap[0][0] < watermark:
            yield heapq.heappop(self.heap)[2]


class BlockStore:
    """Rows in memory, with an index for each class."""

    def __init__(self, join: EquiJoin, stream: int) -> None:
        self.join, self.stream = join, stream
        self.classes = join.classes_of(stream)
        self.clear()

    def clear(self) -> None:
        self.by_value: list[dict[Key, dict[Stored, None]]] = [{} for _ in self.classes]
        self.kept: dict[Stored, None] = {}
        self.ends = Ends()

    def __len__(self) -> int:
        return len(self.kept)

    def rows(self) -> Iterator[Stored]:
        return iter(self.kept)

    def store(self, rows: Iterable[Stored]) -> None:
        for row in rows:
            self.kept[row] = None
            for index, value in zip(self.by_value, row.values, strict=True):
                index.setdefault(value, {})[row] = None
            self.ends.add(row)

    def probe(self, parts: Iterable[Partial], visible: int) -> list[Partial]:
        found = []
        for part in parts:
            known = [place for place, c in enumerate(self.classes) if part.values[c] is not None]
            # Starts from the rarest value: a row has to have all of them.
            options = [
                self.by_value[place].get(part.values[self.classes[place]], {})  # type: ignore[arg-type]  # known: not None
                for place in known
            ]
            for row in min(options, key=len):
                if row.tid[1] <= visible:
                    extended = extend(self.join, part, row)
                    if extended is not None:
                        found.append(extended)
        return admitted(self.join, self.stream, found)

    def expire(self, watermark: float) -> list[Stored]:
        gone = list(self.ends.before(watermark))
        for row in gone:
            del self.kept[row]
            for index, value in zip(self.by_value, row.values, strict=True):
                del index[value][row]
                if not index[value]:
                    del index[value]
        return gone
