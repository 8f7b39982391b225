"""The aggregate index for streams without deletions, O(log k) a tuple with k live ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.temporal.aggregates.index import Result, Values, merged
from engine.temporal.aggregates.live import Ends, Live, RunningTotal


class SuffixIndex:
    """Agrees with `ListIndex` as long as nothing is withdrawn and every tuple starts where the
    index was reorganised to."""

    def __init__(self, parts: Sequence[Live]) -> None:
        self.parts = tuple(parts)
        self.ends = Ends()
        self.start = 0  # of what has not been told

    def reorganise(self, now: int) -> list[Result]:
        out: list[Result] = []
        while self.ends.heap and self.ends.heap[0] <= now:
            te = self.ends.heap[0]
            if self.start < te:
                out.append((self.start, te, self._final()))
            self.start = te
            self.ends.pop()
            for part in self.parts:
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
        for part, each in zip(self.parts, v, strict=True):
            if isinstance(part, RunningTotal):
                part.check(e, each)
        self.ends.add(e)
        for part, each in zip(self.parts, v, strict=True):
            part.add(e, each)

    def save(self) -> Any:
        return (self.ends.save(), self.start, [part.save() for part in self.parts])

    def load(self, saved: Any) -> None:
        ends, self.start, parts = saved
        self.ends.load(ends)
        for part, each in zip(self.parts, parts, strict=True):
            part.load(each)

    def _final(self) -> Values:
        return tuple(value for part in self.parts for value in part.final())
