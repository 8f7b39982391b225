"""Tests three sites as processes, each with a device behind a bridge of its own, as far apart as
this machine allows; the centre is killed and started again, messages are lost and repeated. This is
one run; `nox -s sites` has more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.system.sites import run


@pytest.mark.parametrize("strategy", ["planned", pytest.param("auto", marks=pytest.mark.campaign)])
def test_results_are_exact(strategy: str, tmp_path: Path) -> None:
    what = run(1, tmp_path, strategy)
    assert "send late" in what or "netem" in what
