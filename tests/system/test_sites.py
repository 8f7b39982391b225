"""Three sites as processes, each with a device behind a bridge of its own, apart as far as this machine
allows; the centre killed and started again, messages lost and repeated. One run; `nox -s sites` has
more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.system.sites import run


@pytest.mark.parametrize("strategy", ["planned", pytest.param("auto", marks=pytest.mark.campaign)])
def test_results_are_exact(strategy: str, tmp_path: Path) -> None:
    what = run(1, tmp_path, strategy)
    assert "send late" in what or "netem" in what
