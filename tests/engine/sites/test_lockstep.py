"""The experiment: exact totals of the specification, its table for all seeds, and shapes over
time."""

from __future__ import annotations

import functools
import math

import pytest

from seustream.engine.sites.planner import PLANNERS
from tests.engine.sites.lockstep import Outcome, Terms, run_lottery, run_smj, setting

NAMES = ("subset_dp", "smjh", "two_pass")
EXACT = {
    (3000, math.inf, False): (12503, 11395.5, 11395.5, 11395.5),
    (3000, math.inf, True): (36122, 31301.5, 31301.5, 31301.5),
    (3000, 3, False): (5072, 2789, 2789, 2789),
    (3000, 3, True): (6020, 3709, 3709, 3709),
    (5000, math.inf, False): (589376, 243199.25, 346734.25, 261518.25),
    (5000, math.inf, True): (6024130, 1562038.25, 3792003.25, 1562151.25),
    (5000, 3, False): (12399, 3422.5, 3525.5, 3598.5),
    (5000, 3, True): (16393, 5406.5, 6591.5, 5445.5),
    (8000, math.inf, False): (132283023, 19209660.5, 61761166.5, 21358662.5),
    (8000, math.inf, True): (852090603, 274732314.5, 552049025.5, 275039114.5),
    (8000, 3, False): (20087, 2162, 2270, 2277),
    (8000, 3, True): (21589, 3040, 4042, 3137),
}
RESULTS = {3000: (8481, 354), 5000: (655478, 528), 8000: (108959384, 249)}


@functools.cache
def run(seed: int, n: int, planner: str, terms: Terms) -> Outcome:
    if planner == "lottery":
        return run_lottery(setting(seed, n), terms)
    return run_smj(setting(seed, n), PLANNERS[planner], terms)


@pytest.mark.parametrize(("seed", "window", "deliver"), EXACT)
def test_statement_14_exact_totals(seed: int, window: float, deliver: bool) -> None:
    terms, n = Terms(window, deliver), seed // 1000
    totals = tuple(run(seed, n, name, terms).total for name in ("lottery", *NAMES))
    assert totals == EXACT[seed, window, deliver]
    results = {sum(run(seed, n, name, terms).results) for name in ("lottery", *NAMES)}
    assert results == {RESULTS[seed][window == 3]}


def test_smje_is_as_exact_as_the_subsets() -> None:
    terms = Terms(3)
    assert run(5000, 5, "smje", terms).costs == run(5000, 5, "subset_dp", terms).costs


def test_what_synopses_cost() -> None:
    assert run(3000, 3, "subset_dp", Terms()).synopses == 667.5
    assert run(3000, 3, "subset_dp", Terms(3)).synopses == 832


def reduction(n: int, planner: str, terms: Terms, seeds: int, entries: int | None = None) -> float:
    """Returns the mean reduction against lottery, in percent."""
    dense = Terms(terms.window, terms.deliver, entries)
    lottery = sum(run(1000 * n + s, n, "lottery", terms).mean for s in range(seeds))
    planned = sum(run(1000 * n + s, n, planner, dense).mean for s in range(seeds))
    return 100 * (1 - planned / lottery)


PUBLISHED = {
    (math.inf, True, "subset_dp"): (25, 41, 53, 57, 63, 68),
    (math.inf, False, "subset_dp"): (11, 40, 57, 69, 75, 79),
    (math.inf, True, "smjh"): (25, 24, 32, 28, 35, 36),
    (math.inf, False, "smjh"): (11, 14, 29, 27, 35, 34),
    (3, True, "subset_dp"): (40, 58, 71, 78, 84, 86),
    (3, False, "subset_dp"): (49, 66, 78, 84, 88, 89),
    (3, True, "smjh"): (40, 54, 67, 74, 79, 82),
    (3, False, "smjh"): (49, 64, 76, 82, 86, 87),
    (math.inf, True, "two_pass"): (25, 41, 53, 57, 63, 68),
    (math.inf, False, "two_pass"): (11, 36, 52, 63, 69, 74),
    (3, True, "two_pass"): (40, 58, 70, 77, 83, 85),
    (3, False, "two_pass"): (49, 65, 76, 82, 86, 88),
}


@pytest.mark.parametrize(("n", "planner"), [(3, "smjh"), (3, "two_pass"), (4, "subset_dp")])
def test_statement_15_reductions_of_few_sites(n: int, planner: str) -> None:
    for window, deliver in ((math.inf, True), (3, True), (3, False)):
        found = reduction(n, planner, Terms(window, deliver), 100)
        assert found == pytest.approx(PUBLISHED[window, deliver, planner][n - 3], abs=1)


@pytest.mark.campaign
@pytest.mark.parametrize(("window", "deliver", "planner"), PUBLISHED)
@pytest.mark.parametrize("n", range(3, 9))
def test_statement_15_reductions(n: int, window: float, deliver: bool, planner: str) -> None:
    found = reduction(n, planner, Terms(window, deliver), 100)
    assert found == pytest.approx(PUBLISHED[window, deliver, planner][n - 3], abs=1)


def test_statement_16_flat_with_a_window_growing_without() -> None:
    def means(planner: str, window: float, seeds: int) -> list[float]:
        runs = [run(5000 + s, 5, planner, Terms(window)) for s in range(seeds)]
        return [sum(unit) / seeds for unit in zip(*(r.costs for r in runs), strict=True)]

    flat = means("subset_dp", 3, 40)
    early, late = sum(flat[4:17]) / 13, sum(flat[17:]) / 13
    assert late == pytest.approx(early, rel=0.15)
    assert early > 4 * flat[0]
    growing = means("subset_dp", math.inf, 20)
    thirds = [sum(growing[t : t + 10]) for t in (0, 10, 20)]
    assert thirds[1] > 5 * thirds[0]
    assert thirds[2] > 2 * thirds[1]


def test_statement_18_dense_synopses_cost_more_than_they_save() -> None:
    assert reduction(3, "subset_dp", Terms(3, False), 100, 20) == pytest.approx(-20, abs=1)
