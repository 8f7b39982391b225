"""LEDs: what a board does, for people."""

from __future__ import annotations

import enum

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


class StatusLed(enum.IntEnum):
    """By importance: a board with few LEDs has the first of them."""

    ALIVE = 0  # blinks with the clock
    OPEN = 1  # a host has a session
    BUSY = 2  # tuples are in flight
    LINE = 3  # bytes come or go
    NOISE = 4  # something came that was no frame


def bits_of_a_tenth(clock: float) -> int:
    """Of a counter that comes round in about a tenth of a second; the clock in MHz."""
    return max(4, (round(clock * 1e6) // 10).bit_length())


class StatusLeds(wiring.Component):
    """Events are short; each is shown for about a tenth of a second.

    latency     1 cycle
    throughput  -

    open, idle, line, noise   what happens
    leds        one each of `StatusLed`
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
