"""Bounds that order conditions put on a value, for a search by value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seustream.engine.host.links import JoinLink, shift
from seustream.engine.stream.numbers import Key, Numbers, of_doubles
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
            bound = _moved(values, amount, link.op in _BELOW)
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


def _moved(values: Ints, amount: int | float, below: bool) -> Ints:
    """Returns the bounds on `value` that follow from `value + amount` being less (`below`) or more
    than numbers. They exclude no value that fits."""
    if isinstance(amount, float):
        return _moved_reals(values, amount, below)
    if amount == 0:
        return values
    if not _LEAST <= amount <= _GREATEST:
        return np.full(len(values), _GREATEST if below else _LEAST)
    if amount > 0:
        room = _LEAST + amount
        return np.maximum(values, room) - amount
    room = _GREATEST + amount
    return np.minimum(values, room) - amount


def _moved_reals(values: Ints, amount: float, below: bool) -> Ints:
    """Moves bounds of reals. Their sums are rounded, so the bounds are rounded outwards."""
    bits = np.where(values < 0, values ^ np.int64(_GREATEST), values)
    numbers = bits.view(np.float64)
    with np.errstate(all="ignore"):
        slack = 2.0**-50 * (np.abs(numbers) + abs(amount)) + 5e-324
        moved = numbers - amount + (slack if below else -slack)
    moved[np.isnan(moved)] = np.inf if below else -np.inf
    return of_doubles(moved + 0.0)
