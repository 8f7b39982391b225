"""Output: delivers a tuple to the queries it satisfies, if it fits their windows."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, fifo, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from seustream.hdl.config import DeviceConfig
from seustream.hdl.control_words import KIND_SHIFT, Target
from seustream.hdl.device import WindowKind
from seustream.hdl.layouts import CONTEXT_BITS, QUERY_BITS, TAG_BITS, Layouts
from seustream.hdl.probe_fifo import IN_FLIGHT
from seustream.hdl.table_bus import write_signature

_QUERIES = 1 << QUERY_BITS
_AHEAD = 4
"""Tuples fetched or being fetched ahead of the one that is checked."""
_KIND_BITS = 2


class Output(wiring.Component):
    """Fetches a tuple's components, works out their ages and ranks, and checks them for each
    query of its route tag: all components at once, a query in 4 cycles.

    latency     16 cycles to the first result
    throughput  a tuple in 5 cycles, a result in 4; the tuples after are fetched meanwhile

    write, half     tables, and which half of them is in use
    push, pushed    references from the router
    room            may be late by `IN_FLIGHT` pushes
    request, response, fetched   of the tuple fetch, which takes two cycles at least
    results         delivered results
    commit, context a tuple of this context is done
    delivered       pulse, to be counted
    working, blocked   it is busy; a result waits to be taken
    """

    def __init__(self, config: DeviceConfig) -> None:
        self.config = config
        self.layouts = layouts = Layouts(config)
        super().__init__(
            {
                "write": In(write_signature()),
                "half": In(1),
                "push": In(1),
                "pushed": In(layouts.reference),
                "room": Out(1),
                "request": Out(stream.Signature(layouts.reference)),
                "response": In(1),
                "fetched": In(layouts.fetched),
                "results": Out(stream.Signature(layouts.result)),
                "commit": Out(1),
                "context": Out(CONTEXT_BITS),
                "delivered": Out(1),
                "working": Out(1),
                "blocked": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, layouts = self.config, self.layouts
        n = config.streams
        work = data.StructLayout(
            {
                "context": CONTEXT_BITS,
                "carries": n,
                "now": layouts.timestamp,
                "ages": data.ArrayLayout(layouts.timestamp, n),
                "ranks": data.ArrayLayout(layouts.sequence, n),
                "sequences": data.ArrayLayout(layouts.sequence, n),
            }
        )
        waiting = fifo.SyncFIFOBuffered(
            width=len(self.pushed.as_value()), depth=config.output_fifo_depth + IN_FLIGHT
        )
        m.submodules.waiting = waiting
        m.d.comb += [
            waiting.w_data.eq(self.pushed),
            waiting.w_en.eq(self.push),
        ]
        m.d.sync += self.room.eq(waiting.level < config.output_fifo_depth)

        # Tuples on their way through the fetch come in order; each has a place kept for it.
        fetched = Signal(work, reset_less=True)
        ready = fifo.SyncFIFOBuffered(width=work.size + _QUERIES, depth=_AHEAD)
        m.submodules.ready = ready
        asked = Signal(range(_AHEAD + 1))
        take, place = Signal(), Signal()
        m.d.sync += asked.eq(asked + (self.request.valid & self.request.ready) - take)
        m.d.sync += place.eq(asked < _AHEAD - 1)  # one may have been asked for meanwhile
        with m.FSM():
            with m.State("NEXT"):
                m.d.comb += waiting.r_en.eq(place)
                m.d.sync += self.request.payload.eq(waiting.r_data)
                with m.If(place & waiting.r_rdy):
                    m.next = "REQUEST"
            with m.State("REQUEST"):
                m.d.comb += self.request.valid.eq(1)
                with m.If(self.request.ready):
                    m.next = "NEXT"

        # Which queries each route tag satisfies.
        bus, reference = self.write, self.fetched.reference
        m.submodules.routes = routes = memory.Memory(shape=_QUERIES, depth=2 << TAG_BITS, init=[])
        write, route = routes.write_port(), routes.read_port()
        m.d.comb += [
            write.addr.eq(Cat(bus.address[:TAG_BITS], ~self.half)),
            write.data.eq(bus.data),
            write.en.eq(bus.valid & (bus.target == Target.QUERIES)),
            route.addr.eq(Cat(reference.tag, self.half)),
            route.en.eq(1),
        ]

        # What was fetched, its ages and ranks, and its queries.
        m.d.sync += [
            fetched.context.eq(reference.context),
            fetched.carries.eq(reference.carries),
            fetched.now.eq(self.fetched.now),
        ]
        for s in range(n):
            component = self.fetched.components[s]
            m.d.sync += [
                fetched.ages[s].eq(
                    Mux(reference.carries[s], self.fetched.now - component.timestamp, 0)
                ),
                fetched.ranks[s].eq(self.fetched.counters[s] - component.sequence),
                fetched.sequences[s].eq(component.sequence),
            ]
        arrived, came = Signal(), Signal()
        whole = Signal(work, reset_less=True)
        queries = Signal(_QUERIES, reset_less=True)
        m.d.sync += [arrived.eq(self.response), came.eq(arrived)]
        m.d.sync += [whole.eq(fetched), queries.eq(route.data)]
        m.d.comb += [ready.w_en.eq(came), ready.w_data.eq(Cat(whole, queries))]
        # Whether the turn of the first of them has come, and what it satisfies first is known.
        # What is taken leaves the FIFO a cycle later.
        known, satisfied = Signal(3), Signal(_QUERIES)
        m.d.sync += [
            ready.r_en.eq(take),
            known.eq(Mux(take | ready.r_en, 0, Cat(ready.r_rdy, known))),
            satisfied.eq(ready.r_data[work.size :]),
        ]
        following = data.View(work, ready.r_data[: work.size])
        self._check(m, work, following, known[-1], take, satisfied)
        return m

    def _check(
        self,
        m: Module,
        work: data.StructLayout,
        fetched: data.View,
        have: Signal,
        take: Signal,
        queries: Value,
    ) -> None:
        layouts, n = self.layouts, self.config.streams
        size = max(layouts.timestamp, layouts.sequence)
        row = data.StructLayout({"kind": _KIND_BITS, "size": size})
        bus = self.write
        current = Signal(work)
        left = Signal(_QUERIES)
        query = Signal(QUERY_BITS)
        fits = Signal(n)

        for s in range(n):
            m.submodules[f"windows{s}"] = windows = memory.Memory(
                shape=row, depth=2 * _QUERIES, init=[]
            )
            write, read = windows.write_port(), windows.read_port()
            m.d.comb += [
                write.addr.eq(Cat(bus.address[:QUERY_BITS], ~self.half)),
                write.data.kind.eq(bus.address[KIND_SHIFT:]),
                write.data.size.eq(bus.data[:size]),
                write.en.eq(bus.valid & (bus.target == Target.WINDOW) & (bus.unit == s)),
                read.addr.eq(Cat(query, self.half)),
                read.en.eq(1),
            ]
            window = Signal(row, name=f"window_{s}", reset_less=True)
            m.d.sync += window.eq(read.data)
            fit = Signal(name=f"fit_{s}")
            m.d.comb += fit.eq(1)
            with m.Switch(window.kind):
                with m.Case(WindowKind.RANGE):
                    m.d.comb += fit.eq(current.ages[s] <= window.size)
                with m.Case(WindowKind.ROWS):
                    m.d.comb += fit.eq(current.ranks[s] < window.size)
            m.d.sync += fits[s].eq(fit | ~current.carries[s])

        # The greatest age, two by two; known when the first result is.
        ages = [current.ages[s] for s in range(n)]
        while len(ages) > 1:
            pairs = [ages[i : i + 2] for i in range(0, len(ages), 2)]
            ages = []
            for number, pair in enumerate(pairs):
                greater = Signal(layouts.timestamp, name=f"greater_{len(pairs)}_{number}")
                m.d.sync += greater.eq(pair[0] if len(pair) == 1 else _greater(*pair))
                ages.append(greater)

        result = self.results.payload
        m.d.comb += [
            result.query.eq(query),
            result.carries.eq(current.carries),
            result.newest.eq(current.now),
            result.sequences.eq(current.sequences),
            self.context.eq(current.context),
        ]
        m.d.sync += result.oldest.eq(current.now - ages[0])
        # The lowest of those left, then its number, are known when it is picked.
        one, first = Signal(_QUERIES), Signal(_QUERIES)
        number, first_number = Signal(QUERY_BITS), Signal(QUERY_BITS)
        m.d.sync += [
            first.eq(queries & (~queries + 1)[:_QUERIES]),
            first_number.eq(_number(first)),
            one.eq(left & (~left + 1)[:_QUERIES]),
            number.eq(_number(one)),
        ]
        done = Signal()
        m.d.comb += self.commit.eq(done)
        # Whether none is left, when it matters: as it was a cycle before.
        nothing, spent = Signal(), Signal()
        m.d.sync += [nothing.eq(queries == 0), spent.eq(left == 0)]
        with m.FSM() as fsm:
            with m.State("IDLE"):
                m.d.comb += take.eq(have)
                m.d.sync += [
                    current.eq(fetched),
                    left.eq(queries & ~first),
                    query.eq(first_number),
                ]
                with m.If(have):
                    m.next = "READ"
                    with m.If(nothing):
                        m.next = "NOTHING"
            with m.State("NOTHING"):
                m.d.comb += done.eq(1)
                m.next = "IDLE"
            with m.State("READ"):
                m.next = "MEMORY"
            with m.State("MEMORY"):
                m.next = "CHECK"
            with m.State("CHECK"):
                m.next = "DELIVER"
            with m.State("DELIVER"):
                m.d.comb += self.results.valid.eq(fits.all())
                m.d.comb += self.blocked.eq(self.results.valid & ~self.results.ready)
                with m.If(~self.results.valid | self.results.ready):
                    m.d.comb += self.delivered.eq(self.results.valid)
                    m.d.sync += [query.eq(number), left.eq(left & ~one)]
                    m.next = "READ"
                    with m.If(spent):
                        m.d.comb += done.eq(1)
                        m.next = "IDLE"
        m.d.comb += self.working.eq((~fsm.ongoing("IDLE") | have) & ~self.blocked)


def _number(one: Signal) -> Value:
    """Of the bit that is 1."""
    return Cat(
        Cat(one[i] for i in range(_QUERIES) if i >> bit & 1).any() for bit in range(QUERY_BITS)
    )


def _greater(a: Signal, b: Signal) -> Signal:
    return Mux(a > b, a, b)
