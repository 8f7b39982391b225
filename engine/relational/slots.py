"""Places that are given in turn, and given anew once a third have been left."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from seustream.engine.stream.growing import Growing

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

FEW = 256
"""So many that have left may keep their places."""


class Slots:
    """Places from 0 up. What leaves keeps its place until such places are a third of all: what a step costs
    depends on what comes and leaves, not on what stays."""

    def __init__(self) -> None:
        self._here = Growing(np.bool_)
        self._first = 0
        self.left = 0
        """The number of places that have been left."""

    def __len__(self) -> int:
        return len(self._here)

    @property
    def here(self) -> Bools:
        """Returns which have not been left."""
        found: Bools = self._here.view
        return found

    @property
    def first(self) -> int | None:
        """The first place that has not been left."""
        here = self.here
        while self._first < len(here) and not here[self._first]:
            some = here[self._first : self._first + FEW]
            self._first += int(some.argmax()) if some.any() else len(some)
        return self._first if self._first < len(here) else None

    def take(self, count: int) -> Ints:
        """Gives the next places."""
        first = len(self)
        self._here.append(np.ones(count, np.bool_))
        return np.arange(first, first + count)

    def leave(self, places: Ints) -> None:
        """Leaves places that have not been left."""
        self.here[places] = False
        self.left += len(places)

    @property
    def is_sparse(self) -> bool:
        """Returns whether a third of the places have been left."""
        return self.left > FEW and 3 * self.left > len(self)
