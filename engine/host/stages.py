"""The software join: queries that no device has.

An operator (`seustream.engine.stream.operator`) that answers all such queries of one level of the
graph together, so that they share the windows of the streams they read. Every row is the host's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seustream.compiler.catalogue import Stream
from seustream.compiler.language import expressions as x
from seustream.compiler.logical.program import Query
from seustream.compiler.logical.windows import is_plain
from seustream.engine.host.answers import (
    Blaming,
    StreamRows,
    fill_group,
    fill_group_of_stream,
    results_of_join,
)
from seustream.engine.host.candidates import Answers, Member
from seustream.engine.host.defined import DefinedRows
from seustream.engine.host.families import Family, by_interval
from seustream.engine.host.grouping import Grouping
from seustream.engine.host.join import Side, WindowJoin
from seustream.engine.host.shared import SharedJoin, shape
from seustream.engine.host.sliding import HeldMembers
from seustream.engine.host.state import JoinInputs
from seustream.engine.host.stores import Stores
from seustream.engine.stream.answers import as_rows
from seustream.engine.stream.failures import Failures
from seustream.engine.stream.faults import QueryFaults
from seustream.engine.stream.merge import Merger, never_late, whole
from seustream.engine.stream.numbers import Key
from seustream.engine.stream.operator import Answer
from seustream.engine.stream.schema import stream_schema
from seustream.engine.stream.snapshot import Snapshot, unpack
from seustream.hdl.device import Retention, Window, WindowKind

Ints = npt.NDArray[np.int64]

SOFTWARE_JOIN = "software join"
"""The kind of its snapshot; its name in a graph ends with its level."""


_NONE = pa.table({})
_LOOSE = 16
"""The most queries that may be added without being shared; more where many are shared."""


class _Plan(NamedTuple):
    """The parts that queries share: families over streams with name and alias, and joins; and the
    queries that share nothing."""

    queries: tuple[Query, ...]
    alone: list[tuple[str, str, Family]]
    shared: list[SharedJoin]
    apart: list[Query]


_MANY = 64
"""From this many queries on, all over one stream each, slices are larger."""


class SoftwareJoin(JoinInputs):
    """Answers queries over some of `streams`. `inputs` are streams to keep time with, including
    those that only queries elsewhere read: see `HostDriver`. While it is `living`, groups keep the
    rows of their windows, as joins do, for queries that begin late."""

    def __init__(
        self,
        streams: Sequence[Stream],
        queries: Sequence[Query],
        slice_rows: int,
        faults: Mapping[str, QueryFaults],
        inputs: Sequence[str] = (),
        failures: Failures | None = None,
        living: bool = False,
    ) -> None:
        self.living = living
        self.keepers = list(filter(self._keeps, queries))
        read, needed = _needs(queries, self.keepers)
        self.streams = [stream for stream in streams if stream.name in read]
        own = tuple(stream.name for stream in self.streams)
        self.inputs = tuple(inputs) or own
        self.queries = tuple(queries)
        self.slice_rows = slice_rows
        self.faults = faults
        self.failures = Failures() if failures is None else failures
        self.merger = Merger(self.inputs, on_late=never_late)
        self.groupings: dict[str, Grouping] = {}
        self.joins = list(filter(_is_join, queries))
        copies = dict.fromkeys(own, 0) | needed
        self.stores = Stores(self.streams, copies, retentions(own, self.keepers))
        self.windows: dict[str, WindowJoin] = {}
        self.defined = DefinedRows(queries)
        self._live = {query.name: query for query in queries}
        self._plans = [self._packed(queries)]
        self.seen = dict.fromkeys(own, 0)

    def outputs(self) -> Iterator[Answer]:
        # Each query makes a table of results per slice, which costs more than a row in it.
        many = len(self.queries) >= _MANY and not self.joins
        for part in self._released((8 if many else 1) * self.slice_rows):
            for stream, rows in zip(self.streams, part.rows, strict=True):
                if rows.num_rows:
                    yield from self._of_stream(stream, rows)
                    self.seen[stream.name] += rows.num_rows
            if self.keepers:
                places = self.stores.add(part)
                if self.joins:
                    yield from self.defined.in_order(self._of_joins(places))
                self.stores.trim(self.slice_rows)
        yield from self.defined.released(self.watermark)

    def snapshot(self) -> bytes:
        return Snapshot(SOFTWARE_JOIN, *self._saved()).pack()

    def restore(self, snapshot: bytes) -> None:
        """Restores streams that have the columns they had; a redefined stream starts afresh."""
        state = unpack(snapshot, SOFTWARE_JOIN)
        kept = {}
        for stream in self.streams:
            rows = state.tables.get(f"kept {stream.name}")
            if rows is not None and rows.schema.equals(stream_schema(stream)):
                kept[stream.name] = rows
        for part in whole(tuple(self.seen), kept, self.slice_rows):
            if self.keepers:
                self.stores.add(part)
        self._resume(state)
        before = state.plain["groups"]
        fresh = [q for q in self.queries if q.aggregated and before.get(q.name) != q.text]
        self._separate(fresh)
        for query in fresh:
            self._catch_up(query, kept)

    def alike(self, snapshot: bytes) -> tuple[int, int, int]:
        """Rates how much a state has in common with this operator, for a query set that changed:
        each level reads a derived stream that no earlier level can read."""
        names = unpack(snapshot, SOFTWARE_JOIN).plain["streams"].keys()
        derived = {stream.name for stream in self.streams if stream.defined_by is not None}
        mine = set(self.seen)
        return len(derived & names), len(mine & names), -len(names - mine)

    def change(self, queries: Sequence[Query], faults: Mapping[str, QueryFaults]) -> bool:
        """Answers other queries from here on. Returns False, and changes nothing, where that takes
        other streams or stores. Only new queries are planned, until there are many."""
        keepers = list(filter(self._keeps, queries))
        read, copies = _needs(queries, keepers)
        known = dict(zip(self.stores.by_name, self.stores.copies, strict=True))
        joins = [query for query in queries if _is_join(query)]
        if read != set(known) or any(copies[name] > known[name] for name in copies):
            return False
        if bool(keepers) != bool(self.keepers):
            return False
        before, packed = {query.name: query for query in self.queries}, self._plans[0].queries
        self.queries, self.joins, self.faults = tuple(queries), joins, faults
        self.keepers = keepers
        self.defined.change(queries)
        self._live = {query.name: query for query in queries}
        self.stores.keep = retentions(read, keepers)
        # A run that is restored would not have these rows, so no later query may find them.
        self.stores.forget(known.keys() - copies.keys())
        alike = {q.name for q in queries if q.name in before and before[q.name].text == q.text}
        fresh = [q for q in queries if q.aggregated and q.name not in alike]
        for name in self.groupings.keys() - alike:
            del self.groupings[name]
        self.groupings |= {query.name: Grouping(query) for query in fresh}
        same = {name for name, query in before.items() if self._live.get(name) is query}
        self.windows = {name: join for name, join in self.windows.items() if name in same}
        kept = set(map(id, packed))
        loose = [query for query in queries if id(query) not in kept]
        for query in fresh:
            self._catch_up(query)
        if (
            _LOOSE + len(packed) // 8 < len(loose)
            or 2 * (len(queries) - len(loose)) < len(packed) - _LOOSE
        ):
            self._plans = [self._packed(queries)]
        else:
            self._separate([query for query in loose if query.aggregated])
            self._plans = [self._plans[0], self._plan(loose)]
        return True

    def _catch_up(self, query: Query, kept: Mapping[str, pa.Table] | None = None) -> None:
        """Fills a group that begins now with the rows in its windows, as far as other queries kept
        them, perhaps elsewhere."""
        if len(query.sources) > 1 and not _is_join(query):
            return  # nothing is in it, ever, and perhaps nothing is kept for it
        faults = QueryFaults(source=self.faults[query.name].source)
        with self.failures.of(query.name):
            if len(query.sources) > 1:
                fill_group(query, self.groupings[query.name], self._sides(query), faults)
            else:
                name = query.sources[0].stream.name
                rows = self.stores[name].table if kept is None else kept.get(name, _NONE)
                if rows.num_rows:
                    batch = StreamRows(rows, self.seen[name] - rows.num_rows, name)
                    fill_group_of_stream(query, self.groupings[query.name], batch, faults)

    def _keeps(self, query: Query) -> bool:
        return _is_join(query) or (self.living and keeps_rows(query))

    def _skips(self, query: Query) -> bool:
        return query.name in self.failures or self._live.get(query.name) is not query

    def _packed(self, queries: Sequence[Query]) -> _Plan:
        """Returns the plan of all queries, with groups of those that differ only in conditions held
        together."""
        plan = self._plan(queries)
        families = [family for _, _, family in plan.alone]
        families += [family for shared in plan.shared for family in shared.families]
        made = [some for family in families for some in family.alike()]
        done = {query.name for some in made for query in some}
        done |= {name for name, known in self.groupings.items() if not known.several}
        made += [[query] for query in queries if query.aggregated and query.name not in done]
        held = self._held([query for some in made for query in some])
        for some in made:
            self._hold(Grouping(*some), held)
        return plan

    def _separate(self, queries: Sequence[Query]) -> None:
        """Holds the groups of these queries apart from those of others."""
        together = [q for q in queries if self.groupings[q.name].several]
        held = self._held(together)
        for query in together:
            self._hold(Grouping(query), held)

    def _hold(self, grouping: Grouping, held: Mapping[str, HeldMembers]) -> None:
        grouping.fill(held)
        self.groupings |= dict.fromkeys(grouping.numbers, grouping)

    def _held(self, queries: Sequence[Query]) -> dict[str, HeldMembers]:
        """Returns the members in the windows of queries."""
        known = [self.groupings[q.name] for q in queries if q.name in self.groupings]
        held: dict[str, HeldMembers] = {}
        for grouping in dict.fromkeys(known):
            held |= {
                name: one
                for name, one in grouping.held().items()
                if self.groupings.get(name) is grouping
            }
        return held

    def _plan(self, queries: Sequence[Query]) -> _Plan:
        """Finds the parts that queries have in common."""
        alone: dict[tuple[str, str, Key | None], list[Member]] = {}
        shapes: dict[object, list[Query]] = {}
        for query in queries:
            if len(query.sources) == 1:
                interval, rest = by_interval(x.conjuncts(query.where))
                source = query.sources[0]
                of = None if interval is None else interval.key
                member = Member(query, interval, rest, self.faults[query.name])
                alone.setdefault((source.stream.name, source.alias, of), []).append(member)
            elif _is_join(query):
                shapes.setdefault(shape(query) or query.name, []).append(query)
        return _Plan(
            tuple(queries),
            [
                (stream, alias, Family(some, self.groupings))
                for (stream, alias, _), some in alone.items()
            ],
            [
                SharedJoin(some, self._sides(some[0]), self.groupings, self.faults)
                for some in shapes.values()
                if len(some) > 1
            ],
            [some[0] for some in shapes.values() if len(some) == 1],
        )

    def _of_stream(self, stream: Stream, rows: pa.Table) -> Iterator[Answer]:
        """Yields the results of queries over one stream for new rows of it."""
        for plan in self._plans:
            for name, alias, family in plan.alone:
                if name == stream.name:
                    batch = StreamRows(rows, self.seen[name], alias)
                    yield from self._given(family.answers(batch, self._skips))

    def _of_joins(self, places: dict[str, Ints]) -> Iterator[Answer]:
        """Yields the results of joins for new rows."""
        apart = [query for plan in self._plans for query in plan.apart]
        for shared in (one for plan in self._plans for one in plan.shared):
            if shared.join.in_doubt():
                self._separate(
                    [q for q in shared.queries if q.aggregated and q.name in self.groupings]
                )
                apart += shared.queries
            else:
                new = [places[source.stream.name] for source in shared.queries[0].sources]
                yield from self._given(shared.answers(new, self._skips))
        for query in apart:
            if not self._skips(query):
                yield from self._joined(query, places)

    def _given(self, answers: Answers) -> Iterator[Answer]:
        for member, found in answers:
            query = member.query
            if callable(found):
                with self.failures.of(query.name), Blaming(query, member.faults):
                    found = found()
                if callable(found):  # it has failed
                    continue
            if found.num_rows:
                yield query.name, as_rows(query, found)

    def _joined(self, query: Query, places: dict[str, Ints]) -> Iterator[Answer]:
        """Yields the results of one join, part by part."""
        if query.name not in self.windows:
            conditions = x.conjuncts(query.where)
            self.windows[query.name] = WindowJoin(conditions, self._sides(query))
        join, faults = self.windows[query.name], self.faults[query.name]
        grouping = self.groupings.get(query.name)
        with self.failures.of(query.name), Blaming(query, faults):
            for found in join.results([places[s.stream.name] for s in query.sources], faults):
                answer = results_of_join(
                    query, grouping, join.sides, found, faults, ordered=not join.repeats
                )
                if answer.num_rows:
                    yield query.name, as_rows(query, answer)

    def _sides(self, query: Query) -> list[Side]:
        """Returns the sources' sides; a stream that FROM names several times has its copies in that
        order."""
        seen: Counter[str] = Counter()
        sides = []
        for source in query.sources:
            name = source.stream.name
            sides.append(Side(self.stores[name], seen[name], source.window, source.alias))
            seen[name] += 1
        return sides


def keeps_rows(query: Query) -> bool:
    """Returns whether rows of a query's windows are kept, for queries that begin late: those of
    joins, and of groups whose rows leave."""
    window = query.sources[0].window
    leave = is_plain(window) and window.kind is not WindowKind.UNBOUNDED
    return _is_join(query) or (len(query.sources) == 1 and query.aggregated and leave)


def _is_join(query: Query) -> bool:
    return len(query.sources) > 1 and query.where != x.FALSE


def _needs(queries: Iterable[Query], keepers: Iterable[Query]) -> tuple[set[str], dict[str, int]]:
    """Returns the streams that queries read, and the most copies of each that a query needs
    kept."""
    read = {source.stream.name for query in queries for source in query.sources}
    copies: dict[str, int] = {}
    for query in keepers:
        for name, count in Counter(source.stream.name for source in query.sources).items():
            copies[name] = max(copies.get(name, 0), count)
    return read, copies


def retentions(names: Iterable[str], keepers: Iterable[Query]) -> dict[str, Retention]:
    """Returns the rows of each stream that queries need."""
    windows: dict[str, set[Window]] = {name: set() for name in names}
    for query in keepers:
        for source in query.sources:
            windows[source.stream.name].add(source.window)
    return {name: Retention.over(some) for name, some in windows.items()}
