"""Numbers the keys of PARTITION BY."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from seustream.compiler.pattern import ir
from seustream.engine.kernels import native
from seustream.engine.pattern.batch import EventBatch
from seustream.engine.pattern.columns import Ints
from seustream.engine.stream.numbers import as_column
from seustream.engine.stream.taken import taken

_SPARE = 1 << 12
"""Keys beyond twice those in use that are numbered before it is looked which are still in use."""


class NumberedKeys:
    """Numbers the keys of a stream in order of arrival. NULL is a key like any other. `len` is the
    number of keys."""

    def __init__(self, partition: tuple[str, ...]) -> None:
        self._partition, self._codes = partition, native.Codes()

    def __len__(self) -> int:
        return self._codes.count()

    def of(self, batch: EventBatch) -> Ints:
        """Returns the number of each row's key."""
        return self._numbers(
            [
                as_column(batch.ts) if name == ir.TIME else batch.columns[name]
                for name in self._partition
            ],
            len(batch),
        )

    def _numbers(self, columns: list[pa.Array], count: int) -> Ints:
        found: Ints = np.empty(count, np.int64)
        native.keys(tuple([one.__arrow_c_array__() for one in columns]), self._codes, found)
        return found


class PartitionKeys(NumberedKeys):
    """Knows the values of keys, too."""

    def __init__(self, partition: tuple[str, ...]) -> None:
        super().__init__(partition)
        self._known: list[list[pa.Array]] = []
        """Pieces of the columns, each with fewer keys than the one before."""
        self._most = _SPARE

    @property
    def known(self) -> list[tuple[Any, ...]]:
        """The keys, by number."""
        cells = [column.to_pylist() for column in self._columns()]
        return [*zip(*cells, strict=True)] if cells else [()] * len(self)

    @property
    def many(self) -> bool:
        """Returns whether there are so many keys that those no longer in use should be
        forgotten."""
        return len(self) > self._most

    def keep(self, numbers: Ints) -> None:
        """Forgets all keys but these, and numbers them anew in this order."""
        kept = [taken(column, numbers) for column in self._columns()]
        self._known, self._codes = [], native.Codes()
        self._numbers(kept, len(numbers))
        self._most = _SPARE + 2 * len(numbers)

    def resume(self, keys: list[tuple[Any, ...]], types: Sequence[pa.DataType]) -> None:
        """Starts with the keys of another instance, in their order."""
        cells = zip(*keys, strict=True) if keys else [()] * len(types)
        self._numbers(
            [pa.array(some, of) for some, of in zip(cells, types, strict=True)], len(keys)
        )

    def _columns(self) -> list[pa.Array]:
        if len(self._known) > 1:
            self._known = [_joined(self._known)]
        return self._known[0] if self._known else []

    def _numbers(self, columns: list[pa.Array], count: int) -> Ints:
        before = len(self)
        found = super()._numbers(columns, count)
        if len(self) > before:
            fresh = np.flatnonzero(found >= before)
            first = fresh[np.unique(found[fresh], return_index=True)[1]]
            self._known.append([taken(column, first) for column in columns])
            while (
                columns
                and len(self._known) > 1
                and len(self._known[-2][0]) <= len(self._known[-1][0])
            ):
                self._known[-2:] = [_joined(self._known[-2:])]
        return found


def _joined(pieces: list[list[pa.Array]]) -> list[pa.Array]:
    return [pa.concat_arrays(parts) for parts in zip(*pieces, strict=True)]
