"""How many rows travel: the synopses of all sites, the filter, the size of an intermediate result.

A block's rows survive the filter if every other site has rows with their key. `size` of a set of
visited sites is then known from counts alone: exactly while all streams share one class, else by
assuming that classes are independent within a store. Sizes steer; only the filter drops rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TypeAlias

from engine.sites.errors import SynopsisUnderflow
from engine.sites.keys import Key
from engine.sites.model import Counts, Entry, Join
from engine.sites.synopsis import Exact, Kind, Synopsis, overlap

Size: TypeAlias = Callable[[int], float]
"""Rows after a set of sites, given as bits, has been visited."""


class SiteSynopsis:
    """What is known of one site: a synopsis for each class of its stream, and its rows."""

    def __init__(self, join: Join, stream: int, kind: Kind) -> None:
        self.classes = join.classes_of(stream)
        self.by_class: dict[int, Synopsis] = {c: kind.new() for c in self.classes}
        self.rows = 0

    def add(self, counts: Counts) -> None:
        for entry, count in counts.items():
            self.rows += count
            for c, value in zip(self.classes, entry, strict=True):
                self.by_class[c].add(value, count)

    def remove(self, counts: Counts) -> None:
        gone = sum(counts.values())
        if gone > self.rows:
            raise SynopsisUnderflow(f"{gone} rows left a site that had {self.rows}")
        self.rows -= gone
        for entry, count in counts.items():
            for c, value in zip(self.classes, entry, strict=True):
                self.by_class[c].remove(value, count)


class Synopses:
    """The synopses of all sites."""

    def __init__(self, join: Join, kind: Kind | None = None) -> None:
        self.join, self.kind = join, kind or Exact()
        self.sites = [SiteSynopsis(join, k, self.kind) for k in range(len(join))]

    def filter(self, source: int, block: Counts) -> dict[Entry, int]:
        """What of a block can join: every other site with one of its classes has its value."""
        classes = self.join.classes_of(source)
        others = [
            (place, self.sites[k].by_class[c])
            for k in range(len(self.join))
            if k != source
            for place, c in enumerate(classes)
            if c in self.sites[k].by_class
        ]
        return {
            entry: count
            for entry, count in block.items()
            if all(synopsis.has(entry[place]) for place, synopsis in others)
        }

    def sizes(self, source: int, survivors: Counts) -> Size:
        """Sizes of the joins of a filtered block with sets of sites."""
        if len(self.join.classes) <= 1:
            return self._exact(survivors)
        return self._estimate(source, survivors)

    def _exact(self, survivors: Counts) -> Size:
        by_site: dict[int, list[int]] = {}
        products = {0: list(survivors.values())}
        sums: dict[int, int] = {}

        def product(visited: int) -> list[int]:
            if visited not in products:
                low = visited & -visited
                k = low.bit_length() - 1
                if k not in by_site:
                    synopsis = self.sites[k].by_class[0]
                    by_site[k] = [synopsis.count(entry[0]) for entry in survivors]
                rest = product(visited ^ low)
                products[visited] = [a * b for a, b in zip(rest, by_site[k], strict=True)]
            return products[visited]

        def size(visited: int) -> float:
            if visited not in sums:
                sums[visited] = sum(product(visited))
            return sums[visited]

        return size

    def _estimate(self, source: int, survivors: Counts) -> Size:
        known: dict[int, float] = {}
        mine = self.join.classes_of(source)

        def estimate(visited: int) -> float:
            sites = [k for k in range(len(self.join)) if visited >> k & 1]
            if not all(self.sites[k].rows for k in sites):
                return 0.0
            by_place = [[self.sites[k] for k in sites if c in self.sites[k].classes] for c in mine]
            total = 0.0
            for entry, count in survivors.items():
                part: float = count
                for place, (c, having) in enumerate(zip(mine, by_place, strict=True)):
                    for site in having:
                        part *= site.by_class[c].count(entry[place]) / site.rows
                total += part
            total *= math.prod(self.sites[k].rows for k in sites)
            for d in range(len(self.join.classes)):
                having = [self.sites[k] for k in sites if d in self.sites[k].classes]
                if d not in mine and having:
                    total *= overlap([s.by_class[d] for s in having], [s.rows for s in having])
            return total

        def size(visited: int) -> float:
            if visited not in known:
                known[visited] = estimate(visited)
            return known[visited]

        return size


def counts(entries: Iterable[Entry]) -> dict[Entry, int]:
    """A synopsis vector: how many of each."""
    found: dict[Entry, int] = {}
    for entry in entries:
        found[entry] = found.get(entry, 0) + 1
    return found


def of_values(values: dict[Key, int]) -> dict[Entry, int]:
    """A synopsis vector over one class, from plain values."""
    return {(value,): count for value, count in values.items() if count}
