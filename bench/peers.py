"""The engine beside others on one join and one sliding sum: DuckDB, DataFusion and Polars as batch
engines; Pathway, Bytewax, Kafka Streams, Esper and Siddhi as stream engines.

Each engine states the work in its own way (`bench/peer_engines`) and runs in a process of its own
with one worker. A figure is the time per row from rows in memory (for Pathway from CSV files) to
results in memory: the processor time of all threads of the process, and the time of the clock. It
is of one run, after a run on a tenth of the rows; of Java engines it is the second of two passes,
when the machine has compiled what runs. The rows come from the seed 21. The results are counted and
compared by value with those of DuckDB.

`over ours` is the processor time over that of seustream with the rows at once, or for an engine
that gets them one by one or in steps, over that of seustream in steps. Where it is below 1, the
other is faster. A row without figures says why in its remark: the engine is not installed, or it
takes more than a minute.

`bench peers:polars,esper` measures some of the engines and keeps the last results of the others. It
needs the group `bench` and, for Kafka Streams, Esper and Siddhi, Java 17 and Maven.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from pyarrow import feather

from bench import java
from bench.peer_engines import ENGINES, SEED, STEP, WORKS, digest, python, rows
from seustream.commands.bench import Measurement, folder, measured_before
from seustream.errors import UserError

TITLE = "peers: a join and a sliding sum beside eight engines, batch and stream (slow)"
LONG = True
PART_BY_PART = True
PARTS = tuple(ENGINES)
SIZES: tuple[int, ...] = (100_000, 1_000_000)
WINDOWS: tuple[int, ...] = (2_000, 100_000)
SHORT = {
    "PARTS": tuple(name for name in ENGINES if name not in ("kafka", "esper", "siddhi")),
    "SIZES": (20_000,),
    "WINDOWS": (2_000,),
}
OURS = (ENGINES["seustream"][0], ENGINES["steps"][0])
LIMIT = 60.0
"""Seconds that a run may take; an engine that would take longer is not measured."""
SLOW = "more than a minute"
_POMS = {"kafka": "peer_engines", "esper": "pattern_engines", "siddhi": "pattern_engines"}
"""The Java engines, and where the list of what each depends on is."""
HEAD = (
    "engine",
    "version",
    "takes rows",
    "work",
    "window",
    "rows",
    "results",
    "cpu us/row",
    "wall us/row",
    "over ours",
    "remark",
)
Row = tuple[object, ...]


class Lack(Exception):
    """Says why an engine has no figures."""


def measure(parts: Sequence[str] = PARTS) -> Measurement:
    again = {ENGINES[part][0] for part in parts}
    found = measured_before(
        "peers",
        HEAD,
        lambda row: row[0] not in again and row[4] in WINDOWS and row[5] in SIZES,
    )
    with tempfile.TemporaryDirectory() as scratch:
        for part in parts:
            found += _rows(part, Path(scratch))
    order = [name for name, _ in ENGINES.values()]
    found.sort(key=lambda row: order.index(str(row[0])))
    found = compared(found)
    return Measurement(
        HEAD,
        found,
        {
            f"{row[3]}, window {row[4]:,}, {row[5]:,} rows: {row[0]} over ours": float(str(row[9]))
            for row in found
            if row[9] is not None
        },
        f"one worker each, steps of {STEP:,} ticks, seed {SEED}; one run after one on a tenth of the rows, of"
        f" Java engines the second pass; not measured where it would take more than {LIMIT:.0f} s",
    )


def compared(found: Sequence[Row]) -> list[Row]:
    """Returns the rows with their processor time over ours, of those that take rows alike."""
    ours = {
        (row[2] == "at once", *row[3:6]): float(str(row[7]))
        for row in found
        if row[0] in OURS and row[7] is not None
    }
    given = []
    for row in found:
        mine = ours.get((row[2] == "at once", *row[3:6]))
        is_other = row[0] not in OURS and row[7] is not None
        ratio = float(str(row[7])) / mine if mine and is_other else None
        given.append((*row[:9], ratio, row[10]))
    return given


def _rows(part: str, scratch: Path) -> list[Row]:
    """Runs an engine on all works, windows and sizes."""
    name, takes = ENGINES[part]
    found: list[Row] = []
    command, lack = [], ""
    try:
        command = _command(part, scratch)
    except UserError as error:
        lack = f"not installed: {str(error).splitlines()[0]}"
    for work in WORKS:
        for window in WINDOWS:
            why, each = lack, 0.0
            for size in sorted(SIZES):
                version, figures = "", (None, None, None)
                why = why or (SLOW if each * size > LIMIT else "")
                if not why:
                    try:
                        version, count, cpu, wall = _figures(
                            part, command, scratch, work, size, window
                        )
                        each = cpu / size
                        figures = (count, each * 1e6, wall / size * 1e6)
                    except Lack as error:
                        why = str(error)
                found.append((name, version, takes, work, window, size, *figures, None, why))
    return found


def _figures(
    part: str, command: list[str], scratch: Path, work: str, size: int, window: int
) -> tuple[str, int, float, float]:
    """Returns the version, the number of results, and the seconds of the processor and of the clock.
    Raises unless the results are those of DuckDB."""
    streams = rows(work, size, window)
    with tempfile.TemporaryDirectory(dir=scratch) as given:
        for name, table in streams.items():
            feather.write_feather(table, f"{given}/{name}.arrow", compression="uncompressed")
            pairs = [np.asarray(column).astype("<i4") for column in table.columns[1:]]
            np.stack(pairs, axis=1).tofile(f"{given}/{name}.bin")
        said = _run([*command, given, work, str(window)])
    if part in _POMS:
        _, count, summed, cpu, wall = said.splitlines()[-1].split()
        version = java.version(_pom(part))
    else:
        version, count, summed, cpu, wall = json.loads(said.splitlines()[-1])
    judged = python.ENGINES["duckdb"](work, streams, window)()()
    if (int(count), int(summed)) != (len(judged[0]), digest(judged)):
        raise AssertionError(
            f"{ENGINES[part][0]}: {count} results of {work} with {size:,} rows and window {window:,}"
            f" are not the {len(judged[0])} of DuckDB"
        )
    return version, int(count), float(cpu), float(wall)


def _command(part: str, scratch: Path) -> list[str]:
    """Returns how an engine is called."""
    if part not in _POMS:
        return [sys.executable, "-m", python.__name__, part]
    java.check(f"{ENGINES[part][0]} needs")
    own = folder() / "peer_engines"
    sources = [own / "Rows.java", own / part / "Main.java"]
    classes = java.compiled(_pom(part), sources, scratch / part)
    return ["java", "-XX:+UseSerialGC", "-Xmx4g", "-cp", classes, "Main"]


def _pom(part: str) -> Path:
    return folder() / _POMS[part] / part / "pom.xml"


def _run(command: list[str]) -> str:
    """Runs a program at the root of the sources; returns what it prints."""
    root = str(folder().parent)
    environment = os.environ | {"PYTHONPATH": root}
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=3 * LIMIT,
            cwd=root,
            env=environment,
        )
    except subprocess.TimeoutExpired:
        raise Lack(SLOW) from None
    if done.returncode:
        last = (done.stderr.strip() or f"exit status {done.returncode}").splitlines()[-1]
        raise Lack(f"{'not installed' if 'No module named' in last else 'failed'}: {last}")
    return done.stdout
