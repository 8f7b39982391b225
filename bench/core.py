"""Groups under ANY SUBSETS and sequences beside CORE, a complex event recognition engine in C++.

CORE (https://github.com/CORE-cer/CORE) takes one event at a time, in a time that does not depend on
the number of matches, and enumerates complex events from its state; its `B+` is every choice of
members. It runs without its server, in one thread, as built by
`bench/pattern_engines/core/Makefile`; SEUSTREAM_CORE names the build folder. Its logging is off and
its assertions are compiled out. Ours goes through the whole engine, from push to results, with 1,
64 and 4,096 rows per step, once with the matcher that the engine chooses and once with the matcher
`compiled`.

A figure is the processor time of a pass over all events, the median of PASSES after a first pass
that is discarded. Each pass is later than the previous one by more than a window. Both sides find
their events ready in memory, as an Arrow table here and as objects of CORE there. `members`: every
match delivers the id of each of its events, here as columns, with a list for a group; CORE's driver
takes the ids from each complex event and adds them up. `count`: ours delivers the count of a group
instead of the list, but still enumerates each match. `detected`: CORE without enumeration, which is
the cost for an application that asks for few of the matches; ours always enumerates.

The two languages agree on these queries after small adaptations. Types are a column here and event
types there. Our window is inclusive, `WITHIN 500 ms`; CORE's `WITHIN n [ts]` spans n values of ts,
hence 501. `CONSUME BY NONE` keeps events that were in a match. Simultaneous events are in no
sequence here and in order of arrival there, so no two events have the same time. Conditions in CORE
refer to one event each, so the queries have no conditions between two events, which are most of
what `bench engines` measures.

A pass that takes ENOUGH seconds, or has more simultaneous runs than are allowed, is abandoned; its
time per event is that of the events it reached. This concerns `nfa`, which keeps a run for each
subset and may be chosen for small steps.

Before anything is measured, the matches, their events and the sum of their ids are compared for
every query on SEEDS streams, and again in each measured pass. Streams have a row every 1 to 19 ms,
of twenty types in equal parts; each query names three or four of them. `v` is uniform, and `k` is
one of a hundred keys.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bench.patterns import load
from seustream.commands.bench import Measurement, folder, measured_before
from seustream.compiler.pipeline import Options, compile_text
from seustream.engine.graph import GraphRun
from seustream.engine.pattern.errors import PatternBudgetExceeded
from seustream.errors import UserError

TITLE = "core: ANY SUBSETS and sequences beside CORE, by rows a step (slow)"
LONG = True

EVENTS, PASSES, SEEDS = 50_000, 5, 5
CHECKED = 5_000
"""Events of a stream on which results are compared beforehand."""
STEPS = (1, 64, 4_096)
ENOUGH = 20.0
"""Seconds of processor time after which a pass is abandoned; a tenth of that for a pass that is
only compared."""
SHORT = {"EVENTS": 5_000, "PASSES": 1, "SEEDS": 3, "CHECKED": 2_000}
HEAD = (
    "query", "window", "engine", "rows a step", "returns", "events", "matches", "cpu s", "us/event",
    "matches/s", "load",
)  # fmt: skip
STREAM = "CREATE STREAM E (type varchar, id int, v double, k int);"
TYPES = (*"ABCD", *(f"T{number}" for number in range(4, 20)))
SEED = 21
OURS, GIVEN_UP = "ours", "given up"
GAP = 60_000  # ms between two passes, in addition to the window


@dataclass(frozen=True, slots=True)
class Case:
    """A query; the `v` of each of its events must be above `least`."""

    pattern: str
    window: int
    least: float | None = None
    by_key: bool = False

    @property
    def names(self) -> list[str]:
        return [element[0] for element in self.pattern.split("; ")]

    @property
    def returns(self) -> dict[str, str]:
        """Returns the RETURN clauses of our query, by name."""
        names = [name.lower() for name in self.names]
        members = ", ".join(f"{name}.id AS {name}" for name in names)
        return {"members": members, "count": members.replace("b.id AS b", "count(b) AS n")}

    @property
    def measured(self) -> list[tuple[str, str, str]]:
        """Returns our variants as they appear in rows: the label, the matcher, and what is
        returned."""
        some = self.returns if "+" in self.pattern else ("members",)
        compiled = [(f"{OURS}, compiled", "compiled", returns) for returns in some]
        return [(OURS, "auto", "members"), *compiled]

    def ours(self, returns: str) -> str:
        elements = "; ".join(f"{one} {one[0].lower()}" for one in self.pattern.split("; "))
        where = " AND ".join(f"{name.lower()}.v > {self.least}" for name in self.names)
        return (
            f"PATTERN {elements} FROM E{' PARTITION BY k' if self.by_key else ''}"
            f"{'' if self.least is None else ' WHERE ' + where} WITHIN {self.window} ms"
            f"{' USING ANY SUBSETS' if '+' in self.pattern else ''} RETURN {self.returns[returns]}"
        )

    def theirs(self) -> str:
        where = " AND ".join(f"{name}[v > {self.least}]" for name in self.names)
        return (
            f"SELECT * FROM S WHERE {self.pattern}"
            f"{'' if self.least is None else ' FILTER ' + where}"
            f"{' PARTITION BY [k]' if self.by_key else ''} WITHIN {self.window + 1} [ts] CONSUME BY NONE"
        )


_GROUP, _SINGLE = "A; B+; C", "A; B; C; D"
CASES = {
    "subsets-200ms": Case(_GROUP, 200),
    "subsets-500ms": Case(_GROUP, 500),
    "subsets-1s": Case(_GROUP, 1_000),
    "subsets-1.5s": Case(_GROUP, 1_500),
    "subsets-where": Case(_GROUP, 2_000, least=0.5),
    "subsets-key": Case(_GROUP, 60_000, by_key=True),
    "sequence-1s": Case(_SINGLE, 1_000),
    "sequence-4s": Case(_SINGLE, 4_000),
    "where-1s": Case(_SINGLE, 1_000, least=0.5),
    "where-4s": Case(_SINGLE, 4_000, least=0.5),
    "sequence-key": Case(_SINGLE, 60_000, by_key=True),
}
PARTS = tuple(CASES)
Row = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Results:
    """Matches, their events, and the sum of the ids, if these were returned."""

    matches: int
    members: int
    ids: int | None


def measure(parts: Sequence[str] = PARTS) -> Measurement:
    pa.set_cpu_count(1)
    driver = _driver()
    rows = measured_before("core", HEAD, lambda row: row[0] not in parts and row[5] == EVENTS)
    with tempfile.TemporaryDirectory() as scratch:
        small = [_Data(CHECKED, seed, Path(scratch)) for seed in range(SEEDS)]
        data = _Data(EVENTS, SEED, Path(scratch))
        for name in parts:
            for other in small:
                _rows(name, driver, other, 1, ENOUGH / 10)
            rows += _rows(name, driver, data, PASSES, ENOUGH)
    rows.sort(key=lambda row: PARTS.index(str(row[0])))
    conditions = f"one thread each, medians of processor time of {PASSES} passes, seed {SEED};"
    return Measurement(
        HEAD,
        rows,
        _ratios(rows),
        f"{conditions} results compared on {SEEDS} more",
        remarks=tuple(_remarks(rows)),
    )


def _ratios(rows: Sequence[Row]) -> dict[str, float]:
    """Returns how many times as fast ours is, where both return the members and no pass was
    abandoned."""
    cores = {row[0]: float(str(row[8])) for row in rows if row[2:5:2] == ("CORE", "members")}
    return {
        f"{row[0]}: {row[2]} over CORE, {row[3]} rows a step": cores[row[0]] / float(str(row[8]))
        for row in rows
        if row[2] != "CORE" and row[4] == "members" and row[6] != GIVEN_UP
    }


def _remarks(rows: Sequence[Row]) -> list[str]:
    """Names the queries for which CORE is faster."""
    ratios, found = _ratios(rows), list[str]()
    for label in dict.fromkeys(row[2] for row in rows if row[2] != "CORE"):
        for size in STEPS:
            end = f": {label} over CORE, {size} rows a step"
            of_these = {
                name.removesuffix(end): r for name, r in ratios.items() if name.endswith(end)
            }
            slower = [query for query, ratio in of_these.items() if ratio < 1]
            left = [str(row[0]) for row in rows if row[2:5] == (label, size, "members")]
            slower += [query for query in left if query not in of_these]
            some = "all" if len(slower) == len(left) else ", ".join(slower) or "none"
            found.append(f"{label}, {size} rows a step: CORE is faster in {some}")
    return found


def _rows(name: str, driver: Path, data: _Data, passes: int, enough: float) -> list[Row]:
    """Returns CORE's rows and ours; raises if the results differ."""
    case = CASES[name]
    expected, enumerated = _theirs(case, driver, data, passes, "enumerate")
    _, detected = _theirs(case, driver, data, passes, "detect")
    engines: list[tuple[str, int, str, int | str, float]] = [
        ("CORE", 1, "members", expected.matches, enumerated),
        ("CORE", 1, "detected", "", detected),
    ]
    for label, engine, returns in case.measured:
        for size in STEPS:
            found, seconds = _ours(case, engine, returns, size, data, passes, enough)
            if found is not None and found.ids is None:
                found = Results(found.matches, found.members, expected.ids)
            if found is not None and found != expected:
                raise AssertionError(f"{name}, seed {data.seed}: {found}, and CORE {expected}")
            engines.append((label, size, returns, found.matches if found else GIVEN_UP, seconds))
    rows = list[Row]()
    for label, size, returns, matches, each in engines:
        seconds = each * data.count
        speed: object = matches / seconds if isinstance(matches, int) else ""
        head = (name, f"{case.window} ms", label, size, returns, data.count, matches)
        total: object = "" if matches == GIVEN_UP else seconds
        rows.append((*head, total, 1e6 * each, speed, load()))
    return rows


class _Data:
    """The events, as tables and in the format that CORE's driver reads."""

    def __init__(self, count: int, seed: int, scratch: Path) -> None:
        chance = np.random.default_rng(seed)
        self.count, self.seed = count, seed
        self.rows = np.empty(
            count, [("ts", "<i8"), ("type", "<i8"), ("key", "<i8"), ("value", "<f8")]
        )
        self.rows["ts"] = np.cumsum(chance.integers(1, 20, count))
        self.rows["type"] = chance.integers(0, len(TYPES), count)
        # A step gives results only below its last time. The last event fits no query, so a pass
        # ends with all of its results.
        self.rows["type"][-1] = len(TYPES) - 1
        self.rows["key"] = chance.integers(0, 100, count)
        self.rows["value"] = chance.random(count)
        self.file = scratch / f"events-{count}-{seed}.bin"
        self.rows.tofile(self.file)

    def shift(self, case: Case) -> int:
        """Returns by how much a pass is later than the previous one."""
        return int(self.rows["ts"][-1]) + case.window + GAP

    def table(self, later: int) -> pa.Table:
        ids: npt.NDArray[np.int32] = np.arange(self.count, dtype=np.int32)
        return pa.table(
            {
                "ts": self.rows["ts"] + later,
                "type": pa.array(TYPES).take(pa.array(self.rows["type"])),
                "id": ids,
                "v": np.ascontiguousarray(self.rows["value"]),
                "k": self.rows["key"].astype(np.int32),
            }
        )


def _ours(
    case: Case, engine: str, returns: str, size: int, data: _Data, passes: int, enough: float
) -> tuple[Results | None, float]:
    """Returns what was found, or None if a pass took too long, and the seconds per event."""
    text = f"{STREAM}REGISTER QUERY q AS {case.ours(returns)};"
    run = GraphRun(compile_text(text, options=Options(devices=0)), engine=engine)
    results, seconds = set[Results](), list[float]()
    for number in range(passes + 1):
        table, parts = data.table(number * data.shift(case)), list[pa.Table]()
        begun = time.process_time()
        for begin in range(0, data.count, size):
            try:
                run.push("E", table.slice(begin, size))
                parts += [part for _, part in run.advance()]
            except PatternBudgetExceeded:
                return None, (time.process_time() - begun) / (begin + size)
            so_far = time.process_time() - begun
            if so_far > enough and begin + size < data.count:
                return None, so_far / (begin + size)
        seconds.append(time.process_time() - begun)
        results.add(_counted(parts, returns))
    return _same(results, case.ours(returns)), statistics.median(seconds[1:]) / data.count


def _counted(parts: Sequence[pa.Table], returns: str) -> Results:
    matches = members = ids = 0
    for part in parts:
        matches += part.num_rows
        for name in set(part.column_names) - {"ts"}:
            column = part[name].combine_chunks()
            if name == "n":
                members += pc.sum(column).as_py() or 0
                continue
            values = column.flatten() if pa.types.is_list(column.type) else column
            members += len(values)
            ids += pc.sum(values.cast(pa.int64())).as_py() or 0
    return Results(matches, members, None if returns == "count" else ids)


def _theirs(case: Case, driver: Path, data: _Data, passes: int, mode: str) -> tuple[Results, float]:
    call = [str(driver), str(data.file), ",".join(TYPES), case.theirs()]
    call += [str(data.shift(case)), str(passes + 1), mode]
    done = subprocess.run(call, capture_output=True, text=True)
    if done.returncode:
        raise UserError([f"CORE's driver: {done.stderr.strip() or done.returncode}"])
    words = [line.split() for line in done.stdout.splitlines()]
    results = {Results(int(line[1]), int(line[3]), int(line[5])) for line in words}
    seconds = [float(line[7]) for line in words]
    return _same(results, case.theirs()), statistics.median(seconds[1:]) / data.count


def _same(results: set[Results], query: str) -> Results:
    """Returns the results that all passes agree on."""
    if len(results) != 1:
        raise AssertionError(f"passes differ: {results} of {query}")
    return results.pop()


def _driver() -> Path:
    """Returns CORE's driver; refuses one that is older than the source in the repository."""
    sources = folder() / "pattern_engines" / "core"
    hint = "the head of bench/pattern_engines/core/Makefile says how to build it"
    if "SEUSTREAM_CORE" not in os.environ:
        raise UserError(["SEUSTREAM_CORE names no folder with the driver of CORE"], hint=hint)
    path = Path(os.environ["SEUSTREAM_CORE"]).resolve() / "driver"
    if not path.exists():
        raise UserError([f"there is no {path}"], hint=hint)
    if path.stat().st_mtime < (sources / "Driver.cpp").stat().st_mtime:
        raise UserError([f"{path} is older than its source"], hint="make it again")
    return path
