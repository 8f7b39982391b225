"""Rows that are held until no open window contains them, and the sessions that they make up."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seustream.engine.host.keys import KeyNumbers
from seustream.engine.host.rows import RowStore
from seustream.engine.kernels import native
from seustream.engine.relational.keyed import Keyed
from seustream.engine.relational.slots import Slots
from seustream.engine.stream.growing import Growing
from seustream.engine.stream.merge import timestamps
from seustream.engine.stream.nearby import Nearby

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


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


class KeyedRows(HeldRows):
    """Held rows with the numbers of their keys, by which they are found."""

    def __init__(self, schema: pa.Schema, keys: Sequence[pa.DataType]) -> None:
        self.types = tuple(keys)
        super().__init__(schema, several=False)

    def _begin(self) -> None:
        super()._begin()
        self._keys, self._groups = KeyNumbers(self.types), Keyed()

    def numbers(self, keys: Sequence[pa.Array], count: int) -> Ints:
        """Returns the numbers of keys; they are valid until rows leave."""
        return self._keys.numbers(keys, count)

    def groups(self, places: Ints) -> Ints:
        """Returns the numbers of the keys of some rows."""
        return self._groups.values[places]

    def add_to(self, groups: Ints, rows: pa.Table) -> Ints:
        """Adds rows whose keys have these numbers; returns their places."""
        self._groups.append((groups, None))
        return self.add(rows, None)

    def of(self, groups: Ints) -> Ints:
        """Returns the places of all rows with some distinct keys, in order."""
        places = self._groups.places(groups)
        return places[self.here[places]] if self.left else places

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


class OpenSessions:
    """The sessions of rows by place, and which are over at a time. The rows of a query come in the order
    of their times; a session ends where its keys have no row for `gap`."""

    def __init__(self, gap: int, keys: Sequence[pa.DataType], several: bool) -> None:
        self.gap, self.types = gap, (*keys, pa.int64()) if several else tuple(keys)
        self._begin()

    def _begin(self) -> None:
        self._keys, self._kernel = KeyNumbers(self.types), native.Sessions()
        self._kernel.configure(self.gap)

    def begin(self, keys: Sequence[pa.Array], times: Ints, whose: Ints | None) -> None:
        """Takes rows in place of all others."""
        self._begin()
        self.add(keys, times, whose)

    def add(self, keys: Sequence[pa.Array], times: Ints, whose: Ints | None) -> None:
        """Takes the rows of the next places, with their keys and the numbers of their queries."""
        columns = keys if whose is None else [*keys, pa.array(whose)]
        self._kernel.add(self._keys.numbers(columns, len(times)), times, whose)

    def over(self, now: int, some: Sequence[int] | None) -> Ints:
        """Returns the places of the rows of the sessions that are over at a watermark, in order, each
        once; of these queries only, unless None is given."""
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
