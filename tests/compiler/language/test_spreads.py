"""Special cases of aggregates of spread; `test_aggregates` runs them on random histories."""

from __future__ import annotations

import math
import random
import statistics
from fractions import Fraction
from typing import Any

import pytest

from seustream.compiler.language.registry import FAULT
from seustream.compiler.language.spreads import SPREADS

ENTRIES = {entry.name: entry for entry in SPREADS}


def of(name: str, *rows: tuple[Any, ...]) -> Any:
    entry = ENTRIES[name]
    state = entry.init()
    for row in rows:
        state = entry.insert(state, *row)
    return entry.result(state)


def test_correlation_of_far_apart_sizes() -> None:
    assert of("corr", (1e-300, 1e300), (2e-300, 3e300), (3e-300, 5e300)) == 1.0
    assert of("corr", (1e200, -1.0), (2e200, -2.0)) == -1.0
    assert of("corr", (1.0, 7.0), (2.0, 7.0)) is None
    assert of("corr", (math.inf, 7.0), (2.0, 7.0)) is FAULT


def test_as_the_standard_library_has_them() -> None:
    chance = random.Random(20)
    x, y = ([chance.gauss(0, 9) for _ in range(50)] for _ in "xy")
    rows = list(zip(x, y, strict=True))
    assert of("corr", *rows) == pytest.approx(statistics.correlation(x, y), rel=1e-12)
    assert of("covar_samp", *rows) == pytest.approx(statistics.covariance(x, y), rel=1e-12)
    cuts = statistics.quantiles(x, n=10, method="inclusive")
    ninth = of("quantile_cont", *((value, 0.9) for value in x))
    assert ninth == pytest.approx(cuts[-1], rel=1e-12)


def test_quantiles_beside_infinity() -> None:
    assert of("quantile_cont", (1.0, 0.5), (math.inf, 0.5)) == math.inf
    assert of("quantile_cont", (-math.inf, 0.5), (math.inf, 0.5)) is FAULT
    assert of("quantile_cont", (1.0, -0.1)) is FAULT
    assert of("quantile_disc", ("b", 0.0), ("a", 0.0)) == "a"


def test_deviations_whose_squares_no_double_holds() -> None:
    for size in (2e160, 2e-170, 1e308, 5e-324 * 4):
        for name, share in (("stddev_pop", 0.5), ("stddev_samp", math.sqrt(0.5))):
            assert of(name, (0.0,), (size,)) == pytest.approx(size * share, rel=1e-15)


def test_deviations_are_the_nearest_doubles() -> None:
    chance = random.Random(7)
    for _ in range(300):
        values = [chance.uniform(-1, 1) * 10 ** chance.uniform(-3, 3) for _ in range(5)]
        exact = [Fraction(one) for one in values]
        mean = sum(exact) / 5
        square = sum((one - mean) ** 2 for one in exact) / 5
        found = Fraction(of("stddev_pop", *((one,) for one in values)))
        near = [Fraction(math.nextafter(float(found), to)) for to in (-math.inf, math.inf)]
        for other in near:
            middle = (found + other) / 2
            assert (middle**2 > square) == (other > found)


def test_of_one_argument_no_products_with_another_are_kept() -> None:
    entry = ENTRIES["var_pop"]
    state = entry.init()
    for value in (3.0, 5.0):
        state = entry.insert(state, value)
    count, infinite, x, *others = state
    assert (others[0], others[2:]) == (0, [0, 0])
    earlier = [count, infinite, x, x, others[1], others[1], others[1]]  # as older snapshots have it
    assert entry.remove is not None
    assert entry.result(entry.insert(earlier, 7.0)) == entry.result(entry.insert(state, 7.0))
