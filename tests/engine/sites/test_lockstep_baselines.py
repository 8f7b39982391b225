"""Hub and filters without a centre: the reductions against lottery of the specification."""

from __future__ import annotations

import math

import pytest

from seustream.engine.sites.planner import subset_dp
from tests.engine.sites.lockstep import (
    Terms,
    bits,
    run_bloom,
    run_hub,
    run_lottery,
    run_smj,
    setting,
)

SEEDS = 100
EXPECTED = {
    # (n, window): hub, bloom, order without filter
    (3, math.inf): (96, 0, 25),
    (3, 3): (65, 39, 17),
}


@pytest.mark.parametrize(("n", "window"), EXPECTED)
def test_reductions_against_lottery(n: int, window: float) -> None:
    terms = Terms(window)
    totals = [0.0] * 4
    for s in range(SEEDS):
        of = setting(1000 * n + s, n)
        outcomes = (
            run_lottery(of, terms),
            run_hub(of, terms),
            run_bloom(of, terms),
            run_smj(of, subset_dp, terms, filtered=False),
        )
        for place, outcome in enumerate(outcomes):
            totals[place] += outcome.total
            assert sum(outcome.results) == sum(outcomes[0].results)
    hub, bloom, order = (100 * (1 - total / totals[0]) for total in totals[1:])
    want = EXPECTED[n, window]
    assert hub == pytest.approx(want[0], abs=1)
    assert bloom == pytest.approx(want[1], abs=3 if window == math.inf else 1)
    assert order == pytest.approx(want[2], abs=1)


def test_two_bits_of_each_key() -> None:
    assert all(1 <= bits(key).bit_count() <= 2 for key in range(200))
    assert bits(7) == bits(7)
