"""Round-robin arbitration among several requesters."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


class RoundRobin(wiring.Component):
    """Grants one of several requests; the requester served last has the lowest priority.

    latency     0 cycles
    throughput  1 grant per cycle

    requests   in: a bit per requester
    enable     in: one may be granted in this cycle
    granted    out: the requester that is granted, one-hot; 0 if none
    """

    def __init__(self, count: int) -> None:
        self.count = count
        super().__init__({"requests": In(count), "enable": In(1), "granted": Out(count)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # Requesters after the one served last come first, in order; then all.
        behind = Signal(self.count)
        later = Signal(self.count)
        m.d.comb += later.eq(self.requests & behind)
        chosen = Signal(self.count)
        with m.If(later.any()):
            m.d.comb += chosen.eq(lowest(later))
        with m.Else():
            m.d.comb += chosen.eq(lowest(self.requests))
        with m.If(self.enable):
            m.d.comb += self.granted.eq(chosen)
        with m.If(self.granted.any()):
            m.d.sync += behind.eq(Cat(self.granted[:i].any() for i in range(self.count)))
        return m


def lowest(bits: Value) -> Value:
    """Keeps only the lowest bit that is 1; without the carry chain of an adder."""
    return Cat(bits[i] & ~bits[:i].any() for i in range(len(bits)))
