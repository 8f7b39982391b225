"""Windows of the last n rows of each partition: finds which row pushes out which."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seustream.compiler.logical.windows import PartitionWindow
from seustream.engine.host.stores import Stores

Ints = npt.NDArray[np.int64]

_NEVER = np.iinfo(np.int64).max


class Partitions:
    """Holds, for each row in a store, the place and the time of the row that pushes it out of its
    partition's window. It remembers the places of the rows in the window of each partition."""

    def __init__(self, window: PartitionWindow, stream: str, stores: Stores) -> None:
        self.window, self.stream, self.store = window, stream, stores[stream]
        columns = {column.lower(): column for column in self.store.schema.names}
        self.columns = [columns[key.lower()] for key in window.keys if key.lower() in columns]
        self.gone, self.time = np.empty(0, np.int64), np.empty(0, np.int64)
        self.last: dict[tuple[Any, ...], deque[int]] = {}

    def add(self, new: Ints) -> tuple[Ints, Ints]:
        """Takes the rows at these places of the store. Returns the places, in the order of arrival,
        of the rows that are pushed out, and of those that push them out."""
        nothing = np.full(len(new), _NEVER)
        self.gone = np.concatenate((self.gone, nothing))
        self.time = np.concatenate((self.time, nothing))
        positions, times = self.store.position[0], self.store.timestamp
        taken = self.store.columns(self.columns, new)
        keys = zip(*(taken[name].to_pylist() for name in self.columns), strict=True)
        came, gone = [], []
        for key, position in zip(keys, positions[new].tolist(), strict=True):
            rows = self.last.setdefault(key, deque())
            rows.append(position)
            if len(rows) > self.window.size:
                came.append(rows.popleft())
                gone.append(position)
        out, by = np.array(came, np.int64), np.array(gone, np.int64)
        at = np.minimum(np.searchsorted(positions, out), max(len(positions) - 1, 0))
        there = positions[at] == out
        pushing = np.searchsorted(positions, by[there])
        self.gone[at[there]], self.time[at[there]] = by[there], times[pushing]
        return out, by

    def keep(self, places: Ints) -> None:
        """Follows the store, which keeps only these rows."""
        self.gone, self.time = self.gone[places], self.time[places]

    # --- state ----------------------------------------------------------------

    def tables(self, name: str) -> dict[str, pa.Table]:
        """Returns the state: of the rows in the store, and of the rows in windows."""
        rows = [(*key, place) for key, last in self.last.items() for place in last]
        columns = list(zip(*rows, strict=True)) or [()] * (len(self.columns) + 1)
        types = [self.store.schema.field(column).type for column in self.columns]
        cells = [pa.array(c, of) for c, of in zip(columns, [*types, pa.int64()], strict=True)]
        names = [f"c{number}" for number in range(len(cells))]
        return {
            f"{name} rows": pa.table({"gone": self.gone, "time": self.time}),
            f"{name} last": pa.table(cells, names=names),
        }

    def restore(self, tables: Mapping[str, pa.Table], name: str) -> None:
        """Restores a state over a store that has the same rows as before."""
        rows = tables[f"{name} rows"]
        self.gone = np.array(rows.column("gone").combine_chunks(), dtype=np.int64)
        self.time = np.array(rows.column("time").combine_chunks(), dtype=np.int64)
        columns = [column.to_pylist() for column in tables[f"{name} last"].columns]
        for *key, place in zip(*columns, strict=True):
            self.last.setdefault(tuple(key), deque()).append(place)
