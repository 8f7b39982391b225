"""Places by key: finds those with some keys in time in proportion to what is found."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from seustream.engine.kernels import native
from seustream.engine.stream.growing import Growing
from seustream.engine.stream.nearby import Nearby
from seustream.engine.stream.numbers import Numbers

Ints = npt.NDArray[np.int64]


class Keyed:
    """The keys of places from 0 up, as numbers. Where a flag is 0, a place has no key; without flags all
    have. The index is filled when it is asked first."""

    def __init__(self) -> None:
        self.values = Nearby()
        self._flags: Growing | None = None
        self._index, self._indexed = native.Chains(), 0

    def __len__(self) -> int:
        return len(self.values)

    def append(self, keys: Numbers) -> None:
        values, flags = keys
        if self._flags is None and flags is not None and not flags.all():
            self._flags = Growing(np.uint8)
            self._flags.append(np.ones(len(self), np.uint8))
        self.values.append(values)
        if self._flags is not None:
            self._flags.append(np.ones(len(values), np.uint8) if flags is None else flags)

    def at(self, places: Ints) -> Numbers:
        """Returns the keys at some places."""
        return self.values[places], None if self._flags is None else self._flags.view[places]

    def distinct(self, places: Ints) -> Ints:
        """Returns the keys at some places, each once."""
        values, flags = self.at(places)
        return np.unique(values if flags is None else values[flags != 0])

    def places(self, keys: Ints) -> Ints:
        """Returns the places of some distinct keys, in order."""
        end = len(self)
        who, found = np.empty(end, np.int64), np.empty(end, np.int64)
        low, high = np.zeros(len(keys), np.int64), np.full(len(keys), end)
        _, filled = self._filled().probe(keys, None, 0, low, high, 0, (), who, found)
        return np.sort(found[:filled])

    def latest(self, keys: Numbers, below: Ints) -> Ints:
        """Returns the last place of each key before a place; -1 if there is none."""
        found = np.empty(len(below), np.int64)
        self._filled().latest(*keys, below, found)
        return found

    def previous(self, begin: int, end: int) -> Ints:
        """Returns the place before with the same key for each place of a range; -1 if there is none."""
        found = np.empty(end - begin, np.int64)
        self._filled().previous(begin, found)
        return found

    def _filled(self) -> native.Chains:
        """Returns the index with all places."""
        if self._indexed < len(self):
            flags = None if self._flags is None else self._flags.view[self._indexed :]
            self._index.append(self.values[self._indexed :], flags)
            self._indexed = len(self)
        return self._index
