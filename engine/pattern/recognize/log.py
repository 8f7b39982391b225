"""The rows that matches may still need, in columns, with the neighbours of each in its
partition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from seustream.compiler.language import expressions as x
from seustream.compiler.language.faults import Faults
from seustream.compiler.pattern import ir
from seustream.engine.pattern.batch import EventBatch, concat
from seustream.engine.pattern.columns import Ints
from seustream.engine.stream.evaluate import evaluate
from seustream.engine.stream.growing import Growing
from seustream.engine.stream.numbers import as_column
from seustream.engine.stream.taken import of_pieces

Leaves = Callable[[x.Leaf, Ints], pa.Array]
"""Returns the column of a leaf for some rows, given by position."""


_LOOSE = 8
"""The fewest pieces that are left unjoined."""


class RowLog:
    """Rows numbered in their order. `before` and `after` are the numbers of a row's neighbours in
    its partition, -1 where there is none. Everything else addresses rows by position."""

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self._pieces: list[EventBatch] = []
        self._ts, self._seq = Growing(), Growing()
        self._own = {name: Growing() for name in ("number", "key", "before", "after")}

    def __len__(self) -> int:
        return len(self._ts)

    @property
    def ts(self) -> Ints:
        return self._ts.view

    @property
    def number(self) -> Ints:
        return self._own["number"].view

    @property
    def key(self) -> Ints:
        return self._own["key"].view

    @property
    def batch(self) -> EventBatch | None:
        """All rows in one piece, or None if there are none."""
        if len(self._pieces) > 1:
            self._pieces = [concat(*self._pieces)]
        return self._pieces[0] if self._pieces else None

    def append(self, batch: EventBatch, number: Ints, key: Ints, before: Ints) -> Ints:
        """Appends rows and returns their positions."""
        first = len(self)
        self._grow(batch, number, key, before, np.full(len(number), -1, np.int64))
        earlier = self.at(before)
        known = earlier >= 0
        self._own["after"].view[earlier[known]] = number[known]
        return np.arange(first, len(self))

    def _grow(self, batch: EventBatch, *own: Ints) -> None:
        self._ts.append(batch.ts)
        self._seq.append(batch.seq)
        for column, mine in zip(self._own.values(), own, strict=True):
            column.append(mine)
        pieces = self._pieces
        if not pieces or len(pieces[-1]):
            pieces.append(batch)
        else:
            pieces[-1] = batch
        if len(pieces) > 2 * _LOOSE:
            # Joins the newest pieces, with earlier ones not far larger: each row is copied only a
            # few times.
            count, place = len(batch), len(pieces) - 1
            while place and (len(pieces) - place < _LOOSE or len(pieces[place - 1]) <= 2 * count):
                place -= 1
                count += len(pieces[place])
            pieces[place:] = [concat(*pieces[place:])]

    def keep(self, numbers: Ints) -> None:
        """Forgets all rows but these."""
        if not len(numbers):
            self._clear()
            return
        rows = self.at(np.sort(numbers))
        kept = [column.view[rows] for column in self._own.values()]
        batch = self.batch
        self._clear()
        if batch is not None:
            self._grow(batch.take(rows), *kept)

    def renumber(self, keys: Ints) -> None:
        """Numbers the keys anew: `keys` holds the old numbers, in order."""
        self.key[:] = keys.searchsorted(self.key)

    def at(self, numbers: Ints) -> Ints:
        """Returns the positions of rows, -1 for those not in the log."""
        if not len(self):
            return np.full(len(numbers), -1, np.int64)
        own = self.number
        found = own.searchsorted(numbers)
        found[found == len(own)] = 0
        return np.where(own[found] == numbers, found, -1)

    def step(self, rows: Ints, offset: int) -> Ints:
        """Returns the rows `offset` further on in their partitions, or further back if it is
        negative."""
        links = self._own["before" if offset < 0 else "after"].view
        for _ in range(abs(offset)):
            there = rows >= 0
            found: Ints = np.full(len(rows), -1, np.int64)
            found[there] = self.at(links[rows[there]])
            rows = found
        return rows

    def cells(self, attribute: str, rows: Ints) -> pa.Array:
        if attribute == ir.TIME:
            return as_column(self.ts[rows])
        return of_pieces([piece.columns[attribute] for piece in self._pieces], rows)

    def cell(self, attribute: str, row: int) -> Any:
        """Returns one value."""
        return self.cells(attribute, np.array([row]))[0].as_py()

    def arrival(self, row: int) -> int:
        """Returns the arrival number of a row, by which faults name it."""
        return int(self._seq.view[row])

    def values(self, e: x.Expression, rows: Ints, leaf: Leaves, faults: Faults | None) -> pa.Array:
        """Evaluates an expression in some rows; the value is NULL where there is no row."""
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
