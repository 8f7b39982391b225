"""The core in a LiteX system, in simulation: it answers a query, and behaves like any other device.
Takes minutes; `nox -s verilog` runs it."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from seustream.cosim.boards.simulated import SimulatedBoard
from seustream.hdl.config import CONFIGURATIONS
from tests.cosim.link.test_device_faults import same_as_golden
from tests.docs.blocks import ROOT

LITEX = ROOT / "examples" / "litex"
TINY = CONFIGURATIONS["tiny"]


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Imports the example's modules under the names they have in its own folder."""
    monkeypatch.syspath_prepend(str(LITEX))
    import run

    yield run
    for name in ("run", "soc", "host"):
        sys.modules.pop(name, None)


@pytest.mark.campaign
def test_the_system_answers_a_query() -> None:
    done = subprocess.run(
        [sys.executable, str(LITEX / "run.py")],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "400 tuples into the core" in done.stdout
    assert "rows, as expected" in done.stdout


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("seed", "memory"), [*((seed, 1 << 16) for seed in range(3)), (3, 1 << 11)]
)
def test_random_cases_in_the_system(example: Any, seed: int, memory: int) -> None:
    """With little memory the DMA delivers records in several transfers."""
    print(f"seed {seed}")
    built, found = example.system(TINY)
    found["memories"]["main_ram"]["size"] = memory
    device = example.host.device(SimulatedBoard(built), found, TINY)
    same_as_golden(device, random.Random(seed))
    device.close()


@pytest.mark.campaign
def test_another_core_is_refused(example: Any) -> None:
    built, found = example.system(TINY)
    with pytest.raises(example.host.WrongSystem, match="CONFIG of the core is"):
        example.host.device(SimulatedBoard(built), found, CONFIGURATIONS["thesis"])
