"""Tests counts that cross from one clock to another: none is lost, none comes twice."""

from __future__ import annotations

import random

import pytest
from amaranth.hdl import ClockDomain, Module
from amaranth.sim import Simulator, SimulatorContext

from seustream.hdl.boards.counts import LinkCounts, PulseCrossing
from seustream.hdl.boards.protocol import LinkCounter


@pytest.mark.parametrize("period", [5, 8, 8.001, 20])
def test_as_many_pulses_go_as_come(period: float) -> None:
    """Pulses cross from a clock of 8 ns to one of another period: one in three cycles on average,
    and ten at once."""
    seed = round(1000 * period)
    print(f"seed {seed}")
    chance = random.Random(seed)
    m = Module()
    m.domains += [ClockDomain("phy"), ClockDomain("sync")]
    m.submodules.crossing = dut = PulseCrossing("phy")
    came = went = 0

    async def come(context: SimulatorContext) -> None:
        nonlocal came
        for _ in range(200):
            at_once = chance.choice([0, 1, 1, 2, 10])
            for cycle in range(30 + at_once):
                pulse = cycle < at_once
                context.set(dut.come, pulse)
                came += pulse
                await context.tick("phy")
        for _ in range(40):
            await context.tick("phy")

    async def go(context: SimulatorContext) -> None:
        nonlocal went
        async for _, _, goes in context.tick().sample(dut.goes):
            went += goes

    simulator = Simulator(m)
    simulator.add_clock(8e-9, domain="phy")
    simulator.add_clock(period * 1e-9, phase=1.3e-9)
    simulator.add_testbench(come)
    simulator.add_testbench(go, background=True)
    simulator.run()
    assert went == came > 300


def test_each_event_counts_for_its_own() -> None:
    print("seed 1")
    chance = random.Random(1)
    dut = LinkCounts()
    want = dict.fromkeys(LinkCounter, 0)

    async def drive(context: SimulatorContext) -> None:
        for _ in range(300):
            events = chance.getrandbits(len(LinkCounter))
            for counter in LinkCounter:
                want[counter] += events >> counter & 1
            context.set(dut.events, events)
            await context.tick()
        context.set(dut.events, 0)
        for counter in LinkCounter:
            context.set(dut.which, counter)
            await context.tick()
            assert context.get(dut.count) == want[counter], counter.name

    simulator = Simulator(dut)
    simulator.add_clock(1e-8)
    simulator.add_testbench(drive)
    simulator.run()
