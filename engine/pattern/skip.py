"""AFTER MATCH: which of the matches count, once it is known which start where.

Starts are settled in the order of their events. Of the matches from one start only one counts:
for PATTERN the earliest, for MATCH_RECOGNIZE the preferred one, which stays in a group as long as
it can; then the next start that counts is where the clause says.
"""

from __future__ import annotations

from seustream.compiler.pattern import ir
from seustream.compiler.pattern.ir import Skip
from seustream.engine.pattern.errors import SkipStuck
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
            if known is None or self._rank(match) < self._rank(known):
                self.waiting[start] = match

    def _rank(self, match: Match) -> tuple[object, ...]:
        if not self._query.rows:
            return match.order
        elements = [i for i, group in enumerate(match.groups) for _ in group]
        return (*elements, len(match.groups))  # so that a longer one comes before its prefix

    def settled(self, watermark: int, oldest: Order | None) -> list[Match]:
        """The matches that count among those whose start is settled: its window has passed, or,
        of rows, no live run began there (`oldest` is where the oldest one did)."""
        accepted = []
        for start in sorted(self.waiting):
            if not self._is_settled(start, watermark, oldest):
                break
            match = self.waiting.pop(start)
            if start > self.after:
                accepted.append(match)
                self.after = self._behind(match)
        return accepted

    def _is_settled(self, start: Order, watermark: int, oldest: Order | None) -> bool:
        if watermark == END_OF_STREAM:
            return True
        if self._query.rows:
            return oldest is None or start < oldest
        return self._query.window is not None and watermark >= start[0] + self._query.window

    def _behind(self, match: Match) -> Order:
        start = match.first.order
        skip = self._query.skip
        if skip is Skip.NEXT:
            return start
        if skip is Skip.PAST_LAST:
            return match.last.order
        assert self._query.skip_to is not None
        group = match.groups[self._query.skip_to]
        to = group[0] if skip is Skip.TO_FIRST else group[-1]
        if to.order <= start:
            name = self._query.elements[self._query.skip_to].variable
            raise SkipStuck(
                f"query {self._query.name}: AFTER MATCH SKIP {skip.value.upper()} {name} leads back"
                f" to the row the match starts at, at {to.ts}",
                "skip to another variable, or to the next row",
            )
        return (to.ts, to.seq - 1)
