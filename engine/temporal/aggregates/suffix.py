"""The aggregate index for streams without deletions: O(log k) per tuple with k live ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seustream.compiler.apas.functions import Aggregate
from seustream.engine.temporal.aggregates.index import Result, Values, merged
from seustream.engine.temporal.aggregates.live import Live, LiveEnds


class SuffixCounts:
    """Counts the live tuples that count for one aggregate, by their ends."""

    def __init__(self) -> None:
        self.n = 0
        self.ending: dict[int, int] = {}

    def add(self, te: int) -> None:
        self.n += 1
        self.ending[te] = self.ending.get(te, 0) + 1

    def expire(self, te: int) -> bool:
        """Returns whether any tuple ends at te."""
        gone = self.ending.pop(te, 0)
        self.n -= gone
        return gone > 0


class SuffixIndex:
    """Agrees with `ListIndex` as long as nothing is withdrawn and every tuple starts at the time to
    which the index was last reorganised."""

    def __init__(
        self,
        functions: Sequence[Aggregate],
        parts: Sequence[Live],
        leaves: Sequence[int] | None = None,
    ) -> None:
        leaves = leaves or [1] * len(functions)
        self.parts = tuple(parts)
        self.nothing = tuple(f.none(n) for f, n in zip(functions, leaves, strict=True))
        self.counts = tuple(SuffixCounts() for _ in parts)
        self.ends = LiveEnds()
        self.start = 0  # start of the results not given yet

    def reorganise(self, now: int) -> list[Result]:
        out: list[Result] = []
        while self.ends.heap and self.ends.heap[0] <= now:
            te = self.ends.heap[0]
            if self.start < te:
                out.append((self.start, te, self._final()))
            self.start = te
            self.ends.pop()
            for part, count in zip(self.parts, self.counts, strict=True):
                if count.expire(te):
                    part.expire(te)
        if self.ends.n and self.start < now:
            out.append((self.start, now, self._final()))
        self.start = now
        return merged(out)

    def change(self, v: tuple[Values, ...], s: int, e: int, sign: int = 1) -> None:
        if s >= e:
            return
        if sign < 0 or s != self.start:
            raise AssertionError(f"[{s}, {e}), sign {sign}: only additions from {self.start} on")
        self.ends.add(e)
        for part, count, each in zip(self.parts, self.counts, v, strict=True):
            if None not in each:
                count.add(e)
                part.add(e, each)

    def save(self) -> Any:
        counts = [(count.n, count.ending) for count in self.counts]
        return (self.ends.save(), self.start, counts, [part.save() for part in self.parts])

    def load(self, saved: Any) -> None:
        ends, self.start, counts, parts = saved
        self.ends.load(ends)
        for count, (n, ending) in zip(self.counts, counts, strict=True):
            count.n, count.ending = n, ending
        for part, each in zip(self.parts, parts, strict=True):
            part.load(each)

    def _final(self) -> Values:
        return tuple(
            value
            for part, count, nothing in zip(self.parts, self.counts, self.nothing, strict=True)
            for value in (part.final() if count.n else nothing)
        )
