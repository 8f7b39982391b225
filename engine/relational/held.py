"""Rows that are held until no open window contains them, and the sessions that they make up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seustream.engine.host.keys import KeyNumbers, firsts
from seustream.engine.host.rows import RowStore
from seustream.engine.kernels import native
from seustream.engine.relational.keyed import Keyed
from seustream.engine.relational.slots import Slots
from seustream.engine.stream.growing import Growing
from seustream.engine.stream.merge import timestamps
from seustream.engine.stream.nearby import Nearby
from seustream.engine.stream.numbers import as_column

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class ReadRows(NamedTuple):
    """Rows that have been read: their times, the oldest ones in them, the values of what is asked of them, and with
    several queries the number of the query of each."""

    times: Ints
    oldest: pa.Array
    values: list[pa.Array]
    whose: Ints | None

    def part(self, begin: int, end: int) -> ReadRows:
        """Returns the rows from one place to before another."""
        whose = None if self.whose is None else self.whose[begin:end]
        columns = (self.oldest, *self.values)
        oldest, *values = (column.slice(begin, end - begin) for column in columns)
        return ReadRows(self.times[begin:end], oldest, values, whose)

    @staticmethod
    def together(parts: Sequence[ReadRows]) -> ReadRows:
        """Returns the rows of parts, of which there are some, one after the other."""
        if len(parts) == 1:
            return parts[0]
        oldest, *values = (
            pa.concat_arrays(some)
            for some in zip(*((part.oldest, *part.values) for part in parts), strict=True)
        )
        owners = [part.whose for part in parts if part.whose is not None]
        whose = np.concatenate(owners) if owners else None
        return ReadRows(np.concatenate([part.times for part in parts]), oldest, values, whose)

    @staticmethod
    def of(rows: pa.Table, whose: Ints | None) -> ReadRows:
        """Returns rows in the form in which they are kept."""
        times, oldest, *values = (column.combine_chunks() for column in rows.columns)
        return ReadRows(np.asarray(times), oldest, values, whose)

    def table(self, schema: pa.Schema) -> pa.Table:
        """Returns the rows in the form in which they are kept."""
        return pa.table([as_column(self.times), self.oldest, *self.values], schema=schema)


class HeldRows(Slots):
    """Rows by place, of `several` queries with the number of the query."""

    def __init__(self, schema: pa.Schema, several: bool) -> None:
        self.store, self.several = RowStore(schema, 0), several
        self._begin()

    def _begin(self) -> None:
        super().__init__()
        self._whose = Growing()

    @property
    def times(self) -> Nearby:
        return self.store.timestamp

    def whose(self, places: Ints) -> Ints | None:
        """Returns the numbers of the queries of some rows; None with a single query."""
        return self._whose.view[places] if self.several else None

    def add(self, rows: pa.Table, whose: Ints | None) -> Ints:
        """Adds rows; returns their places."""
        self.store.append(rows, timestamps(rows), [])
        if whose is not None:
            self._whose.append(whose)
        return self.take(rows.num_rows)

    def places(self, some: Sequence[int] | None) -> Ints:
        """Returns the places of the rows of some queries, of all if None is given."""
        if some is None or not self.several:
            return np.flatnonzero(self.here)
        return np.flatnonzero(self.here & np.isin(self._whose.view, some))

    def taken(self, places: Ints, names: Sequence[str]) -> list[pa.Array]:
        """Returns some columns of some rows."""
        found = self.store.columns(names, places)
        return [found[name] for name in names]

    def table(self, places: Ints) -> pa.Table:
        """Returns some rows."""
        schema = self.store.schema
        return pa.Table.from_arrays(self.taken(places, schema.names), schema=schema)

    def compact(self) -> Ints:
        """Gives those that are here new places, from 0 up; returns their old places."""
        stays = np.flatnonzero(self.here)
        whose = self.whose(stays)
        self.store.keep(stays)
        self._begin()
        self.take(len(stays))
        if whose is not None:
            self._whose.append(whose)
        return stays


class NumberedRows(HeldRows):
    """Held rows with the numbers of what they belong to, by which they are found."""

    def _begin(self) -> None:
        super()._begin()
        self._groups = Keyed()

    def groups(self, places: Ints) -> Ints:
        """Returns the numbers of some rows."""
        return self._groups.values[places]

    def of(self, groups: Ints) -> Ints:
        """Returns the places of all rows with some distinct numbers, in order."""
        places = self._groups.places(groups)
        return places[self.here[places]] if self.left else places


class KeyedRows(NumberedRows):
    """Held rows with the numbers of their keys."""

    def __init__(self, schema: pa.Schema, keys: Sequence[pa.DataType]) -> None:
        self.types = tuple(keys)
        super().__init__(schema, several=False)

    def _begin(self) -> None:
        super()._begin()
        self._keys = KeyNumbers(self.types)

    def numbers(self, keys: Sequence[pa.Array], count: int) -> Ints:
        """Returns the numbers of keys; they are valid until rows leave."""
        return self._keys.numbers(keys, count)

    def add_to(self, groups: Ints, rows: pa.Table) -> Ints:
        """Adds rows whose keys have these numbers; returns their places."""
        self._groups.append((groups, None))
        return self.add(rows, None)

    @property
    def first_time(self) -> int | None:
        """The time of the first row that is here."""
        return None if self.first is None else int(self.times[self.first : self.first + 1][0])

    def compact(self) -> Ints:
        groups = self.groups(np.flatnonzero(self.here))
        keys = self._keys.values(groups)
        stays = super().compact()
        self._groups.append((self.numbers(keys, len(stays)), None))
        return stays


class SessionRows(NumberedRows):
    """Held rows with the numbers of the sessions of their keys, which are the columns of these names."""

    def __init__(self, schema: pa.Schema, several: bool, gap: int, keys: Sequence[str]) -> None:
        self._gap, self._names = gap, tuple(keys)
        self._types = [schema.field(name).type for name in keys]
        super().__init__(schema, several)

    def _begin(self) -> None:
        super()._begin()
        self.sessions = OpenSessions(self._gap, self._types, self.several)

    def add(self, rows: pa.Table, whose: Ints | None) -> Ints:
        keys = [rows.column(name).combine_chunks() for name in self._names]
        self._number(keys, timestamps(rows), whose)
        return super().add(rows, whose)

    def compact(self) -> Ints:
        places = np.flatnonzero(self.here)
        keys, times = self.taken(places, self._names), self.times[places]
        whose = self.whose(places)
        stays = super().compact()
        self._number(keys, times, whose)
        return stays

    def _number(self, keys: Sequence[pa.Array], times: Ints, whose: Ints | None) -> None:
        self._groups.append((self.sessions.numbers(keys, times, whose), None))


class OpenSessions:
    """Numbers the sessions of rows, in the order of their first rows, and tells which are over at a time. The rows of a
    query come in the order of their times; a session ends where its keys have no row for `gap`."""

    def __init__(self, gap: int, keys: Sequence[pa.DataType], several: bool) -> None:
        self.gap, self._several = gap, several
        self._keys = KeyNumbers([*keys, *[pa.int64()] * several])
        self._kernel = native.Sessions()
        self._kernel.configure(gap)
        self._key_of = Nearby()
        """The number of the keys of each session."""
        self.previous = np.empty(0, np.int64)
        """The time of the row before each of the latest rows in its session; of the first row, its own."""

    def numbers(self, keys: Sequence[pa.Array], times: Ints, whose: Ints | None) -> Ints:
        """Returns the sessions of rows, with their keys and the numbers of their queries."""
        columns = keys if whose is None else [*keys, pa.array(whose)]
        key = self._keys.numbers(columns, len(times))
        found, self.previous = (np.empty(len(times), np.int64) for _ in range(2))
        self._kernel.add(key, times, whose, found, self.previous)
        self._key_of.append(key[firsts(found, len(self._key_of))])
        return found

    def keys(self, sessions: Ints) -> list[pa.Array]:
        """Returns the keys of some sessions, and last their queries if there are several."""
        return self._keys.values(self._key_of[sessions])

    def latest(self, sessions: Ints) -> Ints:
        """Returns the times of the last rows of some sessions."""
        found = np.empty(len(sessions), np.int64)
        self._kernel.latest(np.ascontiguousarray(sessions), found)
        return found

    def over(self, now: int, some: Sequence[int] | None) -> Ints:
        """Returns the sessions that are over at a watermark, in order, each once; of these queries only, unless None is
        given."""
        flags: npt.NDArray[np.uint8] | None = None
        if some is not None:
            flags = np.zeros(max(some) + 1, np.uint8)
            flags[[*some]] = 1
        found = np.empty(self._kernel.over(now + 1 - self.gap, flags), np.int64)
        self._kernel.take(found)
        return found

    def put_back(self) -> None:
        """Takes back what `over` returned last."""
        self._kernel.put_back()

    @property
    def quiet(self) -> int | None:
        """The watermark before which no session is over; None if there is none."""
        earliest = self._kernel.earliest()
        return None if earliest is None else earliest + self.gap - 1
