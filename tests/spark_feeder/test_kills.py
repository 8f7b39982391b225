"""Five of the campaign's kills in Spark; `nox -s kills` runs more. Kills of a bridge with a client
of its own are in `tests/cosim/bridge/test_kills.py`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.spark_feeder.kills import KINDS, case

pytestmark = pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java 17")


def test_killed_at_random_files_are_as_without(tmp_path: Path) -> None:
    seed, kinds = 1, ["worker", "bridge", "driver", "bridge", "worker"]
    print(f"seed {seed}")
    kills = case(seed, tmp_path, kinds, batches=48)
    assert set(kills) == set(KINDS)
    assert kills.total() == len(kinds)
