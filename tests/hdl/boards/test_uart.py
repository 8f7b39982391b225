"""Tests the UART: bytes over the pins, with the rate of either side a little off, and noise between
them."""

from __future__ import annotations

import itertools

import cocotb
import pytest

from seustream.hdl.boards.uart import PARTS, UartReceiver, UartTransmitter
from tests.hdl.bench import Bench, Driver, Monitor, simulate

CASES = {"receiver": UartReceiver, "transmitter": UartTransmitter}


@pytest.mark.parametrize("case", CASES)
def test_uart(case: str) -> None:
    simulate(__name__, CASES, case, ["bytes_come_in" if case == "receiver" else "bytes_go_out"])


@cocotb.test()
async def bytes_come_in(dut: object) -> None:
    bench = Bench(dut, CASES)
    chance = bench.chance
    spikes = broken = 0
    # Cycles per bit; 4.1875 is 12 megabaud at 50 MHz, 16.6875 is 3.
    for divisor in (4, 4.1875, 4.9375, 7, 16.6875, 20):
        await bench.reset(divisor=int(divisor * PARTS), rx=1)
        monitor = Monitor(bench, "bytes", firm=False)
        got, want, seen_broken = monitor.got, [], 0
        lines = chance.random()  # cycles are not in step with bits

        async def level(value: int, cycles: float) -> None:
            nonlocal lines, seen_broken
            bench.set("rx", value)
            lines += cycles
            while lines >= 1:
                lines -= 1
                await bench.settle()
                seen_broken += bench.bits("broken")
                await bench.clock()

        for number in range(60):
            byte = chance.getrandbits(8)
            stop = number % 10 != 9
            # The sender's rate is as far off as boards allow.
            off = chance.choice([0.985, 1.0, 1.015])
            for bit in [0, *(byte >> i & 1 for i in range(8)), stop]:
                await level(int(bit), divisor * off)
            if stop:
                want.append(byte)
            else:
                broken += 1
            await level(1, divisor * chance.choice([0, 0, 0, 3]) + 2 * divisor * (not stop))
            if divisor > 8 and chance.random() < 0.3:  # shorter than half a bit: no start
                spikes += 1
                await level(0, divisor // 2 - 4)
                await level(1, 2 * divisor)
        await level(1, 12 * divisor)
        assert got == want
        assert seen_broken == 6
    assert spikes > 5
    assert broken


@cocotb.test()
async def bytes_go_out(dut: object) -> None:
    bench = Bench(dut, CASES)
    for divisor, idle in ((4, 0.0), (4, 0.9), (9, 0.3), (4.1875, 0.0), (9.5, 0.9), (16.6875, 0.3)):
        await bench.reset(divisor=int(divisor * PARTS))
        driver = Driver(bench, "bytes", idle)
        want = [bench.chance.getrandbits(8) for _ in range(40)]
        driver.queue.extend(want)
        levels: list[int] = []
        for _ in range(int(40 * 14 * divisor)):
            await bench.settle()
            levels.append(bench.bits("tx"))
            await bench.clock()
        got, at = [], 0
        while 0 in levels[at:]:
            at = levels.index(0, at)
            # A bit takes as many cycles as are due; the fraction left over goes to the next one.
            begins = [at + int(i * divisor) for i in range(11)]
            bits = [levels[begin:end] for begin, end in itertools.pairwise(begins)]
            assert all(len({*bit}) == 1 for bit in bits), "a bit changed in its middle"
            assert bits[9][0] == 1, "no stop bit"
            got.append(sum(bits[1 + i][0] << i for i in range(8)))
            at = begins[-1]
        assert got == want
