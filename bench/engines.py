"""The fast path against FlinkCEP, Siddhi and Esper, in one run on the stock ticker.

Each engine states the same queries in its own language (`bench/pattern_engines`), runs in a virtual
machine of its own with one task, gets the events twice, and must find the same number of matches
each time. Figures are seconds of processor time of all its threads for the second pass, when its
code is compiled; the first pass is given beside it. They are medians of BENCH_REPEATS runs, or of
five for ours. An engine that has taken five seconds does not run again; `runs` is the number of its
runs. FlinkCEP would take hours for all events. It gets the fiftieth of them whose number of matches
is nearest to the mean, and its count is checked on these.

The engines answer each query one after the other. `seustream bench engines:Q1,NEXT` or
`engines:fast` measures some anew and keeps the last results of the others. It needs Java 17,
`javac`, and Maven, which fetches the engines from Maven Central.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bench import java, patterns
from bench.charts import lines
from seustream.commands.bench import Measurement, folder, measured_before
from seustream.compiler.pattern import ir
from seustream.compiler.pattern.statements import compile_pattern

TITLE = "engines: the fast path against FlinkCEP, Siddhi and Esper (slow)"
LONG = True
QUERIES = {
    # name: the query as given to the other engines, and minutes
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
    "STRICT": ("strict EAE 60 0>1.1*1 0<1*2", 2),
}
STRICT = ("E x; A; E z", "x.price > 60 AND x.price > (1+10%)*a.price AND x.price < z.price")
ENGINES = {"fast": "fast path", "esper": "esper", "siddhi": "siddhi", "flink": "flink"}
PARTS = (*QUERIES, *ENGINES)
SHARE = {"esper": 1, "siddhi": 1, "flink": 50}
"""Each engine gets one in this many of the events."""
EVENTS, REPEATS = patterns.EVENTS, patterns.REPEATS
SHORT = {"EVENTS": 200_000, "REPEATS": 1}
OURS = 5  # runs of the fast path, which are short
ENOUGH = 5.0  # seconds of processor time after which an engine does not run again
HEAD = (
    "query",
    "window",
    "engine",
    "cpu s",
    "first pass",
    "events/s",
    "matches",
    "of events",
    "runs",
    "load",
)
Row = tuple[object, ...]


def measure(parts: Sequence[str] = PARTS) -> Measurement:
    queries = [name for name in QUERIES if name in parts] or list(QUERIES)
    engines = [name for name in ENGINES if name in parts] or list(ENGINES)
    theirs = [name for name in engines if name in SHARE]
    if theirs:
        java.check("engines need")
    again = {(query, ENGINES[engine]) for query in queries for engine in engines}
    rows = measured_before(
        "engines",
        HEAD,
        lambda row: (row[0], row[2]) not in again and row[7] == EVENTS // SHARE.get(str(row[2]), 1),
    )
    with tempfile.TemporaryDirectory() as scratch:
        data = _Data(Path(scratch))
        classes = {engine: _compiled(engine, Path(scratch)) for engine in theirs}
        for name in queries:
            rows += [_ours(name, data)] if "fast" in engines else []
            rows += [_theirs(name, engine, classes[engine], data) for engine in theirs]
    for name in QUERIES:
        counts = {row[6] for row in rows if row[0] == name and row[7] == EVENTS}
        if len(counts) > 1:
            raise AssertionError(f"{name}: the engines disagree: {counts}")
    order = list(ENGINES.values())
    rows.sort(key=lambda row: (list(QUERIES).index(str(row[0])), order.index(str(row[2]))))
    return Measurement(
        HEAD,
        rows,
        _ratios(rows),
        f"{EVENTS:,} events, medians, seconds of processor time of a second pass,"
        " the generator's one seed",
        charts=_charts(rows),
    )


def _charts(rows: Sequence[Row]) -> dict[str, str]:
    """Draws all speeds, and the speeds by length and by window."""
    speeds = {(str(row[0]), str(row[2])): float(str(row[5])) for row in rows}
    labels = {f"{query}, {engine}": speed for (query, engine), speed in speeds.items()}
    found = {"all": patterns.bars(labels, TITLE)}
    for name, title, across, x, queries in (
        (
            "length",
            "By length",
            "events in sequence, 2 min",
            (3, 4, 5, 6),
            ("L3", "Q1", "L5", "L6"),
        ),
        (
            "window",
            "By window",
            "minutes, four events",
            (1, 2, 3, 4, 5),
            ("Q1-1", "Q1", "Q1-3", "Q1-4", "Q1-5"),
        ),
    ):
        engines = ("fast path", *SHARE)
        if all((query, engine) in speeds for query in queries for engine in engines):
            series = {engine: [speeds[query, engine] for query in queries] for engine in engines}
            found[name] = lines(title, across, "events a second", x, series, True)
    return found


def _ratios(rows: Sequence[Row]) -> dict[str, float]:
    """Returns how many times as many events per second the fast path takes, by query and engine."""
    found: dict[str, float] = {}
    speeds = {(str(row[0]), str(row[2])): float(str(row[5])) for row in rows}
    for query in dict.fromkeys(query for query, _ in speeds):
        others = {e: speed for (q, e), speed in speeds.items() if q == query and e in SHARE}
        ours = speeds.get((query, ENGINES["fast"]))
        if ours is None or not others:
            continue
        for engine, speed in others.items():
            found[f"{query}: fast path over {engine}"] = ours / speed
        found[f"{query}: fast path over the best"] = ours / max(others.values())
    return found


def _query(name: str) -> ir.PatternQuery:
    """Returns the query as the other engines have it, with one price per match."""
    own = {**patterns.QUERIES, "NEXT": patterns.QUERIES["Q1"], "STRICT": STRICT}
    sequence, where = own[name.partition("-")[0]]
    using = f" USING {name}" if name in ("NEXT", "STRICT") else ""
    first = "x" if name == "STRICT" else sequence[0].lower()
    text = f"PATTERN {sequence} WHERE {where} WITHIN {QUERIES[name][1]} min{using}"
    return compile_pattern(f"{text} RETURN {first}.price", patterns.STREAM)


class _Data:
    """The events, as tables and in the format that the programs read."""

    def __init__(self, scratch: Path) -> None:
        ticks = patterns.generator().ticks(EVENTS)
        self.table = ticks.table()
        self.rows = np.empty(EVENTS, dtype=[("ts", "<i8"), ("symbol", "<i8"), ("price", "<f8")])
        self.rows["ts"], self.rows["symbol"] = ticks.ts, ticks.symbol
        self.rows["price"] = ticks.cents / 100
        self._scratch = scratch

    def file(self, begin: int, events: int) -> Path:
        path = self._scratch / f"events-{begin}-{events}.bin"
        if not path.exists():
            self.rows[begin : begin + events].tofile(path)
        return path


def _ours(name: str, data: _Data) -> Row:
    query, every = _query(name), EVENTS
    seconds, found = patterns.timed(lambda: patterns.fast(query, data.table), OURS)
    begin = (name, f"{QUERIES[name][1]} min", ENGINES["fast"])
    return (*begin, seconds, "", every / seconds, found, every, OURS, patterns.load())


def _theirs(name: str, engine: str, classes: str, data: _Data) -> Row:
    """Returns an engine's row; raises unless it finds in both passes what we find in its share of
    the events."""
    text, minutes = QUERIES[name]
    query, share = _query(name), SHARE[engine]
    events = EVENTS // share
    counts = [patterns.fast(query, data.table.slice(k * events, events)) for k in range(share)]
    part = min(range(share), key=lambda k: abs(counts[k] - sum(counts) / share))
    passes: list[tuple[float, float]] = []
    while len(passes) < REPEATS and sum(map(sum, passes)) < ENOUGH:
        counted, times = _java(engine, classes, data.file(part * events, events), text, minutes)
        if counted != (counts[part], counts[part]):
            raise AssertionError(f"{engine}: {counted} matches of {name}, not {counts[part]}")
        passes.append(times)
    first, second = (statistics.median(times) for times in zip(*passes, strict=True))
    begin, speed = (name, f"{minutes} min", engine), events / second
    count, load = len(passes), patterns.load()
    return (*begin, second, first, speed, counts[part], events, count, load)


def _compiled(engine: str, scratch: Path) -> str:
    """Compiles an engine's program; returns its class path."""
    own = folder() / "pattern_engines"
    files = [own / name for name in ("Events.java", "Query.java", f"{engine}/Main.java")]
    return java.compiled(own / engine / "pom.xml", files, scratch / engine)


def _java(
    engine: str, classes: str, data: Path, query: str, minutes: int
) -> tuple[tuple[int, int], tuple[float, float]]:
    """Returns the matches and the seconds of the first and the second pass."""
    opened = ["java.lang", "java.util"] if engine == "flink" else []
    call = ["java", "-XX:+UseSerialGC", "-Xmx4g"]
    call += [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in opened]
    text = java.run([*call, "-cp", classes, "Main", str(data), query, str(minutes * 60_000)])
    first, second = (line.split() for line in text.splitlines() if line.startswith("matches "))
    return (int(first[1]), int(second[1])), (float(first[5]), float(second[5]))
