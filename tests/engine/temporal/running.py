"""Queries over streams given as elements, and what snapshots they should have.

`snapshot` is the definition: the bag of values whose interval holds an instant.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from seustream.compiler.apas.compile import Compiled, compile_query
from seustream.compiler.apas.libraries import Libraries
from seustream.compiler.apas.symbols import Schema
from seustream.compiler.apas.tree import Node, from_lists
from seustream.engine.temporal.elements import (
    FOREVER,
    STOP,
    ElementKind,
    StreamElement,
    boundary,
    insertion,
)
from seustream.engine.temporal.network import ElementNetwork
from seustream.engine.temporal.operators import Profile

PAPER = Profile.paper()
PRODUCT = Profile()
REFERENCE = Profile(reference=True)

Streams = Mapping[str, Sequence[StreamElement]]


def schemas(**lists: list[Any]) -> dict[str, Schema]:
    """`I=[["val", "DOUBLE"]]` as a catalogue."""
    return {name: Schema(from_lists(name, each)) for name, each in lists.items()}


def compiled(
    text: str,
    catalogue: Mapping[str, Schema],
    name: str = "out",
    libraries: Libraries | None = None,
) -> Compiled:
    return compile_query(text, catalogue, name, libraries)


class Run:
    """One network and all it gives; `asked` are its special messages, all answered "continue"."""

    def __init__(
        self,
        query: str | Compiled,
        catalogue: Mapping[str, Schema],
        profile: Profile = PRODUCT,
        scheduler: str = "inline",
    ) -> None:
        self.compiled = compiled(query, catalogue) if isinstance(query, str) else query
        self.asked: list[tuple[str, str, dict[str, Any]]] = []
        trees: dict[str, Node] = {name: schema.tree for name, schema in catalogue.items()}
        self.network = ElementNetwork(
            self.compiled.network, self.compiled.tree, trees, profile, scheduler, self._ask
        )
        self.out: list[StreamElement] = []
        self.network.subscribe(self.out.append)
        self.network.start()

    def _ask(self, kind: str, node: str, detail: dict[str, Any]) -> bool:
        self.asked.append((kind, node, detail))
        return True

    def feed(self, stream: str, *elements: StreamElement) -> None:
        for x in elements:
            self.network.feed(stream, x)

    def results(self) -> list[StreamElement]:
        self.network.drain()
        return [x for x in self.out if x.kind is ElementKind.INSERTION]

    def rows(self) -> list[tuple[Any, ...]]:
        """Insertions as (ts, te, values…)."""
        return [(x.ts, x.te, *x.values) for x in self.results()]

    def finish(self) -> list[tuple[Any, ...]]:
        for stream in self.network.plan.sources:
            self.network.feed(stream, STOP)
        self.network.drain()
        self.network.stop()
        return self.rows()


def run(
    query: str | Compiled,
    catalogue: Mapping[str, Schema],
    streams: Streams,
    profile: Profile = PRODUCT,
    scheduler: str = "inline",
    chance: random.Random | None = None,
) -> list[StreamElement]:
    """Everything a query gives of whole streams, interleaved at random if `chance` is given."""
    one = Run(query, catalogue, profile, scheduler)
    places = [name for name, stream in streams.items() for _ in stream]
    if chance is not None:
        chance.shuffle(places)
    coming = {name: iter(stream) for name, stream in streams.items()}
    for name in places:
        one.feed(name, next(coming[name]))
    one.finish()
    assert one.network.skipped == 0
    return one.out


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
    """In key order, with ties, duplicates, instants, for ever, and boundaries."""
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
