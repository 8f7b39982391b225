"""The matcher that the engine chooses beside all others that can run a pattern, by rows per step.

Each query goes through the whole engine, from push to results, once with the chosen matcher and
once with every other one. Events have one of twenty types each, come every 1 to 19 ms, and carry a
key of a hundred; the seed is 21. A figure is the processor time per event of the best of PASSES
passes. A pass that takes ENOUGH seconds is abandoned. `times best` is what the choice costs beside
the cheapest matcher: 1 where it is the cheapest. All matchers must deliver equally many results.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from seustream.commands.bench import Measurement, measured_before
from seustream.compiler.pattern.ir import PatternQuery
from seustream.compiler.pipeline import Compilation, Options, compile_text
from seustream.engine.graph import GraphRun
from seustream.engine.pattern.planner import pick, supports

TITLE = "pattern_costs: the matcher that is chosen beside the others, by rows a step"
LONG = True

EVENTS, PASSES, SEED = 4_096, 3, 21
SHORT = {"PASSES": 1}
STEPS = (1, 64, 4_096)
ENOUGH = 2.0
"""Seconds of processor time after which a pass is abandoned."""
HEAD = (
    "query", "rows a step", "results", "chosen", "us/event", "cheapest other", "us/event of it",
    "times best",
)  # fmt: skip
STREAM = "CREATE STREAM E (type varchar, id int, v double, k int);"
QUERIES = {
    "sequence": "A a; B b; C c; D d FROM E WITHIN 1 s RETURN a.id",
    "constants": "A a; B b; C c; D d FROM E WHERE a.v > 0.5 AND d.v > 0.5 WITHIN 4 s RETURN a.id",
    "compared": "A a; B b; C c FROM E WHERE a.v < b.v AND b.v < c.v WITHIN 1 s RETURN a.id",
    "rare": "A a; B b; C c FROM E WHERE a.v > 0.999 AND c.v > 0.99 WITHIN 600 s RETURN a.id",
    "computed": "A a; B b; C c FROM E WHERE abs(a.v - b.v) < 0.05 AND abs(b.v - c.v) < 0.05"
    " WITHIN 9 s RETURN a.id",
    "absence": "A a; !B b; C c FROM E WITHIN 1 s RETURN a.id",
    "absence at the end": "A a; B b; !C c FROM E WHERE c.k = a.k WITHIN 5 s RETURN a.id",
    "largest group": "A a; B+ b; C c FROM E WITHIN 5 s RETURN a.id, count(b) AS n",
    "NEXT": "A a; B b; C c FROM E WITHIN 5 s USING NEXT RETURN a.id",
    "NEXT, computed": "A a; B b; C c FROM E PARTITION BY k WHERE b.v + a.v > c.v WITHIN 60 s"
    " USING NEXT RETURN a.id",
    "NEXT group": "A a; B+ b; C c FROM E WHERE b[i].v > b[i-1].v WITHIN 5 s USING NEXT RETURN a.id",
    "STRICT": "ANY a; ANY b; ANY c FROM E WHERE a.v < b.v AND b.v < c.v WITHIN 60 s USING STRICT"
    " RETURN a.id",
    "subsets": "A a; B+ b; C c FROM E WITHIN 500 ms USING ANY SUBSETS RETURN a.id",
    "subsets by key": "A a; B+ b; C c FROM E PARTITION BY k WITHIN 60 s USING ANY SUBSETS"
    " RETURN a.id",
    "rising subsets": "A a; B+ b; C c FROM E WHERE b[i].v > b[i-1].v WITHIN 800 ms"
    " USING ANY SUBSETS RETURN a.id",
    "subsets between compared": "A a; B+ b; C c FROM E WHERE c.v > a.v WITHIN 800 ms"
    " USING ANY SUBSETS RETURN a.id",
    "subsets between equal": "A a; B+ b; C c FROM E WHERE c.k = a.k WITHIN 2 s"
    " USING ANY SUBSETS RETURN a.id",
    "computed subsets": "A a; B+ b; C c FROM E WHERE b[i].v + a.v > c.v + 1 WITHIN 800 ms"
    " USING ANY SUBSETS RETURN a.id",
}
PARTS = tuple(QUERIES)


def measure(parts: Sequence[str] = PARTS) -> Measurement:
    pa.set_cpu_count(1)
    rows = measured_before("pattern_costs", HEAD, lambda row: row[0] not in parts)
    table = _events()
    for name in parts:
        c = compile_text(f"{STREAM} REGISTER QUERY q AS PATTERN {QUERIES[name]};", options=HOST)
        (query,) = c.program.patterns
        assert isinstance(query, PatternQuery)
        chosen = pick(query)[0]
        others = [one for one, reason in supports(query).items() if reason is None]
        for size in STEPS:
            results, own = _best(c, "auto", size, table)
            found = {one: _best(c, one, size, table) for one in others}
            for one, (other, _) in found.items():
                if None not in (other, results) and other != results:
                    raise AssertionError(f"{name}: {results} results, and {other} of {one}")
            best = min(found, key=lambda one: found[one][1])
            times = own / found[best][1]
            rows.append((name, size, results, chosen, own, best, found[best][1], times))
    rows.sort(key=lambda row: PARTS.index(str(row[0])))
    worst = max(rows, key=lambda row: float(str(row[-1])))
    return Measurement(
        HEAD,
        rows,
        {"worst choice, times the cheapest matcher": float(str(worst[-1]))},
        f"one thread, {EVENTS:,} events, best of {PASSES} passes, seed {SEED}",
        remarks=(f"the worst choice: {worst[0]}, {worst[1]} rows a step",),
    )


HOST = Options(devices=0)


def _events() -> pa.Table:
    chance = np.random.default_rng(SEED)
    kinds = pa.array([*"ABCD", *(f"T{number}" for number in range(4, 20))])
    return pa.table(
        {
            "ts": np.cumsum(chance.integers(1, 20, EVENTS)),
            "type": kinds.take(pa.array(chance.integers(0, 20, EVENTS))),
            "id": np.arange(EVENTS, dtype=np.int32),
            "v": chance.random(EVENTS),
            "k": chance.integers(0, 100, EVENTS).astype(np.int32),
        }
    )


def _best(c: Compilation, engine: str, size: int, table: pa.Table) -> tuple[int | None, float]:
    """Returns the number of results and the microseconds per event of the best pass; no number if a
    pass was abandoned."""
    best: tuple[int | None, float] = (None, np.inf)
    for _ in range(PASSES):
        results, each = _pass(c, engine, size, table)
        best = results, min(best[1], each)
        if results is None:
            break
    return best


def _pass(c: Compilation, engine: str, size: int, table: pa.Table) -> tuple[int | None, float]:
    run, results, done = GraphRun(c, engine=engine), 0, 0
    begun = time.process_time()
    for done in range(size, EVENTS + 1, size):
        run.push("E", table.slice(done - size, size))
        results += sum(rows.num_rows for _, rows in run.advance())
        if time.process_time() - begun > ENOUGH:
            return None, 1e6 * (time.process_time() - begun) / done
    results += sum(rows.num_rows for _, rows in run.finish())
    return results, 1e6 * (time.process_time() - begun) / EVENTS
