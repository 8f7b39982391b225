"""The temporal engine by what its streams are like: rows a step, inputs with one that is slow, what
waits for it with and without BOUNDARY, join by hash and by nested loop, memory of a live tuple.
One process, one core; waits are counted in ticks of the streams' own time."""

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
from seustream.engine.stream.merge import Merger
from seustream.engine.temporal.aggregates.index import Index, ListIndex
from seustream.engine.temporal.aggregates.live import (
    Live,
    MergeHeap,
    RunningTotal,
    Staircase,
    TwoStacks,
)
from seustream.engine.temporal.aggregates.suffix import SuffixIndex
from seustream.engine.temporal.collection import (
    Collection,
    CollectionRow,
    TableCollection,
    TimeCollection,
)
from seustream.engine.temporal.columnar.run import ColumnarRun
from seustream.engine.temporal.elements import FOREVER, STOP, StreamElement, boundary, insertion
from seustream.engine.temporal.network import ElementNetwork
from seustream.engine.temporal.operators import Profile
from seustream.engine.temporal.synchroniser import Synchroniser

TITLE = "temporal streams: rows a step, inputs, waiting, joins, memory"
PARTS = ("batches", "inputs", "joins", "memory")

LISTS = [["k", "INTEGER"], ["v", "INTEGER"]]
CATALOGUE = {name: Schema(from_lists(name, LISTS)) for name in "AB"}
TREES = {name: schema.tree for name, schema in CATALOGUE.items()}
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
        " numpy",
        tuple(others),
    )


# --- rows a step --------------------------------------------------------------


def _batches(ratios: dict[str, float]) -> FigureTable:
    """Both inputs of a join or union have a tuple each tick; a step takes all of a tick."""
    rows: list[tuple[object, ...]] = []
    for title, text in QUERIES.items():
        c = compile_query(text, CATALOGUE)
        found = {}
        for size in BATCHES:
            tuples = min(200_000, max(4_000, 100 * size))
            streams = _streams(c.network.sources, tuples // len(c.network.sources))
            run = ColumnarRun(c, TREES, step_rows=size)
            began = time.perf_counter()
            for name, table in streams.items():
                run.push(name, table)
            for _ in run.finish():
                pass
            found[size] = (time.perf_counter() - began) * 1e6 / tuples
            rows.append((title, size, tuples, found[size]))
        ratios[f"{title}: steps of 1 over steps of 4,096"] = found[1] / found[4_096]
    return FigureTable("rows a step", ("what", "rows a step", "tuples", "µs a tuple"), rows)


def _streams(names: Sequence[str] | dict[str, int], tuples: int) -> dict[str, pa.Table]:
    chance = np.random.default_rng(4)
    ts = np.arange(tuples)
    return {
        name: pa.table(
            {
                "ts": ts,
                "te": ts + 1,
                "k": chance.integers(0, 100, tuples),
                "v": chance.integers(0, 100, tuples),
            }
        )
        for name in names
    }


# --- inputs, one of them slow -------------------------------------------------


class _Waits:
    """A receiver that notes how many ticks passed between an element's start and its release."""

    def __init__(self) -> None:
        self.now = 0
        self.waits: list[int] = []

    def reorganise(self, now: int) -> None: ...

    def execute(self, source: int, x: StreamElement) -> None:
        self.waits.append(self.now - x.ts)

    def broadcast(self, source: int, x: StreamElement) -> None: ...

    def control(self, source: int, x: StreamElement) -> None: ...

    def end(self) -> None: ...


def _inputs(ratios: dict[str, float]) -> FigureTable:
    rows: list[tuple[object, ...]] = []
    for inputs in (2, 4, 8, 16, 32, 64):
        worst = {}
        for beat in (HEARTBEAT, 0):
            how = "BOUNDARY" if beat else "none"
            waits, most, micros = _tuple_at_a_time(inputs, beat)
            worst[how] = float(np.mean(waits))
            of = (float(np.mean(waits)), float(np.percentile(waits, 99)), max(waits))
            rows.append((inputs, how, "tuple at a time", micros, *of, most))
            rows.append((inputs, how, "columnar", *_columnar(inputs, beat)))
        if inputs in (2, 64):
            what = f"{inputs} inputs: mean wait without BOUNDARY over with"
            ratios[what] = worst["none"] / worst["BOUNDARY"]
    head = (
        "inputs",
        "slow one sends",
        "how",
        "µs a tuple",
        "mean wait",
        "99 %",
        "worst",
        "waiting",
    )
    return FigureTable("inputs with one slow stream: waits in ticks, most that waited", head, rows)


def _tuple_at_a_time(inputs: int, beat: int) -> tuple[list[int], int, float]:
    receiver = _Waits()
    sync = Synchroniser(inputs, receiver)
    slow = inputs - 1
    began = time.perf_counter()
    for now in range(TICKS):
        receiver.now = now
        for i in range(slow):
            sync.put(i, insertion(now, now + 1, i))
        if now % PERIOD == PERIOD - 1:
            sync.put(slow, insertion(now, now + 1, slow))
        elif beat and now % beat == beat - 1:
            sync.put(slow, boundary(now))
    for i in range(inputs):
        sync.put(i, STOP)
    taken = time.perf_counter() - began
    return receiver.waits, sync.most_waiting, taken * 1e6 / len(receiver.waits)


def _columnar(inputs: int, beat: int) -> tuple[object, ...]:
    """Rows arrive and are released every HEARTBEAT ticks."""
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
    """Tuples of B against so many of A that live, one of which matches."""
    text = "where window.unbounded($A), window.now($B), $A.k == $B.k select [x = $A.v, y = $B.v]"
    c = compile_query(text, CATALOGUE)
    rows: list[tuple[object, ...]] = []
    for live in (10, 100, 1_000, 10_000):
        found = {}
        for how, reference in (("hash", False), ("nested loop", True)):
            tuples = max(20, 200_000 // live) if reference else 20_000
            network = ElementNetwork(c.network, c.tree, TREES, Profile(reference=reference))
            out: list[StreamElement] = []
            network.subscribe(out.append)
            network.start()
            for k in range(live):
                network.feed("A", insertion(0, FOREVER, k, k))
            network.feed("A", STOP)
            chance = np.random.default_rng(5)
            coming = [insertion(1 + i, 2 + i, int(chance.integers(live)), i) for i in range(tuples)]
            began = time.perf_counter()
            for x in coming:
                network.feed("B", x)
            network.feed("B", STOP)
            found[how] = (time.perf_counter() - began) * 1e6 / tuples
            # A HEADER, the pairs, perhaps boundaries, STOP.
            assert sum(len(x.values) == 2 for x in out) == tuples
            network.stop()
            rows.append((live, how, tuples, found[how]))
        ratios[f"{live:,} live tuples: nested loop over hash"] = (
            found["nested loop"] / found["hash"]
        )
    return FigureTable("join", ("live tuples", "how", "tuples", "µs a tuple"), rows)


# --- memory -------------------------------------------------------------------


def _memory(ratios: dict[str, float]) -> FigureTable:
    def stored(make: Callable[[], Collection]) -> Callable[[], object]:
        def fill() -> Collection:
            kept = make()
            for i in range(LIVE):
                kept.insert(CollectionRow(i, 10**6 + i, (1 + i, 2 * i), (1 + i,)))
            return kept

        return fill

    def indexed(make: Callable[[], Index], falling: bool = False) -> Callable[[], object]:
        def fill() -> Index:
            index = make()
            for i in range(LIVE):
                index.change(((float(i),),), 0, 10**6 + (-i if falling else i))
            return index

        return fill

    of: dict[str, Callable[[], object]] = {
        "collection of a window": stored(TimeCollection),
        "time-table": stored(lambda: TableCollection(0)),
        # Ends that fall touch one element each; the order does not matter to what is kept.
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
