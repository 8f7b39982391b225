"""The time that a pattern matcher needs for an epoch, an event and a unit of work, in microseconds.

The planner weighs its estimates with these figures (`engine/pattern/choice.py`). An event: many
ticks through a pattern that none of them fits. An epoch: the same with a watermark after every
tick, less the events, divided by the number of elements and conditions of the pattern. A unit of
work is a partial match made or a run tested: the time of experiment queries, less the events,
divided by the units that the matcher itself counts.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable

from bench import patterns
from seustream.commands.bench import Measurement
from seustream.compiler.pattern.statements import compile_pattern
from seustream.engine.pattern.batch import needed, of_events, of_table
from seustream.engine.pattern.choice import COSTS
from seustream.engine.pattern.compact import Compact
from seustream.engine.pattern.compiled import CompiledSearch
from seustream.engine.pattern.event import BEGIN_OF_TIME, END_OF_STREAM
from seustream.engine.pattern.meaning import Meaning
from seustream.engine.pattern.nfa import Nfa
from seustream.engine.pattern.optiseq import OptiSeq
from seustream.engine.pattern.vector import ColumnSearch

TITLE = "pattern_costs: what the planner weighs matchers with"
LONG = True
EVENTS = 50_000
EPOCHS = 2_000
REPEATS = int(os.environ.get("BENCH_REPEATS", "5"))
NOTHING = "PATTERN NONE a; NONE b WITHIN 2 min USING {} RETURN *"
SUBSETS = "PATTERN A; M+; B WITHIN 20 s USING ANY SUBSETS RETURN *"
MATCHERS = {
    "columns": ColumnSearch,
    "compiled": CompiledSearch,
    "optiseq": OptiSeq,
    "nfa": Nfa,
    "compact": Compact,
}

IN_COLUMNS = ("columns", "compiled")


def measure() -> Measurement:
    table = patterns.generator().ticks(EVENTS).table()
    batch = of_table(table, patterns.STREAM, "type", ["price", "volume"], 0)
    events = batch.rows()
    rows: list[tuple[object, ...]] = []
    for name, make in MATCHERS.items():
        nothing = compile_pattern(NOTHING.format("ANY SUBSETS"), patterns.STREAM)

        def whole(query=nothing, make=make, name=name) -> float:
            matcher = make(Meaning(query))
            given = batch if name in IN_COLUMNS else events
            return timed(lambda: matcher.advance(given, BEGIN_OF_TIME, END_OF_STREAM))

        def singly(query=nothing, make=make, name=name) -> float:
            matcher = make(Meaning(query))

            def run() -> None:
                old = BEGIN_OF_TIME
                for event in events[:EPOCHS]:
                    part = of_events([event], needed(query)) if name in IN_COLUMNS else [event]
                    matcher.advance(part, old, event.ts)
                    old = event.ts

            return timed(run)

        event = median(whole) / EVENTS
        epoch = median(singly) / EPOCHS - event
        text = SUBSETS if name == "compact" else None
        query = patterns.query("Q3") if text is None else compile_pattern(text, patterns.STREAM)
        works = []
        for _ in range(REPEATS):
            seconds = whole(query)
            works.append((seconds - event * EVENTS) / units(name, query, events))
        work = statistics.median(works)
        used = COSTS[name]
        steps = len(nothing.elements) + len(nothing.conjuncts)
        found = (epoch / steps * 1e6, event * 1e6, work * 1e6)
        rows.append((name, *found, used.epoch, used.event, used.work))
    head = ("matcher", "epoch µs", "event µs", "work µs", "epoch used", "event used", "work used")
    return Measurement(
        head, rows, {}, f"{EVENTS:,} events of the generator's one seed, median of {REPEATS}"
    )


def units(name: str, query: object, events: list) -> int:
    """Counts the planner's units of work: runs tested, or partial matches made. A search counts
    none where a kernel finds its sequences, so the search without kernels counts for both."""
    if name in ("nfa", "compiled"):
        nfa = Nfa(Meaning(query))
        nfa.advance(events, BEGIN_OF_TIME, END_OF_STREAM)
        return nfa.tests
    if name == "compact":
        again = Compact(Meaning(query))
        found = again.advance(events, BEGIN_OF_TIME, END_OF_STREAM)
        return sum(len(group) for match in found for group in match.groups)
    search = OptiSeq(Meaning(query))
    search.advance(events, BEGIN_OF_TIME, END_OF_STREAM)
    return sum(search.levels)


def median(run: Callable[[], float]) -> float:
    return statistics.median(run() for _ in range(REPEATS))


def timed(run: Callable[[], object]) -> float:
    begun = time.process_time()
    run()
    return time.process_time() - begun
