"""The processor in clock cycles, which are the same on every machine.

Scan: four factors over windows of about 2,048 tuples in which nothing joins; how many pairs an
area looks at in a cycle, with a factor array of so many lanes and by the serial unit, which runs
the program for every pair as the thesis does. Index: one match a probe, windows of several
sizes; cycles a raw tuple. A window that fills its ring to the last slot is slower: the new tuple
takes the place of one that tuples in flight may still see, and waits for them.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable

import numpy as np

from compiler.plan.pipeline import Options, compile_text
from cosim.verilated.device import VerilatedDevice
from hdl.config import CONFIGURATIONS, DeviceConfig
from hdl.device import Batch
from seustream.commands.bench import Measurement

TITLE = "device: pairs a cycle when scanning, cycles a tuple with the equality index"

LANES = (0, 1, 8, 16, 32)
WINDOW = 2_048
SCANNED_WINDOW = 2_040  # a full ring makes a tuple wait for those in flight, see below
SCANNED = 300  # raw tuples measured, once the windows are full
INDEXED_WINDOWS = (64, 256, 1_024, 2_040, 2_048)
INDEXED = 20_000
LONG_RUN = 100_000

AREAS = 2
# Two areas are enough to measure one, and quick to build.
_BASE = dataclasses.replace(CONFIGURATIONS["default"], streams=AREAS, factors=4, queries=4, tags=16)

STREAMS = """CREATE STREAM R (a int, b int, c int, d int);
CREATE STREAM S (a int, b int, c int, d int);
"""
_SCAN = """SELECT * FROM R, S WHERE R.a = S.a AND R.b > S.b AND R.c < S.c AND R.d <> S.d
WINDOW RANGE {0};"""
EQUAL = "SELECT * FROM R, S WHERE R.a = S.a WINDOW ROWS {0};"


def measure() -> Measurement:
    rows: list[tuple[object, ...]] = []
    rate = {}
    for lanes in LANES:
        rate[lanes] = _scan(lanes) / AREAS
        name = f"{lanes} lanes" if lanes else "serial unit"
        share = f"{rate[lanes] / lanes:.3f}" if lanes else ""
        rows.append((f"scan, {name}", f"{rate[lanes]:.4f}", share, ""))
    cycles = {}
    for window in INDEXED_WINDOWS:
        cycles[window], _ = _index(window, config(indexes=1), INDEXED)
        rows.append((f"index, window {window:,} of {WINDOW:,}", "", "", f"{cycles[window]:.2f}"))
    roomy = config(indexes=1, depth=2 * WINDOW)
    full, _ = _index(WINDOW, roomy, INDEXED)
    rows.append((f"index, window {WINDOW:,} of {2 * WINDOW:,}", "", "", f"{full:.2f}"))
    _, seconds = _index(1_024, config(indexes=1), LONG_RUN)
    return Measurement(
        ("run", "pairs/cycle an area", "of its lanes", "cycles/tuple"),
        rows,
        {
            "8 lanes over the serial unit, pairs/cycle": rate[8] / rate[0],
            "index, cycles/tuple, window 2,040 over 64": cycles[2_040] / cycles[64],
        },
        f"32-bit attributes, two streams; {LONG_RUN:,} indexed tuples simulated in {seconds:.1f} s",
    )


def config(**changes: int) -> DeviceConfig:
    return dataclasses.replace(_BASE, **changes)


def _device(text: str, config: DeviceConfig) -> VerilatedDevice:
    device = VerilatedDevice(config, note=print)
    device.load(compile_text(STREAMS + text, options=Options(config)).image)
    return device


def alternating(n: int, value: Callable[[np.ndarray], np.ndarray], first: int = 0) -> Batch:
    """R and S in turn, a tick apart; `value` gives the attributes of each source's n-th tuple."""
    row = np.arange(first, first + n)
    attributes = np.zeros((n, 4), np.uint32)
    attributes[:] = value(row // 2)[:, None]
    return Batch(
        (row % 2).astype(np.uint8), row.astype(np.int64), row // 2, np.ones(n, np.bool_), attributes
    )


def _scan(lanes: int) -> float:
    """Pairs a cycle over full windows in which no pair has equal first attributes."""
    device = _device(_SCAN.format(2 * SCANNED_WINDOW - 2), config(lanes=lanes, indexes=0))

    def push(first: int, n: int) -> None:
        batch = alternating(n, lambda i: i, first)
        batch.attributes[batch.stream == 1, 0] += np.uint32(1 << 30)
        device.push(batch)

    push(0, 2 * SCANNED_WINDOW)
    pairs, cycles = device.status().pairs, device.counters()["cycles"]
    push(2 * SCANNED_WINDOW, SCANNED if lanes else SCANNED // 10)
    return (device.status().pairs - pairs) / (device.counters()["cycles"] - cycles)


def _index(window: int, config: DeviceConfig, tuples: int) -> tuple[float, float]:
    """Cycles a raw tuple, each of which meets exactly one equal one; seconds of simulation."""
    device = _device(EQUAL.format(window), config)
    device.push(alternating(2 * window, lambda i: i % window))
    cycles, began = device.counters()["cycles"], time.perf_counter()
    results = device.push(alternating(tuples, lambda i: i % window, 2 * window))
    seconds = time.perf_counter() - began
    assert len(results) == tuples, "one match a probe"
    return (device.counters()["cycles"] - cycles) / tuples, seconds
