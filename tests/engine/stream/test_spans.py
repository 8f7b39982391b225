"""Aggregates over spans, compared with a loop over every point."""

from __future__ import annotations

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
    assert spans.integer_sums(whole, first, last, n)[0].tolist() == [
        int(whole[i].sum()) for i in live
    ]
    assert spans.sums(halves, first, last, n).tolist() == [float(halves[i].sum()) for i in live]
    for greatest in (False, True):
        for values in (whole, halves):
            found = spans.extremes(values, first, last, n, greatest)
            for p, mine in enumerate(live):
                if len(mine):
                    assert found[p] == (values[mine].max() if greatest else values[mine].min())


def test_sums_do_not_drift() -> None:
    """Large values that have left leave no trace."""
    values = np.array([1e15, 0.1, 1e15, 0.1])
    first, last = np.array([0, 1, 2, 3]), np.array([1, 4, 3, 4])
    assert spans.sums(values, first, last, 4).tolist() == pytest.approx(
        [1e15, 0.1, 1e15 + 0.1, 0.2], rel=1e-8
    )


def test_what_is_not_finite_counts_where_it_counts() -> None:
    values = np.array([np.inf, 1.0, -np.inf, np.nan])
    first, last = np.array([0, 0, 2, 4]), np.array([2, 5, 3, 5])
    found = spans.sums(values, first, last, 5)
    assert found.tolist()[:4] == [np.inf, np.inf, -np.inf, 1.0]
    assert np.isnan(found[4])


def test_integer_sums_are_exact_or_have_no_value() -> None:
    big = np.array([2**62, 2**62 - 1, -(2**62)])
    first = np.array([0, 1, 2])
    found, wrong = spans.integer_sums(big, first, np.array([2, 3, 3]), 3)
    assert found.tolist() == [2**62, 2**63 - 1, -1]
    assert not wrong.any()
    more = np.array([2**62, 2**62, 5])
    found, wrong = spans.integer_sums(more, first, np.array([2, 3, 3]), 3)
    assert wrong.tolist() == [False, True, False]
    assert found[[0, 2]].tolist() == [2**62, 2**62 + 5]
