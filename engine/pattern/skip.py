"""AFTER MATCH: decides which matches count, once the matches of each start are known.

Starts are settled in the order of their events. Of the matches from one start only the earliest
counts. The next start that counts is then the one that the clause gives.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from seustream.compiler.pattern import ir
from seustream.compiler.pattern.ir import Skip
from seustream.engine.pattern.event import BEGIN_OF_TIME, END_OF_STREAM, Match, key_of

Order = tuple[int, int]


class Skipper:
    """The matches of one key that wait for their start to be settled; the next start must lie after
    `after`."""

    def __init__(self, query: ir.PatternQuery) -> None:
        self._query = query
        self.after: Order = (BEGIN_OF_TIME, -1)
        self.waiting: dict[Order, Match] = {}

    def offer(self, match: Match) -> None:
        start = match.first.order
        known = self.waiting.get(start)
        if known is None or _preference(match) < _preference(known):
            self.waiting[start] = match

    def settled(self, watermark: int) -> list[Match]:
        """Returns the matches that count among those whose start is settled: its window has
        passed."""
        accepted = []
        for start in sorted(self.waiting):
            if not self._is_settled(start, watermark):
                break
            match = self.waiting.pop(start)
            if start > self.after:
                accepted.append(match)
                self.after = self._behind(match)
        return accepted

    def is_past(self, watermark: int) -> bool:
        """Returns whether no later start can lie before the place it skipped to."""
        if self._query.window is None:
            return watermark == END_OF_STREAM
        return self.after[0] + self._query.window <= watermark

    def _is_settled(self, start: Order, watermark: int) -> bool:
        if watermark == END_OF_STREAM:
            return True
        return self._query.window is not None and watermark >= start[0] + self._query.window

    def _behind(self, match: Match) -> Order:
        return match.first.order if self._query.skip is Skip.NEXT else match.last.order


def _preference(match: Match) -> tuple[Any, ...]:
    """Prefers the earliest; at the same time, a match that has an event where another lacks the
    element."""
    return (match.D, tuple((not ids, ids) for ids in match.ids))


class Skipping:
    """The skippers of a query, one for each key."""

    def __init__(self, query: ir.PatternQuery) -> None:
        self._query = query
        self.skippers: dict[tuple[Any, ...], Skipper] = {}

    def counted(self, found: Iterable[Match], watermark: int) -> list[Match]:
        """Takes new matches; returns those that count and are settled by now, in order."""
        for match in found:
            key = key_of(match.first, self._query.partition)
            if key not in self.skippers:
                self.skippers[key] = Skipper(self._query)
            self.skippers[key].offer(match)
        counted: list[Match] = []
        for key, skipper in list(self.skippers.items()):
            counted += skipper.settled(watermark)
            if not skipper.waiting and skipper.is_past(watermark):
                del self.skippers[key]
        counted.sort(key=lambda match: match.order)
        return counted

    def output_watermark(self, watermark: int) -> int:
        """Returns a bound below the times of all matches that count later, if later ones are found
        above the watermark."""
        if watermark == END_OF_STREAM:
            return watermark
        if self._query.window is None:
            return BEGIN_OF_TIME
        return max(watermark - self._query.window, BEGIN_OF_TIME)

    @property
    def due(self) -> list[int]:
        """The watermarks at which a start is settled."""
        window = self._query.window
        if window is None:
            return []
        waiting = (start for one in self.skippers.values() for start in one.waiting)
        return [start[0] + window for start in waiting]

    @property
    def held(self) -> int:
        return sum(len(one.waiting) for one in self.skippers.values())
