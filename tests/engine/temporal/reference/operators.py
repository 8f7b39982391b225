"""The operators, a tuple at a time: section 3 of StreamAPAS.

A node runs: synchronise inputs -> reorganise -> insert into the collection -> algebra -> map. Nodes
do not block: the results of each input follow at once.
"""

from __future__ import annotations

import heapq
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from seustream.compiler.apas import network as n
from seustream.compiler.apas.streams import Lifetimes as Found
from seustream.compiler.language.faults import Faults, Place
from seustream.compiler.language.registry import Fault
from seustream.engine.temporal import library
from seustream.engine.temporal.aggregates.index import Index
from seustream.engine.temporal.elements import FOREVER, ElementKind, StreamElement, Value
from tests.engine.temporal.reference import compute
from tests.engine.temporal.reference.collection import (
    Change,
    Collection,
    CollectionRow,
    KeyRefused,
    Served,
    TableCollection,
    TimeCollection,
    columns,
)
from tests.engine.temporal.reference.elements import STOP, boundary, later
from tests.engine.temporal.reference.synchroniser import Synchroniser

Emit = Callable[[StreamElement], None]
OnFault = Callable[[int, StreamElement, str], None]
"""Called for a tuple without a value in a node: the node's number, the tuple, the traceback.
Returns for "continue"; the tuple is then skipped."""


@dataclass(frozen=True, slots=True)
class Profile:
    """The behaviour of a network. `paper` is the behaviour of the source itself."""

    derived_boundaries: bool = True
    emit_gaps: bool = False
    reference: bool = False  # nested loops and aggregate lists, as in the source
    strict: bool = False  # an evaluation without a value raises in the node
    faults: Faults = field(default_factory=Faults)  # each network has its own

    @classmethod
    def paper(cls) -> Profile:
        return cls(derived_boundaries=False, reference=True)


class ElementOperator:
    """Base class of all nodes. The keys of outputs never fall; BOUNDARYs that promise nothing new
    are not sent."""

    derives = False

    def __init__(self, number: int, inputs: int, profile: Profile, fault: OnFault) -> None:
        self.number, self.profile, self.fault = number, profile, fault
        self.faults = profile.faults
        self.sync = Synchroniser(inputs, self)
        self.emit: Emit = lambda x: None
        self.last: tuple[int, int] | None = None  # key of the last element sent
        self.skipped = 0
        self.bad_keys = 0

    @property
    def tables(self) -> list[TableCollection]:
        """Returns the time-tables it keeps."""
        return []

    @property
    def unknown_deletes(self) -> int:
        return sum(table.unknown_deletes for table in self.tables)

    # --- what the synchroniser releases ---------------------------------------

    def reorganise(self, now: int) -> None:
        """Deletes state up to `now`; stateless nodes have none."""

    def execute(self, source: int, x: StreamElement) -> None:
        try:
            self.algebra(source, x)
        except KeyRefused:
            self.bad_keys += 1
        except Exception as error:
            self._failed(x, error)
        if self.derives and self.profile.derived_boundaries:
            self._boundary(x.ts)

    def broadcast(self, source: int, x: StreamElement) -> None:
        self._boundary(x.ts)

    def control(self, source: int, x: StreamElement) -> None:
        """Ignores controls: schemas and removals concern only the sources, and `end` handles
        STOP."""

    def end(self) -> None:
        self.finish()
        self.emit(STOP)

    # --- for the nodes --------------------------------------------------------

    def algebra(self, source: int, x: StreamElement) -> None:
        raise NotImplementedError

    def finish(self) -> None:
        """Emits what is left, once all inputs have stopped and `reorganise` has seen that."""

    def close(self) -> None:
        """Frees what is stored."""
        for queue in self.sync.queues:
            queue.clear()
        self.sync.heap.clear()

    def send(self, ts: int, te: int, values: tuple[Value, ...]) -> None:
        self.last = (ts, te)
        self.emit(StreamElement(ElementKind.INSERTION, ts, te, values))

    def _boundary(self, t: int) -> None:
        """Sends a BOUNDARY unless earlier output already promises as much."""
        if self.last is None or t > self.last[0]:
            self.last = (t, t)
            self.emit(boundary(t))

    def _failed(self, x: StreamElement, error: Exception) -> None:
        self.skipped += 1
        text = "".join(traceback.format_exception(error))
        self.fault(self.number, x, text)


def array(x: StreamElement) -> tuple[Any, ...]:
    return (x.ts, x.te, *x.values)


class ElementSetEnd(ElementOperator):
    """A window: sets te := ts + size, whatever te was."""

    def __init__(self, node: n.SetEndNode, number: int, profile: Profile, fault: OnFault) -> None:
        super().__init__(number, 1, profile, fault)
        self.size = node.size

    def algebra(self, source: int, x: StreamElement) -> None:
        te = FOREVER if self.size is None else later(x.ts, self.size)
        self.send(x.ts, te, x.values)


class ElementLifetimes(ElementOperator):
    """A window of a library. Tuples wait until the library knows their lifetimes, then in an order
    buffer until nothing that begins earlier can come."""

    derives = True

    def __init__(
        self, node: n.LifetimesNode, number: int, profile: Profile, fault: OnFault
    ) -> None:
        super().__init__(number, 1, profile, fault)
        self.shown, self.types = node.shown, node.types
        self.take = compute.values(node.arguments, self.faults)
        with library.calling(node.shown):
            self.window = node.function.open(**dict(node.constants))
        self.seen = 0
        self.waiting: dict[int, StreamElement] = {}  # by number, in the order of arrival
        self.buffer: list[tuple[int, int, int, tuple[Value, ...]]] = []

    def reorganise(self, now: int) -> None:
        try:
            with library.calling(self.shown):
                found = self.window.advance(now)
            self._decide(found)
        except Exception as error:
            self._failed(boundary(now), error)
        self._flush(self._floor(now))

    def algebra(self, source: int, x: StreamElement) -> None:
        taken = self.take(array(x))
        if None in taken:
            raise library.LibraryFailed(f"{self.shown}: an argument is NULL")
        row = columns(taken, self.types)
        ts, te = np.array([x.ts]), np.array([x.te])
        with library.calling(self.shown):
            found = self.window.push(self.seen, ts, te, *row)
        self.waiting[self.seen] = x
        self.seen += 1
        self._decide(found)
        self._flush(self._floor(x.ts))

    def finish(self) -> None:
        try:
            with library.calling(self.shown):
                found = self.window.finish()
            self._decide(found)
        except Exception as error:
            self._failed(STOP, error)
        for x in self.waiting.values():
            self._failed(x, library.LibraryFailed(f"{self.shown}: no lifetime at the end"))
        self._flush(None)

    def close(self) -> None:
        super().close()
        self.waiting.clear()
        self.buffer.clear()

    def _decide(self, found: Found) -> None:
        for number, ts, te in zip(
            *(each.tolist() for each in library.lifetimes(self.shown, found)), strict=True
        ):
            x = self.waiting.pop(number, None)
            if x is None:
                message = f"{self.shown}: tuple {number} is unknown or has a lifetime already"
                raise library.LibraryFailed(message)
            wrong = library.wrong_lifetime(self.shown, x.ts, ts, te)
            if wrong is not None:
                self._failed(x, library.LibraryFailed(wrong))
            else:
                heapq.heappush(self.buffer, (ts, te, number, x.values))

    def _floor(self, now: int) -> int:
        """Returns the time before which nothing outside the buffer begins."""
        return min(now, next((x.ts for x in self.waiting.values()), now))

    def _flush(self, floor: int | None) -> None:
        while self.buffer and (floor is None or self.buffer[0][0] < floor):
            ts, te, _, values = heapq.heappop(self.buffer)
            self.send(ts, te, values)

    def _boundary(self, t: int) -> None:
        super()._boundary(self._floor(t))


class ElementMerge(ElementOperator):
    """A union: passes tuples on in the synchronised order."""

    def __init__(self, node: n.MergeNode, number: int, profile: Profile, fault: OnFault) -> None:
        super().__init__(number, len(node.edges), profile, fault)

    def algebra(self, source: int, x: StreamElement) -> None:
        self.send(x.ts, x.te, x.values)


class ElementSelect(ElementOperator):
    """A filter and a map."""

    def __init__(self, node: n.SelectNode, number: int, profile: Profile, fault: OnFault) -> None:
        super().__init__(number, 1, profile, fault)
        self.derives = bool(node.filter.conditions)
        self.holds = compute.predicate(node.filter, self.faults)
        self.map = compute.mapper(node.map, self.faults)

    def algebra(self, source: int, x: StreamElement) -> None:
        inp = array(x)
        if self.holds(inp):
            self.send(x.ts, x.te, self.map(inp))


def _collection(side: n.JoinSide) -> Collection:
    return TimeCollection() if side.key is None else TableCollection(side.key - 2)


def _put(
    collection: Collection, x: StreamElement, holds: bool, row: Callable[[], CollectionRow]
) -> bool:
    """Inserts a tuple unless it fails the node's condition; returns whether it is stored. A delete
    has no values for the condition to test."""
    if isinstance(collection, TableCollection):
        key = collection.key_of(x.values)
        if key > 0 and not holds:
            collection.refuse(CollectionRow(x.ts, x.te, x.values))
            return False
        collection.insert(row())
        return key > 0
    if holds:
        collection.insert(row())
    return holds


class ElementJoin(ElementOperator):
    """A symmetric join: each tuple meets the tuples of the other side that live at its start.
    Results wait in an order buffer, because those of one ts come out with rising te."""

    derives = True

    def __init__(self, node: n.JoinNode, number: int, profile: Profile, fault: OnFault) -> None:
        super().__init__(number, 2, profile, fault)
        sides = (node.left, node.right)
        self.collections = tuple(_collection(side) for side in sides)
        self.guards = tuple(compute.predicate(side.guard, self.faults) for side in sides)
        self.terms = (
            compute.values([a for a, _ in node.terms], self.faults),
            compute.values([b for _, b in node.terms], self.faults),
        )
        self.residual = compute.predicate(node.residual, self.faults)
        self.map = compute.mapper(node.map, self.faults) if node.map is not None else _whole
        self.buffer: list[tuple[int, int, int, tuple[Value, ...]]] = []
        self.pushed = 0
        self.index = node.index if not profile.reference else None
        self.indexed = (compute.values((), self.faults), compute.values((), self.faults))
        if self.index is not None:
            made = self.index
            self.indexed = (
                compute.values(made.left, self.faults),
                compute.values(made.right, self.faults),
            )
            for side, collection in enumerate(self.collections):
                with library.calling(made.name):
                    index = made.function.index(side ^ made.place)
                collection.served = Served(made.name, index, made.types[side])

    def reorganise(self, now: int) -> None:
        self._flush(now)
        for collection in self.collections:
            collection.reorganise(now)

    def algebra(self, source: int, x: StreamElement) -> None:
        inp, collection = array(x), self.collections[source]
        keyed = isinstance(collection, TableCollection) and collection.key_of(x.values) < 0
        holds = keyed or self.guards[source](inp)
        reads = holds and not keyed
        term = self.terms[source](inp) if reads else ()
        indexed = self.indexed[source](inp) if reads else ()
        inserted = _put(
            collection, x, holds, lambda: CollectionRow(x.ts, x.te, x.values, term, indexed)
        )
        if not inserted or x.ts == x.te or None in term or None in indexed:
            return  # no equality with NULL holds
        for y in self._candidates(1 - source, term, indexed):
            left, right = (x.values, y.values) if source == 0 else (y.values, x.values)
            pair = (x.ts, min(x.te, y.te), *left, *right)
            try:
                if self.residual(pair):
                    self.pushed += 1
                    entry = (x.ts, pair[1], self.pushed, self.map(pair))
                    heapq.heappush(self.buffer, entry)
            except Exception as error:
                self._failed(x, error)

    def finish(self) -> None:
        self._flush(None)

    @property
    def tables(self) -> list[TableCollection]:
        return [c for c in self.collections if isinstance(c, TableCollection)]

    def close(self) -> None:
        super().close()
        self.buffer.clear()
        for collection in self.collections:
            collection.clear()

    def _candidates(
        self, side: int, term: tuple[Any, ...], indexed: tuple[Any, ...]
    ) -> list[CollectionRow]:
        collection = self.collections[side]
        if self.index is not None and collection.served is not None:
            found = collection.served.candidates(indexed, self.index.types[1 - side])
            return [y for y in found if _equal(y.term, term)]
        if self.profile.reference:
            return [y for y in collection.scan() if _equal(y.term, term)]
        return collection.candidates(term)

    def _flush(self, now: int | None) -> None:
        while self.buffer and (now is None or self.buffer[0][0] < now):
            ts, te, _, values = heapq.heappop(self.buffer)
            self.send(ts, te, values)


def _equal(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Returns whether all values are equal; NULL equals nothing."""
    return None not in one and one == other


def _whole(pair: tuple[Any, ...]) -> tuple[Any, ...]:
    return pair[2:]


class ElementAggregate(ElementOperator):
    """Sliding aggregates: passes the collection's changes to the index, which gives intervals."""

    derives = True

    def __init__(
        self, node: n.AggregateNode, number: int, profile: Profile, fault: OnFault, index: Index
    ) -> None:
        super().__init__(number, 1, profile, fault)
        self.index = index
        self.guard = compute.predicate(node.side.guard, self.faults)
        self.take = compute.arguments(node.partials, node.frame, self.faults)
        self.map = compute.mapper(node.map, self.faults)
        self.results, self.width = node.results, node.width
        self.fault_places = [
            partial.place for partial in node.partials for _ in partial.bound.result.paths
        ]
        # Without deletions no row is read back, so only the index is kept.
        self.table = TableCollection(node.side.key - 2) if node.side.key is not None else None
        if self.table is not None:
            self.table.attach(self)

    def reorganise(self, now: int) -> None:
        if self.table is not None:
            self.table.reorganise(now)
        else:
            self.reorganised(now)

    def reorganised(self, now: int) -> None:
        places = [place for group in self.results for place in group]
        for start, end, values in self.index.reorganise(now):
            out: list[Any] = [None] * self.width
            out[0], out[1] = start, end
            try:
                for place, value, of in zip(places, values, self.fault_places, strict=True):
                    out[place] = self._counted(value, of)
                mapped = self.map(out)
            except Exception as error:
                self._failed(StreamElement(ElementKind.INSERTION, start, end, values), error)
            else:
                self.send(start, end, mapped)

    def _counted(self, value: Any, of: Place) -> Any:
        """Returns the value of a partial aggregate; NULL and a fault if a sum does not fit."""
        if isinstance(value, Fault):
            self.faults.add(of, 1, 0)
            return None
        return value

    def changed(self, event: str, changes: tuple[Change, ...]) -> None:
        for change in changes:
            row = change.row
            self.index.change(
                self.take((row.ts, row.te, *row.values)), change.start, change.end, change.sign
            )

    def algebra(self, source: int, x: StreamElement) -> None:
        inp = array(x)
        if self.table is None:
            if self.guard(inp) and x.ts != x.te:
                self.index.change(self.take(inp), x.ts, x.te)
            return
        key = x.values[self.table.key]
        holds = (isinstance(key, int) and key < 0) or self.guard(inp)
        if holds and isinstance(key, int) and key > 0:
            self.take(inp)  # raises, before storing, if a library or strict faults refuse it
        _put(self.table, x, holds, lambda: CollectionRow(x.ts, x.te, x.values))

    def close(self) -> None:
        super().close()
        if self.table is not None:
            self.table.clear()

    @property
    def tables(self) -> list[TableCollection]:
        return [self.table] if self.table is not None else []
