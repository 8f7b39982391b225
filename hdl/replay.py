"""Replay: evaluates stored tuples anew after new tables were loaded."""

from __future__ import annotations

from amaranth.hdl import Array, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from seustream.hdl.config import DeviceConfig
from seustream.hdl.layouts import SELECTIONS, Layouts
from seustream.hdl.ports import Fetching, Reselecting, Rewriting


class Replay(wiring.Component):
    """Goes through every stored tuple, oldest first: fetches it, has the selection unit compute its selection
    bits by the new tables, writes them, and inserts the tuple into the equality indexes.

    latency     per stored tuple, that of its fetch and of the selection unit, plus 6 cycles
    throughput  one run at a time

    start, busy   in: pulse; out: a run is in progress
    fetch         out (`Fetching`): for tuples as they are stored
    selection     out (`Reselecting`)
    windows       out, per window (`Rewriting`): the tuple at a slot is also to be indexed again. The pointers are stable
                  from the cycle before `start` on
    """

    def __init__(self, config: DeviceConfig) -> None:
        self.config = config
        self.layouts = Layouts(config)
        n = config.streams
        super().__init__(
            {
                "start": In(1),
                "busy": Out(1),
                "fetch": Out(Fetching(config)),
                "selection": Out(Reselecting(config)),
                "windows": Out(Rewriting(config)).array(n),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        n = self.config.streams
        at = Signal(self.layouts.pointer_bits)
        number = Signal(range(n))
        more = Signal()
        fetch, selection = self.fetch, self.selection
        # Two registers each, one of which is placed beside its window; the selection unit is far away, too.
        pointers = data.ArrayLayout(self.layouts.pointer_bits, n)
        firsts_there, ends_there, firsts, ends = (
            Signal(pointers, name=name) for name in ("firsts_there", "ends_there", "firsts", "ends")
        )
        m.d.sync += [firsts.eq(firsts_there), ends.eq(ends_there), selection.again.eq(0)]
        end = Array(ends[s] for s in range(n))[number]
        m.d.comb += selection.stream.eq(number)
        rewrite, rewritten = Signal(n), Signal(SELECTIONS)
        for s, window in enumerate(self.windows):
            m.d.sync += [firsts_there[s].eq(window.first), ends_there[s].eq(window.end)]
            m.d.comb += [
                fetch.request.payload.slots[s].eq(at),
                window.rewrite.eq(rewrite[s]),
                window.slot.eq(at),
                window.bits.eq(rewritten),
            ]
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
                    m.d.comb += fetch.request.valid.eq(1)
                    with m.If(fetch.request.ready):
                        m.next = "FETCH"
                with m.Elif(number == n - 1):
                    m.next = "IDLE"
                with m.Else():
                    m.d.sync += number.eq(number + 1)
                    m.next = "WINDOW"
            with m.State("FETCH"):
                components = Array(fetch.data.components[s].attributes for s in range(n))
                with m.If(fetch.response):
                    m.d.sync += selection.attributes.eq(components[number])
                    m.next = "SELECT"
            with m.State("SELECT"):
                m.d.sync += selection.again.eq(1)
                m.next = "BITS"
            with m.State("BITS"):
                with m.If(selection.known):
                    m.d.sync += rewritten.eq(selection.bits)
                    m.next = "WRITE"
            with m.State("WRITE"):
                m.d.comb += rewrite.eq(1 << number)
                m.d.sync += at.eq(at + 1)
                m.next = "MORE"
        m.d.comb += self.busy.eq(~fsm.ongoing("IDLE"))
        return m
