"""Tuple fetch: reads the data that a reference stands for."""

from __future__ import annotations

from functools import reduce
from operator import or_

from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from seustream.hdl.arbiter import RoundRobin
from seustream.hdl.config import DeviceConfig
from seustream.hdl.layouts import CONTEXT_BITS, CONTEXTS, Layouts
from seustream.hdl.ports import Fetching, Meter, WindowReading


class TupleFetch(wiring.Component):
    """Reads all components of a tuple at once, each from its own window. The raw tuple that led to it
    is kept here, with the clock and the sequence numbers of its arrival, whether or not a window
    stores it.

    latency     7 cycles from the request to the response
    throughput  1 tuple per cycle, for a single requester or for all together

    requesters      in, per requester (`Fetching`). The last one wants stored tuples as they are; the one before it
                    wants stamps only, unless `whole_results`
    whole_results   in: see `requesters`; held
    windows         out, per window (`WindowReading`)
    remember        in: pulse: keep a raw tuple
    context, raw    in: its context, and the tuple (`Layouts.context`), valid with `remember`
    meter           out (`Meter`): a request is in process; never blocked
    """

    def __init__(self, config: DeviceConfig, requesters: int) -> None:
        self.config, self.count = config, requesters
        self.layouts = layouts = Layouts(config)
        n = config.streams
        super().__init__(
            {
                "whole_results": In(1),
                "requesters": In(Fetching(config)).array(requesters),
                "windows": Out(WindowReading(config)).array(n),
                "remember": In(1),
                "context": In(CONTEXT_BITS),
                "raw": In(layouts.context),
                "meter": Out(Meter()),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        layouts, who = self.layouts, range(self.count)
        m.submodules.arbiter = arbiter = RoundRobin(self.count)
        counters = data.ArrayLayout(layouts.sequence, self.config.streams)
        arrival = data.StructLayout(
            {"brought": layouts.brought, "now": layouts.timestamp, "counters": counters}
        )
        m.submodules.arrivals = arrivals = memory.Memory(shape=arrival, depth=CONTEXTS, init=[])
        write, read = arrivals.write_port(), arrivals.read_port()

        # Pipeline stages: request, arbitration, to the windows, address, memory, data, raw tuple selected.
        references = [Signal(layouts.reference, name=f"reference{i}") for i in range(5)]
        wanted = [Signal(self.count, name=f"wanted{i}") for i in range(5)]
        chosen = Signal(self.count)  # granted; makes way in this cycle
        n, reads = self.config.streams, []  # per requester, the windows to read
        m.d.comb += arbiter.enable.eq(1)
        m.d.sync += [chosen.eq(arbiter.granted), wanted[0].eq(chosen)]
        for i in who:
            # Two-entry buffer per requester, so that `ready` depends on registers only.
            request = self.requesters[i].request
            asks, full = Signal(name=f"asks{i}"), Signal(name=f"full{i}")
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
            wants = joined if i < self.count - 1 else every
            reads.append(Mux(chosen[i], wants, 0)[:n])
        for i in range(4):
            m.d.sync += [wanted[i + 1].eq(wanted[i]), references[i + 1].eq(references[i])]
        raw = Signal(layouts.context)
        # A bit for each window.
        coming, fetching, whole = (Signal(n, name=name) for name in ("coming", "fetching", "whole"))
        for number, window in enumerate(self.windows):
            m.d.comb += [
                window.coming.eq(coming[number]),
                window.fetching.eq(fetching[number]),
                window.whole.eq(whole[number]),
                window.slot.eq(references[0].slots[number]),
            ]
        m.d.comb += [
            self.meter.working.eq(chosen.any()),
            coming.eq(reduce(or_, (*reads[:-2], reads[-1], Mux(self.whole_results, reads[-2], 0)))),
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
            fetching.eq(reduce(or_, reads)),
            whole.eq(coming),
        ]

        fetched = Signal(layouts.fetched)
        m.d.comb += fetched.reference.eq(references[4])
        for i, requester in enumerate(self.requesters):
            m.d.comb += [
                requester.answering.eq(wanted[3][i]),
                requester.response.eq(wanted[4][i]),
                requester.data.eq(fetched),
            ]
        m.d.sync += [
            fetched.stream.eq(raw.stream),
            fetched.bits.eq(raw.bits),
            fetched.now.eq(raw.component.timestamp),
            fetched.counters.eq(raw.counters),
        ]
        as_stored = wanted[2][-1]
        for number, window in enumerate(self.windows):
            own = Signal(name=f"own_{number}")
            m.d.sync += own.eq((its == number) & ~as_stored)
            m.d.sync += fetched.components[number].eq(Mux(own, raw.component, window.component))
        return m
