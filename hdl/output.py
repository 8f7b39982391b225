"""Output: delivers a tuple to the queries it satisfies, if it fits their windows."""

from __future__ import annotations

import itertools

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, fifo, memory, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from seustream.hdl.config import DeviceConfig
from seustream.hdl.control_words import KIND_SHIFT, Target
from seustream.hdl.device import WindowKind
from seustream.hdl.layouts import CONTEXT_BITS, QUERY_BITS, TAG_BITS, Layouts
from seustream.hdl.probe_fifo import IN_FLIGHT
from seustream.hdl.table_bus import write_signature

_QUERIES = 1 << QUERY_BITS
_AHEAD = 16
"""Tuples that are asked for and not done."""
_CHECKED, _IN_CHECK = 16, 8
"""Results that wait to be taken, and how many may come after it was seen that they do."""
_KIND_BITS = 2
_ITEM = data.StructLayout(
    {"valid": 1, "some": 1, "last": 1, "query": QUERY_BITS, "place": ceil_log2(_AHEAD)}
)
"""A query to be checked of the tuple at a place, unless there is none; the last of this tuple."""


class Output(wiring.Component):
    """Fetches a tuple's components, works out their ages and ranks, and checks them for each
    query of its route tag: all components at once, a query a cycle.

    latency     20 cycles to the first result
    throughput  a query a cycle, and of a tuple with several queries a cycle more; a tuple in as
                many cycles as the fetch takes for a request, 3

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
                "oldest": layouts.timestamp,
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

        # Tuples on their way through the fetch come in order; each has a place kept for it until it
        # is done.
        asked, place, done = Signal(range(_AHEAD + 1)), Signal(), Signal()
        free, asks = Signal(), Signal()
        m.d.comb += [
            free.eq(~self.request.valid | self.request.ready),
            waiting.r_en.eq(free & place),
            asks.eq(waiting.r_en & waiting.r_rdy),
        ]
        m.d.sync += asked.eq(asked + asks - done)
        m.d.sync += place.eq(asked < _AHEAD - 1)  # one may have been asked for meanwhile
        with m.If(free):
            m.d.sync += [self.request.valid.eq(asks), self.request.payload.eq(waiting.r_data)]

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

        # What was fetched, its ages and ranks, its queries; the greatest age, two by two, and whether
        # there are more queries than one.
        stages = 4
        came = [Signal(name=f"came{stage}") for stage in range(stages)]
        works = [Signal(work, name=f"work{stage}", reset_less=True) for stage in range(stages)]
        m.d.sync += Cat(came).eq(Cat(self.response, came))
        m.d.sync += [
            works[0].context.eq(reference.context),
            works[0].carries.eq(reference.carries),
            works[0].now.eq(self.fetched.now),
        ]
        m.d.sync += [later.eq(former) for former, later in itertools.pairwise(works)]
        for s in range(n):
            component = self.fetched.components[s]
            m.d.sync += [
                works[0]
                .ages[s]
                .eq(Mux(reference.carries[s], self.fetched.now - component.timestamp, 0)),
                works[0].ranks[s].eq(self.fetched.counters[s] - component.sequence),
                works[0].sequences[s].eq(component.sequence),
            ]
        ages = [works[0].ages[s] for s in range(n)]
        for level in range(stages - 2):
            greater = []
            for number in range(0, len(ages), 2):
                age = Signal(layouts.timestamp, name=f"greater_{level}_{number}", reset_less=True)
                pair = ages[number : number + 2]
                m.d.sync += age.eq(Mux(pair[0] > pair[-1], pair[0], pair[-1]))
                greater.append(age)
            ages = greater
        m.d.sync += works[-1].oldest.eq(works[-2].now - ages[0])
        queries = [Signal(_QUERIES, name=f"queries{q}", reset_less=True) for q in range(stages - 1)]
        others, few = Signal(_QUERIES, reset_less=True), Signal(reset_less=True)
        m.d.sync += [
            Cat(queries).eq(Cat(route.data, queries)),
            others.eq(queries[0] & (queries[0] - 1)),
            few.eq(others == 0),
        ]

        m.submodules.works = kept = memory.Memory(shape=work, depth=_AHEAD, init=[])
        to_do = data.StructLayout({"few": 1, "queries": _QUERIES})
        m.submodules.lists = lists = memory.Memory(shape=to_do, depth=_AHEAD, init=[])
        end = Signal(_AHEAD.bit_length())
        m.d.sync += end.eq(end + came[-1])
        for port, content in (
            (kept.write_port(), works[-1]),
            (lists.write_port(), Cat(few, queries[-1])),
        ):
            m.d.comb += [
                port.addr.eq(end[:-1]),
                port.data.eq(content),
                port.en.eq(came[-1]),
            ]
        item = self._pick(m, lists, end)
        self._check(m, item, kept)
        m.d.comb += done.eq(self.commit)
        return m

    def _pick(self, m: Module, lists: memory.Memory, end: Signal) -> data.View:
        """One query of a tuple a cycle, the lowest first. The last of several is followed by a cycle
        in which none is left."""
        read = lists.read_port(domain="comb")
        begun = Signal.like(end)
        left, few, have, place = Signal(_QUERIES), Signal(), Signal(), Signal(len(end) - 1)
        self._may_pick = may = Signal()
        some, ends, rest = Signal(), Signal(), Signal(_QUERIES)
        m.d.comb += [
            rest.eq(left & (left - 1)),
            read.addr.eq(begun[:-1]),
            some.eq(left.any()),
            ends.eq(few | ~some),
        ]
        with m.If(may & have & ~ends):
            m.d.sync += left.eq(rest)
        with m.If(~have | (may & ends)):
            m.d.sync += [
                left.eq(read.data.queries),
                few.eq(read.data.few),
                have.eq(begun != end),
                place.eq(begun[:-1]),
                begun.eq(begun + (begun != end)),
            ]
        self._have = have
        item = Signal(_ITEM)
        one = Signal(_QUERIES, reset_less=True)
        picked = Signal(_ITEM)
        m.d.sync += [
            one.eq(left & ~rest),
            picked.valid.eq(may & have),
            picked.some.eq(some),
            picked.last.eq(ends),
            picked.place.eq(place),
            item.eq(picked),
            item.query.eq(_number(one)),
        ]
        return item

    def _check(self, m: Module, item: data.View, works: memory.Memory) -> None:
        """All components of a tuple by the windows of one query."""
        layouts, n = self.layouts, self.config.streams
        size = max(layouts.timestamp, layouts.sequence)
        row = data.StructLayout({"kind": _KIND_BITS, "size": size})
        bus = self.write
        # Stages: memory, windows, fit.
        items = [Signal(_ITEM, name=f"item{stage}") for stage in range(3)]
        m.d.sync += [later.eq(former) for former, later in itertools.pairwise([item, *items])]
        port = works.read_port(domain="comb")
        work = Signal(works.shape, reset_less=True)
        checked = Signal(works.shape, reset_less=True)
        m.d.comb += port.addr.eq(items[0].place)
        m.d.sync += [work.eq(port.data), checked.eq(work)]
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
                read.addr.eq(Cat(item.query[:QUERY_BITS], self.half)),
                read.en.eq(1),
            ]
            window = Signal(row, name=f"window_{s}", reset_less=True)
            m.d.sync += window.eq(read.data)
            fit = Signal(name=f"fit_{s}")
            m.d.comb += fit.eq(1)
            with m.Switch(window.kind):
                with m.Case(WindowKind.RANGE):
                    m.d.comb += fit.eq(work.ages[s] <= window.size)
                with m.Case(WindowKind.ROWS):
                    m.d.comb += fit.eq(work.ranks[s] < window.size)
            m.d.sync += fits[s].eq(fit | ~work.carries[s])

        # What fits, and the last of each tuple, waits to be taken.
        result = self.results.payload
        out = data.StructLayout(
            {"fits": 1, "last": 1, "context": CONTEXT_BITS, "result": result.shape()}
        )
        came, shown = items[-1], Signal(out)
        m.submodules.checked = checked_fifo = fifo.SyncFIFOBuffered(width=out.size, depth=_CHECKED)
        found = Signal(out)
        m.d.comb += [
            found.fits.eq(fits.all() & came.some),
            found.last.eq(came.last),
            found.context.eq(checked.context),
            found.result.query.eq(came.query),
            found.result.carries.eq(checked.carries),
            found.result.newest.eq(checked.now),
            found.result.oldest.eq(checked.oldest),
            found.result.sequences.eq(checked.sequences),
            checked_fifo.w_data.eq(found),
            checked_fifo.w_en.eq(came.valid & (found.fits | found.last)),
            shown.eq(checked_fifo.r_data),
        ]
        m.d.sync += self._may_pick.eq(checked_fifo.level < _CHECKED - _IN_CHECK)
        here = checked_fifo.r_rdy
        m.d.comb += [
            result.eq(shown.result),
            self.results.valid.eq(here & shown.fits),
            checked_fifo.r_en.eq(~shown.fits | self.results.ready),
            self.delivered.eq(self.results.valid & self.results.ready),
            self.commit.eq(here & checked_fifo.r_en & shown.last),
            self.context.eq(shown.context),
            self.blocked.eq(self.results.valid & ~self.results.ready),
            self.working.eq((self._have | here) & ~self.blocked),
        ]


def _number(one: Signal) -> Value:
    """Of the bit that is 1."""
    return Cat(
        Cat(one[i] for i in range(_QUERIES) if i >> bit & 1).any() for bit in range(QUERY_BITS)
    )
