"""Windows of GROUP BY: those that have a time, and where they begin and end."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from seustream.compiler.logical import program as logical
from seustream.engine.stream.numbers import order_of

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def numbers(every: logical.Periodic, ts: Any) -> tuple[Any, Any]:
    """The numbers of the first window and of the last that have a time, or times."""
    size, slide, since = every.size, every.slide, ts - every.offset
    if every.cumulates:
        return since // slide, (since // size + 1) * (size // slide) - 1
    return (since - size) // slide + 1, since // slide


def edges(every: logical.Periodic, window: Any) -> tuple[Any, Any]:
    """The beginning and the end of the window of a number, or of several."""
    size, slide, offset = every.size, every.slide, every.offset
    if every.cumulates:
        end = (window + 1) * slide
        return window * slide // size * size + offset, end + offset
    return window * slide + offset, window * slide + offset + size


def sessions(gap: int, group: Ints, ts: Ints) -> tuple[Ints, Ints, Bools]:
    """The rows by group and time, their groups, and which of them begin a session."""
    rows = order_of(group)
    group, times = group[rows], ts[rows]
    begins = np.ones(len(rows), np.bool_)
    begins[1:] = (group[1:] != group[:-1]) | (times[1:] - times[:-1] >= gap)
    return rows, group, begins
