"""Replay: evaluates stored tuples anew after new tables were loaded."""

from __future__ import annotations

from amaranth.hdl import Array, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from seustream.hdl.config import DeviceConfig
from seustream.hdl.layouts import SELECTIONS, STREAM_BITS, Layouts


class Replay(wiring.Component):
    """Goes through every stored tuple, oldest first: fetches it, has the selection unit compute its selection
    bits by the new tables, writes them, and inserts the tuple into the equality indexes.

    latency     per stored tuple, that of its fetch and of the selection unit, plus 6 cycles
    throughput  one run at a time

    start, busy      in: pulse; out: a run is in progress
    firsts, ends     in, from the window buffers: tail and head, stable from the cycle of `start` on
    request, response, fetched   out, in, in: of the tuple fetch, for tuples as they are stored
    again, stream, attributes, known, bits   out, out, out, in, in: of the selection unit
    rewrite, slot, rewritten   out: pulse per window: new bits for this slot, which is to be indexed again
    """

    def __init__(self, config: DeviceConfig) -> None:
        self.config = config
        self.layouts = layouts = Layouts(config)
        n = config.streams
        pointers = data.ArrayLayout(layouts.pointer_bits, n)
        super().__init__(
            {
                "start": In(1),
                "busy": Out(1),
                "firsts": In(pointers),
                "ends": In(pointers),
                "request": Out(stream.Signature(layouts.reference)),
                "response": In(1),
                "fetched": In(layouts.fetched),
                "again": Out(1),
                "stream": Out(STREAM_BITS),
                "attributes": Out(layouts.attributes),
                "known": In(1),
                "bits": In(SELECTIONS),
                "rewrite": Out(n),
                "slot": Out(layouts.slot_bits),
                "rewritten": Out(SELECTIONS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        n = self.config.streams
        at = Signal(self.layouts.pointer_bits)
        number = Signal(range(n))
        more = Signal()
        # Registers, because the windows are far away, and so is the selection unit.
        firsts, ends = Signal.like(self.firsts), Signal.like(self.ends)
        m.d.sync += [firsts.eq(self.firsts), ends.eq(self.ends), self.again.eq(0)]
        end = Array(ends[s] for s in range(n))[number]
        m.d.comb += [self.slot.eq(at), self.stream.eq(number)]
        for s in range(n):
            m.d.comb += self.request.payload.slots[s].eq(at)
        with m.FSM() as fsm:
            with m.State("IDLE"):
                m.d.sync += number.eq(0)
                with m.If(self.start):
                    m.next = "WINDOW"
            with m.State("WINDOW"):
                m.d.sync += at.eq(Array(firsts[s] for s in range(n))[number])
                m.next = "MORE"
            with m.State("MORE"):
                m.d.sync += more.eq(at != end)
                m.next = "TUPLE"
            with m.State("TUPLE"):
                with m.If(more):
                    m.d.comb += self.request.valid.eq(1)
                    with m.If(self.request.ready):
                        m.next = "FETCH"
                with m.Elif(number == n - 1):
                    m.next = "IDLE"
                with m.Else():
                    m.d.sync += number.eq(number + 1)
                    m.next = "WINDOW"
            with m.State("FETCH"):
                components = Array(self.fetched.components[s].attributes for s in range(n))
                with m.If(self.response):
                    m.d.sync += self.attributes.eq(components[number])
                    m.next = "SELECT"
            with m.State("SELECT"):
                m.d.sync += self.again.eq(1)
                m.next = "BITS"
            with m.State("BITS"):
                with m.If(self.known):
                    m.d.sync += self.rewritten.eq(self.bits)
                    m.next = "WRITE"
            with m.State("WRITE"):
                m.d.comb += self.rewrite.eq(1 << number)
                m.d.sync += at.eq(at + 1)
                m.next = "MORE"
        m.d.comb += self.busy.eq(~fsm.ongoing("IDLE"))
        return m
