"""USING NEXT and USING STRICT without groups, on columns: one chain of events per start.

Such a run never has a choice. Under NEXT it takes the first event that fits after a prefix, since
all later ones would skip it. A step finds the next event of all chains at once: it tries a few
candidates for each chain, then twice as many for the chains still without one. Under STRICT it is
the next event of the key or none.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np

from seustream.compiler.pattern import ir
from seustream.engine.pattern.columns import Bools, Ints
from seustream.engine.pattern.fill import Rows
from seustream.engine.pattern.found import runs
from seustream.engine.pattern.lists import Lists

Holds = Callable[[Rows, int], Bools]
"""Returns for which bindings the conditions hold that an element completes."""


def chains(
    lists: Lists,
    query: ir.PatternQuery,
    starts: Ints,
    anchors: Sequence[int],
    holds: Holds,
    limit: int,
) -> Rows:
    """Returns the chains of all starts that have one within the window."""
    first = anchors[0]
    rows: Rows = {first: starts}
    rows = {first: starts[holds(rows, first)]}
    for before, element in itertools.pairwise(anchors):
        begun, last = lists.T[first][rows[first]], lists.T[before][rows[before]]
        times = lists.T[element]
        at = np.searchsorted(times, last, "right")
        if query.window is None:
            end = np.searchsorted(times, lists.stretch_end(begun), "left")
        else:
            end = np.searchsorted(times, begun + query.window, "right")
        found = _first(rows, element, at, end, holds, limit)
        kept = found >= 0
        rows = {e: r[kept] for e, r in rows.items()} | {element: found[kept]}
    return rows


def neighbours(
    lists: Lists, query: ir.PatternQuery, starts: Ints, anchors: Sequence[int], holds: Holds
) -> Rows:
    """Returns the chains of all starts whose next events fit, one after the other. The log holds
    all events, including those that fit no element."""
    first = anchors[0]
    rows: Rows = {first: starts}
    rows = {first: starts[holds(rows, first)]}
    after, times = lists.after(), lists.log.ts
    for before, element in itertools.pairwise(anchors):
        place: Ints = np.full(len(times) + 1, -1, np.int64)
        place[lists.rows[element]] = np.arange(len(lists.rows[element]))
        last = lists.rows[before][rows[before]]
        kept = place[after[last]] >= 0
        rows, last = {e: r[kept] for e, r in rows.items()}, last[kept]
        begun = times[lists.rows[first][rows[first]]]
        true = times[after[last]] > times[last]
        if query.window is not None:
            true &= times[after[last]] <= begun + query.window
        rows |= {element: place[after[last]]}
        true &= holds(rows, element)
        rows = {e: r[true] for e, r in rows.items()}
    return rows


def _first(rows: Rows, element: int, at: Ints, end: Ints, holds: Holds, limit: int) -> Ints:
    """Returns for each row the first position in `at`..`end` that fits, or -1."""
    found: Ints = np.full(len(at), -1, np.int64)
    at = at.copy()
    open_ = np.flatnonzero(at < end)
    step = 1
    while len(open_):
        for begin in range(0, len(open_), max(limit // step, 1)):
            part = open_[begin : begin + max(limit // step, 1)]
            counts = np.minimum(end[part] - at[part], step)
            owner = np.repeat(part, counts)
            candidates = runs(at[part], counts)
            true = holds({e: r[owner] for e, r in rows.items()} | {element: candidates}, element)
            # Written from last to first, so that the first hit of each row stays.
            hits = np.flatnonzero(true)[::-1]
            found[owner[hits]] = candidates[hits]
            at[part] += counts
        open_ = open_[(found[open_] < 0) & (at[open_] < end[open_])]
        step *= 2
    return found
