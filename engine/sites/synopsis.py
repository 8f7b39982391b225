"""Synopses: how many live rows of a stream have which key, exactly or nearly.

A kind says how a key becomes an entry on the wire and makes empty synopses. All of them keep one
promise: they never count less than there is, so that what a filter drops could not have joined.

| kind | on the wire | counts |
|---|---|---|
| `Exact` | the key | exactly |
| `Hashed(m)` | one of m buckets | at least; of several products the sum bounds the true one |
| `CountMin(d, w)` | the key | at least, too much by e·N/w at most, mostly |
| `CountingBloom(k, m)` | the key | whether there are any |
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from engine.sites.errors import SynopsisUnderflow
from engine.sites.keys import Key, hashed

SATURATED = 15
"""Where a counter of a counting Bloom filter stops counting, for good."""


class Synopsis(Protocol):
    """Counts by entry."""

    def add(self, entry: Key, count: int = 1) -> None: ...
    def remove(self, entry: Key, count: int = 1) -> None: ...
    def count(self, entry: Key) -> int:
        """At least the number of rows with this entry."""

    def has(self, entry: Key) -> bool:
        """Whether there may be a row with this entry."""

    def cells(self) -> Iterator[Sequence[tuple[Key, int]]]:
        """What it counted, once per independent table: the non-zero cells."""


class Kind(Protocol):
    """A way to keep synopses; sites and centre agree on one."""

    def entry(self, key: Key) -> Key:
        """What of a key goes over the wire."""

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
        """Over-counts by at most `error` times the rows, but for a part `doubt` of the keys."""
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
            # A counter that is full has forgotten how much it holds: it stays full.
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
    """k hash functions into m counters of four bits; tells presence, not numbers."""

    k: int
    m: int

    def entry(self, key: Key) -> Key:
        return key

    def new(self) -> Synopsis:
        return _BloomTable(self.k, self.m)

    @classmethod
    def sized(cls, keys: int, rate: float) -> CountingBloom:
        """For so many keys, with false positives at this rate."""
        m = math.ceil(-keys * math.log(rate) / math.log(2) ** 2)
        return cls(max(1, round(m / keys * math.log(2))), m)

    def rate(self, keys: int) -> float:
        """False positives to expect with so many keys."""
        return (1 - math.exp(-self.k * keys / self.m)) ** self.k


def overlap(synopses: Sequence[Synopsis], totals: Sequence[int]) -> float:
    """The chance that a row of each has the same entry, estimated; the least of the estimates of
    independent tables, each of which is too high if anything."""
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
