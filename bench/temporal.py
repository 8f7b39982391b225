"""The temporal engine: the aggregate index by structure; operators; what compiling takes. One process, one core."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from seustream.commands.bench import Measurement
from seustream.compiler.apas.compile import compile_query
from seustream.compiler.apas.functions import Aggregate, Registered
from seustream.compiler.apas.symbols import Schema
from seustream.compiler.apas.tree import from_lists
from seustream.compiler.apas.types import DOUBLE
from seustream.compiler.language.aggregates import AGGREGATES
from seustream.compiler.xsql.intervals import interval_stream
from seustream.engine.stream.merge import END_OF_STREAM
from seustream.engine.temporal.aggregates.index import Index, ListIndex, Piece
from seustream.engine.temporal.aggregates.live import (
    Live,
    MergeHeap,
    RunningTotal,
    Staircase,
    TwoStacks,
)
from seustream.engine.temporal.aggregates.suffix import SuffixIndex
from seustream.engine.temporal.stream import TemporalNode

TITLE = "temporal: aggregate structures, operators, compiling"
PARTS = ("indexes", "operators", "compile")

TUPLES_OF_OPERATORS = 400_000

OPERATORS = {
    "filter": "where $A.v > 50 select [$A[T]]",
    "map": "select [x = $A.v * 2 + 1, y = $A.k]",
    "union": "where util.union($A, $B) select [$new[T]]",
    "hash join": "where window.range($A, 200), window.range($B, 200), $A.k == $B.k"
    " select [x = $A.v, y = $B.v]",
    "aggregate": "where window.range($A, 200) select [s = agg.sum($A.v), m = agg.max($A.v)]",
}

SUM = Registered(AGGREGATES["sum"], DOUBLE)


class Total(Aggregate):
    """A sum as in a user's library, in a float. None of the engine's own aggregates is kept in a
    heap or in two stacks."""

    merges = True

    def init(self, v: tuple[Any, ...]) -> Any:
        return v[0]

    def add(self, state: Any, v: tuple[Any, ...]) -> Any:
        return state + v[0]

    def merge(self, a: Any, b: Any) -> Any:
        return a + b


TOTAL = Total()


def measure(parts: Sequence[str] = PARTS) -> Measurement:
    rows: list[tuple[object, ...]] = []
    ratios: dict[str, float] = {}
    of = {"indexes": _indexes, "operators": _operators, "compile": _compile}
    for part in parts:
        of[part](rows, ratios)
    return Measurement(
        ("what", "how", "size", "tuples", "µs a tuple"),
        rows,
        ratios,
        "list and structures with all ends alive; seeds 2 and 3",
    )


def _indexes(rows: list[tuple[object, ...]], ratios: dict[str, float]) -> None:
    of: dict[str, tuple[Aggregate, Callable[[], Live]]] = {
        "running total": (SUM, lambda: RunningTotal(SUM)),
        "staircase": (SUM, lambda: Staircase(greatest=False)),
        "heap": (TOTAL, lambda: MergeHeap(TOTAL)),
        "two stacks": (TOTAL, lambda: TwoStacks(TOTAL)),
    }
    for live in (100, 1_000, 10_000, 100_000):
        found: dict[str, float] = {}
        # The ends lie far apart and in no order: each tuple overlaps half of the elements.
        found["list"] = _per_tuple(lambda: ListIndex([SUM]), live, max(20, 200_000 // live))
        for name, (function, make) in of.items():
            found[name] = _per_tuple(
                partial(_suffix, function, make), live, 20_000, in_order=name == "two stacks"
            )
        for name, micros in found.items():
            rows.append(("aggregate index", name, live, "", micros))
        if live == 10_000:
            for name in of:
                ratios[f"10,000 live ends: list over {name}"] = found["list"] / found[name]


def _suffix(function: Aggregate, make: Callable[[], Live]) -> Index:
    return SuffixIndex([function], [make()])


def _per_tuple(make: Callable[[], Index], live: int, tuples: int, in_order: bool = False) -> float:
    """Returns the microseconds per tuple with `live` ends alive. None expires, so a new index takes
    over before their number grows by a fifth."""
    each = min(tuples, live // 5)
    rounds = tuples // each
    taken = sum(_seconds(make(), live, each, in_order) for _ in range(rounds))
    return taken * 1e6 / (each * rounds)


def _seconds(index: Index, live: int, tuples: int, in_order: bool) -> float:
    chance = np.random.default_rng(2)
    filled = np.sort(chance.permutation(4 * live)[:live]) + 10 * live
    index.reorganise(0)
    if isinstance(index, ListIndex):
        # Filling it one tuple at a time would take longer than the measurement.
        edges = [0, *filled.tolist()]
        index.pieces = [
            Piece(a, b, (SUM.init((float(live - i),)),), live - i)
            for i, (a, b) in enumerate(itertools.pairwise(edges))
        ]
    else:
        for te in filled.tolist():
            index.change(((1.0,),), 0, te)
    steps = chance.integers(10 * live, 14 * live, tuples)
    ends = (14 * live + np.arange(tuples) if in_order else steps).tolist()
    values = chance.normal(0, 1, tuples).tolist()
    began = time.perf_counter()
    for te, v in zip(ends, values, strict=True):
        index.reorganise(0)
        index.change(((v,),), 0, te)
    return time.perf_counter() - began


def _operators(rows: list[tuple[object, ...]], ratios: dict[str, float]) -> None:
    lists = [["k", "INTEGER"], ["v", "INTEGER"]]
    catalogue = {name: Schema(from_lists(name, lists)) for name in "AB"}
    chance = np.random.default_rng(3)
    for title, text in OPERATORS.items():
        c = compile_query(text, catalogue)
        names = tuple(c.network.sources)
        each = TUPLES_OF_OPERATORS // len(names)
        streams = {
            name: pa.table(
                {
                    "ts": np.arange(each),
                    "te": np.arange(each) + 1,
                    "k": chance.integers(0, 100, each),
                    "v": chance.integers(0, 100, each),
                }
            )
            for name in names
        }
        node = TemporalNode(c, {n: interval_stream(n, catalogue[n].tree) for n in names})
        began = time.perf_counter()
        for name, table in streams.items():
            node.push(name, table)
            node.advance(name, END_OF_STREAM)
        for _ in node.outputs():
            pass
        micros = (time.perf_counter() - began) * 1e6 / TUPLES_OF_OPERATORS
        rows.append((title, "columnar", "", TUPLES_OF_OPERATORS, micros))


def _compile(rows: list[tuple[object, ...]], ratios: dict[str, float]) -> None:
    """Compiles queries of so many definitions, each based on the previous one."""
    catalogue = {"A": Schema(from_lists("A", [["v", "INTEGER"]]))}
    for count in (1, 10, 100):
        names = ["A", *(f"d{i}" for i in range(count))]
        each = (f"d{i}[x = ${names[i]}.{'x' if i else 'v'} + {i}];" for i in range(count))
        text = f"from {' '.join(each)} select [x = ${names[-1]}.x]"
        seconds = _best(lambda text=text: compile_query(text, catalogue), 3)
        rows.append(("compile a definition", f"of {count}", "", count, seconds * 1e6 / count))


def _best(what: Callable[[], object], times: int) -> float:
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        what()
        seconds.append(time.perf_counter() - began)
    return min(seconds)
