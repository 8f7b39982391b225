"""Numbers of keys, and the values they stand for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seustream.engine.kernels import native
from seustream.engine.stream.taken import made

Ints = npt.NDArray[np.int64]


class KeyNumbers:
    """Numbers the distinct values of several columns; NULL is a value like any other."""

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        self.types = tuple(types)
        self.kernel = native.Keys()
        self.kernel.configure(tuple([of.__arrow_c_schema__() for of in self.types]))

    def __len__(self) -> int:
        return self.kernel.count()

    def numbers(self, columns: Sequence[pa.Array], count: int) -> Ints:
        """Returns the number of each of `count` rows."""
        found = np.empty(count, np.int64)
        self.kernel.numbers(exported(columns), found)
        return found

    def values(self, numbers: Ints) -> list[pa.Array]:
        """Returns the columns of some keys, by their numbers."""
        return [
            made(self.kernel.take(column, np.ascontiguousarray(numbers)), of)
            for column, of in enumerate(self.types)
        ]


def exported(columns: Sequence[pa.Array]) -> tuple[tuple[object, object], ...]:
    """Returns columns as kernels take them."""
    return tuple([column.__arrow_c_array__() for column in columns])
