"""Matches probe tuples with a window: finds the pairs that satisfy the combinations of an area.

If all combinations of a route tag require one equality, only window tuples with the probe's value
are compared, found in an index of the window; otherwise every probe meets every window tuple. Both
give the same pairs in the same order: by probe, then by place in the window.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from seustream.hdl.device import NOT_IN_RESULT, Area, Combination, Factor, Ints
from seustream.hdl.isa import Condition

Codes = npt.NDArray[np.uint32]
Keys = npt.NDArray[np.uint64]
Bools = npt.NDArray[np.bool_]
Found = tuple[int, Ints, Ints]
"""A route tag, and for each joined tuple with it the probe and the place in the window."""

PAIRS_AT_ONCE = 1 << 20
_PLACE = np.uint64(0xFFFFFFFF)
_ABOVE = np.uint64(32)


class Probes(Protocol):
    """The members of probe tuples that are read here; see `seustream.cosim.golden`."""

    sequence: Ints
    attributes: Codes
    bits: Ints

    def __len__(self) -> int: ...


class PairWindow(Protocol):
    """The members of window tuples that are read here."""

    attributes: Codes
    bits: Ints

    def __len__(self) -> int: ...


def by_post_tag(area: Area, tag: int) -> dict[int, list[Combination]]:
    """Returns the combinations that a probe with this tag may satisfy."""
    found: dict[int, list[Combination]] = {}
    for row in area.combinations:
        if row.pre_tag == tag:
            found.setdefault(row.post_tag, []).append(row)
    return found


def shared_equality(area: Area, tag: int) -> int | None:
    """Returns an equality that every combination of a tag requires. It is derived from the
    combinations alone, so that an image with a wrong guard is checked by a model that does not know
    guards."""
    rows = [set(row.factors) for row in area.combinations if row.pre_tag == tag]
    shared = set.intersection(*rows) if rows else set()
    return min((i for i in shared if area.factors[i].condition is Condition.EQ), default=None)


def index_of(attribute: Codes) -> Keys:
    """Returns a window's places ordered by the attribute's value, then by place, each in one number
    with the value."""
    keys: Keys = attribute.astype(np.uint64) << _ABOVE
    keys |= np.arange(len(attribute), dtype=np.uint64)
    keys.sort()
    return keys


# --- with an index --------------------------------------------------------------


def by_index(
    area: Area,
    tag: int,
    equality: int,
    probes: Probes,
    window: PairWindow,
    keys: Keys,
    sight: Sight,
) -> Iterator[Found]:
    """Yields pairs that satisfy combinations, all of which require this equality; `keys` is the
    index of the attribute that it compares."""
    low, high = sight
    factor = area.factors[equality]
    value = probes.attributes[:, factor.probe_stream, factor.probe_attribute].astype(np.uint64)
    value <<= _ABOVE
    first = np.searchsorted(keys, value | low.astype(np.uint64))
    last = np.searchsorted(keys, value | high.astype(np.uint64))
    carried = probes.sequence[:, factor.probe_stream] != NOT_IN_RESULT
    counts = np.where(carried, np.maximum(last - first, 0), 0)
    ends = np.cumsum(counts)
    combinations = by_post_tag(area, tag)
    start = 0
    while start < len(counts):
        before = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + PAIRS_AT_ONCE, side="right")))
        part = slice(start, stop)
        who = np.repeat(np.arange(start, min(stop, len(counts))), counts[part])
        offset = np.arange(len(who)) - np.repeat(ends[part] - counts[part] - before, counts[part])
        whom = (keys[first[who] + offset] & _PLACE).astype(np.int64)
        facts = _OfPairs(area, probes, window, who, whom, equality)
        for post, rows in combinations.items():
            hit = functools.reduce(np.logical_or, [facts.hold(row) for row in rows])
            found = (who, whom) if hit.all() else (who[hit], whom[hit])
            if len(found[0]):
                yield post, *found
        start = stop


class _OfPairs:
    """The factor bits of single pairs, each evaluated once."""

    def __init__(
        self, area: Area, probes: Probes, window: PairWindow, who: Ints, whom: Ints, equality: int
    ) -> None:
        self.area, self.probes, self.window = area, probes, window
        self.who, self.whom = who, whom
        self.known: dict[int, Bools] = {equality: np.ones(len(who), np.bool_)}

    def hold(self, row: Combination) -> Bools:
        fits = np.ones(len(self.who), np.bool_)
        for index in row.factors:
            if index not in self.known:
                self.known[index] = self._compare(self.area.factors[index])
            fits &= self.known[index]
        if row.window_selections:
            fits &= has(self.window.bits[self.whom], row.window_selections)
        if row.probe_selections:
            fits &= has(self.probes.bits[self.who], row.probe_selections)
        return fits

    def _compare(self, factor: Factor) -> Bools:
        a = self.probes.attributes[self.who, factor.probe_stream, factor.probe_attribute]
        b = self.window.attributes[self.whom, factor.window_attribute]
        held = holds(factor.condition, a, b)
        if factor.condition in (Condition.TRUE, Condition.FALSE):
            return held
        found: Bools = held & (self.probes.sequence[self.who, factor.probe_stream] != NOT_IN_RESULT)
        return found


# --- all with all ---------------------------------------------------------------


Sight = tuple[Ints, Ints]
"""Places [low, high) of the window that each probe sees."""


def by_all(
    area: Area, tag: int, probes: Probes, window: PairWindow, sight: Sight
) -> Iterator[Found]:
    """Yields pairs that satisfy combinations."""
    low, high = sight
    combinations = by_post_tag(area, tag)
    step = max(1, PAIRS_AT_ONCE // max(len(window), 1))
    for start in range(0, len(probes), step):
        part = slice(start, start + step)
        first, last = int(low[part].min()), int(high[part].max())
        place = np.arange(first, last)
        visible = (place >= low[part, None]) & (place < high[part, None])
        factors = _Grid(area, probes, part, window, slice(first, last))
        for post, rows in combinations.items():
            hits = [visible & factors.hold(row) for row in rows]
            hit = functools.reduce(np.logical_or, hits)
            # Much faster than nonzero of two dimensions.
            who, whom = np.divmod(np.flatnonzero(hit), last - first)
            if len(who):
                yield post, who + start, whom + first


class _Grid:
    """The factor bits of some probes with some window tuples, each evaluated once."""

    def __init__(
        self, area: Area, probes: Probes, part: slice, store: PairWindow, window: slice
    ) -> None:
        self.area, self.probes, self.part = area, probes, part
        self.window, self.bits = store.attributes[window], store.bits[window]
        self.known: dict[int, Bools] = {}

    def hold(self, row: Combination) -> Bools:
        """Returns where all factors and selections of a combination hold; broadcasts to pairs."""
        fits = np.ones((1, 1), np.bool_)
        for index in row.factors:
            if index not in self.known:
                self.known[index] = self._compare(self.area.factors[index])
            fits = fits & self.known[index]
        if row.window_selections:
            fits = fits & has(self.bits, row.window_selections)
        if row.probe_selections:
            fits = fits & has(self.probes.bits[self.part], row.probe_selections)[:, None]
        return fits

    def _compare(self, factor: Factor) -> Bools:
        a = self.probes.attributes[self.part, factor.probe_stream, factor.probe_attribute][:, None]
        b = self.window[:, factor.window_attribute]
        carried = (self.probes.sequence[self.part, factor.probe_stream] != NOT_IN_RESULT)[:, None]
        match factor.condition:
            case Condition.TRUE:
                return np.ones((len(a), len(b)), np.bool_)
            case Condition.FALSE:
                return np.zeros((len(a), len(b)), np.bool_)
            case condition:
                held: Bools = holds(condition, a, b) & carried
                return held


# --- conditions -----------------------------------------------------------------


def holds(condition: Condition, a: Codes, b: Codes | np.uint32) -> Bools:
    match condition:
        case Condition.LT:
            return np.less(a, b)
        case Condition.EQ:
            return np.equal(a, b)
        case Condition.GT:
            return np.greater(a, b)
        case Condition.GE:
            return np.greater_equal(a, b)
        case Condition.LE:
            return np.less_equal(a, b)
        case Condition.NE:
            return np.not_equal(a, b)
        case Condition.TRUE:
            return np.ones(a.shape, np.bool_)
        case Condition.FALSE:
            return np.zeros(a.shape, np.bool_)


def has(bits: Ints, wanted: Sequence[int]) -> Bools:
    mask = sum(1 << number for number in wanted)
    found: Bools = bits & mask == mask
    return found
