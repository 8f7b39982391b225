"""Insertions in columns, in key order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seustream.compiler.apas.network import Leaf
from seustream.engine.stream.schema import arrow_type
from seustream.engine.temporal.columnar.evaluate import moments, taken

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class IntervalBatch:
    """Times as NumPy columns, values as Arrow arrays."""

    ts: Ints
    te: Ints
    columns: tuple[pa.Array, ...]

    def __len__(self) -> int:
        return len(self.ts)

    @property
    def array(self) -> tuple[Any, ...]:
        """ts, te and the columns, as edges and expressions number them."""
        return (self.ts, self.te, *self.columns)

    def take(self, which: Ints | slice) -> IntervalBatch:
        return IntervalBatch(
            self.ts[which], self.te[which], tuple(taken(c, which) for c in self.columns)
        )

    def only(self, rising: Ints) -> IntervalBatch:
        """Returns the rows at these places, which are strictly increasing."""
        return self if len(rising) == len(self) else self.take(rising)

    def picked(self, columns: Sequence[int]) -> IntervalBatch:
        """Returns the columns of an edge; a time among them is a DATETIME from here on."""
        array = self.array
        return IntervalBatch(
            self.ts, self.te, tuple(moments(array[at]) if at < 2 else array[at] for at in columns)
        )

    def elements(self) -> list[tuple[Any, ...]]:
        """Returns rows (ts, te, values…) as Python values."""
        columns = [self.ts.tolist(), self.te.tolist(), *(c.to_pylist() for c in self.columns)]
        return list(zip(*columns, strict=True))

    def save(self) -> tuple[Any, ...]:
        """Returns the rows, for a snapshot."""
        return (self.ts, self.te, self.columns)

    @classmethod
    def load(cls, saved: tuple[Any, ...]) -> IntervalBatch:
        return cls(*saved)


def empty(leaves: Sequence[Leaf]) -> IntervalBatch:
    none = np.empty(0, np.int64)
    return IntervalBatch(none, none, tuple(pa.array([], arrow_type(of)) for _, of in leaves))


def concatenated(batches: Sequence[IntervalBatch]) -> IntervalBatch:
    if len(batches) == 1:
        return batches[0]
    return IntervalBatch(
        np.concatenate([b.ts for b in batches]),
        np.concatenate([b.te for b in batches]),
        tuple(pa.concat_arrays(cs) for cs in zip(*(b.columns for b in batches), strict=True)),
    )
