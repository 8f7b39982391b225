"""The software join: queries that no device has.

An operator (`seustream.engine.stream.operator`) that answers all such queries of one level of the graph at
once, so that they share the windows of what they read. Every row is the host's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seustream.compiler.catalogue import Stream
from seustream.compiler.language import expressions as x
from seustream.compiler.logical.program import Query
from seustream.engine.host.answers import StreamRows, blaming, completed
from seustream.engine.host.families import Family, Member, by_interval
from seustream.engine.host.grouping import Grouping
from seustream.engine.host.indexed import Key
from seustream.engine.host.join import Side, WindowJoin
from seustream.engine.host.shared import SharedJoin, shape
from seustream.engine.host.state import clock_of, restore_groups, restore_streams, streams_of
from seustream.engine.host.stores import Stores
from seustream.engine.stream.answers import as_rows
from seustream.engine.stream.failures import Failures
from seustream.engine.stream.faults import QueryFaults, fault_report, restore
from seustream.engine.stream.merge import Merger, narrowed, never_late, whole
from seustream.engine.stream.operator import Answer
from seustream.engine.stream.schema import stream_schema
from seustream.engine.stream.snapshot import Snapshot, unpack
from seustream.hdl.device import Retention

Ints = npt.NDArray[np.int64]

SOFTWARE_JOIN = "software join"
"""The kind of its snapshot; its name in a graph ends with its level."""


class SoftwareJoin:
    """Answers queries over some of `streams`. `inputs` are streams to keep time with, also those
    that only queries elsewhere read: see `HostDriver`."""

    def __init__(
        self,
        streams: Sequence[Stream],
        queries: Sequence[Query],
        slice_rows: int,
        faults: Mapping[str, QueryFaults],
        inputs: Sequence[str] = (),
        failures: Failures | None = None,
    ) -> None:
        read = {source.stream.name for query in queries for source in query.sources}
        self.streams = [stream for stream in streams if stream.name in read]
        own = tuple(stream.name for stream in self.streams)
        self.inputs = tuple(inputs) or own
        self.queries = tuple(queries)
        self.slice_rows = slice_rows
        self.faults = faults
        self.failures = Failures() if failures is None else failures
        self.merger = Merger(self.inputs, on_late=never_late)
        self.groupings = {q.name: Grouping(q) for q in queries if q.aggregated}
        self.joins = [q for q in queries if len(q.sources) > 1 and q.where != x.FALSE]
        copies = dict.fromkeys(own, 0)
        for query in self.joins:
            for name, count in Counter(s.stream.name for s in query.sources).items():
                copies[name] = max(copies[name], count)
        keep = {
            name: Retention.over(
                source.window
                for query in self.joins
                for source in query.sources
                if source.stream.name == name
            )
            for name in own
        }
        self.stores = Stores(self.streams, copies, keep)
        self.windows: dict[str, WindowJoin] = {}
        self._share()
        self.seen = dict.fromkeys(own, 0)

    @property
    def watermark(self) -> int:
        return self.merger.watermark

    def push(self, input: str, rows: pa.Table) -> None:
        if input in self.seen:
            self.merger.push(input, rows)

    def advance(self, input: str, watermark: int) -> None:
        self.merger.advance(input, watermark)

    def outputs(self) -> Iterator[Answer]:
        for released in self.merger.release(self.slice_rows):
            part = narrowed(released, self.inputs, tuple(self.seen))
            for stream, rows in zip(self.streams, part.rows, strict=True):
                if rows.num_rows:
                    yield from self._of_stream(stream, rows)
                    self.seen[stream.name] += rows.num_rows
            if self.joins:
                yield from self._of_joins(self.stores.add(part))
                self.stores.trim(self.slice_rows)

    def snapshot(self) -> bytes:
        streams, tables = streams_of(self.merger, self.streams, self.stores, self.seen)
        groups = {}
        for name, grouping in self.groupings.items():
            groups[name] = grouping.query.text
            tables[f"group {name}"] = grouping.members(self.stores)
        plain = {
            "streams": streams,
            "clock": clock_of(self.merger, self.seen),
            "groups": groups,
            "faults": fault_report(self.faults),
        }
        return Snapshot(SOFTWARE_JOIN, plain, tables).pack()

    def restore(self, snapshot: bytes) -> None:
        """Streams with the columns they had; one that is defined anew begins anew."""
        state = unpack(snapshot, SOFTWARE_JOIN)
        kept = {}
        for stream in self.streams:
            rows = state.tables.get(f"kept {stream.name}")
            if rows is not None and rows.schema.equals(stream_schema(stream)):
                kept[stream.name] = rows
        for part in whole(tuple(self.seen), kept, self.slice_rows):
            if self.joins:
                self.stores.add(part)
                self.stores.trim(self.slice_rows)
        restore_groups(self.groupings, state)
        restore(self.faults, state.plain["faults"])
        restore_streams(self.merger, self.streams, self.seen, state)

    def alike(self, snapshot: bytes) -> tuple[int, int, int]:
        """Returns how much a state has in common with this operator, for a query set that changed: each
        level reads a derived stream that none before it can read."""
        names = unpack(snapshot, SOFTWARE_JOIN).plain["streams"].keys()
        derived = {stream.name for stream in self.streams if stream.defined_by is not None}
        mine = set(self.seen)
        return len(derived & names), len(mine & names), -len(names - mine)

    def _share(self) -> None:
        """Finds what queries have in common."""
        alone: dict[tuple[str, str, Key | None], list[Member]] = {}
        shapes: dict[object, list[Query]] = {}
        for query in self.queries:
            if len(query.sources) == 1:
                interval, rest = by_interval(x.conjuncts(query.where))
                grouping, faults = self.groupings.get(query.name), self.faults[query.name]
                source = query.sources[0]
                of = None if interval is None else interval.key
                member = Member(query, interval, rest, grouping, faults)
                alone.setdefault((source.stream.name, source.alias, of), []).append(member)
            elif query.where != x.FALSE:
                shapes.setdefault(shape(query) or query.name, []).append(query)
        self._alone = [(stream, alias, Family(some)) for (stream, alias, _), some in alone.items()]
        self._shared = [
            SharedJoin(some, self._sides(some[0]), self.groupings, self.faults)
            for some in shapes.values()
            if len(some) > 1
        ]
        self._apart = [some[0] for some in shapes.values() if len(some) == 1]

    def _of_stream(self, stream: Stream, rows: pa.Table) -> Iterator[Answer]:
        """The results of queries over one stream for new rows of it."""
        for name, alias, family in self._alone:
            if name == stream.name:
                batch = StreamRows(rows, self.seen[name], alias)
                yield from self._given(family.answers(batch, self.failures.__contains__))

    def _of_joins(self, places: dict[str, Ints]) -> Iterator[Answer]:
        """The results of joins for new rows."""
        apart = list(self._apart)
        for shared in self._shared:
            if shared.join.in_doubt():
                apart += shared.queries
            else:
                new = [places[source.stream.name] for source in shared.queries[0].sources]
                yield from self._given(shared.answers(new, self.failures.__contains__))
        for query in apart:
            if query.name not in self.failures:
                yield from self._joined(query, places)

    def _given(
        self, answers: Iterator[tuple[Member, Callable[[], pa.Table] | pa.Table]]
    ) -> Iterator[Answer]:
        for member, found in answers:
            query = member.query
            if callable(found):
                with self.failures.of(query.name), blaming(query, member.faults):
                    found = found()
                if query.name in self.failures:
                    continue
            if found.num_rows:
                yield query.name, as_rows(query, found)

    def _joined(self, query: Query, places: dict[str, Ints]) -> Iterator[Answer]:
        """The results of one join, a part after the other."""
        if query.name not in self.windows:
            conditions = x.conjuncts(query.where)
            self.windows[query.name] = WindowJoin(conditions, self._sides(query))
        join, faults = self.windows[query.name], self.faults[query.name]
        grouping = self.groupings.get(query.name)
        with self.failures.of(query.name), blaming(query, faults):
            for found in join.results([places[s.stream.name] for s in query.sources], faults):
                answer = completed(query, grouping, join.sides, found, faults)
                if answer.num_rows:
                    yield query.name, as_rows(query, answer)

    def _sides(self, query: Query) -> list[Side]:
        """Copies of a stream in the order in which FROM names it."""
        seen: Counter[str] = Counter()
        sides = []
        for source in query.sources:
            name = source.stream.name
            sides.append(Side(self.stores[name], seen[name], source.window, source.alias))
            seen[name] += 1
        return sides
