"""Columns of numbers that grow at the end and shrink at the front."""

from __future__ import annotations

import mmap
import sys
from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[Any]

_LARGE = 1 << 18
"""Bytes from which on numbers have pages of their own, where the system takes them back."""
_GIVEN = 1 << 16
"""Bytes that are given back together."""
_PART = 1 << 19
"""Bytes that are moved together."""
_HAS_PAGES = hasattr(mmap, "MADV_DONTNEED")
if _HAS_PAGES:
    _UNRESERVED = 0x4000 if sys.platform == "linux" else 0  # MAP_NORESERVE, which Python 3.13 has
    _PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _UNRESERVED


class Growing:
    """An array of numbers. The cost of appending does not depend on its length.

    A few have room for a third to all of them beyond. Many have room for three times as many, which takes no memory: a
    page has some from when it is written first until all that it holds has been dropped.
    """

    __slots__ = ("_data", "_given", "_pages", "_start", "_stop")

    def __init__(self, kind: npt.DTypeLike = np.int64) -> None:
        self._data: Numbers = np.empty(16, kind)
        self._pages: mmap.mmap | None = None
        self._start = self._stop = self._given = 0

    def __len__(self) -> int:
        return self._stop - self._start

    @property
    def view(self) -> Numbers:
        """The numbers, valid until the next call of `append` or `drop`."""
        return self._data[self._start : self._stop]

    def append(self, numbers: Numbers) -> None:
        end = self._stop + len(numbers)
        if end > len(self._data):
            end = len(self) + len(numbers)
            self._move(end, anew=self._pages is not None or 4 * end > 3 * len(self._data))
        self._data[self._stop : end] = numbers
        self._stop = end

    def drop(self, count: int) -> None:
        """Drops the first `count` numbers."""
        self._start += count
        if self._pages is not None:
            self._give_back(self._start)
        if (4 if self._pages is None else 32) * len(self) < len(self._data) > 16:
            self._move(len(self), anew=True)

    def _give_back(self, count: int) -> None:
        """Gives back the pages of the first numbers of the array."""
        end = count * self._data.itemsize // _GIVEN * _GIVEN
        if self._pages is not None and end > self._given:
            self._pages.madvise(mmap.MADV_DONTNEED, self._given, end - self._given)
            self._given = end

    def _move(self, room: int, anew: bool) -> None:
        """Moves the numbers to the beginning of an array, of their own or of another with room for so many and
        some more."""
        data, pages = self._data, None
        kind = data.dtype
        if anew and _HAS_PAGES and room * kind.itemsize >= _LARGE:
            pages = mmap.mmap(-1, 4 * room * kind.itemsize, flags=_PRIVATE)
            data = np.frombuffer(pages, kind)
        elif anew:
            data = np.empty(max(16, room + room // 2), kind)
        # In parts as long as they are moved far: numpy copies what overlaps twice. What has been moved from pages
        # gives them back, so that not both are there as a whole.
        held, start = len(self), self._start
        far = _PART // kind.itemsize if anew else start
        for place in range(0, held, max(far, 1)):
            end = min(place + far, held)
            data[place:end] = self._data[start + place : start + end]
            self._give_back(start + end)
        self._data, self._pages, self._given = data, pages, 0
        self._start, self._stop = 0, held
