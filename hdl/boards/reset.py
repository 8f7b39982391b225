"""Reset: starts the board's clock, and resets the link."""

from __future__ import annotations

from amaranth.hdl import ClockDomain, ClockSignal, DomainRenamer, Instance, Module, Signal, signed
from amaranth.lib import cdc, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2


class Steady(wiring.Component):
    """Debounces a level: the output is high once the input has been high for a while.

    latency     `cycles` and 3 from `level` to `steady` when it rises, 4 when it falls
    throughput  -

    level       in: a level, of another clock domain or of none
    steady      out: it has been high for `cycles`, and still is
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
    """Enables the clock once it has been stable for a while. Before that there is not a single edge,
    so that every register starts with the value from the bitstream, and the processor
    needs no reset net. The wait is timed by the oscillator, because the ungated clock may drive
    nothing but the gate.

    latency     `cycles` of the oscillator from `locked`
    throughput  a clock

    oscillator  in: a clock that always runs
    source, locked   in: from the PLL
    clock       out: to everything else
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
    """Synchronizes and debounces a button.

    latency     `cycles`
    throughput  -

    button      in: pin, high while pressed
    reset       out: high while pressed, and `cycles` longer
    """

    def __init__(self, cycles: int = 1 << 16) -> None:
        self.cycles = cycles
        super().__init__({"button": In(1), "reset": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        pressed = Signal()
        m.submodules.synchroniser = cdc.FFSynchronizer(self.button, pressed)
        # Counts down to -1, because testing the sign bit is faster than comparing all bits.
        left = Signal(signed(ceil_log2(self.cycles) + 1), init=-1)
        with m.If(pressed):
            m.d.sync += left.eq(self.cycles - 1)
        with m.Elif(left >= 0):
            m.d.sync += left.eq(left - 1)
        # Two more registers, so that the reset can be driven from near the logic that it resets, far from the pin.
        held, nearer = Signal(), Signal()
        m.d.sync += [held.eq(left >= 0), nearer.eq(held), self.reset.eq(nearer)]
        return m
