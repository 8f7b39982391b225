"""Columns of numbers that grow at the end and shrink at the front."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[Any]


class Growing:
    """An array of numbers. The cost of appending does not depend on its length."""

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
            data = np.empty(max(16, 2 * (held + len(numbers))), self._data.dtype)
            data[:held] = self.view
            self._data, self._start, self._stop = data, 0, held
            end = held + len(numbers)
        self._data[self._stop : end] = numbers
        self._stop = end

    def drop(self, count: int) -> None:
        """Drops the first `count` numbers."""
        self._start += count
        if 4 * len(self) < len(self._data):
            kept = self.view
            self._data = np.empty(max(16, 2 * len(kept)), kept.dtype)
            self._data[: len(kept)] = kept
            self._start, self._stop = 0, len(kept)
