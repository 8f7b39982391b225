"""Columns of whole numbers that are near each other, such as times and places."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from seustream.engine.kernels import native
from seustream.engine.stream.growing import Growing

Ints = npt.NDArray[np.int64]

_MANY = 1 << 14
"""Numbers from which on their size is looked at."""
_NEAR = 1 << 31
"""Numbers that differ by less may be 32 bits above the least; as many again may follow."""


class Nearby:
    """Whole numbers that grow at the end and shrink at the front. Many of them take four bytes each, as what they are
    above the least, as long as they are near each other."""

    __slots__ = ("_base", "_held", "_tried")

    def __init__(self) -> None:
        self._held = Growing()
        self._base: int | None = None
        """What is added to those that are held; None if these are the numbers."""
        self._tried = _MANY

    def __len__(self) -> int:
        return len(self._held)

    def __getitem__(self, places: Ints | npt.NDArray[np.bool_] | slice) -> Ints:
        """Returns some numbers. They are valid until the next call of `append` or `drop`."""
        found: Ints = self._held.view[places]
        return found if self._base is None else np.add(found, self._base, dtype=np.int64)

    def append(self, numbers: Ints) -> None:
        if self._base is None:
            self._held.append(numbers)
            if len(self._held) >= self._tried:
                self._settle(self._held.view)
            return
        above = numbers - self._base
        if (above.view(np.uint64) >> np.uint64(32)).any():
            self._settle(np.concatenate([self[:], numbers]))
        else:
            self._held.append(above)

    def drop(self, count: int) -> None:
        """Drops the first `count` numbers."""
        self._held.drop(count)

    def search(self, numbers: Ints, after: bool = False) -> Ints:
        """Returns the place of the first number that is at least each of these, or above it; all are in order."""
        found = np.empty(len(numbers), np.int64)
        native.places(self._held.view, self._base, numbers, after, found)
        return found

    def find(self, number: int, after: bool = False) -> int:
        return int(self.search(np.array([number]), after)[0])

    def _settle(self, numbers: Ints) -> None:
        """Holds these in as few bits as they need."""
        least, most = int(numbers.min()), int(numbers.max())
        self._base = least if most - least < _NEAR else None
        self._tried = 2 * len(numbers)
        self._held = Growing(np.int64 if self._base is None else np.uint32)
        self._held.append(numbers if self._base is None else numbers - self._base)
