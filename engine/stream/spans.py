"""Aggregates at many points at once, over members that each count for a span of points.

Points are numbered 0 to n - 1. Member m counts at the points first[m] <= p < last[m]. Everything
that slides (windows, lifetimes, groups) becomes such spans, and every aggregate is a few passes
over columns. Counts and sums add at the first point and subtract at the last. Minimum and maximum
write each span as two blocks of a power of two and push the blocks down, O((members + points) log
span).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def counts(first: Ints, last: Ints, n: int) -> Ints:
    """Returns how many members count at each point."""
    if n == 1:
        return np.array([np.count_nonzero(first < last)])
    change = np.bincount(first, minlength=n + 1) - np.bincount(last, minlength=n + 1)
    found: Ints = np.cumsum(change[:n])
    return found


def integer_sums(
    values: Ints, first: Ints, last: Ints, n: int
) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Returns exact sums, and where a sum does not fit 64 bits. Sums modulo 2^64 are right wherever
    the sum itself fits, which a sum of doubles shows."""
    found = _running(values, first, last, n)
    wrong = np.zeros(n, np.bool_)
    if len(values) and float(np.abs(values.astype(np.float64)).max()) * len(values) >= 2.0**63:
        about = sums(values.astype(np.float64), first, last, n)
        wrong = np.abs(about - found.astype(np.float64)) > 2.0**62
    return found, wrong


def sums(values: Floats, first: Ints, last: Ints, n: int) -> Floats:
    """Returns sums of doubles, exact to about 2^-80 of the greatest value. Intermediate results are
    integers, so members that have left leave no trace. Values that are not finite are counted
    separately, so that they do not spoil the points at which they do not count."""
    finite = np.isfinite(values)
    if finite.all():
        return _fixed_point(values, first, last, n)
    found = _fixed_point(np.where(finite, values, 0.0), first, last, n)
    for special in (np.inf, -np.inf, np.nan):
        mine = np.isnan(values) if np.isnan(special) else values == special
        if mine.any():
            with np.errstate(invalid="ignore"):
                found = found + np.where(counts(first[mine], last[mine], n) > 0, special, 0.0)
    return found


def _fixed_point(values: Floats, first: Ints, last: Ints, n: int) -> Floats:
    """Splits each value into two integers of `bits` bits below the greatest exponent; their sums
    fit."""
    largest = float(np.abs(values).max(initial=0.0))
    if not largest:
        return np.zeros(n)
    exponent = int(np.frexp(largest)[1])
    bits = min(40, 61 - len(values).bit_length())
    scaled = np.ldexp(values, bits - exponent)
    high = np.floor(scaled)
    low = np.rint(np.ldexp(scaled - high, bits))
    whole = _running(high.astype(np.int64), first, last, n).astype(np.longdouble)
    whole += np.ldexp(_running(low.astype(np.int64), first, last, n).astype(np.longdouble), -bits)
    found: Floats = np.ldexp(whole, exponent - bits).astype(np.float64)
    return found


def _running(values: Ints, first: Ints, last: Ints, n: int) -> Ints:
    """Returns sums modulo 2^64."""
    if n == 1:
        return np.array([values[first < last].sum()], np.int64)
    change = np.zeros(n + 1, np.int64)
    np.add.at(change, first, values)
    np.subtract.at(change, last, values)
    found: Ints = np.cumsum(change[:n])
    return found


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
