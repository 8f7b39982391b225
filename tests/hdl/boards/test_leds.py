"""Tests status LEDs: each shows its own event, long enough to be seen, and the first blinks."""

from __future__ import annotations

import itertools

import cocotb

from seustream.hdl.boards.leds import StatusLed, StatusLeds, bits_of_a_tenth
from tests.hdl.bench import Bench, simulate

CLOCK = 0.0005  # MHz: a tenth of a second is 50 cycles
CASES = {"leds": lambda: StatusLeds(CLOCK)}


def test_leds() -> None:
    simulate(__name__, CASES, "leds", ["events_are_shown_for_a_while", "it_blinks"])


def test_a_tenth_of_a_second_at_any_clock() -> None:
    for clock in (25.0, 50.0, 62.5, 110.0):
        cycles = (1 << bits_of_a_tenth(clock)) - 1
        assert 0.1 <= cycles / (clock * 1e6) < 0.2


@cocotb.test()
async def events_are_shown_for_a_while(dut: object) -> None:
    bench = Bench(dut, CASES)
    shown = (1 << bench.component.bits) - 1
    for led, event, calm in (
        (StatusLed.BUSY, "idle", 1),
        (StatusLed.LINE, "line", 0),
        (StatusLed.NOISE, "noise", 0),
    ):
        await bench.reset(idle=1)
        for _ in range(3):
            await bench.tick()
        assert not bench.bits("leds") >> StatusLed.OPEN, "something shows without an event"
        bench.set(event, not calm)
        await bench.tick()
        bench.set(event, calm)
        lit = 0
        for _ in range(3 * shown):
            await bench.settle()
            leds = bench.bits("leds") >> StatusLed.OPEN
            assert leds in (0, 1 << led - StatusLed.OPEN), f"{event} lights another LED"
            lit += leds != 0
            await bench.clock()
        assert lit == shown
    await bench.reset(idle=1, open=1)
    await bench.tick()
    await bench.tick()
    assert bench.bits("leds") >> StatusLed.OPEN & 1


@cocotb.test()
async def it_blinks(dut: object) -> None:
    bench = Bench(dut, CASES)
    await bench.reset(idle=1)
    half = 1 << bench.component.bits + 2
    levels = []
    for _ in range(4 * half):
        await bench.settle()
        levels.append(bench.bits("leds") & 1)
        await bench.clock()
    changes = [i for i in range(1, len(levels)) if levels[i] != levels[i - 1]]
    assert len(changes) >= 3
    assert {b - a for a, b in itertools.pairwise(changes)} == {half}
