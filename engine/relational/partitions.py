"""Windows of the last n rows of each partition: finds which row pushes out which."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seustream.compiler.logical.windows import PartitionWindow
from seustream.engine.host.keys import KeyNumbers
from seustream.engine.host.stores import Stores
from seustream.engine.kernels import native
from seustream.engine.stream.growing import Growing

Ints = npt.NDArray[np.int64]

_NEVER = np.iinfo(np.int64).max


class PushedRows:
    """The places of rows that have been pushed out, each until it is taken."""

    def __init__(self) -> None:
        self._out, self._by = Growing(), Growing()

    def __len__(self) -> int:
        return len(self._out)

    def add(self, out: Ints, by: Ints) -> None:
        """Takes rows, and those that push them out, in order."""
        self._out.append(out)
        self._by.append(by)

    def take(self, place: int) -> Ints:
        """Removes the rows pushed out by those up to a place, and returns them."""
        count = int(np.searchsorted(self._by.view, place, side="right"))
        found: Ints = self._out.view[:count].copy()
        self._out.drop(count)
        self._by.drop(count)
        return found


class Partitions:
    """Holds, for each row in a store, the place and the time of the row that pushes it out of its
    partition's window. It remembers the places of the rows in the window of each partition."""

    def __init__(self, window: PartitionWindow, stream: str, stores: Stores) -> None:
        self.window, self.stream, self.store = window, stream, stores[stream]
        columns = {column.lower(): column for column in self.store.schema.names}
        self.columns = [columns[key.lower()] for key in window.keys if key.lower() in columns]
        self._gone, self._time = Growing(), Growing()
        self.keys = KeyNumbers([self.store.schema.field(name).type for name in self.columns])
        self.last = native.LastOfKeys()
        self.last.configure(window.size)
        self.readers: list[PushedRows] = []

    @property
    def gone(self) -> Ints:
        """By place in the store, the place of the row that pushes this one out, or the greatest number."""
        found: Ints = self._gone.view
        return found

    @property
    def time(self) -> Ints:
        """The times of these rows."""
        found: Ints = self._time.view
        return found

    def add(self, new: Ints) -> tuple[Ints, Ints]:
        """Takes the rows at these places of the store. Returns the places, in the order of arrival,
        of the rows that are pushed out, and of those that push them out."""
        nothing = np.full(len(new), _NEVER)
        self._gone.append(nothing)
        self._time.append(nothing)
        positions, times = self.store.position[0], self.store.timestamp
        came = np.ascontiguousarray(positions[new])
        taken = self.store.columns(self.columns, new)
        out = np.empty(len(new), np.int64)
        numbers = self.keys.numbers([taken[name] for name in self.columns], len(new))
        self.last.add(numbers, came, out)
        pushes = out >= 0
        out, by = out[pushes], came[pushes]
        for reader in self.readers:
            reader.add(out, by)
        at = np.minimum(positions.search(out), max(len(positions) - 1, 0))
        there = positions[at] == out
        pushing = positions.search(by[there])
        self.gone[at[there]], self.time[at[there]] = by[there], times[pushing]
        return out, by

    def reader(self) -> PushedRows:
        """Returns the rows that are pushed out from now on."""
        self.readers.append(PushedRows())
        return self.readers[-1]

    def keep(self, places: Ints) -> None:
        """Follows the store, which keeps only these rows."""
        for column in (self._gone, self._time):
            kept = column.view[places]
            column.drop(len(column))
            column.append(kept)

    # --- state ----------------------------------------------------------------

    def tables(self, name: str) -> dict[str, pa.Table]:
        """Returns the state: of the rows in the store, and of the rows in windows."""
        keys, places = (np.empty(self.last.count(), np.int64) for _ in range(2))
        self.last.held(keys, places)
        cells = [*self.keys.values(keys), pa.array(places)]
        names = [f"c{number}" for number in range(len(cells))]
        return {
            f"{name} rows": pa.table({"gone": self.gone, "time": self.time}),
            f"{name} last": pa.table(cells, names=names),
        }

    def restore(self, tables: Mapping[str, pa.Table], name: str) -> None:
        """Restores a state over a store that has the same rows as before."""
        rows, last = tables[f"{name} rows"], tables[f"{name} last"]
        for column, of in ((self._gone, "gone"), (self._time, "time")):
            column.append(np.asarray(rows.column(of).combine_chunks(), dtype=np.int64))
        *keys, places = [column.combine_chunks() for column in last.columns]
        numbers = self.keys.numbers(keys, last.num_rows)
        self.last.add(numbers, np.array(places, np.int64), np.empty(last.num_rows, np.int64))
