"""Aggregates over spans, compared with a loop over every point."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from seustream.engine.stream import spans


@pytest.mark.parametrize("seed", range(60))
def test_against_a_loop(seed: int) -> None:
    print(f"seed {seed}")
    chance = np.random.default_rng(seed)
    n, m = int(chance.integers(1, 40)), int(chance.integers(0, 60))
    first = chance.integers(0, n + 1, m)
    last = np.minimum(first + chance.integers(0, n + 1, m), n)
    whole = chance.integers(-9, 9, m)
    halves = whole / 2
    live = [np.flatnonzero((first <= p) & (p < last)) for p in range(n)]
    assert spans.counts(first, last, n).tolist() == [len(mine) for mine in live]
    wide = np.ldexp(chance.normal(size=m), chance.integers(-60, 60, m))
    for values in (whole, halves, wide, whole << 45):
        for mean in (False, True):
            found, known = spans.totals(values, first, last, n, mean)
            assert known.tolist() == [len(mine) > 0 for mine in live]
            for p in np.flatnonzero(known).tolist():
                exact = sum(map(Fraction, values[live[p]].tolist()))
                assert found[p] == float(exact / len(live[p]) if mean else exact)
    for greatest in (False, True):
        for values in (whole, halves):
            found = spans.extremes(values, first, last, n, greatest)
            for p, mine in enumerate(live):
                if len(mine):
                    assert found[p] == (values[mine].max() if greatest else values[mine].min())


def test_what_is_not_there_leaves_no_trace() -> None:
    values = np.array([1e30, 0.1, 1e15, 0.1])
    first, last = np.array([0, 1, 2, 3]), np.array([1, 4, 3, 4])
    found, _ = spans.totals(values, first, last, 4)
    assert found.tolist() == [1e30, 0.1, 1e15 + 0.1, 0.2]
    found, _ = spans.totals(np.array([1.7e308, 1.7e308]), first[:2] * 0, last[:2] * 0 + 1, 1, True)
    assert found.tolist() == [1.7e308]  # a mean may be finite where the sum is not


def test_infinities_count_where_they_count() -> None:
    values = np.array([np.inf, 1.0, -np.inf])
    found, known = spans.totals(values, np.array([0, 0, 1]), np.array([2, 5, 3]), 5)
    assert found[known].tolist() == [np.inf, -np.inf, 1.0, 1.0]
    assert known.tolist() == [True, False, True, True, True]


def test_integer_sums_are_exact_or_have_no_value() -> None:
    big = np.array([2**62, 2**62 - 1, -(2**62)])
    first = np.array([0, 1, 2])
    found, known = spans.totals(big, first, np.array([2, 3, 3]), 3)
    assert found.tolist() == [2**62, 2**63 - 1, -1]
    assert known.all()
    more = np.array([2**62, 2**62, 5])
    found, known = spans.totals(more, first, np.array([2, 3, 3]), 3)
    assert known.tolist() == [True, False, True]
    assert found[[0, 2]].tolist() == [2**62, 2**62 + 5]
