"""The memory that a window takes: bytes of state for each live row, beside the bytes of its columns.

Each query runs in a process of its own. Streams have one row per tick of 10 ms and come in steps of
16,384 rows; a window holds 200,000 rows of each stream. What is counted is the resident memory of the
process, less the mean of that of the same program with windows of 1,000 rows. `steady` is the mean after each step while the
third window passes; `peak` is the most that the process ever had, also within a step. Memory that allocators hold in reserve is given back before it is read. `columns` are the
bytes of a row as Arrow columns, ts among them; queries read all columns.

A narrow row has a time and two integers. A wide one has a time, two integers, a bigint, two doubles and a text of
about 12 bytes. There are half as many keys as rows in a window; *few* are 1,000, other ones in each joined stream, so that
there are no matches. TUMBLE keeps groups: those of half as many keys as rows count as live rows; those of few keys are set against the rows
of a window. What is less than nothing, by some megabytes of noise, is 0.
`bench memory:join,over` measures some queries anew.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from seustream.commands.bench import Measurement, folder, measured_before
from seustream.compiler.pipeline import Options, compile_text
from seustream.engine.assembly import streams_read
from seustream.engine.graph import GraphRun

TITLE = (
    "memory: bytes of a live row in the state of each kind of query, beside those of its columns"
)
LONG = True
PART_BY_PART = True

KEPT, FEW_KEPT, AT_ONCE, WINDOWS = 200_000, 1_000, 16_384, 3
FEW = 1_000  # keys

_TYPES = {
    "narrow": "k int, {c} int",
    "wide": "k int, {c} int, {c}n bigint, {c}p double, {c}q double, {c}t varchar",
}
_WIDE = "{c}, {c}n, {c}p, {c}q, {c}t"
_ON = "ON R.k = S.k WINDOW RANGE {s} s"


class Case(NamedTuple):
    """A query; the number of its keys, 0 for half as many as a window has rows; how many rows are live for each
    of a window; and the kinds of rows that it is measured on."""

    query: str
    keys: int = 0
    live: float = 1.0
    shapes: tuple[str, ...] = ("narrow", "wide")


WORK = {
    "join": Case(f"SELECT R.k, {{R}}, {{S}} FROM R JOIN S {_ON}"),
    "join of few keys": Case(f"SELECT R.k, {{R}}, {{S}} FROM R JOIN S {_ON}", FEW, 1.0, ("narrow",)),
    "band join": Case("SELECT R.k, {R}, {S} FROM R, S WHERE R.b BETWEEN S.c - 50 AND S.c + 50 WINDOW RANGE {s} s"),
    "left join": Case(f"SELECT R.k, {{R}}, {{S}} FROM R LEFT JOIN S {_ON}"),
    "three-way join": Case("SELECT R.k, {R}, {S}, {T} FROM R, S, T WHERE R.k = S.k AND S.k = T.k WINDOW RANGE {s} s", 0, 1.0, ("narrow",)),
    "group of one key": Case("SELECT {count} FROM R WINDOW RANGE {s} s", 1, 1.0, ("narrow",)),
    "group of few keys": Case("SELECT k, {count} FROM R GROUP BY k WINDOW RANGE {s} s", FEW),
    "group of many keys": Case("SELECT k, {count} FROM R GROUP BY k WINDOW RANGE {s} s", 0, 1.0, ("narrow",)),
    "tumble": Case("SELECT k, sum(b) FROM R GROUP BY k, TUMBLE(ts, INTERVAL '{s}' SECOND)", 0, 0.5, ("narrow",)),
    "tumble of few keys": Case("SELECT k, {count} FROM R GROUP BY k, TUMBLE(ts, INTERVAL '{s}' SECOND)", FEW),
    "hop": Case(
        "SELECT k, sum(b) FROM R GROUP BY k, HOP(ts, INTERVAL '{s}00' MS, INTERVAL '{s}' SECOND)", 0, 1.0, ("narrow",),
    ),
    "over": Case(
        "SELECT k, {count} OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '{s}' SECOND PRECEDING"
        " AND CURRENT ROW) FROM R", 0, 1.0, ("narrow",),
    ),
    "pattern": Case(
        "PATTERN ANY a; ANY b; ANY c FROM R PARTITION BY k WHERE a.b < b.b AND b.b < c.b"
        " WITHIN {s} s RETURN a.b, b.b, c.b", 0, 1.0, ("narrow",),
    ),
}  # fmt: skip
PARTS = tuple(WORK)
SHORT = {"PARTS": ("join", "left join", "group of few keys")}
HEAD = ("query", "row", "columns", "steady", "peak", "steady over columns", "peak over columns")


def measure(parts: Sequence[str] = PARTS) -> Measurement:
    rows = measured_before("memory", HEAD, lambda row: row[0] not in parts)
    for name in parts:
        for shape in WORK[name].shapes:
            columns, base, _ = _child(name, shape, FEW_KEPT)
            _, *full = _child(name, shape, KEPT)
            live = KEPT * WORK[name].live * len(_streams(name))
            each = [max(0.0, size - base) / live for size in full]
            rows.append((name, shape, columns, *each, *(one / columns for one in each)))
    rows.sort(key=lambda row: PARTS.index(str(row[0])))
    what = f"windows of {KEPT:,} rows a stream, the engine alone, one thread, seed 29"
    return Measurement(HEAD, rows, {}, what)


def _child(name: str, shape: str, kept: int) -> list[float]:
    command = [sys.executable, "-m", "bench.memory", name, shape, str(kept)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder().parent)
    return [float(word) for word in done.stdout.split()]


def _streams(name: str) -> dict[str, str]:
    """Returns the streams that a query reads, with the letter of their columns."""
    query = WORK[name].query
    own = {"R": "b", "S": "c", "T": "d"}
    return {stream: of for stream, of in own.items() if re.search(rf"\b{stream}\b", query)}


def _text(name: str, shape: str, kept: int) -> str:
    own = _streams(name)
    query = WORK[name].query
    read = {s: (_WIDE if shape == "wide" else "{c}").format(c=c) for s, c in own.items()}
    count = "sum(b), min(b)"
    if shape == "wide":
        count += ", sum(bn), avg(bp), max(bq), max(bt)"
    if name == "over":
        count = "sum(b)"
    creates = "".join(f"CREATE STREAM {s} ({_TYPES[shape].format(c=c)});\n" for s, c in own.items())
    return f"{creates}REGISTER QUERY q AS {query.format(s=kept // 100, count=count, **read)};"


def _rows(name: str, shape: str, kept: int, stream: str, first: int, size: int) -> pa.Table:
    case, number = WORK[name], "RST".index(stream)
    chance = np.random.default_rng([29, number, first])
    keys, c = case.keys or kept // 2, _streams(name)[stream]
    below = 100 * kept if name == "band join" else 1_000
    apart = number * FEW if case.keys == FEW and len(_streams(name)) > 1 else 0
    columns: dict[str, object] = {
        "ts": (first + np.arange(size)) * 10,
        "k": chance.integers(0, keys, size, np.int32) + np.int32(apart),
        c: chance.integers(0, below, size, np.int32),
    }
    if shape == "wide":
        numbers = chance.integers(0, 10**12, size)
        columns[f"{c}n"] = numbers
        columns[f"{c}p"], columns[f"{c}q"] = chance.random(size), chance.random(size)
        columns[f"{c}t"] = pa.array(numbers).cast(pa.string()).cast(pa.binary()).cast(pa.string())
    return pa.table(columns)


def run(name: str, shape: str, kept: int) -> list[float]:
    """Returns the bytes of a row of the columns, then of the process: in the mean, and at most."""
    pa.set_cpu_count(1)
    c = compile_text(_text(name, shape, kept), options=Options(devices=0))
    graph, read, seen = GraphRun(c), streams_read(c.program), list[int]()
    steps = max(WINDOWS * kept // AT_ONCE, 2 * WINDOWS)
    columns = 0.0
    for step in range(steps):
        for stream in _streams(name):
            if stream in read:
                rows = _rows(name, shape, kept, stream, step * AT_ONCE, AT_ONCE)
                columns = rows.nbytes / rows.num_rows
                graph.push(stream, rows)
                del rows
        for _ in graph.advance():
            pass
        if step >= steps * (WINDOWS - 1) // WINDOWS:
            seen.append(resident())
    return [columns, float(np.mean(seen)), float(_status("VmHWM"))]


def resident() -> int:
    """Returns the resident memory of the process without reserves of allocators."""
    pa.default_memory_pool().release_unused()
    ctypes.CDLL(None).malloc_trim(0)
    return _status("VmRSS")


def _status(name: str) -> int:
    """Returns a size in bytes that Linux gives for this process."""
    text = Path("/proc/self/status").read_text("utf-8")
    return 1024 * int(text.partition(f"{name}:")[2].split()[0])


if __name__ == "__main__":
    print(*run(sys.argv[1], sys.argv[2], int(sys.argv[3])))
