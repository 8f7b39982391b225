"""Numbers of keys, and the values they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
        self._lists = {n: _ListCodes(of) for n, of in enumerate(types) if pa.types.is_list(of)}
        coded = [pa.int64() if n in self._lists else of for n, of in enumerate(types)]
        self._coded = tuple(coded)
        self.kernel.configure(tuple([of.__arrow_c_schema__() for of in coded]))

    def __len__(self) -> int:
        return self.kernel.count()

    def numbers(self, columns: Sequence[pa.Array], count: int) -> Ints:
        """Returns the number of each of `count` rows."""
        found = np.empty(count, np.int64)
        if self._lists:
            columns = [
                self._lists[n].coded(column) if n in self._lists else column
                for n, column in enumerate(columns)
            ]
        self.kernel.numbers(exported(columns), found)
        return found

    def values(self, numbers: Ints) -> list[pa.Array]:
        """Returns the columns of some keys, by their numbers."""
        return [self.column(n, numbers) for n in range(len(self.types))]

    def column(self, column: int, numbers: Ints) -> pa.Array:
        """Returns a column of some keys."""
        taken = self.kernel.take(column, np.ascontiguousarray(numbers))
        found = made(taken, self._coded[column])
        return self._lists[column].lists(found) if column in self._lists else found


def firsts(numbers: Ints, known: int) -> Ints:
    """Returns the places where numbers from `known` on are first; each is one more than the last of these before it."""
    if numbers.max(initial=-1) < known:
        return np.empty(0, np.int64)
    most = np.maximum.accumulate(numbers)
    found: Ints = np.flatnonzero(numbers > np.maximum(np.append(-1, most[:-1]), known - 1))
    return found


class _ListCodes:
    """Codes of lists, which the kernel does not know."""

    def __init__(self, of: pa.DataType) -> None:
        self.of = of
        self.codes: dict[tuple[Any, ...], int] = {}

    def coded(self, lists: pa.Array) -> pa.Array:
        cells = [None if one is None else tuple(one) for one in lists.to_pylist()]
        return pa.array(
            [None if one is None else self.codes.setdefault(one, len(self.codes)) for one in cells],
            pa.int64(),
        )

    def lists(self, codes: pa.Array) -> pa.Array:
        return pa.array([*self.codes], self.of).take(codes)


def exported(columns: Sequence[pa.Array]) -> tuple[tuple[object, object], ...]:
    """Returns columns as kernels take them."""
    return tuple([column.__arrow_c_array__() for column in columns])
