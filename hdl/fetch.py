"""Tuple fetch: the data a reference stands for."""

from __future__ import annotations

from functools import reduce
from operator import or_

from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from seustream.hdl.arbiter import RoundRobin
from seustream.hdl.config import DeviceConfig
from seustream.hdl.layouts import CONTEXT_BITS, CONTEXTS, Layouts


class TupleFetch(wiring.Component):
    """Reads all components of a tuple at once, each from its own window; the raw tuple it came
    from is kept here, with the clock and the sequence numbers of its arrival, whether a
    window stores it or not.

    latency     7 cycles from the request to the response
    throughput  1 tuple a cycle, of one requester or of all

    requests     streams of references; the last one asks for stored tuples as they are, the one
                 before it for stamps alone unless all is wanted `whole_results`
    responses    pulse for whom `fetched` is; `answering` is it a cycle before
    working      a request is on its way
    remember, context, raw        keeps a raw tuple under its context number
    coming          per window: attributes are fetched in the next cycle
    fetching, whole, slots, components   of the window buffers: stamps are fetched; attributes, too
    """

    def __init__(self, config: DeviceConfig, requesters: int) -> None:
        self.config, self.requesters = config, requesters
        self.layouts = layouts = Layouts(config)
        n = config.streams
        super().__init__(
            {
                "whole_results": In(1),
                "requests": In(stream.Signature(layouts.reference)).array(requesters),
                "responses": Out(requesters),
                "answering": Out(requesters),
                "fetched": Out(layouts.fetched),
                "remember": In(1),
                "context": In(CONTEXT_BITS),
                "raw": In(layouts.context),
                "working": Out(1),
                "coming": Out(n),
                "fetching": Out(n),
                "whole": Out(n),
                "slots": Out(data.ArrayLayout(layouts.slot_bits, n)),
                "components": In(data.ArrayLayout(layouts.component, n)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        layouts, who = self.layouts, range(self.requesters)
        m.submodules.arbiter = arbiter = RoundRobin(self.requesters)
        counters = data.ArrayLayout(layouts.sequence, self.config.streams)
        arrival = data.StructLayout(
            {"brought": layouts.brought, "now": layouts.timestamp, "counters": counters}
        )
        m.submodules.arrivals = arrivals = memory.Memory(shape=arrival, depth=CONTEXTS, init=[])
        write, read = arrivals.write_port(), arrivals.read_port()

        # Stages: request, turn, to the windows, address, memory, data, whose.
        references = [Signal(layouts.reference, name=f"reference{i}") for i in range(5)]
        wanted = [Signal(self.requesters, name=f"wanted{i}") for i in range(5)]
        chosen = Signal(self.requesters)  # and makes way in this cycle
        n, reads = self.config.streams, []  # which windows
        m.d.comb += arbiter.enable.eq(1)
        m.d.sync += [chosen.eq(arbiter.granted), wanted[0].eq(chosen)]
        for i in who:
            # Two requests wait here, so that who asks hears from a register whether to go on.
            request, asks, full = self.requests[i], Signal(name=f"asks{i}"), Signal(name=f"full{i}")
            first, second = (
                Signal(layouts.reference, name=f"{name}{i}") for name in ("first", "second")
            )
            # While the first makes way, the second asks for its turn and another takes its place.
            m.d.comb += [
                request.ready.eq(~full | chosen[i]),
                arbiter.requests[i].eq(Mux(chosen[i], full, asks)),
            ]
            with m.If(request.ready):
                m.d.sync += second.eq(request.payload)
            with m.If(~asks | chosen[i]):
                m.d.sync += [
                    asks.eq(full | request.valid),
                    first.eq(Mux(full, second, request.payload)),
                    full.eq(full & request.valid),
                ]
            with m.Elif(request.valid):
                m.d.sync += full.eq(1)
            with m.If(chosen[i]):
                m.d.sync += references[0].eq(first)
            # The raw tuple is here; stored tuples are wanted as they are.
            joined, every = first.carries & ~(1 << first.stream), (1 << n) - 1
            wants = joined if i < self.requesters - 1 else every
            reads.append(Mux(chosen[i], wants, 0)[:n])
        for i in range(4):
            m.d.sync += [wanted[i + 1].eq(wanted[i]), references[i + 1].eq(references[i])]
        raw = Signal(layouts.context)
        m.d.comb += [
            self.working.eq(chosen.any()),
            self.coming.eq(
                reduce(or_, (*reads[:-2], reads[-1], Mux(self.whole_results, reads[-2], 0)))
            ),
            self.slots.eq(references[0].slots),
            write.addr.eq(self.context),
            write.en.eq(self.remember),
            write.data.brought.bits.eq(self.raw.bits),
            write.data.brought.attributes.eq(self.raw.component.attributes),
            write.data.now.eq(self.raw.component.timestamp),
            write.data.counters.eq(self.raw.counters),
            read.addr.eq(references[1].context),
            read.en.eq(1),
        ]
        its, kept = references[2].stream, read.data
        m.d.sync += [
            raw.stream.eq(its),
            raw.bits.eq(kept.brought.bits),
            raw.component.timestamp.eq(kept.now),
            # It was the last of its stream.
            raw.component.sequence.eq(Array(kept.counters[s] for s in range(n))[its]),
            raw.component.attributes.eq(kept.brought.attributes),
            raw.counters.eq(kept.counters),
            self.fetching.eq(reduce(or_, reads)),
            self.whole.eq(self.coming),
        ]

        fetched = self.fetched
        m.d.comb += [
            self.answering.eq(wanted[3]),
            self.responses.eq(wanted[4]),
            fetched.reference.eq(references[4]),
        ]
        m.d.sync += [
            fetched.stream.eq(raw.stream),
            fetched.bits.eq(raw.bits),
            fetched.now.eq(raw.component.timestamp),
            fetched.counters.eq(raw.counters),
        ]
        as_stored = wanted[2][-1]
        for number in range(self.config.streams):
            own = Signal(name=f"own_{number}")
            m.d.sync += own.eq((its == number) & ~as_stored)
            m.d.sync += fetched.components[number].eq(
                Mux(own, raw.component, self.components[number])
            )
        return m
