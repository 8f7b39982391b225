"""Tests that query sets that mix the three languages give the same results whatever runs them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.system.mixed import case, check


@pytest.mark.parametrize("seed", range(1, 11))
def test_the_same_results_everywhere(seed: int, tmp_path: Path) -> None:
    print(f"seed {seed}")
    check(seed, tmp_path)


def test_cases_exercise_everything() -> None:
    counts: Counter[str] = Counter()
    for seed in range(1, 41):
        counts += case(seed).counts
    assert counts.keys() == {"selection", "join", "groups", "pattern", "apas"}
    assert min(counts.values()) > 10, counts
