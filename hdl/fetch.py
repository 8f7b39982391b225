"""Tuple fetch: reads the data that a reference stands for."""

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
    """Reads all components of a tuple at once, each from its own window. The raw tuple that led to it
    is kept here, with the clock and the sequence numbers of its arrival, whether or not a window
    stores it.

    latency     7 cycles from the request to the response
    throughput  1 tuple per cycle, for a single requester or for all together

    requests     in: streams of references. The last requester wants stored tuples as they are; the one before it
                 wants stamps only, unless `whole_results`
    whole_results   in: see `requests`
    responses, fetched   out: pulse for the requester that `fetched` is for; `answering` comes a cycle before
    working      out: a request is in process
    remember, context, raw        in: pulse: keep a raw tuple under its context number
    coming          out, per window: attributes are fetched in the next cycle
    fetching, whole, slots, components   out, out, out, in: of the window buffers: stamps are fetched; attributes, too;
                 at these slots; the components
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

        # Pipeline stages: request, arbitration, to the windows, address, memory, data, raw tuple selected.
        references = [Signal(layouts.reference, name=f"reference{i}") for i in range(5)]
        wanted = [Signal(self.requesters, name=f"wanted{i}") for i in range(5)]
        chosen = Signal(self.requesters)  # granted; makes way in this cycle
        n, reads = self.config.streams, []  # per requester, the windows to read
        m.d.comb += arbiter.enable.eq(1)
        m.d.sync += [chosen.eq(arbiter.granted), wanted[0].eq(chosen)]
        for i in who:
            # Two-entry buffer per requester, so that `ready` depends on registers only.
            request, asks, full = self.requests[i], Signal(name=f"asks{i}"), Signal(name=f"full{i}")
            first, second = (
                Signal(layouts.reference, name=f"{name}{i}") for name in ("first", "second")
            )
            # While the first request makes way, the second competes already and a new one takes its place.
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
            # The raw tuple is kept here and not read from its window, except by the last requester.
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
            # At its arrival the raw tuple was the last of its stream.
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
