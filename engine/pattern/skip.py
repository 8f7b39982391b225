"""AFTER MATCH: which of the matches count, once it is known which start where.

Starts are settled in the order of their events. Of the matches from one start only the earliest
counts; then the next start that counts is where the clause says.
"""

from __future__ import annotations

from seustream.compiler.pattern import ir
from seustream.compiler.pattern.ir import Skip
from seustream.engine.pattern.event import BEGIN_OF_TIME, END_OF_STREAM, Match

Order = tuple[int, int]


class Skipper:
    """The matches of one key that wait for their start to be settled; `after` is where the next
    start must lie behind."""

    def __init__(self, query: ir.PatternQuery) -> None:
        self._query = query
        self.after: Order = (BEGIN_OF_TIME, -1)
        self.waiting: dict[Order, Match] = {}

    def offer(self, matches: list[Match]) -> None:
        for match in matches:
            start = match.first.order
            known = self.waiting.get(start)
            if known is None or match.order < known.order:
                self.waiting[start] = match

    def settled(self, watermark: int) -> list[Match]:
        """The matches that count among those whose start is settled: its window has passed."""
        accepted = []
        for start in sorted(self.waiting):
            if not self._is_settled(start, watermark):
                break
            match = self.waiting.pop(start)
            if start > self.after:
                accepted.append(match)
                self.after = self._behind(match)
        return accepted

    def _is_settled(self, start: Order, watermark: int) -> bool:
        if watermark == END_OF_STREAM:
            return True
        return self._query.window is not None and watermark >= start[0] + self._query.window

    def _behind(self, match: Match) -> Order:
        return match.first.order if self._query.skip is Skip.NEXT else match.last.order
