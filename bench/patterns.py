"""Patterns on the stock ticker: the three experiments of the OptiSeq paper.

Scalar matchers compete with scalar matchers. The automaton (NFA^b under ANY) stands in for SASE;
lists of pending partial matches, which every event extends from left to right, stand in for Siddhi;
OptiSeq as printed searches event by event in the paper's order. The fast path, on columns, is given
beside them; it is the default. All figures are seconds of processor time, the median of
BENCH_REPEATS rounds; in each round the matchers take turns, so that all run under the same load.
Measuring one part or case (`patterns:three-Q1-5`) keeps the last results of the others.
"""

from __future__ import annotations

import importlib.util
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa

from bench.charts import lines
from seustream.commands.bench import Measurement, folder, measured_before
from seustream.compiler.catalogue import Column, Stream
from seustream.compiler.language.types import DOUBLE, INT, VARCHAR
from seustream.compiler.pattern import ir
from seustream.compiler.pattern.statements import compile_pattern
from seustream.engine.pattern.batch import of_table
from seustream.engine.pattern.event import BEGIN_OF_TIME, END_OF_STREAM, Event, Match
from seustream.engine.pattern.meaning import Meaning
from seustream.engine.pattern.nfa import Nfa
from seustream.engine.pattern.operator import PatternOperator
from seustream.engine.pattern.optiseq import OptiSeq

TITLE = "patterns: the experiments of the OptiSeq paper (half an hour)"
LONG = True

EVENTS = int(os.environ.get("BENCH_EVENTS", "1000000"))
REPEATS = int(os.environ.get("BENCH_REPEATS", "5"))
SHORT = {"EVENTS": 200_000, "REPEATS": 3}
EPOCH = 1 << 18  # events between watermarks, as on the command line
STREAM = Stream("stocks", (Column("type", VARCHAR), Column("price", DOUBLE), Column("volume", INT)))

_AB = "a.price > (1+10%)*b.price"
_CD = "c.price < (1-10%)*d.price"
QUERIES = {
    "Q1": ("A;B;C;D", f"a.price > 60 AND {_AB} AND {_CD}"),
    "Q2": (
        "B;C;D;E",
        "b.price > 60 AND b.price > (1+10%)*c.price AND d.price < (1-10%)*e.price",
    ),
    "Q3": (
        "E;G;H;F",
        "e.price > 60 AND e.price > (1+10%)*g.price AND h.price > (1+10%)*f.price",
    ),
    "L3": ("A;B;C", f"a.price > 60 AND {_AB}"),
    "L4": ("A;B;C;D", f"a.price > 60 AND {_AB} AND {_CD}"),
    "L5": ("A;B;C;D;E", f"a.price > 60 AND {_AB} AND {_CD}"),
    "L6": ("A;B;C;D;E;F", f"a.price > 60 AND {_AB} AND {_CD} AND e.price > (1+10%)*f.price"),
}
EXPERIMENTS = {
    "one": [("Q1", 2), ("Q2", 2), ("Q3", 2)],
    "two": [("L3", 2), ("L4", 2), ("L5", 2), ("L6", 2)],
    "three": [("Q1", minutes) for minutes in (1, 2, 3, 4, 5)],
}
CASES = {
    f"{part}-{name}-{minutes}": (part, name, minutes)
    for part, cases in EXPERIMENTS.items()
    for name, minutes in cases
}
MATCHERS = {
    "nfa": "NFA^b (for SASE)",
    "pending": "pending lists (for Siddhi)",
    "optiseq": "OptiSeq as printed",
    "fast": "fast path",
}
PARTS = (*EXPERIMENTS, *CASES)
HEAD = ("part", "query", "engine", "cpu s", "events/s", "matches", "tests", "runs", "load")
Row = tuple[object, ...]


def query(name: str, minutes: int = 2) -> ir.PatternQuery:
    sequence, where = QUERIES[name]
    text = f"PATTERN {sequence} WHERE {where} WITHIN {minutes} min RETURN *"
    return compile_pattern(text, STREAM)


def measure(parts: Sequence[str] = tuple(EXPERIMENTS)) -> Measurement:
    table = generator().ticks(EVENTS).table()
    cases = [case for name, case in CASES.items() if name in parts or case[0] in parts]
    again = {(part, f"{name} {minutes} min") for part, name, minutes in cases}
    rows = measured_before(
        "patterns", HEAD, lambda row: (row[0], row[1]) not in again and _events_of(row) == EVENTS
    )
    events = of_table(table, STREAM, "type", ["price", "volume"], 0).rows()
    for part, name, minutes in cases:
        q, label = query(name, minutes), f"{name} {minutes} min"
        rows += _measured(part, label, q, events, table)
        counts = {row[5] for row in rows if row[:2] == (part, label)}
        assert len(counts) == 1, f"{label}: the matchers disagree: {counts}"
    order = [
        (part, f"{name} {minutes} min", matcher)
        for part, name, minutes in CASES.values()
        for matcher in MATCHERS.values()
    ]
    rows.sort(key=lambda row: order.index((str(row[0]), str(row[1]), str(row[2]))))
    return Measurement(
        HEAD,
        rows,
        _gains(rows),
        f"{EVENTS:,} events of the generator's one seed, seconds of processor time, medians",
        charts=_charts(rows),
    )


def _events_of(row: Row) -> int:
    """Returns the number of events that a row was measured on."""
    return round(float(str(row[3])) * float(str(row[4])))


# --- the paper ----------------------------------------------------------------


def _measured(
    part: str, label: str, q: ir.PatternQuery, events: list[Event], table: pa.Table
) -> list[Row]:
    runs: dict[str, Callable[[], tuple[int, object]]] = {
        "nfa": lambda: _nfa(q, events),
        "pending": lambda: _pending(q, events),
        "optiseq": lambda: _optiseq(q, events),
        "fast": lambda: (fast(q, table), ""),
    }
    rounds = [{name: timed(run, 1) for name, run in runs.items()} for _ in range(REPEATS)]
    rows = list[Row]()
    for name, (_, (matches, tests)) in rounds[-1].items():
        seconds = statistics.median(one[name][0] for one in rounds)
        found = (seconds, EVENTS / seconds, matches, tests, REPEATS, load())
        rows.append((part, label, MATCHERS[name], *found))
    return rows


def timed(run: Callable[[], Any], repeats: int = REPEATS) -> tuple[float, Any]:
    """Returns the median of some runs, and what the last of them found."""
    times, found = [], None
    for _ in range(repeats):
        begun = time.process_time()
        found = run()
        times.append(time.process_time() - begun)
    return statistics.median(times), found


def epochs(events: list[Event]) -> Iterator[tuple[list[Event], int, int]]:
    old = BEGIN_OF_TIME
    for begin in range(0, len(events), EPOCH):
        part = events[begin : begin + EPOCH]
        new = part[-1].ts if begin + EPOCH < len(events) else END_OF_STREAM
        yield part, old, new
        old = new


def _nfa(q: ir.PatternQuery, events: list[Event]) -> tuple[int, int]:
    nfa = Nfa(Meaning(q))
    return sum(len(nfa.advance(*epoch)) for epoch in epochs(events)), nfa.tests


def _optiseq(q: ir.PatternQuery, events: list[Event]) -> tuple[int, int]:
    matcher = OptiSeq(Meaning(q), "paper", tighten=False)
    found = tests = 0
    for epoch in epochs(events):
        found += sum(1 for _ in matcher.advance(*epoch))
        tests += sum(matcher.levels)
    return found, tests


def fast(q: ir.PatternQuery, table: pa.Table) -> int:
    operator = PatternOperator(q)
    found = 0
    for begin in range(0, table.num_rows, EPOCH):
        part = table.slice(begin, EPOCH)
        operator.push_table(part)
        last = begin + EPOCH >= table.num_rows
        rows, _ = operator.advance_table(END_OF_STREAM if last else part["ts"][-1].as_py())
        found += rows.num_rows
    return found


def _pending(q: ir.PatternQuery, events: list[Event]) -> tuple[int, int]:
    """Keeps partial matches of each length in a list and tries every one with every event of the
    next type; they share nothing."""
    meaning = Meaning(q)
    window = q.window or 0
    size = len(q.elements)
    conditions = [
        [c for c in meaning.conditions if c.latest == place and len(c.conjunct.refs) > 1]
        for place in range(size)
    ]
    pending: list[list[list[tuple[Event, ...]]]] = [[] for _ in range(size)]
    found: list[Match] = []
    tests = 0
    for event in events:
        for place in range(size - 1, -1, -1):
            if not meaning.fits(place, event):
                continue
            if place == 0:
                pending[1].append([(event,)] + [()] * (size - 1))
                continue
            kept = []
            for partial in pending[place]:
                if event.ts - partial[0][0].ts > window:
                    continue
                kept.append(partial)
                tests += 1
                if partial[place - 1][0].ts >= event.ts:
                    continue
                longer = [*partial]
                longer[place] = (event,)
                if all(meaning.once(c, longer) for c in conditions[place]):
                    if place + 1 == size:
                        found.append(Match(tuple(longer), event.ts))
                    else:
                        pending[place + 1].append(longer)
            pending[place] = kept
    return len(found), tests


def _gains(rows: Sequence[Row]) -> dict[str, float]:
    """Returns the figures that the paper reports: how much less time OptiSeq needs than each of the
    others."""
    seconds = {(f"{row[0]}, {row[1]}", str(row[2])): float(str(row[3])) for row in rows}
    found = {}
    for case in dict.fromkeys(case for case, _ in seconds):
        own = seconds.get((case, MATCHERS["optiseq"]))
        if own is None:
            continue
        for other in (MATCHERS["nfa"], MATCHERS["pending"]):
            if (case, other) in seconds:
                found[f"{case}: gain of OptiSeq over {other}"] = 1 - own / seconds[case, other]
        if (case, MATCHERS["fast"]) in seconds:
            found[f"{case}: fast path over OptiSeq"] = own / seconds[case, MATCHERS["fast"]]
    return found


def _charts(rows: Sequence[Row]) -> dict[str, str]:
    """Draws a chart per experiment, of the cases that every matcher has run."""
    seconds = {row[:3]: float(str(row[3])) for row in rows}
    found = {}
    if any(row[0] == "one" for row in rows):
        speeds = {f"{row[1]}, {row[2]}": float(str(row[4])) for row in rows if row[0] == "one"}
        found["one"] = bars(speeds, "Experiment one: three queries")
    for part, title, across, x in (
        ("two", "Experiment two: length", "events in sequence, 2 min", (3, 4, 5, 6)),
        ("three", "Experiment three: window", "minutes, four events", (1, 2, 3, 4, 5)),
    ):
        cases = [(part, f"{name} {minutes} min") for name, minutes in EXPERIMENTS[part]]
        if all((*case, matcher) in seconds for case in cases for matcher in MATCHERS.values()):
            series = {
                matcher.partition(" (")[0]: [seconds[*case, matcher] for case in cases]
                for matcher in MATCHERS.values()
            }
            found[part] = lines(title, across, "seconds of processor time", x, series, True)
    return found


# --- around -------------------------------------------------------------------


def generator() -> ModuleType:
    path = folder().parent / "examples" / "stocks" / "generate.py"
    spec = importlib.util.spec_from_file_location("stocks_generate", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def load() -> str:
    """Returns the load of the machine, which processor time hardly shows."""
    return f"{os.getloadavg()[1]:.1f}"


def bars(speeds: Mapping[str, float], title: str) -> str:
    """Draws the events per second of every engine and query, on a logarithmic scale."""
    from seustream.compiler.explain.picture.draw import document, path, rectangle, text

    body = [text(20, 26, "events a second (logarithmic)", "title")]
    widest = max(np.log10(speed) for speed in speeds.values())
    bottom = 52.0 + 22 * len(speeds)
    body.append(path(f"M280 {bottom:.1f} H660", "edge"))
    for power in range(3, int(widest) + 1):
        x = 280 + 380 * (power - 3) / (widest - 3)
        body.append(path(f"M{x:.1f} {bottom:.1f} v5", "edge"))
        body.append(text(x, bottom + 13, f"{10**power:,}", "small", "middle"))
    for number, (label, speed) in enumerate(speeds.items()):
        y = 56.0 + 22 * number
        body.append(text(270, y, label, "small", "end"))
        width = 380 * (np.log10(speed) - 3) / (widest - 3)
        kind = "result" if "fast path" in label else "box"
        body.append(rectangle(280, y - 7, max(width, 1), 14, kind, 2))
        body.append(text(288 + max(width, 1), y, f"{speed:,.0f}", "small"))
    return document(780, bottom + 30, title, body) + "\n"
