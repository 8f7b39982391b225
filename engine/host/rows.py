"""Row store: full rows of a stream for as long as a window needs them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seustream.compiler.catalogue import TIME_COLUMN
from seustream.compiler.language import expressions as x
from seustream.engine.stream.growing import Growing
from seustream.engine.stream.nearby import Nearby
from seustream.engine.stream.taken import Exported, of_exported
from seustream.hdl.device import Retention

Ints = npt.NDArray[np.int64]
Rows = Mapping[tuple[int, str], pa.Array]
"""Columns by (source, name)."""

_EARLIEST = int(np.iinfo(np.int64).min)
_PIECES = 64
"""Appended tables that may wait before they are joined into one."""
_PIECE = 8192
"""Pieces of this many rows together may be one, however few rows there are."""
IN_DEVICE = np.iinfo(np.int64).max
"""`left` of a row that the device holds, or never has to hold."""


def leaves(rows: Rows) -> Callable[[x.Leaf], pa.Array]:
    """Returns a function that reads the columns, for the evaluator."""

    def leaf(e: x.Leaf) -> pa.Array:
        assert isinstance(e, x.ColumnReference)
        return rows[e.source, e.name]

    return leaf


class _Piece:
    """Some rows of a store, each column one array. Columns are exported when they are asked for first."""

    def __init__(self, rows: pa.Table) -> None:
        self.rows = rows
        self._exported: dict[str, Exported] = {}

    def exported(self, name: str) -> Exported:
        found = self._exported.get(name)
        if found is None:
            found = self._exported[name] = _array(self.rows.column(name)).__arrow_c_array__()
        return found


class RowStore:
    """The live rows of one stream, by sequence number.

    Beside the rows it keeps, per copy of the stream (a self-join has several), each row's
    `position` in the total order and `left`: the position from which on the device no longer holds
    the row and the host must join it. Rows with times before `passed` came after later ones of
    other streams.

    Rows are in pieces without their times, which are beside them. A piece is at most half as large as the one
    before, or an eighth of all, so that a row is copied a few times and a column is a few arrays. Rows at the
    front of the first piece may be gone already.
    """

    def __init__(self, schema: pa.Schema, copies: int) -> None:
        self.schema = schema
        self.first = 0
        self.passed = _EARLIEST
        self._time = schema.get_field_index("ts")
        self._none = schema.remove(self._time).empty_table().combine_chunks()
        self._pieces: list[_Piece] = []
        self._gone = 0
        self._new: list[pa.Table] = []  # not joined into pieces yet
        self.timestamp = Nearby()
        self.position = [Nearby() for _ in range(copies)]
        self._left: list[Growing] | None = None  # until one asks: only devices hold rows

    def __len__(self) -> int:
        return len(self.timestamp)

    @property
    def table(self) -> pa.Table:
        """All rows, in one table."""
        rows, field = self._since(0), self.schema.field(self._time)
        return rows.add_column(self._time, field, self._times(slice(None)))

    @property
    def left(self) -> list[Ints]:
        if self._left is None:
            self._left = [Growing() for _ in self.position]
            self._never_leave(len(self))
        return [each.view for each in self._left]

    def append(self, rows: pa.Table, timestamp: Ints, position: list[Ints]) -> None:
        if rows.num_rows:
            self._new.append(rows.remove_column(self._time))
        self.timestamp.append(timestamp)
        if len(self._new) > _PIECES:
            self._joined()
        for copy, mine in enumerate(position):
            self.position[copy].append(mine)
        self._never_leave(len(timestamp))

    def _never_leave(self, count: int) -> None:
        for each in self._left or ():
            each.append(np.full(count, IN_DEVICE, np.int64))

    def index(self, sequence: Ints) -> Ints:
        return sequence - self.first

    def columns(self, names: Iterable[str], index: Ints) -> dict[str, pa.Array]:
        """Returns some columns of some rows, by their places in the store."""
        pieces = self._joined() or [_Piece(self._none)]
        places = index + self._gone if self._gone else index
        found = {}
        for name in names:
            column = _stored(name)
            if column == "ts":
                found[name] = self._times(index)
                continue
            cells = [piece.exported(column) for piece in pieces]
            taken = of_exported(cells, places, self.schema.field(column).type)
            if taken is None:
                taken = _array(self._since(0).column(column)).take(pa.array(index))
            found[name] = taken
        return found

    def since(self, names: Iterable[str], place: int) -> dict[str, pa.Array]:
        """Returns some columns of all rows from a place on."""
        newest = self._new[-1] if self._new else self._none
        rows = newest if place == len(self) - newest.num_rows else self._since(place)
        found = {}
        for name in names:
            column = _stored(name)
            of_time = column == "ts"
            found[name] = (
                self._times(slice(place, None)) if of_time else _array(rows.column(column))
            )
        return found

    def _times(self, places: Ints | slice) -> pa.Array:
        of = self.schema.field(self._time).type
        return pa.array(self.timestamp[places].copy()).cast(of)

    def _since(self, place: int) -> pa.Table:
        """Returns all rows from a place on without their times."""
        parts = [self._none, *(piece.rows for piece in self._pieces), *self._new]
        return pa.concat_tables(parts).slice(self._gone + place)

    def _joined(self) -> list[_Piece]:
        """Joins new rows into pieces; returns these."""
        if self._new:
            last, rows = self._new, sum([part.num_rows for part in self._new])
            most = max(_PIECE, len(self) // 8)
            while self._pieces and (before := self._pieces[-1].rows.num_rows) < 2 * rows:
                if before + rows > most:
                    break
                last.insert(0, self._pieces.pop().rows)
                rows += before
            if not self._pieces and self._gone:
                last[0], self._gone = last[0].slice(self._gone), 0
            # In a pool of their own: beside what comes and goes in a step, they would leave holes in its pages.
            self._pieces.append(
                _Piece(pa.concat_tables(last).combine_chunks(memory_pool=pa.system_memory_pool()))
            )
            self._new = []
        return self._pieces

    def first_needed(self, keep: Retention, now: int) -> int:
        """Returns the place of the oldest row that some window can still reach."""
        if keep.range is None:
            return 0
        by_age = len(self)
        if keep.range >= 0:
            oldest = max(now - keep.range, _EARLIEST)
            by_age = self.timestamp.find(oldest)
        return max(0, min(by_age, len(self) - keep.rows))

    def most_needed(self, keep: Retention, places: Ints) -> int:
        """Returns the most rows that some window could reach up to and including one of these
        places, each at its own time."""
        if keep.range is None:
            return int(places.max()) + 1
        need = np.minimum(keep.rows, places + 1)
        if keep.range >= 0:
            oldest = reach_back(self.timestamp[places], keep.range)
            in_range = places + 1 - self.timestamp.search(oldest)
            need = np.maximum(need, in_range)
        return int(need.max())

    def keep(self, places: Ints) -> None:
        """Frees all rows but these, which are renumbered from `first` on."""
        rows, times = self.table.take(pa.array(places)), self.timestamp[places]
        positions, first = [position[places] for position in self.position], self.first
        self.drop_before(len(self))
        self.first = first
        self.append(rows, times, positions)

    def drop_before(self, place: int) -> None:
        """Frees the rows before a place, except those in one piece with later ones. These are copied once
        fewer than two thirds of what is held are needed."""
        self.first += place
        pieces, gone = self._joined(), self._gone + place
        while pieces and gone >= pieces[0].rows.num_rows:
            gone -= pieces.pop(0).rows.num_rows
        self.timestamp.drop(place)
        for each in (*self.position, *(self._left or ())):
            each.drop(place)
        if 2 * gone > len(self):
            pieces[0], gone = _Piece(_compact(pieces[0].rows.slice(gone))), 0
        self._gone = gone


def reach_back(now: Ints, ticks: int) -> Ints:
    """Returns the oldest timestamps that a range of `ticks` reaches, clipped to the earliest there
    is."""
    return np.maximum(now, _EARLIEST + ticks) - ticks


def _stored(name: str) -> str:
    """Returns the name of the column that stores what a query calls `name`."""
    return "ts" if name == TIME_COLUMN.name else name


def _array(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _compact(table: pa.Table) -> pa.Table:
    return table.take(pa.array(np.arange(table.num_rows))).combine_chunks()
