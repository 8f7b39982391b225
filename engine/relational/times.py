"""Windows of GROUP BY: which contain a time, and where they begin and end."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from seustream.compiler.logical import program as logical
from seustream.engine.stream.numbers import order_of

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def numbers(every: logical.Periodic, ts: Any) -> tuple[Any, Any]:
    """Returns the numbers of the first and the last window that contain a time, or each of
    several."""
    size, slide, since = every.size, every.slide, ts - every.offset
    if every.cumulates:
        return since // slide, (since // size + 1) * (size // slide) - 1
    return (since - size) // slide + 1, since // slide


def spread(first: Ints, last: Ints) -> tuple[Ints, Ints]:
    """Returns the numbers from the first to the last of each row, with the rows that they are of."""
    count = np.maximum(last - first + 1, 0)
    of = np.repeat(np.arange(len(first)), count)
    return of, first[of] + np.arange(len(of)) - np.repeat(np.cumsum(count) - count, count)


def edges(every: logical.Periodic, window: Any) -> tuple[Any, Any]:
    """Returns the beginning and the end of the window with a number, or of several windows."""
    size, slide, offset = every.size, every.slide, every.offset
    if every.cumulates:
        end = (window + 1) * slide
        return window * slide // size * size + offset, end + offset
    return window * slide + offset, window * slide + offset + size


def sessions(gap: int, group: Ints, ts: Ints) -> tuple[Ints, Ints, Bools]:
    """Returns the rows by group and time, their groups, and which of them begin a session."""
    rows = order_of(group)
    group, times = group[rows], ts[rows]
    begins = np.ones(len(rows), np.bool_)
    begins[1:] = (group[1:] != group[:-1]) | (times[1:] - times[:-1] >= gap)
    return rows, group, begins
