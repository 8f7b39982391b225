"""A running network: operators connected by edges, fed by streams, read by sinks.

network = Network(compiled.network, compiled.tree)
network.subscribe(print)                  # a HEADER first, then elements
network.start()
network.feed("I", insertion(2, 10, 40.0))
network.feed("I", STOP)
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from seustream.compiler.apas import network as n
from seustream.compiler.apas.functions import Aggregate, Registered
from seustream.compiler.apas.tree import Node, Path, from_lists
from seustream.compiler.apas.types import DOUBLE, shown
from seustream.compiler.language.faults import Faults
from seustream.compiler.language.types import Type
from seustream.engine.temporal.aggregates.choose import choose
from seustream.engine.temporal.aggregates.index import Index, ListIndex, Result, Values, merged
from seustream.engine.temporal.elements import ElementKind, StreamElement
from tests.engine.temporal.reference.elements import STOP, header, moment
from tests.engine.temporal.reference.operators import (
    ElementAggregate,
    ElementJoin,
    ElementLifetimes,
    ElementMerge,
    ElementOperator,
    ElementSelect,
    ElementSetEnd,
    Profile,
)

Sink = Callable[[StreamElement], None]
Ask = Callable[[str, str, dict[str, Any]], bool]
"""Answers a special message (kind, node's title, detail) with whether to go on. The node waits for
it."""

OnEnd = Callable[[str | None], None]
"""Called from within a node when the network ends: with None if it ends by itself, or with the
reason of the halt."""


class Halted(BaseException):
    """Raised to stop the network: unwinds the node that is at work. It is not an error of a node,
    so it is no `Exception`."""


class GapIndex(ListIndex):
    """The list, with `gap` as the value where there are no tuples."""

    def __init__(self, gap: Values, functions: Sequence[Aggregate], leaves: Sequence[int]) -> None:
        super().__init__(functions, leaves)
        self.gap = gap
        self.told: int | None = None  # where the last result ended

    def reorganise(self, now: int) -> list[Result]:
        out = []
        for start, end, values in super().reorganise(now):
            if self.told is not None and self.told < start:
                out.append((self.told, start, self.gap))
            out.append((start, end, values))
            self.told = end
        # Report a gap up to `now`: no tuple starts before `now` any more.
        running = bool(self.pieces) and self.pieces[0].start < now
        if self.told is not None and self.told < now and not running and now < 2**63 - 1:
            out.append((self.told, now, self.gap))
            self.told = now
        return merged(out)


class SourceNode(ElementOperator):
    """Picks the used attributes by label, because a later schema may have them elsewhere."""

    def __init__(
        self, node: n.StreamNode, number: int, profile: Profile, network: ElementNetwork
    ) -> None:
        super().__init__(number, 1, profile, network.fault)
        self.node, self.network = node, network
        self.places: list[int] = []
        self.seen: object = None

    def adopt(self, tree: Node) -> str | None:
        """Adopts a schema; returns a message if the schema lacks an attribute or changes its
        type."""
        at: dict[Path, tuple[int, Type]] = {}
        for place, (path, leaf) in enumerate(tree.leaves()):
            assert leaf.type is not None
            at[path] = (place, leaf.type)
        for path, (_, type) in zip(self.node.paths, self.node.leaves, strict=True):
            if path not in at:
                return f"{'.'.join(path)} is gone"
            if at[path][1] != type:
                return f"{'.'.join(path)} is {shown(at[path][1])}, was {shown(type)}"
        self.places = [at[path][0] for path in self.node.paths]
        return None

    def control(self, source: int, x: StreamElement) -> None:
        stream = self.node.stream
        if x.kind is ElementKind.HEADER:
            tree = x.schema if isinstance(x.schema, Node) else from_lists(stream, x.schema)
            if self.seen is None:
                # The query was compiled with this schema.
                self.adopt(tree)
            elif str(self.seen) != str(tree):
                self.network.ask("SCHEMA_CHANGED", self.number, {"stream": stream, "schema": tree})
                missing = self.adopt(tree)
                if missing is not None:
                    self.network.halt(f"stream {stream}: {missing}")
            self.seen = tree
        elif x.kind is ElementKind.REMOVE:
            self.network.ask("SOURCE_REMOVED", self.number, {"stream": stream})
            self.sync.stop(0)

    def algebra(self, source: int, x: StreamElement) -> None:
        self.send(x.ts, x.te, tuple(x.values[place] for place in self.places))


class ElementNetwork:
    """Built from a plan. `ask` answers special messages with whether to go on; without it the
    network halts at each."""

    def __init__(
        self,
        plan: n.Network,
        tree: Node,
        schemas: dict[str, Node],
        profile: Profile | None = None,
        ask: Ask | None = None,
        on_end: OnEnd | None = None,
    ) -> None:
        self.plan, self.tree = plan, tree
        profile = profile or Profile()
        self.faults = Faults(profile.strict)
        self.profile = replace(profile, faults=self.faults)
        self.waiting: deque[tuple[int, int, StreamElement]] = deque()
        self.most_queued = 0
        self.busy = False
        self._ask, self._on_end = ask, on_end
        self.sinks: list[Sink] = []
        self.lock = threading.Lock()
        self.halted_by: str | None = None
        self.finished = threading.Event()
        self.failed_sinks = 0
        self.operators = [self._operator(i, node) for i, node in enumerate(plan.nodes)]
        self.out: list[list[tuple[int, int, tuple[int, ...]]]] = [[] for _ in plan.nodes]
        for number, node in enumerate(plan.nodes):
            for source, edge in enumerate(node.edges):
                self.out[edge.node].append((number, source, edge.columns))
        for number, operator in enumerate(self.operators):
            operator.emit = self._emitter(number)
        for stream, number in plan.sources.items():
            operator = self.operators[number]
            assert isinstance(operator, SourceNode)
            operator.adopt(schemas[stream])
            operator.seen = schemas[stream]

    # --- life -----------------------------------------------------------------

    def subscribe(self, sink: Sink) -> None:
        """Sends results to the sink from now on, after a HEADER with the output's schema."""
        with self.lock:
            sink(header(self.tree))
            self.sinks.append(sink)

    def feed(self, stream: str, x: StreamElement) -> None:
        """Feeds an element of a catalogue stream that the gate has already checked. Elements after
        STOP or a halt are dropped, because no reader waits for them."""
        number = self.plan.sources.get(stream)
        if number is not None and self.halted_by is None:
            self._put(number, 0, x)

    def stop(self) -> None:
        """Drops queues, collections and indexes. Idempotent."""
        self.waiting.clear()
        for operator in self.operators:
            operator.close()

    def halt(self, why: str) -> None:
        """Stops the network from within a node."""
        with self.lock:
            if self.halted_by is None:
                self.halted_by = why
        self.finished.set()
        if self._on_end is not None:
            self._on_end(why)
        raise Halted(why)

    # --- special messages -----------------------------------------------------

    def ask(self, kind: str, number: int, detail: dict[str, Any]) -> None:
        """Returns if the network may go on; halts otherwise."""
        if self._ask is None or not self._ask(kind, self.plan.titles[number], detail):
            shown = ", ".join(
                f"{k} {v}" for k, v in detail.items() if k in ("stream", "tuple", "error")
            )
            self.halt(f"{kind}: {shown}")

    def fault(self, number: int, x: StreamElement, text: str) -> None:
        last = text.strip().splitlines()[-1]
        self.ask("EXCEPTION", number, {"tuple": x, "error": last, "traceback": text})

    # --- counters -------------------------------------------------------------

    @property
    def skipped(self) -> int:
        """Returns the number of skipped tuples, those without a value."""
        return sum(operator.skipped for operator in self.operators)

    @property
    def bad_keys(self) -> int:
        return sum(operator.bad_keys for operator in self.operators)

    @property
    def unknown_deletes(self) -> int:
        return sum(operator.unknown_deletes for operator in self.operators)

    @property
    def most_waiting(self) -> int:
        inside = max((operator.sync.most_waiting for operator in self.operators), default=0)
        return max(inside, self.most_queued)

    # --- inside ---------------------------------------------------------------

    def _operator(self, number: int, node: n.Node) -> ElementOperator:
        p, fault = self.profile, self.fault
        match node:
            case n.StreamNode():
                return SourceNode(node, number, p, self)
            case n.SetEndNode():
                return ElementSetEnd(node, number, p, fault)
            case n.LifetimesNode():
                return ElementLifetimes(node, number, p, fault)
            case n.MergeNode():
                return ElementMerge(node, number, p, fault)
            case n.SelectNode():
                return ElementSelect(node, number, p, fault)
            case n.JoinNode():
                return ElementJoin(node, number, p, fault)
            case n.AggregateNode():
                return ElementAggregate(node, number, p, fault, self._index(node))

    def _index(self, node: n.AggregateNode) -> Index:
        functions = [partial.aggregate for partial in node.partials]
        gap = gap_of(node) if self.profile.emit_gaps else None
        leaves = [len(group) for group in node.results]
        if gap is not None:
            return GapIndex(gap, functions, leaves)
        if self.profile.reference:
            return ListIndex(functions, leaves)
        in_order = isinstance(self.plan.nodes[node.side.edge.node], n.SetEndNode)
        return choose(functions, node.side.key is not None, in_order, leaves)

    def _emitter(self, number: int) -> Sink:
        last = number == len(self.operators) - 1

        def emit(x: StreamElement) -> None:
            for node, source, columns in self.out[number]:
                self._put(node, source, _picked(x, columns))
            if last:
                self._result(x)

        return emit

    def _result(self, x: StreamElement) -> None:
        with self.lock:
            sinks = list(self.sinks)
        for sink in sinks:
            try:
                sink(x)
            except Exception:
                self.failed_sinks += 1
                with self.lock:
                    self.sinks.remove(sink)
        if x is STOP:
            self.finished.set()
            if self._on_end is not None:
                self._on_end(None)

    def _put(self, node: int, source: int, x: StreamElement) -> None:
        """Handles elements first in, first out."""
        self.waiting.append((node, source, x))
        self.most_queued = max(self.most_queued, len(self.waiting))
        if self.busy:
            return
        self.busy = True
        try:
            while self.waiting:
                self._deliver(*self.waiting.popleft())
        except Halted:
            self.waiting.clear()
        finally:
            self.busy = False

    def _deliver(self, node: int, source: int, x: StreamElement) -> None:
        sync = self.operators[node].sync
        if sync.open and sync.open[source]:
            sync.put(source, x)


def gap_of(node: n.AggregateNode) -> tuple[Any, ...] | None:
    """Returns the counts and sums of nothing; None if another aggregate has no such value."""
    found: list[Any] = []
    for p in node.partials:
        function = p.aggregate
        if not isinstance(function, Registered) or function.entry.name not in ("count", "sum"):
            return None
        found.append(0.0 if function.of == DOUBLE else 0)
    return tuple(found)


def _picked(x: StreamElement, columns: tuple[int, ...]) -> StreamElement:
    if x.kind is not ElementKind.INSERTION:
        return x
    return StreamElement(
        x.kind,
        x.ts,
        x.te,
        tuple(
            x.values[column - 2] if column > 1 else moment(x.te if column else x.ts)
            for column in columns
        ),
    )
