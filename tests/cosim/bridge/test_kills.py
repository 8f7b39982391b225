"""A short slice of the campaign of kills; `nox -s kills` has more, and Spark's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cosim.bridge.kills import case


@pytest.mark.parametrize(("seed", "kind"), [(1, "bridge"), (2, "bridge"), (3, "client")])
def test_killed_at_random_results_are_as_without(seed: int, kind: str, tmp_path: Path) -> None:
    print(f"seed {seed}")
    case(seed, tmp_path, kind)
