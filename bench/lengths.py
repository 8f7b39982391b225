"""What a row costs in a long stream: each kind of query over 10,000 to ten million rows a stream.

The queries and rows are those of `growth`, with windows of 10,000 rows. Rows come in steps of 8,192 a stream. A figure
is the processor time of a run, from the first push to the last result, divided by the rows of all streams. The shortest
streams end when the first windows are full. `most beside least` is that of all longer ones: 1 means that a row costs the
same however many came before. `more memory` is what the process took beyond what it
had after the first million rows of the longest stream, in MB. It runs on Linux only.
`bench lengths:left,session` measures some queries anew.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from bench.growth import WORK, compiled, rows_of, step
from bench.memory import resident
from seustream.commands.bench import Measurement, measured_before
from seustream.engine.assembly import streams_read
from seustream.engine.graph import GraphRun

TITLE = "lengths: what a row costs in streams of 10,000 to 10,000,000 rows, by query"
LONG = True

LENGTHS = (10_000, 100_000, 1_000_000, 10_000_000)
KEPT, AT_ONCE, SETTLED = 10_000, 8_192, 1_000_000
PARTS = tuple(WORK)
SHORT = {"PARTS": ("join", "group"), "LENGTHS": (10_000, 20_000, 50_000, 100_000)}
HEAD = (
    "query", *(f"cpu us/row of {length:,}" for length in LENGTHS), "most beside least", "more memory",
)  # fmt: skip


def measure(parts: Sequence[str] = PARTS) -> Measurement:
    pa.set_cpu_count(1)
    rows = measured_before("lengths", HEAD, lambda row: row[0] not in parts)
    for name in parts:
        found = [_run(WORK[name], length) for length in LENGTHS]
        each = [cost for cost, _ in found]
        rows.append((name, *each, max(each[1:]) / min(each[1:]), found[-1][1]))
    rows.sort(key=lambda row: PARTS.index(str(row[0])))
    conditions = f"one thread, the engine alone, windows of {KEPT:,} rows, seed 23"
    return Measurement(HEAD, rows, {}, conditions)


def _run(query: str, length: int) -> tuple[float, float]:
    """Returns the microseconds for a row, and by how many MB the process grew once it had settled."""
    c = compiled(query, KEPT)
    run, read, chance = GraphRun(c), streams_read(c.program), np.random.default_rng(23)
    took, settled, streams = 0.0, 0, 1
    for came in range(0, length, AT_ONCE):
        tables = rows_of(read, came, min(AT_ONCE, length - came), KEPT, chance)
        streams = len(tables)
        took += step(run, tables)
        if came <= SETTLED < came + AT_ONCE:
            settled = resident()
    grown = resident() - settled if settled else 0
    return 1e6 * took / (length * streams), grown / 1e6
