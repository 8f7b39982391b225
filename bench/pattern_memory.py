"""The most that pattern matchers hold, and the cost of a match when it is due.

Held: entries of the shared buffer and runs, under both numberings of versions (per_state only where
it is sound), and everything kept for groups and for subsets of them. Delay: a watermark follows
every row of a table; the figure is the microseconds from the watermark to its matches as a table,
divided by the number of matches, as the median and the worst of a hundred. Without conditions
between events, columns and compact enumeration have no dead ends, so the delay does not grow with
the window.
"""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa

from bench import patterns
from seustream.commands.bench import Measurement
from seustream.compiler.pattern.statements import compile_pattern
from seustream.engine.pattern.batch import of_table
from seustream.engine.pattern.event import BEGIN_OF_TIME, END_OF_STREAM, Event
from seustream.engine.pattern.meaning import Meaning
from seustream.engine.pattern.nfa import Nfa
from seustream.engine.pattern.operator import PatternOperator
from seustream.engine.pattern.versions import Numbering

TITLE = "pattern_memory: what matchers hold, and what a match costs"
LONG = True
EVENTS = 5_000
RISING = (
    "PATTERN A+ k; C WHERE k[i].price > k[i-1].price AND c.price < last(k).price"
    " WITHIN {} s USING NEXT RETURN *"
)
GROUPS = "PATTERN A; B+ k; C WHERE a.price > 1.05*c.price WITHIN {} s USING ANY {} RETURN *"
PLAIN = "PATTERN A; B; C WITHIN {} s USING ANY SUBSETS RETURN *"
HEAD = ("part", "query", "matcher", "matches", "most held", "µs a match", "worst of 100")
Row = tuple[object, ...]


def measure() -> Measurement:
    table = patterns.generator().ticks(EVENTS).table()
    events = of_table(table, patterns.STREAM, "type", ["price", "volume"], 0).rows()
    rows: list[Row] = []
    for seconds in (30, 120, 480):
        query = compile_pattern(RISING.format(seconds), patterns.STREAM)
        for numbering in Numbering:
            rows.append(_numbered(f"A+;C next, {seconds} s", query, numbering, events))
    for seconds in (20, 60):
        for mode in ("GROUP", "SUBSETS"):
            query = compile_pattern(GROUPS.format(seconds, mode), patterns.STREAM)
            label = f"A;B+;C any {mode.lower()}, {seconds} s"
            rows.append(_delay("groups", label, query, "auto", table))
    for seconds in (30, 120, 480):
        query = compile_pattern(PLAIN.format(seconds), patterns.STREAM)
        for engine in ("columns", "compact", "optiseq", "nfa"):
            label = f"A;B;C, {seconds} s"
            rows.append(_delay("delay", label, query, engine, table))
    what = f"{EVENTS:,} events of the generator's one seed, one run, load {patterns.load()}"
    return Measurement(HEAD, rows, {}, what)


def _numbered(label: str, query: object, numbering: Numbering, events: list[Event]) -> Row:
    nfa = Nfa(Meaning(query), numbering)
    found = most = 0
    old = BEGIN_OF_TIME
    for event in events:
        found += len(nfa.advance([event], old, event.ts))
        edges = sum(len(entry.edges) for entry in nfa.buffer.entries())
        digits = sum(len(run.version) for run in nfa.runs)
        most = max(most, len(nfa.buffer) + edges + digits)
        old = event.ts
    return ("versions", label, f"{numbering.value}: entries, edges, digits", found, most, "", "")


def _delay(part: str, label: str, query: object, engine: str, table: pa.Table) -> Row:
    operator = PatternOperator(query, engine)
    delays, found = [], 0
    for number, ts in enumerate(table["ts"].to_pylist()):
        operator.push_table(table.slice(number, 1))
        begun = time.process_time()
        matches = len(operator.advance_table(ts)[0])
        if matches:
            delays.append((time.process_time() - begun) / matches * 1e6)
            found += matches
    found += len(operator.advance_table(END_OF_STREAM)[0])
    at = np.percentile(delays, [50, 99]) if delays else (0.0, 0.0)
    return (
        part,
        label,
        operator.engine,
        found,
        operator.stats.peak_held,
        float(at[0]),
        float(at[1]),
    )
