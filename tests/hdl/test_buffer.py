"""Tests buffers on a stream: everything comes through in order, at full speed, and nothing passes
within a cycle."""

from __future__ import annotations

import random
from typing import Any

import pytest
from amaranth.sim import Simulator

from seustream.hdl.buffer import BlockBuffer, StreamBuffer


def through(
    dut: StreamBuffer | BlockBuffer, idle: float, pressure: float, count: int, seed: int
) -> tuple[list[int], int]:
    """Sends the numbers up to `count`; returns what came through, and in how many cycles."""
    chance = random.Random(seed)
    got: list[int] = []
    cycles = 0

    async def bench(ctx: Any) -> None:
        nonlocal cycles
        nexts, offered = 0, False
        while len(got) < count:
            offered = nexts < count and (offered or chance.random() >= idle)
            before = ctx.get(dut.coming.ready), ctx.get(dut.going.valid), ctx.get(dut.going.payload)
            ctx.set(dut.coming.valid, offered)
            ctx.set(dut.coming.payload, nexts)
            takes = chance.random() >= pressure
            ctx.set(dut.going.ready, takes)
            after = ctx.get(dut.coming.ready), ctx.get(dut.going.valid), ctx.get(dut.going.payload)
            assert before == after, "within a cycle"
            if takes and after[1]:
                got.append(after[2])
            if offered and after[0]:
                nexts, offered = nexts + 1, False
            await ctx.tick()
            cycles += 1

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return got, cycles


@pytest.mark.parametrize(("idle", "pressure"), [(0, 0), (0, 0.5), (0.5, 0), (0.5, 0.5), (0.1, 0.9)])
@pytest.mark.parametrize("blocks", [0, 1, 2])
def test_all_comes_through_in_order(blocks: int, idle: float, pressure: float) -> None:
    dut = BlockBuffer(16, 2048 * blocks) if blocks else StreamBuffer(16)
    got, cycles = through(dut, idle, pressure, 500, 7)
    assert got == [*range(500)]
    if not idle and not pressure:
        assert cycles == 500 + (3 * blocks or 1)


def test_blocks_hold_all_of_them() -> None:
    dut, count = BlockBuffer(16, 4000), 0

    async def bench(ctx: Any) -> None:
        nonlocal count
        ctx.set(dut.coming.valid, 1)
        for _ in range(5000):
            count += ctx.get(dut.coming.ready)
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert 4096 < count <= 4096 + 2 * 4
