"""Row store: full rows of a stream for as long as a window needs them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seustream.compiler.catalogue import TIME_COLUMN
from seustream.compiler.language import expressions as x
from seustream.hdl.device import Retention

Ints = npt.NDArray[np.int64]
Rows = Mapping[tuple[int, str], pa.Array]
"""Columns by (source, name)."""

_EARLIEST = int(np.iinfo(np.int64).min)
IN_DEVICE = np.iinfo(np.int64).max
"""`left` of a row the device holds, or never has to."""


def leaves(rows: Rows) -> Callable[[x.Leaf], pa.Array]:
    """Returns what reads the columns, for the evaluator."""

    def leaf(e: x.Leaf) -> pa.Array:
        assert isinstance(e, x.Column)
        return rows[e.source, e.name]

    return leaf


class RowStore:
    """The live rows of one stream, by sequence number.

    Beside the rows it keeps, per copy of the stream (a self-join has several), each row's
    `position` in the total order and `left`: the position from which on the device does not
    hold it and the host must join it.
    """

    def __init__(self, schema: pa.Schema, copies: int) -> None:
        self.table = schema.empty_table()
        self.first = 0
        self.timestamp: Ints = np.empty(0, np.int64)
        self.position: list[Ints] = [np.empty(0, np.int64) for _ in range(copies)]
        self.left: list[Ints] = [np.empty(0, np.int64) for _ in range(copies)]

    def __len__(self) -> int:
        return len(self.timestamp)

    def append(self, rows: pa.Table, timestamp: Ints, position: list[Ints]) -> None:
        self.table = pa.concat_tables([self.table, rows])
        self.timestamp = np.concatenate((self.timestamp, timestamp))
        for copy, mine in enumerate(position):
            self.position[copy] = np.concatenate((self.position[copy], mine))
            fresh = np.full(len(mine), IN_DEVICE, np.int64)
            self.left[copy] = np.concatenate((self.left[copy], fresh))

    def index(self, sequence: Ints) -> Ints:
        return sequence - self.first

    def columns(self, names: set[str], index: Ints) -> dict[str, pa.Array]:
        """Some columns of some rows, by their place in the store."""
        if any(column.num_chunks > 8 for column in self.table.columns):
            self.table = self.table.combine_chunks()
        where = pa.array(index)
        return {
            name: _array(self.table.column("ts" if name == TIME_COLUMN.name else name).take(where))
            for name in names
        }

    def first_needed(self, keep: Retention, now: int) -> int:
        """The place of the oldest row some window can still reach."""
        if keep.range is None:
            return 0
        by_age = len(self)
        if keep.range >= 0:
            oldest = max(now - keep.range, _EARLIEST)
            by_age = int(np.searchsorted(self.timestamp, oldest, side="left"))
        return max(0, min(by_age, len(self) - keep.rows))

    def most_needed(self, keep: Retention, places: Ints) -> int:
        """Returns how many rows up to and with one of these places, each at its own time, some window
        could reach; the most of them."""
        if keep.range is None:
            return int(places.max()) + 1
        need = np.minimum(keep.rows, places + 1)
        if keep.range >= 0:
            oldest = reach_back(self.timestamp[places], keep.range)
            in_range = places + 1 - np.searchsorted(self.timestamp, oldest, side="left")
            need = np.maximum(need, in_range)
        return int(need.max())

    def drop_before(self, place: int) -> None:
        """Frees the rows before a place; copies what stays, so that nothing holds the rest."""
        self.first += place
        self.table = _compact(self.table.slice(place))
        self.timestamp = self.timestamp[place:].copy()
        self.position = [mine[place:].copy() for mine in self.position]
        self.left = [mine[place:].copy() for mine in self.left]


def reach_back(now: Ints, ticks: int) -> Ints:
    """The oldest timestamp a range of so many ticks reaches, as far as there are timestamps."""
    return np.maximum(now, _EARLIEST + ticks) - ticks


def _array(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks()


def _compact(table: pa.Table) -> pa.Table:
    return table.take(pa.array(np.arange(table.num_rows)))
