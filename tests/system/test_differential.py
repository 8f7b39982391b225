"""Tests that the golden model, the instruction-level model, the RTL and DuckDB agree on random query sets
and streams, under both plans.

Each case is its own test, named by its seed; `python -m tests.system.campaign --kind models
--first SEED --cases 1` shows it again.
"""

from __future__ import annotations

from collections import Counter

import pytest

from seustream.compiler.errors import CompileError
from seustream.hdl.device import WindowKind
from tests.system.differential import compile_case, drive, run_case
from tests.system.generate import generate

CASES = 320
FIRST = 42_000


@pytest.mark.parametrize("seed", range(FIRST, FIRST + CASES))
def test_case(seed: int) -> None:
    print(f"seed {seed}")
    run_case(seed)


@pytest.mark.parametrize("config", ["default", "tiny", "serial"])
@pytest.mark.parametrize("seed", range(FIRST + CASES, FIRST + CASES + 70))
def test_case_on_the_rtl(seed: int, config: str) -> None:
    """Holds the ports of the RTL back at random; `nox -s campaign` runs every named configuration,
    each of which takes a minute to build."""
    print(f"seed {seed}, configuration {config}")
    run_case(seed, ("golden", "verilated"), config)


@pytest.mark.parametrize("seed", [7_010_874, 7_010_999, 7_012_939])
def test_probes_do_not_keep_each_other_waiting(seed: int) -> None:
    """Two areas full of probes for each other gave way for ever. Processors with no room for a second
    probe are in the tests of the contract (NARROW) and in `nox -s campaign` (CROWDED)."""
    run_case(seed, ("golden", "verilated"), "tiny")


def features(seed: int) -> Counter[str]:
    """Counts what a case exercises."""
    case = generate(seed)
    found: Counter[str] = Counter()
    try:
        compilation = compile_case(case, case.plan)
    except CompileError:
        found["too large"] += 1
        return found
    driver, results = drive(case, compilation, "golden")
    status, report = driver.devices[0].status(), driver.report
    found["results"] = sum(counts.total() for counts in results.values())
    found["repeats dropped"] = report.join.repeats
    found["residual misses"] = report.join.residual
    found["in software"] = sum(report.join.in_software.values())
    found["handed over"] = status.handed_over
    found["ticks"] = status.ticks
    found["dropped at the door"] = status.dropped
    found["self-join"] = any(slot.copy for slot in compilation.layout.slots)
    found["cross product"] = any(step.is_cross_product for step in compilation.routes.steps)
    found["shared subquery"] = any(len(s.parents) > 1 for s in compilation.subqueries)
    found["shared tag"] = any(len(tag.subqueries) > 1 for tag in compilation.routes.tags)
    found["selection"] = any(any(bits) for bits in compilation.requests.selections)
    found["pushed in parts"] = bool(case.pushes)
    found[f"configuration {case.config}"] += 1
    for one in compilation.normalised:
        found[f"{len(one.division.query.sources)} streams"] += 1
        found["selections of one stream"] += len(one.division.slots) == 1
        found["never true"] += one.division.why == "its condition is never true"
        found["several terms"] += len(one.terms) > 1
        for source in one.division.query.sources:
            found[f"window {WindowKind(source.window.kind).name}"] += 1
            found["window NOW"] += source.window.kind is WindowKind.RANGE and not source.window.size
    return found


def test_cases_exercise_everything() -> None:
    """A bin that stays empty would be a hole in the test."""
    bins: Counter[str] = Counter()
    for seed in range(FIRST, FIRST + 150):
        bins.update({name: 1 for name, count in features(seed).items() if count})
    wanted = {
        *("results", "repeats dropped", "residual misses", "in software", "handed over", "ticks"),
        *("dropped at the door", "self-join", "cross product", "shared subquery", "shared tag"),
        *("selection", "pushed in parts", "never true", "several terms"),
        "selections of one stream",
        *("1 streams", "2 streams", "3 streams", "4 streams"),
        *("window RANGE", "window ROWS", "window UNBOUNDED", "window NOW"),
        *("configuration default", "configuration thesis", "configuration tiny"),
    }
    print(sorted(bins.items()))
    assert {name for name in wanted if bins[name] < 2} == set()
