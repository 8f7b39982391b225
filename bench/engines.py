"""The fast path against FlinkCEP, Siddhi and Esper, in one run on the stock ticker.

Each engine states the same queries in its own language (`bench/pattern_engines`), runs in a virtual
machine of its own with one task, and must find the same number of matches. Figures are seconds of
processor time of all its threads, without the start of the machine and the reading of the file.
FlinkCEP gets a tenth of the events, for it takes minutes for all; the count is checked on that tenth.
Needs Java 17, `javac`, and Maven, which fetches the engines from Maven Central.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

import numpy as np

from compiler.pattern import ir
from compiler.pattern.statements import compile_pattern
from seustream.commands.bench import Measurement, folder, sibling
from seustream.errors import UserError

TITLE = "engines: the fast path against FlinkCEP, Siddhi and Esper (slow)"
LONG = True
QUERIES = {
    # name: as the other engines are told it, and minutes
    "Q1": ("any ABCD 60 0>1.1*1 2<0.9*3", 2),
    "Q2": ("any BCDE 60 0>1.1*1 2<0.9*3", 2),
    "Q3": ("any EGHF 60 0>1.1*1 2>1.1*3", 2),
    "L3": ("any ABC 60 0>1.1*1", 2),
    "L5": ("any ABCDE 60 0>1.1*1 2<0.9*3", 2),
    "L6": ("any ABCDEF 60 0>1.1*1 2<0.9*3 4>1.1*5", 2),
    "Q1-1": ("any ABCD 60 0>1.1*1 2<0.9*3", 1),
    "Q1-3": ("any ABCD 60 0>1.1*1 2<0.9*3", 3),
    "Q1-4": ("any ABCD 60 0>1.1*1 2<0.9*3", 4),
    "Q1-5": ("any ABCD 60 0>1.1*1 2<0.9*3", 5),
    "NEXT": ("next ABCD 60 0>1.1*1 2<0.9*3", 2),
}
PARTS = tuple(QUERIES)
SHARE = {"esper": 1, "siddhi": 1, "flink": 10}
"""An engine gets one in so many of the events."""
Row = tuple[object, ...]


def measure(parts: Sequence[str] = PARTS) -> Measurement:
    for program in ("java", "javac", "mvn"):
        if shutil.which(program) is None:
            raise UserError([f"{program} is not there"], hint="engines need Java 17 and Maven")
    patterns = sibling("patterns")
    ratios: dict[str, float] = {}
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as scratch:
        files = _write(patterns, Path(scratch))
        classes = {engine: _compiled(engine, Path(scratch)) for engine in SHARE}
        for name in parts:
            found = _one(patterns, name, classes, files)
            rows += found
            own = float(str(found[0][4]))
            for row in found[1:]:
                ratios[f"{name}: fast path over {row[2]}"] = own / float(str(row[4]))
            best = max(float(str(row[4])) for row in found[1:])
            ratios[f"{name}: fast path over the best"] = own / best
    patterns.plot(rows, "engines", TITLE)
    return Measurement(
        ("query", "window", "engine", "cpu s", "events/s", "matches", "of events"),
        rows,
        ratios,
        f"{patterns.EVENTS:,} events, median of {patterns.REPEATS}, seconds of processor time,"
        f" {patterns.processor()}, {patterns.load()}",
    )


def _query(patterns: ModuleType, name: str) -> ir.Query:
    minutes = QUERIES[name][1]
    if name == "NEXT":
        sequence, where = patterns.QUERIES["Q1"]
        text = f"PATTERN {sequence} WHERE {where} WITHIN {minutes} min USING NEXT RETURN *"
        return compile_pattern(text, patterns.STREAM)
    found: ir.Query = patterns.query(name.partition("-")[0], minutes)
    return found


def _one(
    patterns: ModuleType, name: str, classes: Mapping[str, str], files: Mapping[int, Path]
) -> list[Row]:
    """A query by every engine, ours first; all must agree."""
    text, minutes = QUERIES[name]
    label = f"{minutes} min"
    query = _query(patterns, name)
    table = patterns.generator().ticks(patterns.EVENTS).table()
    seconds, (found, _) = patterns.timed(lambda: patterns.fast(query, table))
    rows: list[Row] = [
        (name, label, "fast path", seconds, patterns.EVENTS / seconds, found, patterns.EVENTS)
    ]
    for engine, share in SHARE.items():
        events = patterns.EVENTS // share
        want = found if share == 1 else patterns.fast(query, table.slice(0, events))[0]
        repeats = patterns.REPEATS if share == 1 else 1
        runs = [_java(engine, classes[engine], files[share], text, minutes) for _ in range(repeats)]
        seconds = statistics.median(cpu for _, cpu in runs)
        if runs[0][0] != want:
            raise AssertionError(f"{engine}: {runs[0][0]} matches of {name}, not {want}")
        rows.append((name, label, engine, seconds, events / seconds, want, events))
    return rows


def _write(patterns: ModuleType, scratch: Path) -> dict[int, Path]:
    """The events as the programs read them, and one in ten."""
    ticks = patterns.generator().ticks(patterns.EVENTS)
    layout = [("ts", "<i8"), ("symbol", "<i8"), ("price", "<f8")]
    rows = np.empty(patterns.EVENTS, dtype=layout)
    rows["ts"], rows["symbol"] = ticks.ts, ticks.symbol
    rows["price"] = ticks.cents / 100
    files = {}
    for share in set(SHARE.values()):
        files[share] = scratch / f"events{share}.bin"
        rows[: patterns.EVENTS // share].tofile(files[share])
    return files


def _compiled(engine: str, scratch: Path) -> str:
    """The class path of an engine's program."""
    sources = folder() / "pattern_engines"
    jars, classes = scratch / engine / "jars", scratch / engine / "classes"
    classes.mkdir(parents=True)
    pom = shutil.copy(sources / engine / "pom.xml", scratch / engine)
    _run(
        ["mvn", "-q", "-B", "-f", pom, "dependency:copy-dependencies", f"-DoutputDirectory={jars}"]
    )
    files = [str(sources / name) for name in ("Events.java", "Query.java", f"{engine}/Main.java")]
    _run(["javac", "-nowarn", "-cp", f"{jars}/*", "-d", str(classes), *files])
    return f"{classes}:{jars}/*"


def _java(engine: str, classes: str, data: Path, query: str, minutes: int) -> tuple[int, float]:
    opened = ["java.lang", "java.util"] if engine == "flink" else []
    call = ["java", "-XX:+UseSerialGC", "-Xmx4g"]
    call += [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in opened]
    text = _run([*call, "-cp", classes, "Main", str(data), query, str(minutes * 60_000)])
    words = next(line for line in text.splitlines() if line.startswith("matches ")).split()
    return int(words[1]), float(words[5])


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise UserError([f"{command[0]}: {done.stderr.strip() or done.stdout.strip()}"])
    return done.stdout
