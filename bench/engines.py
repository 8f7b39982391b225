"""The fast path against FlinkCEP, Siddhi and Esper, in one run on the stock ticker.

Each engine states the same query in its own language (`bench/pattern_engines`), runs in a virtual
machine of its own with one task, and must find the same number of matches. Figures are seconds of
processor time of all its threads, without the start of the machine and the reading of the file.
Needs Java 17, `javac`, and Maven, which fetches the engines from Maven Central.
"""

from __future__ import annotations

import importlib.util
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from types import ModuleType

import numpy as np

from seustream.commands.bench import Measurement, folder
from seustream.errors import UserError

TITLE = "engines: the fast path against FlinkCEP, Siddhi and Esper (slow)"
LONG = True
PARTS = ("Q1", "Q2", "Q3")
WINDOW = 120_000
Row = tuple[object, ...]


def measure(parts: tuple[str, ...] | list[str] = ("Q1", "Q2")) -> Measurement:
    """Q3 has ten times the matches of Q1, for which FlinkCEP takes long; it is run if named."""
    patterns = _patterns()
    ticks = patterns.generator().ticks(patterns.EVENTS)
    ratios: dict[str, float] = {}
    rows = _engines(patterns, list(parts), ticks, ratios)
    patterns.plot(rows, "engines", TITLE)
    return Measurement(
        ("query", "window", "engine", "cpu s", "events/s", "matches"),
        rows,
        ratios,
        f"{patterns.EVENTS:,} events, median of {patterns.REPEATS}, seconds of processor time,"
        f" {patterns.processor()}",
    )


def _patterns() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_patterns", folder() / "patterns.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _engines(
    patterns: ModuleType, names: list[str], ticks: object, ratios: dict[str, float]
) -> list[Row]:
    for program in ("java", "javac", "mvn"):
        if shutil.which(program) is None:
            raise UserError([f"{program} is not there"], hint="engines need Java 17 and Maven")
    events, repeats = patterns.EVENTS, patterns.REPEATS
    table = ticks.table()
    rows: list[Row] = []
    own: dict[str, tuple[float, int]] = {}
    for name in names:
        query = patterns.query(name)
        seconds, (found, _) = patterns.timed(lambda query=query: patterns.fast(query, table))
        own[name] = (seconds, found)
        rows.append((name, "2 min", "fast path", seconds, events / seconds, found))
    with tempfile.TemporaryDirectory() as scratch:
        data = Path(scratch) / "events.bin"
        _write(ticks, events, data)
        for engine in ("esper", "siddhi", "flink"):
            classes = _compiled(engine, Path(scratch))
            for name in names:
                runs = [_java(engine, classes, data, name) for _ in range(repeats)]
                seconds = statistics.median(cpu for _, cpu in runs)
                found = runs[0][0]
                rows.append((name, "2 min", engine, seconds, events / seconds, found))
                if found != own[name][1]:
                    raise AssertionError(f"{engine}: {found} matches of {name}, not {own[name][1]}")
                ratios[f"{name}: fast path over {engine}"] = seconds / own[name][0]
    return rows


def _write(ticks: object, events: int, path: Path) -> None:
    layout = [("ts", "<i8"), ("symbol", "<i8"), ("price", "<f8")]
    rows = np.empty(events, dtype=layout)
    rows["ts"], rows["symbol"] = ticks.ts, ticks.symbol
    rows["price"] = ticks.cents / 100
    rows.tofile(path)


def _compiled(engine: str, scratch: Path) -> str:
    """The class path of an engine's program."""
    sources = folder() / "pattern_engines"
    jars, classes = scratch / engine / "jars", scratch / engine / "classes"
    classes.mkdir(parents=True)
    pom = shutil.copy(sources / engine / "pom.xml", scratch / engine)
    _run(
        ["mvn", "-q", "-B", "-f", pom, "dependency:copy-dependencies", f"-DoutputDirectory={jars}"]
    )
    files = [str(sources / "Events.java"), str(sources / engine / "Main.java")]
    _run(["javac", "-nowarn", "-cp", f"{jars}/*", "-d", str(classes), *files])
    return f"{classes}:{jars}/*"


def _java(engine: str, classes: str, data: Path, name: str) -> tuple[int, float]:
    opened = ["java.lang", "java.util"] if engine == "flink" else []
    call = ["java", "-XX:+UseSerialGC", "-Xmx4g"]
    call += [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in opened]
    text = _run([*call, "-cp", classes, "Main", str(data), name, str(WINDOW)])
    words = next(line for line in text.splitlines() if line.startswith("matches ")).split()
    return int(words[1]), float(words[5])


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise UserError([f"{command[0]}: {done.stderr.strip() or done.stdout.strip()}"])
    return done.stdout
