"""Tests where the cycles go: what each unit counts on streams made to keep it busy, or waiting."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from seustream.compiler.pipeline import Options, compile_text
from seustream.cosim.verilated.build import missing
from seustream.cosim.verilated.device import VerilatedDevice
from seustream.hdl.config import CONFIGURATIONS
from seustream.hdl.control_words import units
from seustream.hdl.device import Batch, UnitCycles

pytestmark = pytest.mark.skipif(bool(missing()), reason="nox -s tests installs what it needs")

CONFIG = dataclasses.replace(CONFIGURATIONS["tiny"], streams=2, depth=64)
STREAMS = "CREATE STREAM R (a int); CREATE STREAM S (a int);\n"
NEVER = "SELECT * FROM R, S WHERE R.a < S.a WINDOW ROWS 40;"  # scanned, none joins
ALWAYS = "SELECT * FROM R, S WHERE R.a >= S.a WINDOW ROWS 8;"
EQUAL = "SELECT * FROM R, S WHERE R.a = S.a WINDOW ROWS 40;"


def device_for(query: str) -> VerilatedDevice:
    device = VerilatedDevice(CONFIG)
    device.load(compile_text(STREAMS + query, options=Options(CONFIG)).image)
    device.reset()
    return device


def tuples(n: int, first: int = 0, keys: bool = False) -> Batch:
    """Returns tuples of R, which are large, and of S, which are small, in turn; or of both with
    recurring keys."""
    row = np.arange(first, first + n)
    attributes = np.zeros((n, 4), np.uint32)
    attributes[:, 0] = row // 2 % 40 if keys else np.where(row % 2, 5, 9)
    admit = np.ones(n, np.bool_)
    return Batch((row % 2).astype(np.uint8), row.astype(np.int64), row // 2, admit, attributes)


def shares(device: VerilatedDevice, keys: bool = False) -> dict[str, UnitCycles]:
    """Returns what the units did while some tuples were processed, per thousand cycles."""
    device.push(tuples(100, keys=keys))
    before, cycles = device.units(), device.cycles
    device.push(tuples(400, 100, keys))
    cycles = device.cycles - cycles
    after = device.units()

    def share(name: str, what: str) -> int:
        return 1000 * (getattr(after[name], what) - getattr(before[name], what)) // cycles

    return {
        name: UnitCycles(*(share(name, what) for what in ("busy", "starved", "blocked")))
        for name in after
    }


def test_an_idle_device_is_starved() -> None:
    device = device_for(EQUAL)
    device.push(tuples(50))
    before = device.units()
    for _ in range(50):
        device.status()
    after = device.units()
    assert list(after) == units(device.config)
    for name, now in after.items():
        assert (now.busy, now.blocked) == (before[name].busy, before[name].blocked), name
        assert now.starved > before[name].starved, name
    device.reset()
    assert all(unit.busy == unit.blocked == 0 for unit in device.units().values())


def test_every_cycle_is_counted_once() -> None:
    device = device_for(EQUAL)
    device.push(tuples(200))
    found, cycles = device.units(), device.counters()["cycles"]
    for name, unit in found.items():
        assert min(unit.busy, unit.starved, unit.blocked) >= 0, name
        assert 0 <= cycles - unit.busy - unit.starved - unit.blocked < 500, name  # read one by one


def test_a_scan_keeps_the_scanner_busy() -> None:
    found = shares(device_for(NEVER))
    assert found["scanner 0"].busy > 600
    assert found["scanner 1"].busy > 600
    assert found["execution 0"].busy < 200
    assert found["output"].busy == found["output"].blocked == 0
    assert found["door"].blocked > 300, "it waits for the scans"


def test_results_keep_the_output_busy_and_the_rest_waiting() -> None:
    found = shares(device_for(ALWAYS.replace("8;", "40;")))
    assert found["output"].busy > 800
    assert found["execution 0"].blocked > 300, "it waits for the router"
    assert found["scanner 0"].blocked > 600, "it waits for execution"
    assert found["router"].busy > 800
    assert found["sequencer"].blocked > 300, "it waits for the router"
    assert found["door"].blocked > 300, "it waits for the sequencer"


def test_results_that_are_not_taken_block_the_output() -> None:
    device = device_for(ALWAYS)
    device.hold(seed=7, outputs=0.9)
    found = shares(device)
    assert found["output"].blocked > 400
    assert found["router"].blocked > 400
    free = shares(device_for(ALWAYS))
    assert free["output"].blocked == 0


def test_a_window_waits_until_who_leaves_it_early_is_taken() -> None:
    query = "SELECT * FROM R, S WHERE R.a = S.a WINDOW ROWS 64;"
    device = device_for(query)
    device.hold(seed=3, outputs=0.9)
    found = shares(device, keys=True)
    assert found["window 0"].blocked > 60
    assert shares(device_for(EQUAL), keys=True)["window 0"].blocked == 0


@pytest.mark.parametrize("keys", [False, True])
def test_a_window_of_all_that_fits_makes_nobody_wait(keys: bool) -> None:
    """There are spare slots for tuples that have left but that raw tuples in flight may see."""
    query = "SELECT * FROM R, S WHERE R.a = S.a WINDOW ROWS {};"
    full = shares(device_for(query.format(CONFIG.capacity)), keys)
    roomy = shares(device_for(query.format(CONFIG.capacity - 8)), keys)
    assert full["window 0"].blocked == full["window 1"].blocked == 0
    assert full["sequencer"].busy < roomy["sequencer"].busy + 100


def test_equal_keys_make_the_fetch_work() -> None:
    found = shares(device_for(EQUAL), keys=True)
    assert found["fetch"].busy > 100
    assert found["fetch"].blocked == 0
    assert found["window 0"].busy > 100
    assert found["loader 0"].busy > 200
