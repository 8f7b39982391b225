"""The tuples that a stateful node keeps of an input: section 3.1 of StreamAPAS.

Calls attached indexes right after every change: `insert`, `update`, `delete` with what was added to
or withdrawn from which interval, and `reorganise`.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from seustream.compiler.apas.streams import JoinIndex
from seustream.compiler.apas.types import BOOLEAN, DATETIME, DOUBLE, INTEGER
from seustream.compiler.language.types import Type
from seustream.engine.temporal import library

Values = tuple[Any, ...]


_DTYPES: dict[Type, Any] = {
    INTEGER: np.int64,
    DATETIME: "datetime64[us]",
    DOUBLE: np.float64,
    BOOLEAN: np.bool_,
}


def dtype(of: Type) -> Any:
    """Returns the type of the columns that libraries see; objects for what numpy has no type
    for."""
    return _DTYPES.get(of, np.object_)


def columns(values: Sequence[Any], types: Sequence[Type]) -> list[npt.NDArray[Any]]:
    """Returns one row as columns."""
    return [column([value], type) for value, type in zip(values, types, strict=True)]


def column(values: Sequence[Any], of: Type) -> npt.NDArray[Any]:
    """Returns values, none of which is NULL, as a column."""
    found = np.empty(len(values), dtype(of))
    found[:] = values
    return found


class KeyRefused(ValueError):
    """Raised if a time-table's key is 0: its sign cannot mean delete."""


@dataclass(frozen=True, slots=True)
class CollectionRow:
    """A stored element; a join compares `term`, and its index reads `indexed`."""

    ts: int
    te: int
    values: Values
    term: Values = ()
    indexed: Values = ()


@dataclass(frozen=True, slots=True)
class Change:
    """The values of `row` are added to (sign 1) or withdrawn from (-1) [start, end)."""

    sign: int
    row: CollectionRow
    start: int
    end: int


class Listener(Protocol):
    def changed(self, event: str, changes: tuple[Change, ...]) -> None: ...

    def reorganised(self, now: int) -> None: ...


class Served:
    """A library's index over the rows of a collection. Each stored row gets a number of its own, so
    that numbers rise in the order of the collection."""

    def __init__(self, shown: str, index: JoinIndex, types: Sequence[Type]) -> None:
        self.shown, self.index, self.types = shown, index, types
        self.next = 0
        self.number: dict[int, int] = {}  # number by id
        self.rows: dict[int, CollectionRow] = {}  # row by number

    def stored(self, id: int, row: CollectionRow) -> None:
        if None in row.indexed:
            return  # it matches nothing
        number = np.array([self.next])
        with library.calling(self.shown):
            self.index.insert(number, *columns(row.indexed, self.types))
        self.number[id], self.rows[self.next] = self.next, row
        self.next += 1

    def dropped(self, id: int) -> None:
        number = self.number.pop(id, None)
        if number is None:
            return  # it was never indexed
        del self.rows[number]
        with library.calling(self.shown):
            self.index.delete(np.array([number]))

    def candidates(self, values: Values, types: Sequence[Type]) -> list[CollectionRow]:
        numbers = library.candidates(self.shown, self.index, columns(values, types))[1]
        return [
            self.rows[number] for number in sorted(set(numbers.tolist())) if number in self.rows
        ]


class Collection:
    """Base class: rows by id in key order, an expiry heap with lazy deletion, listeners, and the
    rows by term for a join."""

    def __init__(self) -> None:
        self.rows: dict[int, CollectionRow] = {}
        self.listeners: list[Listener] = []
        self.by_term: dict[Values, dict[int, CollectionRow]] = {}
        self._expiry: list[tuple[int, int]] = []
        self.served: Served | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def scan(self) -> Iterator[CollectionRow]:
        """Iterates over the rows in key order."""
        return iter(self.rows.values())

    def get(self, id: int) -> CollectionRow | None:
        return self.rows.get(id)

    def attach(self, index: Listener) -> None:
        self.listeners.append(index)

    def candidates(self, term: Values) -> list[CollectionRow]:
        """Returns the rows with this term, in key order; NULL equals nothing."""
        if None in term:
            return []
        return list(self.by_term.get(term, {}).values())

    def insert(self, row: CollectionRow) -> None:
        raise NotImplementedError

    def reorganise(self, now: int) -> None:
        """Deletes every row with te <= now."""
        while self._expiry and self._expiry[0][0] <= now:
            te, id = heapq.heappop(self._expiry)
            row = self.rows.get(id)
            if row is not None and row.te == te:
                self._drop(id)
        for listener in self.listeners:
            listener.reorganised(now)

    def clear(self) -> None:
        self.rows.clear()
        self.by_term.clear()
        self._expiry.clear()

    def _store(self, id: int, row: CollectionRow) -> None:
        self._drop(id)
        self.rows[id] = row
        self.by_term.setdefault(row.term, {})[id] = row
        heapq.heappush(self._expiry, (row.te, id))
        if self.served is not None:
            self.served.stored(id, row)

    def _drop(self, id: int) -> CollectionRow | None:
        row = self.rows.pop(id, None)
        if row is not None:
            same = self.by_term[row.term]
            del same[id]
            if not same:
                del self.by_term[row.term]
            if self.served is not None:
                self.served.dropped(id)
        return row

    def _tell(self, event: str, *changes: Change) -> None:
        for listener in self.listeners:
            listener.changed(event, changes)


class TimeCollection(Collection):
    """Assigns ids itself; rows leave only by `reorganise`."""

    def __init__(self) -> None:
        super().__init__()
        self._next = 0

    def insert(self, row: CollectionRow) -> None:
        self._store(self._next, row)
        self._next += 1
        self._tell("insert", Change(1, row, row.ts, row.te))


class TableCollection(Collection):
    """Holds rows by an INTEGER key, which is at a place of the values. A later row of a key
    replaces it; key -id gives the row another end. What was already processed never changes."""

    def __init__(self, key: int) -> None:
        super().__init__()
        self.key = key
        self.unknown_deletes = 0

    def key_of(self, values: Values) -> int:
        """Returns the key; 0 stands for no key, and so does NULL."""
        key: int = values[self.key] or 0
        return key

    def insert(self, row: CollectionRow) -> None:
        key = self.key_of(row.values)
        if key == 0:
            raise KeyRefused("key 0: the sign of 0 cannot mean delete")
        if key < 0:
            self._end(-key, row)
        elif key in self.rows:
            old = self.rows[key]
            self._store(key, row)
            self._tell("update", Change(-1, old, row.ts, old.te), Change(1, row, row.ts, row.te))
        else:
            self._store(key, row)
            self._tell("insert", Change(1, row, row.ts, row.te))

    def refuse(self, row: CollectionRow) -> None:
        """Handles a row that fails the node's condition: its key has no row from then on; not
        counted."""
        key = self.key_of(row.values)
        if key == 0:
            raise KeyRefused("key 0: the sign of 0 cannot mean delete")
        if key in self.rows:
            self._end(key, CollectionRow(row.ts, row.ts, row.values))

    def _end(self, key: int, row: CollectionRow) -> None:
        old = self.rows.get(key)
        if old is None:
            self.unknown_deletes += 1
            return
        self._store(key, replace(old, ts=row.ts, te=row.te))
        if row.te < old.te:
            self._tell("delete", Change(-1, old, row.te, old.te))
        elif row.te > old.te:
            self._tell("update", Change(1, old, old.te, row.te))
        else:
            self._tell("update")
