"""Runs random query sets over streams at sites, some of the campaign `nox -s sites`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.system.across import case, check


@pytest.mark.parametrize("first", [*range(1, 31, 10), pytest.param(31, marks=pytest.mark.campaign)])
def test_results_are_those_of_one_process_and_of_duckdb(first: int, tmp_path: Path) -> None:
    results = 0
    for seed in range(first, first + (10 if first < 31 else 200)):
        folder = tmp_path / str(seed)
        folder.mkdir()
        results += check(case(seed), folder)
    assert results > 100
