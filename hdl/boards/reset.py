"""Reset: when the board's clock may run, and when the link begins anew."""

from __future__ import annotations

from amaranth.hdl import ClockDomain, ClockSignal, Instance, Module, Signal
from amaranth.lib import cdc, wiring
from amaranth.lib.wiring import In, Out


class ClockGate(wiring.Component):
    """Lets the clock through once it has been stable for a while. Before that not a single edge
    comes, so that every register begins with the value the bitstream gave it: the processor
    needs no reset wire to each of them. It waits by the oscillator, for the clock itself may go
    nowhere but to the gate.

    latency     `cycles` of the oscillator from `locked`
    throughput  a clock

    oscillator  a clock that always runs
    source, locked   from the PLL
    clock       to everything else
    """

    def __init__(self, cycles: int = 256) -> None:
        self.cycles = cycles
        super().__init__({"oscillator": In(1), "source": In(1), "locked": In(1), "clock": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.domains.gate = ClockDomain(local=True, reset_less=True)
        m.d.comb += ClockSignal("gate").eq(self.oscillator)
        locked, on = Signal(), Signal()
        m.submodules.synchroniser = cdc.FFSynchronizer(self.locked, locked, o_domain="gate")
        left = Signal(range(self.cycles + 1), init=self.cycles)
        with m.If(~locked):
            m.d.gate += left.eq(self.cycles)
        with m.Elif(left != 0):
            m.d.gate += left.eq(left - 1)
        m.d.gate += on.eq(left == 0)
        m.submodules.gate = Instance("DCCA", i_CLKI=self.source, i_CE=on, o_CLKO=self.clock)
        return m


class ResetButton(wiring.Component):
    """A pressed button, in step with the clock and without its bouncing.

    latency     `cycles`
    throughput  -

    button      pin, high while pressed
    reset       high while pressed, and `cycles` longer
    """

    def __init__(self, cycles: int = 1 << 16) -> None:
        self.cycles = cycles
        super().__init__({"button": In(1), "reset": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        pressed = Signal()
        m.submodules.synchroniser = cdc.FFSynchronizer(self.button, pressed)
        left = Signal(range(self.cycles + 1))
        with m.If(pressed):
            m.d.sync += left.eq(self.cycles)
        with m.Elif(left != 0):
            m.d.sync += left.eq(left - 1)
        m.d.sync += self.reset.eq(left != 0)
        return m
