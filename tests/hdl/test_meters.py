"""Tests meters against plain counts: every event is counted once, and none after it was cleared."""

from __future__ import annotations

import dataclasses

import cocotb
import pytest

from seustream.hdl.config import CONFIGURATIONS
from seustream.hdl.meters import Meters
from tests.hdl.bench import Bench, simulate

CONFIG = dataclasses.replace(CONFIGURATIONS["tiny"], streams=2)
CASES = {str(events): (lambda events=events: Meters(CONFIG, events)) for events in (5, 8, 42)}


@pytest.mark.parametrize("case", CASES)
def test_meters(case: str) -> None:
    simulate(__name__, CASES, case)


@cocotb.test()
async def every_event_is_counted(dut: object) -> None:
    bench = Bench(dut, CASES)
    n = len(bench.component.events)
    await bench.reset()
    for _ in range(n + 4):  # a reset clears them, too
        await bench.clock()
    chances = [0, 1, *(bench.chance.random() for _ in range(n - 2))]  # never, always, sometimes
    counted = [0] * n
    for _ in range(6):
        for _ in range(40 * n):
            events = [bench.chance.random() < chance for chance in chances]
            counted = [count + event for count, event in zip(counted, events, strict=True)]
            bench.set("events", sum(event << i for i, event in enumerate(events)))
            await bench.clock()
        bench.set("events", 0)
        for _ in range(n + 4):
            await bench.clock()
        for number, count in enumerate(counted):
            bench.set("address", number)
            await bench.clock()
            await bench.settle()
            assert bench.bits("count") == count
        if bench.chance.random() < 0.5:
            bench.set("forget", 1)
            await bench.clock()
            bench.set("forget", 0)
            for number in bench.chance.sample(range(n), 3):  # at once, to any reader
                bench.set("address", number)
                await bench.clock()
                await bench.clock()
                await bench.settle()
                assert bench.bits("count") == 0
            for _ in range(n + 4):
                await bench.clock()
            counted = [0] * n
