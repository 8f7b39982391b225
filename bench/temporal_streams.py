"""The temporal engine by properties of its streams: rows per step, inputs with a slow one, the
tuples that wait for it with and without BOUNDARY, join by hash and by nested loop, memory of a live
tuple. One process, one core; waits are in ticks of the streams' own time."""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from seustream.commands.bench import FigureTable, Measurement
from seustream.compiler.apas.compile import compile_query
from seustream.compiler.apas.functions import Registered
from seustream.compiler.apas.symbols import Schema
from seustream.compiler.apas.tree import from_lists
from seustream.compiler.apas.types import DOUBLE
from seustream.compiler.language.aggregates import AGGREGATES
from seustream.compiler.xsql.intervals import interval_stream
from seustream.engine.stream.merge import END_OF_STREAM, Merger
from seustream.engine.temporal.aggregates.index import Index, ListIndex
from seustream.engine.temporal.aggregates.live import (
    Live,
    MergeHeap,
    RunningTotal,
    Staircase,
    TwoStacks,
)
from seustream.engine.temporal.aggregates.suffix import SuffixIndex
from seustream.engine.temporal.stream import TemporalNode

TITLE = "temporal streams: rows a step, inputs, waiting, memory"
PARTS = ("batches", "inputs", "joins", "memory")

LISTS = [["k", "INTEGER"], ["v", "INTEGER"]]
CATALOGUE = {name: Schema(from_lists(name, LISTS)) for name in "AB"}
STREAMS = {name: interval_stream(name, schema.tree) for name, schema in CATALOGUE.items()}
QUERIES = {
    "filter": "where $A.v > 50 select [$A[T]]",
    "union": "where util.union($A, $B) select [$new[T]]",
    "join": "where window.range($A, 200), window.range($B, 200), $A.k == $B.k"
    " select [x = $A.v, y = $B.v]",
    "aggregate": "where window.range($A, 200) select [s = agg.sum($A.v), m = agg.max($A.v)]",
}
BATCHES = (1, 4, 16, 64, 256, 1_024, 4_096)
TICKS, PERIOD, HEARTBEAT = 5_000, 500, 10
LIVE = 10_000

SUM = Registered(AGGREGATES["sum"], DOUBLE)


def measure(parts: Sequence[str] = PARTS) -> Measurement:
    ratios: dict[str, float] = {}
    tables = [_PARTS[part](ratios) for part in parts]
    first, *others = tables
    return Measurement(
        first.head,
        first.rows,
        ratios,
        f"inputs: {TICKS:,} ticks, one tuple a tick, the slow one every {PERIOD} ticks, its BOUNDARY"
        f" every {HEARTBEAT}; memory: {LIVE:,} live tuples of two integers, as traced in Python and"
        " numpy; seed 4",
        tuple(others),
    )


# --- rows a step --------------------------------------------------------------


def _batches(ratios: dict[str, float]) -> FigureTable:
    """Measures steps in which both inputs of a join or union have a tuple at each tick; a step
    takes whole ticks."""
    rows: list[tuple[object, ...]] = []
    for title, text in QUERIES.items():
        c = compile_query(text, CATALOGUE)
        found = {}
        for size in BATCHES:
            tuples = min(200_000, max(4_000, 100 * size))
            streams = _streams(c.network.sources, tuples // len(c.network.sources))
            node = TemporalNode(c, STREAMS, step_rows=size)
            began = time.perf_counter()
            for name, table in streams.items():
                node.push(name, table)
                node.advance(name, END_OF_STREAM)
            for _ in node.outputs():
                pass
            found[size] = (time.perf_counter() - began) * 1e6 / tuples
            rows.append((title, size, tuples, found[size]))
        ratios[f"{title}: steps of 1 over steps of 4,096"] = found[1] / found[4_096]
    return FigureTable("rows a step", ("what", "rows a step", "tuples", "µs a tuple"), rows)


def _streams(
    names: Sequence[str] | dict[str, int], tuples: int, keys: int = 100
) -> dict[str, pa.Table]:
    chance = np.random.default_rng(4)
    ts = np.arange(tuples)
    return {
        name: pa.table(
            {
                "ts": ts,
                "te": ts + 1,
                "k": chance.integers(0, keys, tuples),
                "v": chance.integers(0, 100, tuples),
            }
        )
        for name in names
    }


# --- inputs, one of them slow -------------------------------------------------


def _inputs(ratios: dict[str, float]) -> FigureTable:
    rows: list[tuple[object, ...]] = []
    for inputs in (2, 4, 8, 16, 32, 64):
        worst = {}
        for beat in (HEARTBEAT, 0):
            how = "BOUNDARY" if beat else "none"
            found = _columnar(inputs, beat)
            worst[how] = float(found[1])
            rows.append((inputs, how, *found))
        if inputs in (2, 64):
            what = f"{inputs} inputs: mean wait without BOUNDARY over with"
            ratios[what] = worst["none"] / worst["BOUNDARY"]
    head = (
        "inputs",
        "slow one sends",
        "µs a tuple",
        "mean wait",
        "99 %",
        "worst",
        "waiting",
    )
    return FigureTable("inputs with one slow stream: waits in ticks, most that waited", head, rows)


def _columnar(inputs: int, beat: int) -> tuple[float, ...]:
    """Merges rows that arrive, and are released, every HEARTBEAT ticks."""
    names = [f"s{i}" for i in range(inputs)]
    *fast, slow = names
    merger = Merger(names)
    waits: list[np.ndarray[tuple[int], np.dtype[np.int64]]] = []
    most = 0
    began = time.perf_counter()
    for now in range(0, TICKS, HEARTBEAT):
        ts = np.arange(now, now + HEARTBEAT)
        last = now + HEARTBEAT - 1
        for name in fast:
            merger.push(name, pa.table({"ts": ts, "v": ts}))
        if last % PERIOD == PERIOD - 1:
            merger.push(slow, pa.table({"ts": [last], "v": [last]}))
        elif beat:
            merger.boundary(slow, last)
        most = max(most, sum(merger.waiting.values()))
        waits += [last - at for at in _released(merger)]
    for name in names:
        merger.stop(name)
    waits += [TICKS - 1 - at for at in _released(merger)]
    micros = (time.perf_counter() - began) * 1e6
    every = np.concatenate(waits)
    of = (float(every.mean()), float(np.percentile(every, 99)), int(every.max()))
    return (micros / len(every), *of, most)


def _released(merger: Merger) -> Iterator[np.ndarray[tuple[int], np.dtype[np.int64]]]:
    for part in merger.release(8_192):
        for rows in part.rows:
            yield np.asarray(rows.column("ts"))


# --- joins --------------------------------------------------------------------


def _joins(ratios: dict[str, float]) -> FigureTable:
    """Joins by an equality, which uses a hash table, and by equivalent arithmetic, for which every
    pair of a step is tried and stored: hence the small steps."""
    rows: list[tuple[object, ...]] = []
    for live in (10, 100, 1_000, 10_000):
        took, results = {}, {}
        for how, condition in (("hash", "$A.k == $B.k"), ("nested loop", "$A.k - $B.k == 0")):
            text = (
                f"where window.range($A, {live}), window.range($B, {live}), {condition}"
                " select [x = $A.v, y = $B.v]"
            )
            c = compile_query(text, CATALOGUE)
            tuples = 2 * live + 2_000
            streams = _streams(c.network.sources, tuples, live)
            node = TemporalNode(c, STREAMS, step_rows=256)
            began = time.process_time()
            for name, table in streams.items():
                node.push(name, table)
                node.advance(name, END_OF_STREAM)
            results[how] = sum(rows.num_rows for _, rows in node.outputs())
            took[how] = (time.process_time() - began) * 1e6 / (2 * tuples)
            rows.append((live, how, 2 * tuples, took[how]))
        assert results["hash"] == results["nested loop"] > 0, results
        ratios[f"{live:,} live tuples: nested loop over hash"] = took["nested loop"] / took["hash"]
    return FigureTable("joins", ("live tuples", "by", "tuples", "µs a tuple"), rows)


# --- memory -------------------------------------------------------------------


def _memory(ratios: dict[str, float]) -> FigureTable:
    def indexed(make: Callable[[], Index], falling: bool = False) -> Callable[[], object]:
        def fill() -> Index:
            index = make()
            for i in range(LIVE):
                index.change(((float(i),),), 0, 10**6 + (-i if falling else i))
            return index

        return fill

    of: dict[str, Callable[[], object]] = {
        # Falling ends touch one element each; the order does not affect what is kept.
        "sum: list": indexed(lambda: ListIndex([SUM]), falling=True),
    }
    structures: dict[str, Callable[[], Live]] = {
        "sum: running total": lambda: RunningTotal(SUM),
        "min: staircase": lambda: Staircase(greatest=False),
        "sum: heap": lambda: MergeHeap(SUM),
        "sum: two stacks": lambda: TwoStacks(SUM),
    }
    for name, make in structures.items():
        of[name] = indexed(partial(_suffix, make))
    rows: list[tuple[object, ...]] = [(name, _traced(fill) / LIVE) for name, fill in of.items()]
    return FigureTable("bytes of a live tuple", ("what", "bytes a live tuple"), rows)


def _suffix(make: Callable[[], Live]) -> Index:
    return SuffixIndex([SUM], [make()])


def _traced(fill: Callable[[], object]) -> int:
    gc.collect()
    tracemalloc.start()
    try:
        kept = fill()
        gc.collect()
        found = tracemalloc.get_traced_memory()[0]
        del kept
        return found
    finally:
        tracemalloc.stop()


_PARTS: dict[str, Callable[[dict[str, float]], FigureTable]] = {
    "batches": _batches,
    "inputs": _inputs,
    "joins": _joins,
    "memory": _memory,
}
