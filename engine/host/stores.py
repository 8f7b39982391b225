"""The row stores of several streams, filled slice by slice in one total order."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from seustream.compiler.catalogue import Stream
from seustream.engine.host.rows import RowStore
from seustream.engine.stream.merge import Slice, timestamps
from seustream.engine.stream.schema import stream_schema
from seustream.hdl.device import Retention

Ints = npt.NDArray[np.int64]


class Stores:
    """A store for each stream. `copies` is how often the stream stands side by side in the total
    order, `keep` how long its rows are needed. `latest` is the time of the last row that was added.

    Time goes back where queries that begin late read streams that are still at an earlier time. The
    `passed` of each store is the time that others had reached.
    """

    def __init__(
        self, streams: Sequence[Stream], copies: Mapping[str, int], keep: Mapping[str, Retention]
    ) -> None:
        self.streams = tuple(streams)
        self.copies = np.array([copies[s.name] for s in streams], np.int64)
        self.by_name = {s.name: RowStore(stream_schema(s), copies[s.name]) for s in streams}
        self._apart = bool((self.copies == 1).all())
        self.keep = keep
        self.position = 0
        self.latest: int | None = None

    def __getitem__(self, name: str) -> RowStore:
        return self.by_name[name]

    def add(self, part: Slice) -> dict[str, Ints]:
        """Stores a slice; returns the places of each stream's new rows."""
        # Copies of a self-join's stream are adjacent in the total order.
        if self._apart:
            start = np.arange(self.position, self.position + len(part))
            self.position += len(part)
        else:
            width = self.copies[part.stream]
            start = self.position + np.cumsum(width) - width
            self.position += int(width.sum())
        times = [timestamps(rows) if rows.num_rows else None for rows in part.rows]
        self._follow([some for some in times if some is not None])
        places: dict[str, Ints] = {}
        for index, (stream, rows, ts) in enumerate(
            zip(self.streams, part.rows, times, strict=True)
        ):
            store = self.by_name[stream.name]
            if not self.copies[index]:
                continue
            before = len(store)
            if ts is not None:
                mine = start if rows.num_rows == len(part) else start[part.stream == index]
                ordered = [mine + copy for copy in range(int(self.copies[index]))]
                store.append(rows, ts, ordered)
            places[stream.name] = np.arange(before, len(store))
        return places

    def forget(self, names: Collection[str]) -> None:
        """Stores no rows of these streams any more; those that are there go."""
        for index, stream in enumerate(self.streams):
            if stream.name in names and self.copies[index]:
                self.copies[index] = 0
                self.by_name[stream.name].drop_before(len(self.by_name[stream.name]))
        self._apart = bool((self.copies == 1).all())

    def trim(self, at_least: int) -> None:
        """Frees rows that no window reaches, once they are a thirty-second of a store."""
        stores = self.by_name
        if all(len(store) <= at_least for store in stores.values()):
            return
        now = self.latest or 0
        for name, store in stores.items():
            first = store.first_needed(self.keep[name], now)
            if first > at_least and first > len(store) // 32:
                store.drop_before(first)

    def _follow(self, times: list[Ints]) -> None:
        if not times:
            return
        begin, latest = min(int(some[0]) for some in times), self.latest
        if latest is not None and begin < latest:
            for store in self.by_name.values():
                store.passed = max(store.passed, latest)
        self.latest = max(int(some[-1]) for some in times)
