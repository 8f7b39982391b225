"""What commands take from their start: versions, help, compiling, plans and runs on small files.

Each command runs as a process of its own, as a user starts it, with compiled Python files. Figures are the least
and the median of so many runs, in seconds of processor time of the process and its children, and of wall-clock
time.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from seustream.commands.bench import Measurement

TITLE = "startup: what commands take from their start"
RUNS = 11
SHORT = {"RUNS": 1}
ROWS = 1_000

QUERIES = """CREATE STREAM R (k int, a int); CREATE STREAM S (k int, b int);
REGISTER QUERY pairs AS SELECT R.a, S.b FROM R, S WHERE R.k = S.k WINDOW RANGE 100;
"""
COMMANDS = {
    "--version": ("--version",),
    "--help": ("--help",),
    "compile a query set": ("compile", "q.xsql", "-o", "q.json"),
    "explain a query set": ("explain", "q.xsql"),
    f"run, two CSV files of {ROWS:,} rows": (
        "run", "q.xsql", "--input", "R=r.csv", "--input", "S=s.csv", "-o", "out",
    ),
}  # fmt: skip
HEAD = ("command", "least cpu s", "median cpu s", "least wall s", "median wall s")


def measure() -> Measurement:
    rows: list[tuple[object, ...]] = []
    with tempfile.TemporaryDirectory() as folder:
        _write(Path(folder))
        for name, arguments in COMMANDS.items():
            _run(folder, arguments)  # compiles what it imports
            times = [_run(folder, arguments) for _ in range(RUNS)]
            figures = [
                figure
                for kind in zip(*times, strict=True)
                for figure in (min(kind), statistics.median(kind))
            ]
            rows.append((name, *figures))
    return Measurement(HEAD, rows, {}, f"{RUNS} runs of each command, one after the other")


def _write(folder: Path) -> None:
    (folder / "q.xsql").write_text(QUERIES)
    for name, column in (("r", "a"), ("s", "b")):
        lines = [f"ts,k,{column}", *(f"{i},{i % 97},{i}" for i in range(ROWS))]
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")


def _run(folder: str, arguments: tuple[str, ...]) -> tuple[float, float]:
    """Returns the processor time and the wall-clock time of a command."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    command = [sys.executable, "-m", "seustream", *arguments]
    before, begun = os.times(), time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, capture_output=True, env=environment)
    wall, after = time.perf_counter() - begun, os.times()
    cpu = (
        after.children_user + after.children_system - before.children_user - before.children_system
    )
    return cpu, wall
