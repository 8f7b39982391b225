"""Runs queries over streams of elements, and computes the snapshots they should have.

`snapshot` is the definition: the bag of values whose interval holds an instant.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from seustream.compiler.apas.compile import Compiled, compile_query
from seustream.compiler.apas.libraries import Libraries
from seustream.compiler.apas.symbols import Schema
from seustream.compiler.apas.tree import Node, from_lists
from seustream.compiler.xsql.intervals import interval_stream as stream_of
from seustream.engine.stream.faults import QueryFaults
from seustream.engine.stream.merge import END_OF_STREAM, OnLate
from seustream.engine.stream.schema import arrow_type
from seustream.engine.temporal.elements import FOREVER, ElementKind, StreamElement
from seustream.engine.temporal.stream import TemporalNode
from tests.engine.temporal.reference.elements import STOP, boundary, insertion
from tests.engine.temporal.reference.network import ElementNetwork
from tests.engine.temporal.reference.operators import Profile

PAPER = Profile.paper()
PRODUCT = Profile()
REFERENCE = Profile(reference=True)

Streams = Mapping[str, Sequence[StreamElement]]


def schemas(**lists: list[Any]) -> dict[str, Schema]:
    """Makes a catalogue of `I=[["val", "DOUBLE"]]`."""
    return {name: Schema(from_lists(name, each)) for name, each in lists.items()}


def compiled(
    text: str,
    catalogue: Mapping[str, Schema],
    name: str = "out",
    libraries: Libraries | None = None,
) -> Compiled:
    return compile_query(text, catalogue, name, libraries)


class Run:
    """One network and its output; `asked` are its special messages, all answered "continue"."""

    def __init__(
        self,
        query: str | Compiled,
        catalogue: Mapping[str, Schema],
        profile: Profile = PRODUCT,
    ) -> None:
        self.compiled = compiled(query, catalogue) if isinstance(query, str) else query
        self.asked: list[tuple[str, str, dict[str, Any]]] = []
        trees: dict[str, Node] = {name: schema.tree for name, schema in catalogue.items()}
        self.network = ElementNetwork(
            self.compiled.network, self.compiled.tree, trees, profile, self._ask
        )
        self.out: list[StreamElement] = []
        self.network.subscribe(self.out.append)

    def _ask(self, kind: str, node: str, detail: dict[str, Any]) -> bool:
        self.asked.append((kind, node, detail))
        return True

    def feed(self, stream: str, *elements: StreamElement) -> None:
        for x in elements:
            self.network.feed(stream, x)

    def results(self) -> list[StreamElement]:
        return [x for x in self.out if x.kind is ElementKind.INSERTION]

    def rows(self) -> list[tuple[Any, ...]]:
        """Returns the insertions as (ts, te, values…)."""
        return [(x.ts, x.te, *x.values) for x in self.results()]

    def finish(self) -> list[tuple[Any, ...]]:
        for stream in self.network.plan.sources:
            self.network.feed(stream, STOP)
        self.network.stop()
        return self.rows()


def run(
    query: str | Compiled,
    catalogue: Mapping[str, Schema],
    streams: Streams,
    profile: Profile = PRODUCT,
    chance: random.Random | None = None,
) -> list[StreamElement]:
    """Returns all output of a query over whole streams, interleaved at random if `chance` is
    given."""
    one = Run(query, catalogue, profile)
    places = [name for name, stream in streams.items() for _ in stream]
    if chance is not None:
        chance.shuffle(places)
    coming = {name: iter(stream) for name, stream in streams.items()}
    for name in places:
        one.feed(name, next(coming[name]))
    one.finish()
    assert one.network.skipped == 0
    return one.out


def node(
    c: Compiled,
    catalogue: Mapping[str, Schema],
    step_rows: int = 1000,
    strict: bool = False,
    on_refused: OnLate | None = None,
) -> TemporalNode:
    """Returns the operator of the graph for a registered query over streams of intervals."""
    streams = {name: stream_of(name, schema.tree) for name, schema in catalogue.items()}
    faults = QueryFaults(strict, source=c.source)
    return TemporalNode(replace(c, asked=True), streams, faults, on_refused, step_rows)


def results_of(
    one: TemporalNode, streams: Mapping[str, pa.Table], mark: int = END_OF_STREAM
) -> list[tuple[Any, ...]]:
    """Pushes whole tables and advances all inputs to a mark; returns the certain rows (ts, te,
    values…)."""
    for name in one.inputs:
        if name in streams:
            one.push(name, streams[name])
        one.advance(name, mark)
    found: list[tuple[Any, ...]] = []
    for _, part in one.outputs():
        found += zip(*(column.to_pylist() for column in part.columns), strict=True)
    return found


def table(stream: Sequence[StreamElement], tree: Node) -> pa.Table:
    """Returns insertions as rows: ts, te and the leaves."""
    columns = list(zip(*(x.values for x in stream), strict=True)) or [()] * len(tree.paths)
    arrays = [
        pa.array(column, arrow_type(type)) for column, type in zip(columns, tree.types, strict=True)
    ]
    times = [
        pa.array(each, pa.int64()) for each in ([x.ts for x in stream], [x.te for x in stream])
    ]
    return pa.table([*times, *arrays], names=["ts", "te", *map(".".join, tree.paths)])


def insertions(out: Sequence[StreamElement]) -> list[StreamElement]:
    return [x for x in out if x.kind is ElementKind.INSERTION]


def keys_never_decrease(out: Sequence[StreamElement]) -> bool:
    keys = [x.key for x in out if x.kind.timed]
    return keys == sorted(keys)


def snapshot(stream: Sequence[StreamElement], t: int) -> Counter[tuple[Any, ...]]:
    return Counter(x.values for x in insertions(stream) if x.ts <= t < x.te)


def random_stream(
    chance: random.Random,
    make: Callable[[random.Random], tuple[Any, ...]],
    most: int = 12,
    boundaries: bool = True,
) -> list[StreamElement]:
    """Returns a stream in key order with ties, duplicates, instants, endless tuples, and
    boundaries."""
    keys = []
    for _ in range(chance.randint(0, most)):
        ts = chance.randint(0, 15)
        keys.append((ts, chance.choice((ts, ts + 1, ts + 3, ts + chance.randint(1, 9), FOREVER))))
    found = [insertion(ts, te, *make(chance)) for ts, te in sorted(keys)]
    if not boundaries:
        return found
    marks = [boundary(chance.randint(0, 18)) for _ in range(chance.randint(0, 3))]
    return sorted([*found, *marks], key=lambda x: x.key)


INSTANTS = range(0, 32)
