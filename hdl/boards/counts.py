"""Counts: what came to a board, so that its host can ask."""

from __future__ import annotations

from amaranth.hdl import Array, Module, Signal
from amaranth.lib import cdc, wiring
from amaranth.lib.wiring import In, Out

from seustream.hdl.boards.protocol import LinkCounter

BITS = 32
_AHEAD = 4
"""Bits of a crossing's own count: pulses that may be on their way, less one."""


class LinkCounts(wiring.Component):
    """
    latency     1 cycle
    throughput  an event of each kind a cycle

    events      pulses, in the order of `LinkCounter`
    which       a counter's number
    count       what it has come to; it goes round
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "events": In(len(LinkCounter)),
                "which": In(range(len(LinkCounter))),
                "count": Out(BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        counts = Array(Signal(BITS, name=counter.name.lower()) for counter in LinkCounter)
        for counter, count in zip(LinkCounter, counts, strict=True):
            with m.If(self.events[counter]):
                m.d.sync += count.eq(count + 1)
        m.d.sync += self.count.eq(counts[self.which])
        return m


class PulseCrossing(wiring.Component):
    """Pulses of one clock to as many of another, however close they come for a while.

    latency     4 cycles of the other clock
    throughput  15 pulses ahead of it

    come        pulse, in the domain `source`
    goes        pulse, in `sync`
    """

    def __init__(self, source: str) -> None:
        self._source = source
        super().__init__({"come": In(1), "goes": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        count, gray = Signal(_AHEAD), Signal(_AHEAD)
        source = m.d[self._source]
        source += gray.eq(count ^ (count >> 1))
        with m.If(self.come):
            source += count.eq(count + 1)
        there, level = Signal(_AHEAD), Signal(_AHEAD)
        m.submodules.synchroniser = cdc.FFSynchronizer(gray, there)
        for bit in range(_AHEAD):
            m.d.comb += level[bit].eq(there[bit:].xor())
        seen = Signal(_AHEAD)
        m.d.comb += self.goes.eq(level != seen)
        m.d.sync += seen.eq(seen + self.goes)
        return m
