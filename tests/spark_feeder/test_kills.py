"""Two of the campaign's kills in Spark; `nox -s kills` has more. Those of the bridge alone are in
`tests/cosim/bridge/test_kills.py`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.spark_feeder.kills import case

pytestmark = pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java 17")


@pytest.mark.parametrize(("seed", "kind"), [(1, "driver"), (2, "worker")])
def test_killed_at_random_files_are_as_without(seed: int, kind: str, tmp_path: Path) -> None:
    print(f"seed {seed}")
    case(seed, tmp_path, kind)
