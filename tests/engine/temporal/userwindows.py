"""Queries with library windows over two streams, run on columns and a tuple at a time."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa

from seustream.compiler.apas.libraries import Libraries
from seustream.engine.temporal.elements import ElementKind, StreamElement
from tests.engine.temporal import windows
from tests.engine.temporal.reference.operators import Profile
from tests.engine.temporal.running import (
    compiled,
    keys_never_decrease,
    node,
    random_stream,
    results_of,
    run,
    schemas,
)
from tests.engine.temporal.running import table as rows_of

CATALOGUE = schemas(A=[["k", "INTEGER"], ["v", "INTEGER"]], B=[["k", "INTEGER"], ["v", "INTEGER"]])
LIBRARIES = Libraries()
LIBRARIES.register("mine", windows.LIBRARIES["mine"])
QUERIES = {
    "until": "where mine.until($A, $A.v - 1) select [$A[T], t = $A.ts, u = $A.te]",
    "tumbling": "where mine.tumbling($A, 4) select [$A[T]]",
    "last": "where mine.last($A, n = 3) select [$A[T]]",
    "session": "where mine.session($A, $A.k, 3) select [$A[T]]",
}  # fmt: skip


def make(chance: random.Random) -> tuple[Any, ...]:
    return (chance.randint(1, 4), chance.randint(0, 9))


def table(stream: list[StreamElement]) -> pa.Table:
    return rows_of(stream, CATALOGUE["A"].tree)


def columnar(
    query: str, streams: dict[str, list[StreamElement]], step_rows: int
) -> list[tuple[Any, ...]]:
    c = compiled(query, CATALOGUE, libraries=LIBRARIES)
    one = node(c, CATALOGUE, step_rows)
    return results_of(one, {name: table(streams[name]) for name in c.network.sources})


def reference(
    query: str, streams: dict[str, list[StreamElement]], profile: Profile
) -> list[tuple[Any, ...]]:
    c = compiled(query, CATALOGUE, libraries=LIBRARIES)
    used = {name: streams[name] for name in c.network.sources}
    out = run(c, CATALOGUE, used, profile)
    assert keys_never_decrease(out)
    return [(x.ts, x.te, *x.values) for x in out if x.kind is ElementKind.INSERTION]


def streams_of(chance: random.Random, most: int = 30) -> dict[str, list[StreamElement]]:
    return {name: random_stream(chance, make, most, boundaries=False) for name in "AB"}
