"""Columns of numbers that grow at the end and shrink at the front."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[Any]


class Growing:
    """An array of numbers. The cost of appending does not depend on its length. There is room for a third to
    all of them beyond what is there."""

    __slots__ = ("_data", "_start", "_stop")

    def __init__(self, kind: npt.DTypeLike = np.int64) -> None:
        self._data: Numbers = np.empty(16, kind)
        self._start = self._stop = 0

    def __len__(self) -> int:
        return self._stop - self._start

    @property
    def view(self) -> Numbers:
        """The numbers, valid until the next call of `append` or `drop`."""
        return self._data[self._start : self._stop]

    def append(self, numbers: Numbers) -> None:
        end = self._stop + len(numbers)
        if end > len(self._data):
            held = len(self)
            end = held + len(numbers)
            if 4 * end <= 3 * len(self._data):
                self._move(self._data)
            else:
                self._move(np.empty(max(16, end + end // 2), self._data.dtype))
        self._data[self._stop : end] = numbers
        self._stop = end

    def drop(self, count: int) -> None:
        """Drops the first `count` numbers."""
        self._start += count
        if 4 * len(self) < len(self._data):
            self._move(np.empty(max(16, 2 * len(self)), self._data.dtype))

    def _move(self, data: Numbers) -> None:
        """Moves the numbers to the beginning of an array, which may be their own."""
        # In parts as long as they are moved far: numpy copies what overlaps twice.
        held, start = len(self), self._start
        far = start if data is self._data else held
        for place in range(0, held, max(far, 1)):
            end = min(place + far, held)
            data[place:end] = self._data[start + place : start + end]
        self._data, self._start, self._stop = data, 0, held
