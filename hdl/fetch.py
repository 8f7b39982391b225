"""Tuple fetch: the data a reference stands for."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.arbiter import RoundRobin
from hdl.config import DeviceConfig
from hdl.layouts import CONTEXT_BITS, CONTEXTS, Layouts


class TupleFetch(wiring.Component):
    """Reads all components of a tuple at once, each from its own window; the raw tuple it came
    from is kept here, with the clock and the sequence numbers of its arrival, whether a
    window stores it or not.

    latency     4 cycles from the request to the response
    throughput  1 tuple a cycle, but for those in which a window needs its memory itself

    requests     streams of references; the last one asks for stored tuples as they are
    responses    pulse for whom `fetched` is
    remember, context, raw, now   keeps a raw tuple under its context number
    slots, components, blocked    of the window buffers
    """

    def __init__(self, config: DeviceConfig, requesters: int) -> None:
        self.config, self.requesters = config, requesters
        self.layouts = layouts = Layouts(config)
        n = config.streams
        super().__init__(
            {
                "requests": In(stream.Signature(layouts.reference)).array(requesters),
                "responses": Out(requesters),
                "fetched": Out(layouts.fetched),
                "remember": In(1),
                "context": In(CONTEXT_BITS),
                "raw": In(layouts.context),
                "slots": Out(data.ArrayLayout(layouts.slot_bits, n)),
                "components": In(data.ArrayLayout(layouts.component, n)),
                "blocked": In(n),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        layouts, who = self.layouts, range(self.requesters)
        m.submodules.arbiter = arbiter = RoundRobin(self.requesters)
        m.submodules.raws = raws = memory.Memory(shape=layouts.context, depth=CONTEXTS, init=[])
        write, read = raws.write_port(), raws.read_port()

        # Stages: turn, address, memory, data.
        references = [Signal(layouts.reference, name=f"reference{i}") for i in range(3)]
        wanted = [Signal(self.requesters, name=f"wanted{i}") for i in range(3)]
        chosen = Signal(self.requesters)
        free = Signal()
        m.d.comb += [
            free.eq(~wanted[0].any() | ~self.blocked.any()),
            arbiter.enable.eq(free | ~chosen.any()),
            arbiter.requests.eq(Cat(self.requests[i].valid & ~chosen[i] for i in who)),
        ]
        with m.If(arbiter.enable):
            m.d.sync += chosen.eq(arbiter.granted)
        with m.If(free):
            m.d.sync += wanted[0].eq(chosen)
        for i in who:
            m.d.comb += self.requests[i].ready.eq(chosen[i] & free)
            with m.If(chosen[i] & free):
                m.d.sync += references[0].eq(self.requests[i].payload)
        m.d.sync += [
            wanted[1].eq(Mux(self.blocked.any(), 0, wanted[0])),
            wanted[2].eq(wanted[1]),
            references[1].eq(references[0]),
            references[2].eq(references[1]),
        ]
        raw = Signal(layouts.context)
        m.d.comb += [
            self.slots.eq(references[0].slots),
            write.addr.eq(self.context),
            write.data.eq(self.raw),
            write.en.eq(self.remember),
            read.addr.eq(references[0].context),
            read.en.eq(1),
        ]
        m.d.sync += raw.eq(read.data)

        fetched = self.fetched
        m.d.comb += [
            self.responses.eq(wanted[2]),
            fetched.reference.eq(references[2]),
            fetched.stream.eq(raw.stream),
            fetched.bits.eq(raw.bits),
            fetched.now.eq(raw.component.timestamp),
            fetched.counters.eq(raw.counters),
        ]
        as_stored = wanted[2][-1]
        for number in range(self.config.streams):
            own = (raw.stream == number) & ~as_stored
            m.d.comb += fetched.components[number].eq(
                Mux(own, raw.component, self.components[number])
            )
        return m
