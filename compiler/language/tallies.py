"""Tallies: how often each value is there, with what is asked of them at hand.

What is asked of a tally is worked out from all its values when it is first asked for, and from then on
kept with each change. A snapshot holds the counts alone.
"""

from __future__ import annotations

import hashlib
import heapq
import math
from decimal import Decimal
from typing import Any, Self

_FEW = 64
"""Entries that may be out of date beyond the number of those that are not."""


class Tally(dict[Any, int]):
    """The counts of values, none of them 0."""

    __slots__ = ()

    def change(self, value: Any, by: int) -> None:
        """Counts a value once more, or once less."""
        count = self.get(value, 0) + by
        if count:
            self[value] = count
        else:
            del self[value]

    def copy(self) -> Self:
        return type(self)(self)

    def with_all(self, other: dict[Any, int]) -> Self:
        """Returns the tally of the values of both."""
        return type(self)(
            {value: self.get(value, 0) + other.get(value, 0) for value in (*self, *other)}
        )


class Frequencies(Tally):
    """A tally that knows its most frequent value: each value is in a heap with its count, most frequent
    first, and with earlier counts, which are passed over."""

    __slots__ = ("heap",)

    def __init__(self, counts: dict[Any, int] | None = None) -> None:
        super().__init__(counts or {})
        self.heap: list[tuple[int, Any]] | None = None

    def change(self, value: Any, by: int) -> None:
        super().change(value, by)
        if self.heap is None:
            return
        if value in self:
            heapq.heappush(self.heap, (-self[value], value))
        if len(self.heap) > 2 * len(self) + _FEW:
            self.heap = None

    def most(self) -> Any:
        """Returns the most frequent value, of several the least; None if there is none."""
        if not self:
            return None
        if self.heap is None:
            self.heap = [(-count, value) for value, count in self.items()]
            heapq.heapify(self.heap)
        while self.get(self.heap[0][1]) != -self.heap[0][0]:
            heapq.heappop(self.heap)
        return self.heap[0][1]


_BUCKETS_LOG = 12
_BUCKETS = 1 << _BUCKETS_LOG
_REST = 64 - _BUCKETS_LOG
_LONGEST = _REST + 1


class Sketch(Tally):
    """A HyperLogLog from which values can be removed: for each bucket of hashes, how many start with a run
    of zeros of each length. Only the longest run matters; the others are kept for when it is removed."""

    __slots__ = ("longest", "total")

    def __init__(self, counts: dict[Any, int] | None = None) -> None:
        super().__init__(counts or {})
        self.longest: dict[int, int] | None = None  # by bucket that is not empty
        self.total = 0
        """The sum of 2 to the power of minus the longest run of each bucket, times `_share(0)`."""

    def change(self, value: Any, by: int) -> None:
        super().change(value, by)
        if self.longest is None:
            return
        bucket, run = value >> 6, value & 63
        longest = self.longest.get(bucket, 0)
        if run > longest:
            self._now(bucket, longest, run)
        elif run == longest and value not in self:
            shorter = (one for one in range(run - 1, 0, -1) if bucket << 6 | one in self)
            self._now(bucket, longest, next(shorter, 0))

    def _now(self, bucket: int, before: int, run: int) -> None:
        """Notes the longest run of a bucket, 0 if it is empty."""
        assert self.longest is not None
        self.total += _share(run) - _share(before)
        self.longest[bucket] = run
        if not run:
            del self.longest[bucket]

    def estimate(self) -> int:
        """Returns about how many different values there are."""
        if self.longest is None:
            self.longest = {}
            for hashed in self:
                bucket, run = hashed >> 6, hashed & 63
                self.longest[bucket] = max(run, self.longest.get(bucket, 0))
            empty = _BUCKETS - len(self.longest)
            self.total = empty * _share(0) + sum(map(_share, self.longest.values()))
        empty = _BUCKETS - len(self.longest)
        mean = _BUCKETS**2 / (self.total / _share(0))
        estimate = 0.7213 / (1 + 1.079 / _BUCKETS) * mean
        if estimate <= 2.5 * _BUCKETS and empty:
            estimate = _BUCKETS * math.log(_BUCKETS / empty)
        return round(estimate)


def _share(run: int) -> int:
    """Returns 2 to the power of minus a run of zeros, times that of the longest."""
    return 1 << _LONGEST - run


def hashed(value: Any) -> int:
    """Returns 64 times the bucket of a value plus its run of zeros, from 1 on."""
    number = value == value and isinstance(value, (int, float, Decimal))
    text = _ratio(value) if number and math.isfinite(value) else repr(value)
    whole = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
    bucket, rest = whole >> _REST, whole & (1 << _REST) - 1
    return bucket << 6 | _LONGEST - rest.bit_length()


def _ratio(value: float | Decimal) -> str:
    """Shows a number as a ratio, so that equal numbers of all types look alike."""
    top, bottom = value.as_integer_ratio()
    return str(top) if bottom == 1 else f"{top}/{bottom}"
