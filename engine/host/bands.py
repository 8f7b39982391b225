"""Bounds that order conditions put on a value, for a search by value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seustream.engine.host.links import JoinLink, shift
from seustream.engine.stream.differences import moved
from seustream.engine.stream.numbers import Key, Numbers
from seustream.hdl.isa import Condition

Ints = npt.NDArray[np.int64]

_BELOW = (Condition.LT, Condition.LE)
_ABOVE = (Condition.GT, Condition.GE)
_LEAST, _GREATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Band:
    """The range of `key` in which a row must lie to fit a probe, both bounds included. It may
    contain rows that do not fit: the conditions have to be tested again."""

    key: Key
    least: Ints
    greatest: Ints
    flags: npt.NDArray[np.uint8] | None
    closed: bool  # bounded on both sides


def band_of(links: Sequence[tuple[JoinLink, Numbers]]) -> Band | None:
    """Returns the bounds of the key bounded on most sides, or None if no condition is about
    order."""
    by_key: dict[Key, list[tuple[Condition, Numbers]]] = {}
    for link, (values, flags) in links:
        if link.op in _BELOW or link.op in _ABOVE:
            inner, amount = shift(link.theirs, link.of)
            bound = moved(values, amount, link.op in _BELOW)
            by_key.setdefault((inner, link.of), []).append((link.op, (bound, flags)))
    if not by_key:
        return None
    key = max(by_key, key=lambda one: len({op in _BELOW for op, _ in by_key[one]}))
    count = len(by_key[key][0][1][0])
    least, greatest = np.full(count, _LEAST), np.full(count, _GREATEST)
    known: npt.NDArray[np.uint8] | None = None
    for op, (bound, flags) in by_key[key]:
        if op in _BELOW:
            greatest = np.minimum(greatest, bound)
        else:
            least = np.maximum(least, bound)
        if flags is not None:
            known = flags if known is None else known & flags
    closed = len({op in _BELOW for op, _ in by_key[key]}) == 2
    return Band(key, least, greatest, known, closed)
