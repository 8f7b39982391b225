"""Parts of a search whose matches are too many to be in memory at once.

Matches are given out by D, then by the events of each element. So a search is halved where this
order divides it: by the event that determines D, then by that of the first element, the second, and
so on. All matches of the first half come before those of the second. A group depends on the events
around it, so no element from the first group on can divide a search.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from seustream.compiler.pattern import ir
from seustream.engine.pattern.columns import Ints
from seustream.engine.pattern.lists import FAR

Span = tuple[int, int]
_TIMES, _ROWS = "times", "rows"
Cut = tuple[str, int]
"""A way to halve a search: by the times, or by the rows, of an anchor, given by its place."""


@dataclass(frozen=True, slots=True)
class SearchBox:
    """A part of a search: by anchor the rows of the log from which it is bound, without the end; and
    the times old < D ≤ new of its matches."""

    spans: tuple[Span, ...]
    epoch: Span

    def halves(self, cuts: Sequence[Cut], times: Ints, rows: Sequence[Ints]) -> list[SearchBox]:
        """Returns the two halves, in order; none where no cut divides the box. `times` are those of
        the log, `rows` the rows of each anchor in order."""
        for kind, place in cuts:
            begin, end = self.spans[place]
            some = rows[place]
            some = some[np.searchsorted(some, begin) : np.searchsorted(some, end)]
            if len(some) < 2:
                continue
            at = int(some[len(some) // 2])
            if kind == _TIMES:
                at = int(np.searchsorted(times, times[at], "left"))
                if at <= some[0]:
                    at = int(np.searchsorted(times, times[at], "right"))
                if at > some[-1]:
                    continue
            return [self._among(place, (begin, at)), self._among(place, (at, end))]
        return []

    def _among(self, place: int, span: Span) -> SearchBox:
        return replace(self, spans=(*self.spans[:place], span, *self.spans[place + 1 :]))


def whole(query: ir.PatternQuery, times: Ints, epoch: Span) -> SearchBox:
    """Returns the whole search for the matches of an epoch. The anchor that determines D is bound to
    the epoch, as in `OptiSeq`."""
    anchors = query.anchors
    spans: list[Span] = [(0, len(times))] * len(anchors)
    if not query.waits and anchors[-1] == query.positives[-1]:
        spans[-1] = _within(times, epoch, 0)
    elif query.waits and query.window is not None and anchors[0] == query.positives[0]:
        spans[0] = _within(times, epoch, query.window)
    return SearchBox(tuple(spans), epoch)


def _within(times: Ints, epoch: Span, before: int) -> Span:
    first, end = np.searchsorted(times, [max(at - before, -FAR) for at in epoch], "right").tolist()
    return first, end


def cuts(query: ir.PatternQuery, dated: bool) -> list[Cut]:
    """Returns how the search of a query can be halved, in the order of its matches. `dated`: matches
    that wait for the end of the stream come in the order of their last events."""
    place = {element: at for at, element in enumerate(query.anchors)}
    first, last = query.positives[0], query.positives[-1]
    found: list[Cut] = []
    if not query.waits or (query.ends_with_stream and dated):
        if last not in place:
            return []
        found.append((_TIMES, place[last]))
    elif query.window is not None and first not in place:
        return []
    for element in query.positives:
        if element not in place:
            break
        found.append((_ROWS, place[element]))
    return found
