"""Runs a slice of what `nox -s campaign` and `nox -s mutants` do at length: the processor with
everything in one case, and a fault that must not go unnoticed."""

from __future__ import annotations

from collections import Counter

import pytest

from seustream.cosim.verilated.build import missing
from seustream.cosim.verilated.device import VerilatedDevice
from tests.hdl.judge import SMALL, disagreement
from tests.hdl.mutants import FAULTS, ROOT, verdict

pytestmark = pytest.mark.skipif(bool(missing()), reason="nox -s tests installs what it needs")


@pytest.fixture(scope="module")
def small() -> VerilatedDevice:
    return VerilatedDevice(SMALL)


@pytest.mark.parametrize("first", range(0, 200, 20))
def test_the_processor_does_as_the_golden_model(small: VerilatedDevice, first: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(first, first + 20):
        print(f"seed {seed}")
        assert disagreement(seed, small) is None
        seen.update(small.counters())
    assert seen["hits"]
    assert seen["stalls"]
    assert seen["rewinds"]


def test_every_fault_is_a_line_of_the_processor() -> None:
    assert len(FAULTS) >= 20
    for fault in FAULTS:
        text = (ROOT / "hdl" / fault.file).read_text()
        assert text.count(fault.line) == 1, fault.name
        assert fault.instead != fault.line


def test_a_fault_is_noticed() -> None:
    fault = next(fault for fault in FAULTS if fault.name == "JOIN repeated when resumed")
    assert verdict(fault, 40)
