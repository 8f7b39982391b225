"""USING NEXT without groups, on columns: from every start the next event that fits, each time.

Such a run never has a choice: of the events that fit after a prefix the first is taken, all later
ones would skip it. So there is one chain a start, and a step finds the next event of all chains at
once: a few candidates of each are tried, then twice as many of those that are still without.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np

from compiler.pattern import ir
from engine.pattern.columns import Bools, Ints
from engine.pattern.fill import Rows
from engine.pattern.found import runs
from engine.pattern.lists import Lists

Holds = Callable[[Rows, int], Bools]
"""Where the conditions hold that an element completes."""


def chains(
    lists: Lists, query: ir.Query, starts: Ints, anchors: Sequence[int], holds: Holds, limit: int
) -> Rows:
    """The chain of every start that has one within the window."""
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


def _first(rows: Rows, element: int, at: Ints, end: Ints, holds: Holds, limit: int) -> Ints:
    """For each row the first position in `at`..`end` that fits, or -1."""
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
            # Written from the last to the first, so that the first of each stays.
            hits = np.flatnonzero(true)[::-1]
            found[owner[hits]] = candidates[hits]
            at[part] += counts
        open_ = open_[(found[open_] < 0) & (at[open_] < end[open_])]
        step *= 2
    return found
