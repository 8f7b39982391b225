"""The rows of one source of a join as its kernels read them: number columns and indexes.

Everything follows a row store: new rows there are taken in, and rows that are gone there are
dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seustream.compiler.language import expressions as x
from seustream.compiler.language.faults import Faults
from seustream.engine.host.rows import RowStore, leaves
from seustream.engine.kernels import native
from seustream.engine.stream.evaluate import Leaves, evaluate, holds
from seustream.engine.stream.growing import Growing
from seustream.engine.stream.numbers import Key, Numbers, converted, numbers, picked, together

Ints = npt.NDArray[np.int64]
_Kind = TypeVar("_Kind", native.Chains, native.Runs)


class Wanted(Protocol):
    """Constants with which an expression is compared."""

    key: Key

    def admits(self, column: pa.Array) -> npt.NDArray[np.bool_]:
        """Returns which values of the expression at least one constant allows."""


class _NumberColumn:
    """The numbers of an expression in the rows from `begin` on: in all if it is `whole`, else in those that came
    last. Rows before `doubtful` may have a fault in it. Flags are kept once there has been a NULL."""

    def __init__(self, key: Key, begin: int) -> None:
        self.of = converted(key)
        self.whole = False
        self.doubtful = 0
        self.start(begin)

    def start(self, begin: int) -> None:
        """Forgets all numbers; those of the rows from a number on follow."""
        self.begin = begin
        self.values = Growing()
        self.flags: Growing | None = None

    def append(self, values: Numbers) -> None:
        mine, flags = values
        if flags is not None and self.flags is None:
            self.flags = Growing(np.uint8)
            self.flags.append(np.ones(len(self.values), np.uint8))
        self.values.append(mine)
        if self.flags is not None:
            self.flags.append(np.ones(len(mine), np.uint8) if flags is None else flags)

    def drop_before(self, number: int) -> None:
        count = min(number - self.begin, len(self.values))
        self.begin = number
        self.values.drop(count)
        if self.flags is not None:
            self.flags.drop(count)

    def since(self, number: int) -> Numbers:
        """Returns the numbers of the rows from one on."""
        place = number - self.begin
        return self.values.view[place:], None if self.flags is None else self.flags.view[place:]


class _Index(Generic[_Kind]):
    """An index over some columns; it holds the rows before `end`."""

    of: _Kind

    def __init__(self, of: _Kind, columns: Sequence[_NumberColumn], first: int) -> None:
        self.of, self.columns, self.end = of, columns, first
        of.drop(first)


class IndexedRows:
    """The rows of one source. `chosen` are conditions on them alone, and `wanted` the constants
    with which other conditions compare an expression. Rows that do not meet them are in no index
    and not `admitted`."""

    def __init__(
        self,
        store: RowStore,
        source: int,
        chosen: Sequence[x.Expression],
        codes: native.Codes,
        wanted: Sequence[Wanted] = (),
    ) -> None:
        self.store, self.source, self.chosen, self.codes = store, source, chosen, codes
        self.wanted = wanted
        self.selects = bool(chosen or wanted)
        self.first = self.end = store.first
        self._columns: dict[Key, _NumberColumn] = {}
        self._met: dict[int, tuple[Key, _NumberColumn]] = {}
        self._names: set[str] = set()  # of the columns that are read
        self._chains: dict[tuple[_NumberColumn, ...], _Index[native.Chains]] = {}
        self._runs: dict[_NumberColumn, _Index[native.Runs]] = {}
        self._admitted = Growing(np.bool_)
        self._read([*self.chosen, *(one.key[0] for one in wanted)])
        self.doubts: dict[x.Expression, int] = {}  # by condition, rows before this are in doubt

    # --- following the store --------------------------------------------------

    def follow(self) -> None:
        """Takes in the rows that are new in the store, and drops those that are gone from it."""
        store = self.store
        if gone := min(store.first, self.end) - self.first:
            self.first += gone
            for column in self._columns.values():
                if column.begin < self.first:
                    column.drop_before(self.first)
            if self.selects:
                self._admitted.drop(gone)
        if store.first > self.end:  # rows that came and went unseen
            self.first = self.end = store.first
            self._chains, self._runs = {}, {}
            for column in self._columns.values():
                column.start(self.first)
        for chains in self._chains.values():
            chains.of.drop(store.first)
        for runs in self._runs.values():
            runs.of.drop(store.first)
        place, rows = self.end - store.first, len(store) - (self.end - store.first)
        if not rows:
            return
        leaf = self._leaves(self._names, place)
        for column in self._columns.values():
            if not column.whole:
                column.drop_before(self.end)
            self._extend(column, leaf, rows)
        self.end += rows
        if self.selects:
            self._admitted.append(self._choose(leaf, rows))
        for chains in self._chains.values():  # their columns are there only now
            self._filled(chains)

    def _read(self, expressions: Sequence[x.Expression]) -> set[str]:
        """Returns the names of the columns that these read; `follow` reads them from now on."""
        names = {column.name for e in expressions for column in x.columns(e)}
        self._names |= names
        return names

    def _leaves(self, names: set[str], place: int) -> Leaves:
        found = self.store.since(names, place)
        return leaves({(self.source, name): values for name, values in found.items()})

    def _extend(self, column: _NumberColumn, leaf: Leaves, rows: int) -> None:
        doubts = Faults()
        values = evaluate(column.of, leaf, rows, doubts)
        column.append(numbers(values, self.codes))
        if doubts.total:
            column.doubtful = column.begin + len(column.values)

    def _choose(self, leaf: Leaves, rows: int) -> npt.NDArray[np.bool_]:
        admitted = np.ones(rows, np.bool_)
        for condition in self.chosen:
            doubts = Faults()
            fits = holds(condition, leaf, rows, doubts)
            if doubts.total:  # another condition may exclude those rows
                self.doubts[condition] = self.end
            else:
                admitted &= fits
        for one in self.wanted:
            doubts = Faults()
            column = evaluate(converted(one.key), leaf, rows, doubts)
            if doubts.total:
                self.doubts[one.key[0]] = self.end
            else:
                admitted &= one.admits(column)
        return admitted

    # --- what is known --------------------------------------------------------

    @property
    def admitted(self) -> npt.NDArray[np.bool_] | None:
        """Returns which rows the conditions on them alone allow; None if all are allowed."""
        return self._admitted.view if self.selects else None

    def in_doubt(self) -> list[x.Expression]:
        """Returns the conditions that have a fault in some row."""
        return [e for e, end in self.doubts.items() if end > self.first]

    def is_certain(self, key: Key) -> bool:
        """Returns whether an expression has a fault in no row."""
        return self._column(key).doubtful <= self.first

    def column(self, key: Key) -> Numbers | None:
        """Returns the numbers of an expression over this source, by place; None where it has a
        fault. They are kept for all rows from now on."""
        column = self._column(key)
        if column.doubtful > self.first:
            return None
        self._reach(column, self.first)
        column.whole = True
        return column.since(self.first)

    def at(self, key: Key, places: Ints) -> Numbers | None:
        """Returns the numbers of an expression in some places; None where it has a fault."""
        column = self._column(key)
        if column.doubtful > self.first:
            return None
        if column.begin > self.first and len(places):
            begin = self.first + int(places.min())
            if begin < column.begin:  # earlier rows are asked for: they may be at each step
                whole = self.column(key)
                return None if whole is None else picked(whole, places)
            places = places - (column.begin - self.first)
        return picked(column.since(column.begin), places)

    def _column(self, key: Key) -> _NumberColumn:
        # Joins ask with the same objects at each step; finding one by value takes longer than a
        # row.
        met = self._met.get(id(key[0]))
        if met is not None and met[0][0] is key[0] and met[0][1] is key[1]:
            return met[1]
        column = self._columns.get(key)
        if column is None:
            self._columns[key] = column = _NumberColumn(key, self.first)
            self._fill(column, self._read([key[0]]))
        self._met[id(key[0])] = key, column
        return column

    def _reach(self, column: _NumberColumn, number: int) -> None:
        """Makes a column reach back to a row."""
        if column.begin > number:
            column.start(self.first)
            self._fill(column, {leaf.name for leaf in x.columns(column.of)})

    def _fill(self, column: _NumberColumn, names: set[str]) -> None:
        self._extend(column, self._leaves(names, 0), len(self.store))

    def chains(self, keys: tuple[Key, ...]) -> native.Chains:
        """Indexes the rows by the values of some expressions together."""
        columns = tuple(self._column(key) for key in keys)
        index = self._chains.get(columns)
        if index is None:
            self._chains[columns] = index = _Index(native.Chains(), columns, self.first)
        return self._filled(index)

    def runs(self, key: Key) -> native.Runs:
        """Indexes the rows by the value of an expression."""
        column = self._column(key)
        column.whole = True  # it is filled only where it is asked
        index = self._runs.get(column)
        if index is None:
            self._runs[column] = index = _Index(native.Runs(), [column], self.first)
        return self._filled(index)

    def _filled(self, index: _Index[_Kind]) -> _Kind:
        """Returns the index after adding all rows that are new."""
        index.end = max(index.end, self.first)
        if index.end < self.end:
            for column in index.columns:
                self._reach(column, index.end)
            fresh = [column.since(index.end) for column in index.columns]
            values, flags = together(fresh, self.codes)
            if self.selects:
                admitted = self._admitted.view[index.end - self.first :].view(np.uint8)
                flags = admitted if flags is None else flags & admitted
            index.of.append(values, flags)
            index.end = self.end
        return index.of
