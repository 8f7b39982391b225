"""Counts: count what came to a board, for its host to read."""

from __future__ import annotations

from amaranth.hdl import Array, Module, Signal
from amaranth.lib import cdc, wiring
from amaranth.lib.wiring import In, Out

from seustream.hdl.boards.protocol import LinkCounter

BITS = 32
_AHEAD = 4
"""Width of the counter of a crossing; one pulse less than its range may be in flight."""


class LinkCounts(wiring.Component):
    """Counts events of the link.

    latency     1 cycle
    throughput  an event of each kind per cycle

    events      in: pulses, in the order of `LinkCounter`
    which       in: number of a counter
    count       out: its value, a cycle later; it wraps around
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
    """Carries pulses from one clock domain to another without losing any, even if they come in a burst.

    latency     4 cycles of the other clock
    throughput  bursts of up to 15 pulses not yet delivered

    come        in: pulse, in the domain `source`
    goes        out: pulse, in the domain `sync`
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
