"""Runs a short slice of the campaign of kills; `nox -s kills` runs more, and Spark's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cosim.bridge.kills import case


@pytest.mark.parametrize(
    ("seed", "kind", "cold"), [(1, "bridge", True), (2, "bridge", False), (3, "client", False)]
)
def test_killed_at_random_results_are_as_without(
    seed: int, kind: str, cold: bool, tmp_path: Path
) -> None:
    print(f"seed {seed}")
    case(seed, tmp_path, kind, cold=cold)
