"""LEDs: show the state of a board."""

from __future__ import annotations

import enum

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


class StatusLed(enum.IntEnum):
    """LEDs in order of importance: a board with few of them has the first ones."""

    ALIVE = 0  # blinks with the clock
    OPEN = 1  # a host has a session
    BUSY = 2  # tuples are in flight
    LINE = 3  # bytes come or go
    NOISE = 4  # something came that was no intact frame


def bits_of_a_tenth(clock: float) -> int:
    """Width of a counter that wraps around in about a tenth of a second; `clock` in MHz."""
    return max(4, (round(clock * 1e6) // 10).bit_length())


class StatusLeds(wiring.Component):
    """Stretches short events, so that each is shown for about a tenth of a second.

    latency     1 cycle
    throughput  -

    open, idle, line, noise   in: state and events
    leds        out: a bit per `StatusLed`
    """

    def __init__(self, clock: float) -> None:
        self.bits = bits_of_a_tenth(clock)
        super().__init__(
            {
                "open": In(1),
                "idle": In(1),
                "line": In(1),
                "noise": In(1),
                "leds": Out(len(StatusLed)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        time = Signal(self.bits + 3)
        m.d.sync += time.eq(time + 1)
        shown = []
        for name, event in (("busy", ~self.idle), ("line", self.line), ("noise", self.noise)):
            left = Signal(self.bits, name=f"{name}_left")
            with m.If(event):
                m.d.sync += left.eq(-1)
            with m.Elif(left != 0):
                m.d.sync += left.eq(left - 1)
            shown.append(left != 0)
        m.d.sync += self.leds.eq(Cat(time[-1], self.open, *shown))
        return m
