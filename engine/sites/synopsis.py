"""Synopses: how many live rows of a stream have which key, exactly or nearly; the filter and the
sizes of joins that follow from them.

A kind defines how a key becomes an entry on the wire, and makes empty synopses. All kinds keep one
promise: they never count fewer rows than there are, so a row that the filter drops could not have
joined.

| kind | on the wire | counts |
|---|---|---|
| `Exact` | the key | exactly |
| `Hashed(m)` | one of m buckets | at least; of several products the sum bounds the true one |
| `CountMin(d, w)` | the key | at least, too much by e·N/w at most, mostly |
| `CountingBloom(k, m)` | the key | whether there are any |

A block's rows survive the filter if every other site has rows with their key. `size` of a set of
visited sites is then known from counts alone: exactly while all streams share one class, otherwise
on the assumption that classes are independent within a store. Sizes only steer; only the filter
drops rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from seustream.engine.sites.errors import SynopsisUnderflow
from seustream.engine.sites.keys import Key, hashed
from seustream.engine.sites.model import Counts, Entry, EquiJoin

SATURATED = 15
"""The count at which a counter of a counting Bloom filter stops, for good."""


class Synopsis(Protocol):
    """Counts by entry."""

    def add(self, entry: Key, count: int = 1) -> None: ...
    def remove(self, entry: Key, count: int = 1) -> None: ...
    def count(self, entry: Key) -> int:
        """Returns at least the number of rows with this entry."""

    def has(self, entry: Key) -> bool:
        """Returns whether there may be a row with this entry."""

    def cells(self) -> Iterator[Sequence[tuple[Key, int]]]:
        """Yields the non-zero cells, once per independent table."""


class SynopsisKind(Protocol):
    """A way to keep synopses; sites and centre use the same one."""

    def entry(self, key: Key) -> Key:
        """Returns the part of a key that goes over the wire."""

    def new(self) -> Synopsis: ...


class ExactCounts:
    """A count for every entry."""

    def __init__(self) -> None:
        self.counts: dict[Key, int] = {}

    def add(self, entry: Key, count: int = 1) -> None:
        self.counts[entry] = self.counts.get(entry, 0) + count

    def remove(self, entry: Key, count: int = 1) -> None:
        left = self.counts.get(entry, 0) - count
        if left < 0:
            raise SynopsisUnderflow(f"{count} rows with {entry!r} left, {left + count} were there")
        if left:
            self.counts[entry] = left
        else:
            self.counts.pop(entry, None)

    def count(self, entry: Key) -> int:
        return self.counts.get(entry, 0)

    def has(self, entry: Key) -> bool:
        return entry in self.counts

    def cells(self) -> Iterator[Sequence[tuple[Key, int]]]:
        yield list(self.counts.items())


@dataclass(frozen=True, slots=True)
class Exact:
    def entry(self, key: Key) -> Key:
        return key

    def new(self) -> Synopsis:
        return ExactCounts()


@dataclass(frozen=True, slots=True)
class Hashed:
    """Exact counts of buckets. `function` may replace the hash."""

    m: int
    function: Callable[[Key], int] | None = None

    def entry(self, key: Key) -> Key:
        return hashed(key, 0, self.m) if self.function is None else self.function(key)

    def new(self) -> Synopsis:
        return ExactCounts()


class _CountMinTable:
    def __init__(self, d: int, w: int) -> None:
        self.w = w
        self.rows = [[0] * w for _ in range(d)]

    def add(self, entry: Key, count: int = 1) -> None:
        for function, row in enumerate(self.rows):
            row[hashed(entry, function, self.w)] += count

    def remove(self, entry: Key, count: int = 1) -> None:
        if self.count(entry) < count:
            raise SynopsisUnderflow(f"{count} rows with {entry!r} left, fewer were there")
        self.add(entry, -count)

    def count(self, entry: Key) -> int:
        return min(row[hashed(entry, f, self.w)] for f, row in enumerate(self.rows))

    def has(self, entry: Key) -> bool:
        return self.count(entry) > 0

    def cells(self) -> Iterator[Sequence[tuple[Key, int]]]:
        for row in self.rows:
            yield [(cell, count) for cell, count in enumerate(row) if count]


@dataclass(frozen=True, slots=True)
class CountMin:
    """d tables of w counters; removals are exact, since counters are sums."""

    d: int
    w: int

    def entry(self, key: Key) -> Key:
        return key

    def new(self) -> Synopsis:
        return _CountMinTable(self.d, self.w)

    @classmethod
    def sized(cls, error: float, doubt: float) -> CountMin:
        """Returns tables that over-count by at most `error` times the rows, except for a share
        `doubt` of the keys."""
        return cls(max(1, math.ceil(math.log(1 / doubt))), math.ceil(math.e / error))


@dataclass(slots=True)
class _BloomTable:
    k: int
    m: int
    counters: bytearray = field(init=False)

    def __post_init__(self) -> None:
        self.counters = bytearray(self.m)

    def _places(self, entry: Key) -> set[int]:
        return {hashed(entry, function, self.m) for function in range(self.k)}

    def add(self, entry: Key, count: int = 1) -> None:
        for place in self._places(entry):
            self.counters[place] = min(self.counters[place] + count, SATURATED)

    def remove(self, entry: Key, count: int = 1) -> None:
        places = self._places(entry)
        if any(self.counters[place] < min(count, SATURATED) for place in places):
            raise SynopsisUnderflow(f"{count} rows with {entry!r} left, fewer were there")
        for place in places:
            # A full counter no longer knows how much it holds, so it stays full.
            if self.counters[place] < SATURATED:
                self.counters[place] -= count

    def count(self, entry: Key) -> int:
        return int(self.has(entry))

    def has(self, entry: Key) -> bool:
        return all(self.counters[place] for place in self._places(entry))

    def cells(self) -> Iterator[Sequence[tuple[Key, int]]]:
        yield [(place, 1) for place, count in enumerate(self.counters) if count]


@dataclass(frozen=True, slots=True)
class CountingBloom:
    """k hash functions into m counters of four bits; they record presence, not numbers."""

    k: int
    m: int

    def entry(self, key: Key) -> Key:
        return key

    def new(self) -> Synopsis:
        return _BloomTable(self.k, self.m)

    @classmethod
    def sized(cls, keys: int, rate: float) -> CountingBloom:
        """Returns a filter for `keys` keys, with false positives at this rate."""
        m = math.ceil(-keys * math.log(rate) / math.log(2) ** 2)
        return cls(max(1, round(m / keys * math.log(2))), m)

    def rate(self, keys: int) -> float:
        """Returns the rate of false positives to expect with this many keys."""
        return (1 - math.exp(-self.k * keys / self.m)) ** self.k


def overlap(synopses: Sequence[Synopsis], totals: Sequence[int]) -> float:
    """Estimates the chance that a row of each has the same entry. It is the least of the estimates
    of independent tables, none of which is too low."""
    if not all(totals):
        return 0.0
    best = math.inf
    for tables in zip(*(synopsis.cells() for synopsis in synopses), strict=True):
        first, *others = tables
        found = [dict(other) for other in others]
        total = 0.0
        for cell, count in first:
            part = count / totals[0]
            for other, n in zip(found, totals[1:], strict=True):
                part *= other.get(cell, 0) / n
            total += part
        best = min(best, total)
    return best


# --- the synopses of all sites -------------------------------------------------------

Size: TypeAlias = Callable[[int], float]
"""Returns the number of rows after a set of sites, given as bits, has been visited."""


class SiteSynopsis:
    """The synopses of one site: one for each class of its stream; and its number of rows."""

    def __init__(self, join: EquiJoin, stream: int, kind: SynopsisKind) -> None:
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

    def __init__(self, join: EquiJoin, kind: SynopsisKind | None = None) -> None:
        self.join, self.kind = join, kind or Exact()
        self.sites = [SiteSynopsis(join, k, self.kind) for k in range(len(join))]

    def filter(self, source: int, block: Counts) -> dict[Entry, int]:
        """Returns the part of a block that can join: every other site with one of its classes has
        its value."""
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
        """Returns the sizes of the joins of a filtered block with sets of sites."""
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
