"""The rows that matches may still need, in columns, each with its neighbours in the partition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from seustream.compiler.language import expressions as x
from seustream.compiler.language.faults import Faults
from seustream.compiler.pattern import ir
from seustream.engine.pattern.batch import EventBatch, concat
from seustream.engine.pattern.columns import Ints, taken
from seustream.engine.stream.evaluate import evaluate

Leaves = Callable[[x.Leaf, Ints], pa.Array]
"""The column of a leaf for some rows, by position."""


class RowLog:
    """Rows numbered in their order. `before` and `after` are the numbers of a row's neighbours in
    its partition, -1 where there is none; all else goes by position."""

    def __init__(self) -> None:
        self.batch: EventBatch | None = None
        none: Ints = np.zeros(0, np.int64)
        self.number, self.key, self.before, self.after = none, none, none, none

    def __len__(self) -> int:
        return len(self.number)

    def append(self, batch: EventBatch, number: Ints, key: Ints, before: Ints) -> Ints:
        """The positions of the new rows."""
        first = len(self)
        self.batch = batch if self.batch is None or not first else concat(self.batch, batch)
        self.number = np.concatenate([self.number, number])
        self.key = np.concatenate([self.key, key])
        self.before = np.concatenate([self.before, before])
        self.after = np.concatenate([self.after, np.full(len(number), -1, np.int64)])
        rows = np.arange(first, len(self))
        earlier = self.at(before)
        known = earlier >= 0
        self.after[earlier[known]] = number[known]
        return rows

    def keep(self, numbers: Ints) -> None:
        """Forgets all other rows."""
        rows = self.at(np.sort(numbers))
        if self.batch is not None:
            self.batch = self.batch.take(rows)
        for name in ("number", "key", "before", "after"):
            setattr(self, name, getattr(self, name)[rows])

    def at(self, numbers: Ints) -> Ints:
        """The positions of rows, -1 of those that are not here."""
        if not len(self):
            return np.full(len(numbers), -1, np.int64)
        found = np.searchsorted(self.number, numbers)
        found[found == len(self)] = 0
        return np.where(self.number[found] == numbers, found, -1)

    def step(self, rows: Ints, offset: int) -> Ints:
        """The rows so many further on in their partitions, or with a negative offset back."""
        links = self.before if offset < 0 else self.after
        for _ in range(abs(offset)):
            there = rows >= 0
            found: Ints = np.full(len(rows), -1, np.int64)
            found[there] = self.at(links[rows[there]])
            rows = found
        return rows

    def cells(self, attribute: str, rows: Ints) -> pa.Array:
        assert self.batch is not None
        if attribute == ir.TIME:
            return pa.array(self.batch.ts[rows])
        return taken(self.batch.columns[attribute], rows)

    def cell(self, attribute: str, row: int) -> Any:
        """One value."""
        assert self.batch is not None
        if attribute == ir.TIME:
            return int(self.batch.ts[row])
        return self.batch.columns[attribute][row].as_py()

    def arrival(self, row: int) -> int:
        """The number of a row by arrival, which is how faults name it."""
        assert self.batch is not None
        return int(self.batch.seq[row])

    def values(self, e: x.Expression, rows: Ints, leaf: Leaves, faults: Faults | None) -> pa.Array:
        """An expression in some rows; NULL where there is no row."""
        there = rows >= 0
        whole = bool(there.all())
        some = rows if whole else rows[there]
        found = Faults()
        value = evaluate(e, lambda part: leaf(part, some), len(some), faults and found)
        for place, count in found.count.items():
            assert faults is not None
            faults.add(place, count, self.arrival(int(some[found.first[place]])))
        if whole:
            return value
        places = np.cumsum(there) - 1
        return value.take(pa.array(places, mask=~there))
