"""The processor in clock cycles, which are the same on every machine.

Workloads: cycles per raw tuple on `default3`, with seeded random streams, once the windows are
full; for each workload its busiest unit, and the unit that waits most for another. The workloads
show where the processor is slow as much as where it is fast.

Configurations: one of these workloads on every configuration that a board has.

Groups: results of a join that are counted and summed by key and time window, on the configuration
`grouping`, beside the same results delivered one by one.

Scan: four factors over windows of 2,040 tuples in which nothing joins. It counts the pairs per
cycle that an area examines, with factor arrays of several numbers of lanes, and with the serial
unit, which runs the program for every pair as in the thesis.
"""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bench.boards import SMALL
from seustream.commands.bench import FigureTable, Measurement
from seustream.compiler.pipeline import Options, compile_text
from seustream.compiler.wjasip.image import decode
from seustream.cosim.verilated.device import VerilatedDevice
from seustream.hdl.config import CONFIGURATIONS, MAX_ATTRIBUTES, DeviceConfig
from seustream.hdl.device import Batch, UnitCycles
from seustream.hdl.hashing import bucket_of, seed_of
from seustream.hdl.layouts import Layouts

TITLE = "device: cycles a raw tuple by workload and by configuration, pairs a cycle when scanning"

SEED = 22
CONFIG = CONFIGURATIONS["default3"]
WINDOWS = (64, 256, 1_024, CONFIG.capacity, CONFIG.depth)
BOARDS = (CONFIG, CONFIGURATIONS["thesis"], CONFIGURATIONS["serial"], CONFIGURATIONS["tiny"], SMALL)
LANES = (0, 1, 4, 8, 16)
SCANNED_WINDOW = 2_040
SCANNED = 300  # raw tuples measured, once the windows are full

AREAS = 2
# Two areas are enough to measure one, and quick to build.
_BASE = dataclasses.replace(CONFIGURATIONS["default"], streams=AREAS, factors=4, queries=4, tags=16)

STREAMS = """CREATE STREAM R (a int, b int, c int, d int);
CREATE STREAM S (a int, b int, c int, d int);
"""
THREE = STREAMS + "CREATE STREAM T (a int, b int, c int, d int);\n"
_SCAN = """SELECT * FROM R, S WHERE R.a = S.a AND R.b > S.b AND R.c < S.c AND R.d <> S.d
WINDOW RANGE {0};"""
EQUAL = "SELECT * FROM R, S WHERE R.a = S.a WINDOW ROWS {0};"
_THREE_EQUAL = "SELECT * FROM R, S, T WHERE R.a = S.a AND S.a = T.a WINDOW ROWS {0};"
_THETA = """SELECT * FROM R, S WHERE R.a < S.a AND R.b > S.b AND R.c < S.c AND R.d > S.d
WINDOW ROWS {0};"""
_BAND = "SELECT * FROM R, S WHERE S.a BETWEEN R.a - 5 AND R.a + 5 WINDOW ROWS {0};"
_DOOR = "SELECT * FROM R, S WHERE R.a = S.a AND R.b = {0} WINDOW ROWS 64;"
_SELECT = "SELECT * FROM R WHERE b < {0};"
_GROUPS = """SELECT S.b, count(*) AS n, sum(S.c) AS s FROM R, S WHERE R.a = S.a
GROUP BY S.b, TUMBLE(ts_newest, INTERVAL {0} millisecond) WINDOW ROWS 64;"""
_GROUPED = ((1, 16_000), (100, 16_000), (400, 16_000), (5_000, 16_000), (100, 500), (100, 50))
"""Keys, and tuples per time window."""

Codes = npt.NDArray[np.uint32]
Tuples = Callable[[int, int], Batch]
"""Raw tuples: given the number of the first one and how many."""


@dataclass(frozen=True, slots=True)
class Workload:
    """
    name      as shown in the tables
    text      queries
    before    raw tuples until the windows are full, or nearly so
    measured  raw tuples after them
    tuples    all raw tuples
    after     the measured ones, if they differ
    goal      cycles per raw tuple that are wanted; None where there is no goal
    first     the goal that the architecture was designed for, if decision 0399 corrected or dropped it
    """

    name: str
    text: str
    before: int
    measured: int
    tuples: Tuples
    after: Tuples | None = None
    goal: float | None = None
    first: float | None = None


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one workload: cycles, results and output records per raw tuple, the activity of
    the units, and the seconds simulated."""

    cycles: float
    results: float
    records: float
    units: dict[str, UnitCycles]
    seconds: float

    def most(self, what: str) -> str:
        """Returns the unit that spent most time in the state `what`, with its share of the
        cycles."""
        shares = {
            name: getattr(unit, what) / (unit.busy + unit.starved + unit.blocked)
            for name, unit in self.units.items()
        }
        name = max(shares, key=lambda name: shares[name])
        return f"{name} {shares[name]:.0%}" if shares[name] >= 0.01 else ""


def measure() -> Measurement:
    device = VerilatedDevice(CONFIG, note=print)
    todo = list(workloads())
    costs = {workload.name: run(device, workload) for workload in todo}
    rows: list[tuple[object, ...]] = []
    for workload in todo:
        cost = costs[workload.name]
        goals = ("" if goal is None else f"{goal:.2f}" for goal in (workload.goal, workload.first))
        figures = f"{cost.cycles:.2f}", *goals, f"{cost.results:.2f}"
        rows.append((workload.name, *figures, cost.most("busy"), cost.most("blocked")))
    scans = {lanes: _scan(lanes) / AREAS for lanes in LANES}
    first = costs[_windowed(64)]
    return Measurement(
        (
            "workload",
            "cycles/tuple",
            "goal",
            "first goal",
            "results/tuple",
            "busiest",
            "blocked most",
        ),
        rows,
        {
            "8 lanes over the serial unit, pairs/cycle": scans[8] / scans[0],
            "cycles/tuple, a full window over one of 64": (
                costs[_windowed(CONFIG.capacity)].cycles / first.cycles
            ),
        },
        f"default3: three areas of {CONFIG.lanes} lanes, {CONFIG.attribute_width}-bit attributes,"
        f" {CONFIG.capacity:,} tuples a window; seed {SEED}; simulated in"
        f" {sum(cost.seconds for cost in costs.values()):.0f} s",
        more=(
            FigureTable(
                BY_CONFIGURATION,
                ("configuration", "window", "cycles/tuple"),
                [(c.name, window_of(c), f"{on(c).cycles:.2f}") for c in BOARDS],
            ),
            FigureTable(
                GROUPS,
                (
                    "keys",
                    "window, tuples",
                    "cycles/tuple",
                    "ungrouped",
                    "records/tuple",
                    "ungrouped ",
                ),
                [_grouped(*each) for each in _GROUPED],
            ),
            FigureTable(
                "scan of windows in which nothing joins",
                ("by", "pairs/cycle an area", "of its lanes"),
                [
                    (f"{n} lanes", f"{scans[n]:.4f}", f"{scans[n] / n:.3f}")
                    if n
                    else ("serial unit", f"{scans[n]:.4f}", "")
                    for n in LANES
                ],
            ),
        ),
    )


# --- workloads ----------------------------------------------------------------


def _scanned(window: int) -> float:
    """Returns the goal where windows are scanned: nine tenths of the lanes of both areas are busy."""
    return window / (0.9 * CONFIG.lanes * AREAS)


def _windowed(window: int) -> str:
    return f"2-way equi-join, alternating, 1 match, window {window:,}"


BY_CONFIGURATION = "2-way equi-join, alternating, 1 match, by configuration"


def window_of(config: DeviceConfig) -> int:
    """Returns the window of the workload that all configurations can run."""
    return min(64, config.depth // 2)


def on(config: DeviceConfig) -> Cost:
    """Returns the cost of the common workload on one configuration."""
    window = window_of(config)
    most = 2_000 if config.lanes else 400
    keys = _keys(window, config.attribute_width)
    workload = Workload("", STREAMS + EQUAL.format(window), 2 * window, most, in_turn(keys))
    return run(VerilatedDevice(config, note=print), workload)


GROUPS = "groups of a 2-way equi-join, 1 match, window 64"


def _grouped(keys: int, window: int) -> tuple[object, ...]:
    """Returns the cost of grouping by so many keys, and the records that leave the processor."""
    config, joins = CONFIGURATIONS["grouping"], _keys(64)

    def tuples(first: int, n: int) -> Batch:
        batch = in_turn(joins)(first, n)
        batch.attributes[:, 1:] = _at_random(keys, [0, 1])(first, n).attributes[:, 1:]
        return batch

    device = VerilatedDevice(config, note=print)
    found: list[tuple[float, float]] = []
    for text in (_GROUPS.format(window), EQUAL.format(64)):
        cost = run(device, Workload("", STREAMS + text, 128, 16_000, tuples))
        found.append((cost.cycles, cost.records))
    (grouped, records), (single, singles) = found
    return (
        keys,
        f"{window:,}",
        f"{grouped:.2f}",
        f"{single:.2f}",
        f"{records:.3f}",
        f"{singles:.2f}",
    )


def workloads() -> Iterator[Workload]:
    for window in WINDOWS:
        keys = _keys(window)
        text = STREAMS + EQUAL.format(window)
        goal, first = (1.5, None) if window <= CONFIG.capacity else (None, 1.5)
        yield Workload(
            _windowed(window), text, 2 * window, 16_000, in_turn(keys), goal=goal, first=first
        )
        if window == WINDOWS[0]:
            # What ran before matters to the chains: this is the worst that is known.
            yield _alone(1_024, ", directly after the first workload")
    for window in (1_024, CONFIG.capacity):
        yield _alone(window)
    for window in (1_024, CONFIG.capacity):
        yield Workload(
            f"3-way equi-join, 1 match, window {window:,}",
            THREE + _THREE_EQUAL.format(window), 3 * window, 48_000,
            in_turn(_keys(window), [0, 1, 2]), goal=2,
        )  # fmt: skip
    for matches in (2, 4, 10, 100):
        yield Workload(
            f"2-way equi-join, {matches} matches, window 1,000",
            STREAMS + EQUAL.format(1_000), 2_000, 24_000 // matches,
            in_turn(_keys(1_000 // matches)), goal=matches, first=1 + matches / CONFIG.streams,
        )  # fmt: skip
    yield Workload(
        "64 queries on one join, 32 results a tuple",
        STREAMS + "".join(EQUAL.format(16 * (n + 1)) for n in range(64)), 2_048, 16_000,
        in_turn(_keys(2_048)), goal=2,  # every second tuple meets one, in all windows
    )  # fmt: skip
    yield Workload(
        "theta join, 4 inequalities, none joins, window 256",
        STREAMS + _THETA.format(256), 512, 500, _contradictory(), goal=_scanned(256),
    )  # fmt: skip
    signs = itertools.product("<=>", repeat=3)
    yield Workload(
        "27 three-way queries with inequalities, window 4",
        THREE + "".join(
            f"SELECT * FROM R, S, T WHERE R.a {x} S.a AND S.b {y} T.b AND R.c {z} T.c"
            " WINDOW ROWS 4;\n"
            for x, y, z in signs
        ), 12, 300, _at_random(8, [0, 1, 2]),
    )  # fmt: skip
    text = STREAMS + EQUAL.format(1_000)
    yield Workload(
        "2-way equi-join, 1 match, all keys in one bucket, window 1,000",
        text, 2_000, 1_000, in_turn(_in_one_bucket(1_000, text)), goal=_scanned(1_000),
    )  # fmt: skip
    yield Workload(
        "15 queries with a selection each, all dropped at the door",
        STREAMS + "".join(_DOOR.format(1_000 + n) for n in range(15)), 100, 4_000,
        _at_random(1_000, [0]), goal=1.5,
    )  # fmt: skip
    yield Workload(
        "15 queries over one stream, a selection each, 8 results a tuple",
        STREAMS + "".join(_SELECT.format((n + 1 << 28) - (1 << 31)) for n in range(15)), 100, 16_000,
        _at_random(1 << 32, [0]), goal=1.5,
    )  # fmt: skip
    yield Workload(
        "band join, BETWEEN -5 AND +5, 1 match, window 64",
        STREAMS + _BAND.format(64), 128, 400, in_turn(_keys(64, apart=16)),
        goal=2 * _scanned(64), first=_scanned(64),  # a row takes two turns
    )  # fmt: skip


def _alone(window: int, when: str = "") -> Workload:
    keys = _keys(window)
    return Workload(
        f"the same, only one stream arrives, window {window:,}{when}",
        STREAMS + EQUAL.format(window), 2 * window, 16_000, in_turn(keys), in_turn(keys, [0]),
        goal=1.5,
    )  # fmt: skip


def run(device: VerilatedDevice, workload: Workload) -> Cost:
    """Loads the queries, fills the windows, and measures the tuples that follow."""
    device.load(compile_text(workload.text, options=Options(device.config)).image)
    device.reset()
    device.push(workload.tuples(0, workload.before))
    before, cycles = device.units(), device.counters()["cycles"]
    began = time.perf_counter()
    results = device.push((workload.after or workload.tuples)(workload.before, workload.measured))
    seconds = time.perf_counter() - began
    cycles, after = device.counters()["cycles"] - cycles, device.units()
    units = {
        name: UnitCycles(
            now.busy - before[name].busy,
            now.starved - before[name].starved,
            now.blocked - before[name].blocked,
        )
        for name, now in after.items()
    }
    each = workload.measured
    records = len(results) + Layouts(device.config).group_parts * len(results.grouped)
    return Cost(cycles / each, results.delivered / each, records / each, units, seconds)


def config(**changes: int) -> DeviceConfig:
    return dataclasses.replace(_BASE, **changes)


# --- streams ------------------------------------------------------------------


def alternating(n: int, value: Callable[[np.ndarray], np.ndarray], first: int = 0) -> Batch:
    """Returns R and S in turn, a tick apart; `value` gives the attributes of each source's n-th
    tuple."""
    row = np.arange(first, first + n)
    attributes = np.zeros((n, 4), np.uint32)
    attributes[:] = value(row // 2)[:, None]
    return _batch(row % 2, row, row // 2, attributes)


def _batch(stream: np.ndarray, at: np.ndarray, sequence: np.ndarray, attributes: Codes) -> Batch:
    admit = np.ones(len(at), np.bool_)
    return Batch(stream.astype(np.uint8), at.astype(np.int64), sequence, admit, attributes)


def _keys(n: int, width: int = 32, apart: int = 0) -> Codes:
    """Returns `n` different keys in random order; with `apart`, small numbers at that distance."""
    chance = np.random.default_rng(SEED)
    if apart:
        return (chance.permutation(n) * apart + 100).astype(np.uint32)
    some = (1 << width) if width < 20 else 1 << 31  # an int of the language is signed
    return chance.choice(some, n, replace=False).astype(np.uint32)


def _in_one_bucket(n: int, text: str) -> Codes:
    """Returns `n` different keys that an index keeps in one chain. This takes knowledge of the seed
    that is loaded with these queries."""
    seed = seed_of(decode(compile_text(text, options=Options(CONFIG)).image, CONFIG), CONFIG)
    chance = np.random.default_rng(SEED)
    found: dict[int, None] = {}
    while len(found) < n:
        keys = chance.integers(0, 1 << 31, 1 << 18)
        found |= dict.fromkeys(keys[bucket_of(keys, seed, CONFIG.bucket_bits) == 5].tolist())
    return np.array(list(found)[:n], np.uint32)


def in_turn(keys: Codes, streams: list[int] | None = None) -> Tuples:
    """Returns streams that take turns, a tick apart. Every attribute of a source's n-th tuple is
    its n-th key; the keys repeat from the first."""
    chosen = np.array(streams if streams is not None else [0, 1])

    def tuples(first: int, n: int) -> Batch:
        row = np.arange(first, first + n)
        # A single stream continues the numbers where two streams in turn stopped.
        sequence = row // len(chosen) if len(chosen) > 1 else row - first + first // 2
        attributes = np.repeat(keys[sequence % len(keys)][:, None], MAX_ATTRIBUTES, axis=1)
        return _batch(chosen[row % len(chosen)], row, sequence, attributes)

    return tuples


def _at_random(below: int, streams: list[int]) -> Tuples:
    """Returns streams that take turns, with attributes below a bound, drawn anew for each tuple."""

    def tuples(first: int, n: int) -> Batch:
        chance = np.random.default_rng((SEED, first))
        row, chosen = np.arange(first, first + n), np.array(streams)
        attributes = chance.integers(0, below, (n, MAX_ATTRIBUTES)).astype(np.uint32)
        return _batch(chosen[row % len(chosen)], row, row // len(chosen), attributes)

    return tuples


def _contradictory() -> Tuples:
    """Returns streams in which every inequality holds for half of the pairs, but b equals a and d
    equals c, so that no pair satisfies all of them."""
    drawn = _at_random(1 << 30, [0, 1])

    def tuples(first: int, n: int) -> Batch:
        batch = drawn(first, n)
        batch.attributes[:, 1] = batch.attributes[:, 0]
        batch.attributes[:, 3] = batch.attributes[:, 2]
        return batch

    return tuples


# --- scan ---------------------------------------------------------------------


def _scan(lanes: int) -> float:
    """Returns the pairs per cycle over full windows in which no pair has equal first attributes."""
    device = VerilatedDevice(config(lanes=lanes, indexes=0), note=print)
    text = STREAMS + _SCAN.format(2 * SCANNED_WINDOW - 2)
    device.load(compile_text(text, options=Options(device.config)).image)

    def push(first: int, n: int) -> None:
        batch = alternating(n, lambda i: i, first)
        batch.attributes[batch.stream == 1, 0] += np.uint32(1 << 30)
        device.push(batch)

    push(0, 2 * SCANNED_WINDOW)
    pairs, cycles = device.status().pairs, device.counters()["cycles"]
    push(2 * SCANNED_WINDOW, SCANNED if lanes else SCANNED // 10)
    return (device.status().pairs - pairs) / (device.counters()["cycles"] - cycles)
