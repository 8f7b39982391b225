"""The last results of a supervised query, by offset from 0, in bounded memory.

They are not trimmed: readers come and go, and a query that nobody reads must not fill the bridge. What
is given up for newer results is counted, and a reader is told how much it missed.
"""

from __future__ import annotations

import sys
from collections import deque

from seustream.compiler.apas.tree import Node
from seustream.cosim.bridge.errors import BridgeError
from seustream.engine.temporal.elements import Element

_EMPTY = 200
"""Bytes an element takes beside its values, about."""


class Tail:
    """Results [first, end) of one run of a query: at most `rows` of them and `size` bytes. `tree`
    is their schema, empty of a query that did not compile."""

    def __init__(self, run: int, tree: Node, rows: int, size: int) -> None:
        self.run, self.tree = run, tree
        self.rows, self.size = rows, size
        self.first = self.end = 0
        self.bytes = 0
        self._kept: deque[tuple[Element, int]] = deque()

    def __len__(self) -> int:
        return self.end - self.first

    def append(self, x: Element) -> None:
        size = _EMPTY + sum(map(sys.getsizeof, x.values))
        self._kept.append((x, size))
        self.bytes += size
        self.end += 1
        while self._kept and (len(self._kept) > self.rows or self.bytes > self.size):
            self.bytes -= self._kept.popleft()[1]
            self.first += 1

    def read(self, start: int, rows: int, size: int) -> tuple[int, list[Element]]:
        """Results from an offset, or from the first that is left, and that one's offset: as many
        as the limits allow, at least one if there is any."""
        if not 0 <= start <= self.end:
            raise BridgeError("gap", f"there are {self.end:,} results, none from {start:,} on")
        start = max(start, self.first)
        found: list[Element] = []
        for place in range(start - self.first, min(start - self.first + rows, len(self._kept))):
            x, bytes = self._kept[place]
            size -= bytes
            if found and size < 0:
                break
            found.append(x)
        return start, found
