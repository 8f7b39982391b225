"""Aggregates at many points at once, over members that each count for a span of points.

Points are numbered 0 to n - 1. Member m counts at the points first[m] <= p < last[m]. Everything
that slides (windows, lifetimes, groups) becomes such spans, and every aggregate is a few passes
over columns. Counts and totals add at the first point and subtract at the last. Minimum and maximum
write each span as two blocks of a power of two and push the blocks down, O((members + points) log
span).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from seustream.engine.kernels import native

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
_WHOLE, _REAL = 1, 2
"""Kinds of totals, as the kernel numbers them."""


def counts(first: Ints, last: Ints, n: int) -> Ints:
    """Returns how many members count at each point."""
    if n == 1:
        return np.array([np.count_nonzero(first < last)])
    change = np.bincount(first, minlength=n + 1) - np.bincount(last, minlength=n + 1)
    found: Ints = np.cumsum(change[:n])
    return found


def totals(
    values: Ints | Floats, first: Ints, last: Ints, n: int, mean: bool = False
) -> tuple[Ints | Floats, Bools]:
    """Returns sums or means, and where there is one: not without members, not for infinities of both
    signs, and not if the sum of integers exceeds 64 bits. Sums are exact before they are rounded to
    a double, so values that have left, or come later, leave no trace."""
    if values.dtype == np.int64:
        most = max(int(values.max(initial=0)), -int(values.min(initial=0)))
        if most * len(values) < 1 << (52 if mean else 62):
            return _running(values.view(np.int64), first, last, n, mean)
    held = np.flatnonzero(first < last)
    events = np.concatenate((held, ~held))
    points = np.concatenate((first[held], last[held]))
    order = np.argsort(points, kind="stable")
    until = np.searchsorted(points[order], np.arange(n), "right")
    real = values.dtype == np.float64
    found: npt.NDArray[Any] = np.empty(n, np.float64 if real or mean else np.int64)
    known = np.empty(n, np.uint8)
    none, group = np.zeros(n, np.int64), np.zeros(len(values), np.uint32)
    words = found.view(np.int64)
    native.Totals().run(
        events[order], until, none, 0, group, values.view(np.int64), None,
        _REAL if real else _WHOLE, 1, None, None if mean else words, words if mean else None, known,
    )  # fmt: skip
    return found, known & (2 if mean else 1) != 0


def _running(
    values: Ints, first: Ints, last: Ints, n: int, mean: bool
) -> tuple[Ints | Floats, Bools]:
    """Returns the totals of integers whose sums all fit."""
    change = np.zeros(n + 1, np.int64)
    np.add.at(change, first, values)
    np.subtract.at(change, last, values)
    live = counts(first, last, n)
    found: Ints = np.cumsum(change[:n])
    return found / np.maximum(live, 1) if mean else found, live > 0


class Blocks:
    """Spans as pairs of blocks of a power of two, for minima and maxima of any values."""

    def __init__(self, first: Ints, last: Ints) -> None:
        held = np.flatnonzero(last > first)
        length = (last - first)[held]
        # There are few distinct levels, all small, so they are sorted by their digits.
        level = (np.frexp(length.astype(np.float64))[1] - 1).astype(np.int8)
        order = np.argsort(level, kind="stable")
        self.members = held[order]
        self.first, self.last = first[self.members], last[self.members]
        self.top = int(level.max(initial=0))
        self.edges = np.searchsorted(level[order], np.arange(self.top + 2))

    def extremes(self, values: npt.NDArray[Any], n: int, greatest: bool) -> npt.NDArray[Any]:
        """Returns the least or greatest value at each point; points without members get an
        arbitrary one."""
        pick = np.maximum if greatest else np.minimum
        if np.issubdtype(values.dtype, np.floating):
            nothing = values.dtype.type(-np.inf if greatest else np.inf)
        else:
            limits = np.iinfo(values.dtype)
            nothing = values.dtype.type(limits.min if greatest else limits.max)
        values = values[self.members]
        found = np.full(n, nothing, values.dtype)
        # `found[p]` is over the blocks of this level's size that begin at p.
        for k in range(self.top, -1, -1):
            if k < self.top:
                half = 1 << k
                above = found
                found = above.copy()
                pick(found[half:], above[:-half], out=found[half:])
            mine = slice(int(self.edges[k]), int(self.edges[k + 1]))
            pick.at(found, self.first[mine], values[mine])
            if k:
                pick.at(found, self.last[mine] - (1 << k), values[mine])
        return found


def extremes(
    values: npt.NDArray[Any], first: Ints, last: Ints, n: int, greatest: bool
) -> npt.NDArray[Any]:
    if n == 1 and (here := first < last).any():
        return np.array([values[here].max() if greatest else values[here].min()])
    return Blocks(first, last).extremes(values, n, greatest)
