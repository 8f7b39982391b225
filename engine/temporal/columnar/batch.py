"""Insertions in columns, in key order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from compiler.apas.network import Leaf
from compiler.apas.types import BOOLEAN, DATETIME, DOUBLE, INTEGER, STRING, Type
from engine.temporal.columnar.evaluate import Column
from engine.temporal.library import DTYPES

Ints = npt.NDArray[np.int64]

ARROW: dict[Type, pa.DataType] = {
    INTEGER: pa.int64(),
    DOUBLE: pa.float64(),
    STRING: pa.string(),
    BOOLEAN: pa.bool_(),
    DATETIME: pa.timestamp("ms"),
}
"""Leaves outside, as columns of a table."""


@dataclass(frozen=True, slots=True)
class Batch:
    ts: Ints
    te: Ints
    columns: tuple[Column, ...]

    def __len__(self) -> int:
        return len(self.ts)

    @classmethod
    def of(cls, array: Sequence[Column]) -> Batch:
        ts, te, *columns = array
        return cls(ts, te, tuple(columns))

    @property
    def array(self) -> tuple[Column, ...]:
        """ts, te and the columns, as edges and expressions count them."""
        return (self.ts, self.te, *self.columns)

    def take(self, which: Ints | slice) -> Batch:
        return Batch(self.ts[which], self.te[which], tuple(c[which] for c in self.columns))

    def picked(self, columns: Sequence[int]) -> Batch:
        array = self.array
        return Batch(self.ts, self.te, tuple(array[at] for at in columns))

    def elements(self) -> list[tuple[object, ...]]:
        """Rows (ts, te, values…) as Python values."""
        return list(zip(*(column.tolist() for column in self.array), strict=True))


def empty(leaves: Sequence[Leaf]) -> Batch:
    none = np.empty(0, np.int64)
    return Batch(none, none, tuple(np.empty(0, DTYPES[type]) for _, type in leaves))


def concatenated(batches: Sequence[Batch]) -> Batch:
    if len(batches) == 1:
        return batches[0]
    return Batch(
        np.concatenate([b.ts for b in batches]),
        np.concatenate([b.te for b in batches]),
        tuple(np.concatenate(cs) for cs in zip(*(b.columns for b in batches), strict=True)),
    )
