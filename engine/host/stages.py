"""Queries over derived streams, in stages: a query runs one stage after all that it reads.

A result becomes a tuple of its derived stream at the time of its newest component. A stage merges
the base and derived streams its queries read, by boundaries: once everything up to a time has gone
through the stages before, no derived tuple before that time can come any more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from compiler.catalogue import Stream
from compiler.plan.logical import Program, Query
from engine.host.answers import alone, blaming, completed
from engine.host.grouping import Grouping
from engine.host.software import Side, software_join
from engine.host.stores import Stores, stream_schema
from engine.temporal.merge import Merger, Slice, whole
from hdl.device import Retention

Ints = npt.NDArray[np.int64]
Answer = tuple[str, pa.Table]


def stages_of(program: Program, slice_rows: int) -> list[Stage]:
    """The stages after the device, in order."""
    level: dict[str, int] = {}  # of each derived stream: the stage that defines it
    by_level: dict[int, list[Query]] = {}
    for query in program.queries:
        reads = [s.stream.name for s in query.sources if s.stream.defined_by is not None]
        # Definitions stand before their readers.
        mine = max((level[name] + 1 for name in reads), default=0)
        if query.defines is not None:
            level[query.defines] = mine
        if mine:
            by_level.setdefault(mine, []).append(query)
    return [Stage(program.streams, by_level[mine], slice_rows) for mine in sorted(by_level)]


class Stage:
    """Queries that read derived streams of earlier stages, run in software."""

    def __init__(
        self, streams: Sequence[Stream], queries: Sequence[Query], slice_rows: int
    ) -> None:
        read = {source.stream.name for query in queries for source in query.sources}
        self.streams = [stream for stream in streams if stream.name in read]
        self.queries = tuple(queries)
        self.slice_rows = slice_rows
        self.merger = Merger([stream.name for stream in self.streams])
        self.schemas = {stream.name: stream_schema(stream) for stream in self.streams}
        self.groupings = {q.name: Grouping(q) for q in queries if q.aggregated}
        self.joins = [query for query in queries if len(query.sources) > 1]
        copies = {stream.name: 0 for stream in self.streams}
        for query in self.joins:
            for name, count in Counter(s.stream.name for s in query.sources).items():
                copies[name] = max(copies[name], count)
        keep = {
            stream.name: Retention.over(
                source.window
                for query in self.joins
                for source in query.sources
                if source.stream.name == stream.name
            )
            for stream in self.streams
        }
        self.stores = Stores(self.streams, copies, keep)
        self.seen = dict.fromkeys(copies, 0)

    @property
    def reached(self) -> int | None:
        """No result of this stage before this time can come any more."""
        return None if self.merger.bound is None else self.merger.bound[0]

    def push(self, stream: str, rows: pa.Table) -> None:
        """Rows of a base stream, in the total order."""
        if stream in self.schemas and rows.num_rows:
            self.merger.push(stream, rows)

    def push_results(self, stream: str, rows: pa.Table) -> None:
        """Results that are tuples of a derived stream, at the times of their newest component."""
        if stream in self.schemas:
            *columns, _, newest = rows.columns
            self.merger.push(stream, pa.table([newest, *columns], schema=self.schemas[stream]))

    def boundary(self, time: int) -> None:
        """Everything before this time has been pushed."""
        for stream in self.streams:
            self.merger.boundary(stream.name, time)

    def stop(self) -> None:
        for stream in self.streams:
            self.merger.stop(stream.name)

    def advance(self) -> Iterator[Answer]:
        """The results of all that no earlier tuple can precede any more."""
        for part in self.merger.release(self.slice_rows):
            for stream, rows in zip(self.streams, part.rows, strict=True):
                if rows.num_rows:
                    yield from self._alone(stream, rows)
                    self.seen[stream.name] += rows.num_rows
            if self.joins:
                places = self._store(part)
                for query in self.joins:
                    sides = self._sides(query)
                    with blaming(query):
                        new_rows = [places[source.stream.name] for source in query.sources]
                        found = software_join(query, sides, new_rows)
                        answer = completed(query, self.groupings.get(query.name), sides, found)
                    if answer.num_rows:
                        yield query.name, answer
                self.stores.trim(self.slice_rows)

    def refill(self, rows: dict[str, pa.Table]) -> None:
        """Fills the windows with rows that were processed before; as `HostDriver.refill`."""
        for part in whole(list(self.schemas), rows, self.slice_rows):
            if self.joins:
                self._store(part)
                self.stores.trim(self.slice_rows)

    def _store(self, part: Slice) -> dict[str, Ints]:
        """A slice into the row stores: the places of its rows."""
        places = self.stores.add(part)
        for name, new in places.items():
            for left in self.stores[name].left:
                left[new] = 0  # there is no device, so every row is the host's
        return places

    def _alone(self, stream: Stream, rows: pa.Table) -> Iterator[Answer]:
        for query in self.queries:
            if len(query.sources) == 1 and query.sources[0].stream.name == stream.name:
                grouping = self.groupings.get(query.name)
                answer = alone(query, grouping, rows, self.seen[stream.name])
                if answer.num_rows:
                    yield query.name, answer

    def _sides(self, query: Query) -> list[Side]:
        """Copies of a stream in the order in which FROM names it."""
        seen: Counter[str] = Counter()
        sides = []
        for source in query.sources:
            name = source.stream.name
            sides.append(Side(self.stores[name], seen[name], source.window))
            seen[name] += 1
        return sides
