"""Hand-over: sends the host the tuples that leave a window early."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from seustream.hdl.arbiter import RoundRobin
from seustream.hdl.config import DeviceConfig
from seustream.hdl.layouts import STREAM_BITS, Layouts


class HandOver(wiring.Component):
    """Hands over the tuples of one window at a time; the raw tuple that displaces them waits.

    latency     3 cycles
    throughput  a tuple in 2 cycles of one window, and in 3 when windows take turns

    leaving       in, per window: stream of sequence numbers of tuples that leave early
    taker         in: stream of the raw tuple in process; held while tuples leave
    taken_by      in: its sequence number, held as `taker` is
    handed_over   out: stream of tuples, with the raw tuple that displaces them (`Layouts.handed_over`)
    """

    def __init__(self, config: DeviceConfig) -> None:
        layouts = Layouts(config)
        super().__init__(
            {
                "leaving": In(stream.Signature(layouts.sequence)).array(config.streams),
                "taker": In(STREAM_BITS),
                "taken_by": In(layouts.sequence),
                "handed_over": Out(stream.Signature(layouts.handed_over)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        n = len(self.leaving)
        m.submodules.turns = turns = RoundRobin(n)
        chosen, free = Signal(n), Signal()
        waits = Signal(n)  # a cycle late, because the windows are far apart
        m.d.sync += waits.eq(Cat(leaving.valid for leaving in self.leaving) & ~chosen)
        m.d.comb += [
            free.eq(~self.handed_over.valid),
            turns.requests.eq(waits & ~chosen),
            turns.enable.eq(free | ~chosen.any()),
        ]
        with m.If(turns.enable):
            m.d.sync += chosen.eq(turns.granted)
        handed = self.handed_over.payload
        with m.If(self.handed_over.ready):
            m.d.sync += self.handed_over.valid.eq(0)
        for number, leaving in enumerate(self.leaving):
            m.d.comb += leaving.ready.eq(chosen[number] & free)
            with m.If(chosen[number] & free):
                m.d.sync += [
                    self.handed_over.valid.eq(1),
                    handed.stream.eq(number),
                    handed.sequence.eq(leaving.payload),
                    handed.taker.eq(self.taker),
                    handed.taken_by.eq(self.taken_by),
                ]
        return m
