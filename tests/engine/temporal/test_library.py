"""Users' windows and indexes: compared with their definitions by brute force, a tuple at a time and
on columns, for any cut of the input and across a snapshot; and faulty libraries."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from seustream.compiler.apas.libraries import Libraries
from seustream.compiler.apas.streams import LiveWindow
from seustream.compiler.errors import CompileError
from seustream.engine.temporal.stream import NodeFailed
from tests.engine.temporal import windows
from tests.engine.temporal.reference.operators import Profile
from tests.engine.temporal.running import (
    compiled,
    node,
    results_of,
)
from tests.engine.temporal.userwindows import (
    CATALOGUE,
    LIBRARIES,
    QUERIES,
    columnar,
    reference,
    streams_of,
    table,
)

REFERENCE = Profile(derived_boundaries=False, reference=True)
SERVED = Profile(derived_boundaries=False)
MORE = [
    "where mine.last($A, 2) select [n = agg.count($A), s = agg.sum($A.v)]",
    "where mine.session($A, $A.k, 2), mine.until($B, $B.v), $A.k == $B.k select [a = $A.v, b = $B.v, t = $A.te]",
    "where mine.tumbling($A, 5), $A.v > 2 select [m = mine.middle($A.v), n = agg.count($A)]",
    """from where util.union($A, $B) select u[$new[T]];
       where mine.last($u, 4), $u.v > 3 select [s = mine.spread($u.v), m = agg.max($u.k)]""",
    "where mine.near($A.v, $B.v, $B.k), window.range($A, 4) select [a = $A.v, b = $B.v, k = $B.k]",
    "where $A.k == $B.k, mine.near($B.v, $A.v, 2) select [a = $A.v, b = $B.v]",
    "where window.table($A, $A.k), mine.near($A.v, $B.v, 1) select [a = $A.v, b = $B.v]",
    "where mine.near($A.v, $A.k, 2) select [$A[T]]",
    "where mine.last($A, 3), $A.k == $B.k select [t = $A.te, s = $A.ts, b = $B.te]",
]  # fmt: skip


# --- the definitions ----------------------------------------------------------


@pytest.mark.parametrize("query", [*QUERIES.values(), *MORE])
@pytest.mark.parametrize("seed", range(8))
def test_columns_equal_the_reference(query: str, seed: int) -> None:
    """The reference evaluates a join without its index."""
    print(f"seed {seed}")
    streams = streams_of(random.Random(seed))
    want = reference(query, streams, REFERENCE)
    assert repr(reference(query, streams, SERVED)) == repr(want)
    for step_rows in (1, 5, 1000):
        assert repr(columnar(query, streams, step_rows)) == repr(want), step_rows


def test_the_cases_have_results() -> None:
    streams = streams_of(random.Random(5), 80)
    for query in MORE:
        assert columnar(query, streams, 9), query


@pytest.mark.parametrize("query", [*QUERIES.values(), *MORE])
@pytest.mark.parametrize("seed", range(6))
def test_any_cut_and_a_snapshot_change_nothing(query: str, seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    streams = streams_of(chance)
    want = columnar(query, streams, 1000)
    c = compiled(query, CATALOGUE, libraries=LIBRARIES)
    one = node(c, CATALOGUE, 7)
    found: list[tuple[Any, ...]] = []
    for now in sorted(chance.sample(range(17), 4)):
        coming = {}
        for name in c.network.sources:
            coming[name] = [x for x in streams[name] if x.ts < now]
            streams[name] = streams[name][len(coming[name]) :]
        found += results_of(one, {name: table(rows) for name, rows in coming.items()}, now - 1)
        assert all(row[0] <= now for row in found)
        state = one.snapshot()
        one = node(c, CATALOGUE, 7)
        one.restore(state)
    found += results_of(one, {name: table(streams[name]) for name in c.network.sources})
    if "agg." in query or "mine.middle" in query:
        # An advance may split an interval; the values at each instant must be equal.
        assert at_each_instant(found) == at_each_instant(want)
    else:
        assert found == want


def at_each_instant(rows: list[tuple[Any, ...]]) -> list[Counter[tuple[Any, ...]]]:
    return [Counter(row[2:] for row in rows if row[0] <= t < row[1]) for t in range(40)]


# --- errors of queries --------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("mine.last($A)", "n is missing"),
        ("mine.last($A, $A.k)", "mine.last: n is not constant"),
        ("mine.last($A, 'x')", "mine.last: n is INTEGER; given STRING"),
        ("mine.last($A, [x = 1])", "mine.last: n is INTEGER, not a tree"),
        ("mine.last($A, 1 div 0)", "mine.last: n is not constant"),
        ("mine.tumbling($A, 0)", "mine.tumbling: the size is not positive"),
        ("mine.until($A, $B.v)", "mine.until: length reads B, which is not the stream it changes"),
        ("mine.until($A.v, 1)", "mine.until: $A.v is no stream"),
        ("mine.last($A, 2), window.now($A)", "window.now: A has a window already: mine.last(n = 2)"),
        ("mine.last($A, 2) and true", "mine.last changes a stream, it has no value"),
    ],
)  # fmt: skip
def test_errors_of_queries(where: str, message: str) -> None:
    with pytest.raises(CompileError) as error:
        compiled(f"where {where} select [$A[T]]", CATALOGUE, libraries=LIBRARIES)
    assert message in str(error.value)
    assert error.value.problems[0].kind == "BadArgument"


# --- libraries at fault -------------------------------------------------------


def test_a_state_no_snapshot_holds() -> None:
    class Odd(windows._Last):
        def save(self) -> Any:
            return {1, 2}

    class OddWindow(windows.Last):
        def open(self, **constants: Any) -> LiveWindow:
            return Odd(constants["n"])

    libraries = Libraries()
    libraries.register("odd", {"last": OddWindow()})
    c = compiled("where odd.last($A, 2) select [$A[T]]", CATALOGUE, libraries=libraries)
    one = node(c, CATALOGUE)
    with pytest.raises(NodeFailed, match="set is no plain value"):
        one.snapshot()
