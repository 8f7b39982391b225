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


class PartitionKeys:
    """Numbers the keys of a stream in order of arrival. NULL is a key like any other."""

    def __init__(self, partition: tuple[str, ...]) -> None:
        self.known: list[tuple[Any, ...]] = []
        self._partition, self._codes = partition, native.Codes()
        self._types: list[pa.DataType] = []
        self._most = _SPARE

    @property
    def many(self) -> bool:
        """Returns whether there are so many keys that those no longer in use should be
        forgotten."""
        return len(self.known) > self._most

    def keep(self, numbers: Ints) -> None:
        """Forgets all keys but these, and numbers them anew in this order."""
        kept = [self.known[number] for number in numbers.tolist()]
        self.known, self._codes = [], native.Codes()
        self.resume(kept, self._types)
        self._most = _SPARE + 2 * len(kept)

    def of(self, batch: EventBatch) -> Ints:
        """Returns the number of each row's key."""
        return self._numbers(
            [
                as_column(batch.ts) if name == ir.TIME else batch.columns[name]
                for name in self._partition
            ],
            len(batch),
        )

    def resume(self, keys: list[tuple[Any, ...]], types: Sequence[pa.DataType]) -> None:
        """Starts with the keys of another instance, in their order."""
        cells = zip(*keys, strict=True) if keys else [()] * len(types)
        self._numbers(
            [pa.array(some, of) for some, of in zip(cells, types, strict=True)], len(keys)
        )

    def _numbers(self, columns: list[pa.Array], count: int) -> Ints:
        found: Ints = np.empty(count, np.int64)
        self._types = [one.type for one in columns]
        native.keys(tuple([one.__arrow_c_array__() for one in columns]), self._codes, found)
        before = len(self.known)
        if self._codes.count() > before:
            fresh = np.flatnonzero(found >= before)
            first = fresh[np.unique(found[fresh], return_index=True)[1]]
            cells = [taken(one, first).to_pylist() for one in columns]
            self.known += zip(*cells, strict=True) if cells else [()]
        return found
