"""Reset: when the board's clock may run, and when the link begins anew."""

from __future__ import annotations

from amaranth.hdl import ClockDomain, ClockSignal, DomainRenamer, Instance, Module, Signal, signed
from amaranth.lib import cdc, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2


class Steady(wiring.Component):
    """Debounces a level: high once it has been high for a while.

    latency     `cycles` and 3 from `level` to `steady`, 4 back
    throughput  -

    level       of another clock, or of none
    steady      it was high for so many cycles, and still is
    """

    def __init__(self, cycles: int) -> None:
        self.cycles = cycles
        super().__init__({"level": In(1), "steady": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        level = Signal()
        m.submodules.synchroniser = cdc.FFSynchronizer(self.level, level)
        left = Signal(range(self.cycles + 1), init=self.cycles)
        with m.If(~level):
            m.d.sync += left.eq(self.cycles)
        with m.Elif(left != 0):
            m.d.sync += left.eq(left - 1)
        m.d.sync += self.steady.eq(left == 0)
        return m


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
        steady = Steady(self.cycles)
        m.submodules.steady = DomainRenamer("gate")(steady)
        m.d.comb += [ClockSignal("gate").eq(self.oscillator), steady.level.eq(self.locked)]
        m.submodules.gate = Instance(
            "DCCA", i_CLKI=self.source, i_CE=steady.steady, o_CLKO=self.clock
        )
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
        # Down to -1, for one bit is sooner looked at than all of them.
        left = Signal(signed(ceil_log2(self.cycles) + 1), init=-1)
        with m.If(pressed):
            m.d.sync += left.eq(self.cycles - 1)
        with m.Elif(left >= 0):
            m.d.sync += left.eq(left - 1)
        # Two registers more, so that what is far from the pin is reset from nearer by.
        held, nearer = Signal(), Signal()
        m.d.sync += [held.eq(left >= 0), nearer.eq(held), self.reset.eq(nearer)]
        return m
