"""Tests the reset: a clock that may run, and a button that bounces. The clock gate itself is a cell
of the FPGA, which netlists have (`tests/cosim/boards`)."""

from __future__ import annotations

import cocotb
import pytest

from seustream.hdl.boards.reset import ResetButton, Steady
from tests.hdl.bench import Bench, simulate

CYCLES = 20
CASES = {"steady": lambda: Steady(CYCLES), "button": lambda: ResetButton(CYCLES)}
_TESTS = {"steady": "only_when_it_stays", "button": "pressed_and_for_a_while"}


@pytest.mark.parametrize("case", CASES)
def test_reset(case: str) -> None:
    simulate(__name__, CASES, case, [_TESTS[case]])


@cocotb.test()
async def only_when_it_stays(dut: object) -> None:
    bench = Bench(dut, CASES)
    await bench.reset()
    high = 0  # cycles for which it has been high
    seen = {0: 0, 1: 0}
    for _ in range(80):
        level = bench.chance.random() < 0.7
        bench.set("level", level)
        for _ in range(bench.chance.choice([1, 3, CYCLES - 2, CYCLES + 10])):
            await bench.settle()
            steady = bench.bits("steady")
            # Through the synchroniser, and a register.
            assert not steady or high >= CYCLES, "too early"
            assert steady or high < CYCLES + 4, "too late"
            seen[steady] += 1
            await bench.clock()
            high = high + 1 if level else 0
            if not level:
                for _ in range(4):
                    await bench.tick()
                assert not bench.bits("steady")
    assert all(seen.values())


@cocotb.test()
async def pressed_and_for_a_while(dut: object) -> None:
    bench = Bench(dut, CASES)
    await bench.reset()
    assert not bench.bits("reset"), "a reset nobody asked for"
    for _ in range(20):
        for _ in range(bench.chance.randrange(1, 8)):  # it bounces
            bench.set("button", 1)
            for _ in range(bench.chance.randrange(1, 5)):
                await bench.tick()
            bench.set("button", 0)
            for _ in range(bench.chance.randrange(4, CYCLES - 4)):
                await bench.tick()
        lasts = 0
        for i in range(2 * CYCLES):
            await bench.settle()
            reset = bench.bits("reset")
            lasts += reset
            assert not reset or lasts == i + 1, "it ended and began again"
            await bench.clock()
        assert 0 < lasts <= CYCLES + 5
        assert not bench.bits("reset")
