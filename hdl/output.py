"""Output: delivers a tuple to the queries that it satisfies and in whose windows it lies."""

from __future__ import annotations

import functools
import itertools
import operator

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, fifo, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from seustream.hdl.config import DeviceConfig
from seustream.hdl.control_words import FILTER_BITS, FILTERED, Target
from seustream.hdl.layouts import CONTEXT_BITS, SELECTIONS, STREAM_BITS, TAG_BITS, Layouts
from seustream.hdl.member import GroupMember
from seustream.hdl.ports import Fetching, Meter, TableBus, TupleDone
from seustream.hdl.probe_fifo import IN_FLIGHT
from seustream.hdl.query_search import PLACE_BITS, PLACES, QuerySearch

_COUNTED = 8
"""Queries counted by one adder."""


class Output(wiring.Component):
    """Fetches a tuple's components, computes their ages and ranks, searches the queries of its route
    tag for those in whose windows it lies, and delivers it once with all of them. A raw tuple goes
    to those queries over its stream alone whose filters it passes.

    latency     21 cycles from the fetch's response for a tuple of one window test, 8 more for each further test
    throughput  a window test per cycle (`seustream.hdl.query_search`): a tuple per cycle if all its queries
                have windows of one or two lengths, a tuple in 4 cycles if they have 64

    tables      in (`TableBus`)
    push        in: pulse: a tuple
    pushed      in: its reference (`Layouts.reference`), valid with `push`
    room        out: there is room; may be late by `IN_FLIGHT` pushes
    fetch       out (`Fetching`): answers come two cycles after their requests at the earliest
    results     out: stream of delivered results (`Layouts.result`), in the order of the pushes
    member      out: how the result is grouped (`Layouts.member`), valid with `results.valid`
    whole       out: attributes of components are wanted, too; held while tuples are here
    done        out (`TupleDone`)
    delivered   out: number of queries that got a result 3 cycles ago
    meter       out (`Meter`): blocked while a result waits to be taken
    """

    def __init__(self, config: DeviceConfig) -> None:
        self.config = config
        self.layouts = layouts = Layouts(config)
        super().__init__(
            {
                "tables": In(TableBus()),
                "push": In(1),
                "pushed": In(layouts.reference),
                "room": Out(1),
                "fetch": Out(Fetching(config)),
                "results": Out(stream.Signature(layouts.result)),
                "member": Out(layouts.member),
                "whole": Out(1),
                "done": Out(TupleDone()),
                "delivered": Out(range(config.queries + 1)),
                "meter": Out(Meter()),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.search = search = QuerySearch(self.config)
        wiring.connect(m, wiring.flipped(self.tables), search.tables)
        leaves = Signal()  # a place becomes free
        # Without a grouping unit no result is a member of a group.
        self._members = None
        if self.config.groups:
            m.submodules.members = self._members = members = GroupMember(self.config)
            wiring.connect(m, wiring.flipped(self.tables), members.tables)
            m.d.comb += [
                members.came.eq(self.fetch.response),
                members.fetched.eq(self.fetch.data),
                self.whole.eq(members.whole),
            ]
        self._ask(m, leaves)
        kept = self._work_out(m, search)
        self._deliver(m, search, kept, leaves)
        return m

    def _ask(self, m: Module, leaves: Signal) -> None:
        """Requests the components of tuples, in order; each has a place reserved until it leaves."""
        config = self.config
        waiting = fifo.SyncFIFOBuffered(
            width=len(self.pushed.as_value()), depth=config.output_fifo_depth + IN_FLIGHT
        )
        m.submodules.waiting = waiting
        m.d.comb += [waiting.w_data.eq(self.pushed), waiting.w_en.eq(self.push)]
        m.d.sync += self.room.eq(waiting.level < config.output_fifo_depth)
        asked, place, free, asks = Signal(range(PLACES + 1)), Signal(), Signal(), Signal()
        m.d.comb += [
            free.eq(~self.fetch.request.valid | self.fetch.request.ready),
            waiting.r_en.eq(free & place),
            asks.eq(waiting.r_en & waiting.r_rdy),
        ]
        left = Signal()  # a place that becomes free is counted a cycle later
        # `asks` comes late, so it only selects between two precomputed sums.
        fewer = (asked - left)[: len(asked)]
        m.d.sync += [left.eq(leaves), asked.eq(Mux(asks, (asked + ~left)[: len(asked)], fewer))]
        m.d.sync += place.eq(asked < PLACES - 1)  # one more may have been requested meanwhile
        if self._members is not None:
            tag = data.View(self.layouts.reference, waiting.r_data).tag
            m.d.comb += [self._members.asked.eq(asks), self._members.tag.eq(tag)]
        with m.If(free):
            m.d.sync += [
                self.fetch.request.valid.eq(asks),
                self.fetch.request.payload.eq(waiting.r_data),
            ]

    def _work_out(self, m: Module, search: QuerySearch) -> memory.ReadPort:
        """Computes ages, ranks and queries of fetched tuples for the search; returns a read port to the parts of
        their results."""
        layouts, n = self.layouts, self.config.streams
        bus, reference = self.tables, self.fetch.data.reference
        route = data.StructLayout({"queries": self.config.queries, "test": len(search.test)})
        m.submodules.routes = routes = memory.Memory(shape=route, depth=2 << TAG_BITS, init=[])
        write, read = routes.write_port(), routes.read_port()
        part = Signal.like(search.test)  # the last PART before the queries
        with m.If(bus.valid & (bus.target == Target.PART)):
            m.d.sync += part.eq(bus.data)
        m.d.comb += [
            write.addr.eq(Cat(bus.address[:TAG_BITS], ~bus.half)),
            write.data.queries.eq(bus.data),
            write.data.test.eq(part),
            write.en.eq(bus.valid & (bus.target == Target.QUERIES)),
            read.addr.eq(Cat(reference.tag, bus.half)),
            read.en.eq(1),
        ]

        # Pipeline stages: ages and ranks; the search begins; greatest ages, two by two; the oldest.
        parts = data.StructLayout(
            {
                "context": CONTEXT_BITS,
                "carries": n,
                "now": layouts.timestamp,
                "oldest": layouts.timestamp,
                "sequences": data.ArrayLayout(layouts.sequence, n),
                "member": layouts.member,
            }
        )
        stages = 4
        came = Signal(stages)
        works = [Signal(parts, name=f"work{stage}", reset_less=True) for stage in range(stages)]
        ages = Signal(data.ArrayLayout(layouts.timestamp, n), reset_less=True)
        ranks = Signal(data.ArrayLayout(layouts.sequence, n), reset_less=True)
        m.d.sync += came.eq(Cat(self.fetch.response, came))
        m.d.sync += [
            works[0].context.eq(reference.context),
            works[0].carries.eq(reference.carries),
            works[0].now.eq(self.fetch.data.now),
        ]
        m.d.sync += [later.eq(former) for former, later in itertools.pairwise(works)]
        for s in range(n):
            component = self.fetch.data.components[s]
            age = self.fetch.data.now - component.timestamp
            m.d.sync += [
                ages[s].eq(Mux(reference.carries[s], age, 0)),
                ranks[s].eq(self.fetch.data.counters[s] - component.sequence),
                works[0].sequences[s].eq(component.sequence),
            ]
        m.d.sync += [
            search.came.eq(came[0]),
            search.keys.carries.eq(works[0].carries),
            search.keys.ages.eq(ages),
            search.keys.ranks.eq(ranks),
            search.test.eq(read.data.test),
        ]
        self._pass(m, search, read.data.queries)
        greatest: list[Value] = [ages[s] for s in range(n)]
        for level in range(stages - 2):
            pairs = [greatest[at : at + 2] for at in range(0, len(greatest), 2)]
            greatest = []
            for number, pair in enumerate(pairs):
                age = Signal(layouts.timestamp, name=f"greater_{level}_{number}", reset_less=True)
                m.d.sync += age.eq(Mux(pair[0] > pair[-1], pair[0], pair[-1]))
                greatest.append(age)
        m.d.sync += works[-1].oldest.eq(works[-2].now - greatest[0])
        if self._members is not None:
            # Only ages below a quarter of the range: the grouping unit compares times of results as serial numbers,
            # while the clock advances by up to another quarter.
            young, member = ~greatest[0][-2:].any(), works[-2].member
            m.d.sync += [
                works[-2].member.eq(self._members.member),
                works[-1].member.grouped.eq(member.grouped & young),
            ]

        m.submodules.works = kept = memory.Memory(shape=parts, depth=PLACES, init=[])
        end, port = Signal(PLACE_BITS), kept.write_port()
        m.d.sync += end.eq(end + came[-1])
        m.d.comb += [port.addr.eq(end), port.data.eq(works[-1]), port.en.eq(came[-1])]
        return kept.read_port(domain="comb")

    def _pass(self, m: Module, search: QuerySearch, queries: Value) -> None:
        """Gives the search the queries that a tuple may be for. For a raw tuple these are the queries whose filters
        it passes; its selection bits are looked up a few per memory."""
        bus, reference = self.tables, self.fetch.data.reference
        is_joined, of_tag = Signal(), Signal(self.config.queries, reset_less=True)
        m.d.sync += [
            is_joined.eq(reference.carries != 1 << self.fetch.data.stream),
            of_tag.eq(queries),
        ]
        passed = []
        for number in range(SELECTIONS // FILTERED):
            bits = self.fetch.data.bits[number * FILTERED :][:FILTERED]
            m.submodules[f"filters{number}"] = filters = memory.Memory(
                shape=self.config.queries, depth=2 << STREAM_BITS + FILTERED, init=[]
            )
            write, read = filters.write_port(), filters.read_port()
            m.d.comb += [
                write.addr.eq(Cat(bus.address[:FILTERED], bus.unit, ~bus.half)),
                write.data.eq(bus.data),
                write.en.eq(
                    bus.valid
                    & (bus.target == Target.FILTER)
                    & (bus.address[FILTERED:FILTER_BITS] == number)
                ),
                read.addr.eq(Cat(bits, self.fetch.data.stream, bus.half)),
                read.en.eq(1),
            ]
            kept = Signal(self.config.queries, name=f"passed{number}", reset_less=True)
            m.d.sync += kept.eq(read.data | is_joined.replicate(len(kept)))
            passed.append(kept)
        m.d.sync += search.queries.eq(functools.reduce(operator.and_, passed, of_tag))

    def _deliver(
        self, m: Module, search: QuerySearch, kept: memory.ReadPort, leaves: Signal
    ) -> None:
        """Delivers tuples in the order in which they came, if there are queries for them."""
        known, some, head = Signal(PLACES), Signal(PLACES), Signal(PLACE_BITS)
        shown = data.StructLayout(
            {
                "some": 1,
                "context": CONTEXT_BITS,
                "result": self.layouts.result,
                "member": self.layouts.member,
            }
        )
        here, item, moves = Signal(), Signal(shown), Signal()
        found, left = Signal(PLACES), Signal(PLACES)
        m.d.comb += [
            kept.addr.eq(head),
            search.read.eq(head),
            moves.eq(here & (~item.some | self.results.ready)),
            leaves.eq(known.bit_select(head, 1) & (~here | moves)),
            found.bit_select(search.place, 1).eq(search.found),
            left.bit_select(head, 1).eq(leaves),
        ]
        # `leaves` comes late, so it is only masked in here.
        m.d.sync += known.eq((known | found) & ~left)
        with m.If(leaves):
            m.d.sync += head.eq(head + 1)
        with m.If(search.found):
            m.d.sync += some.bit_select(search.place, 1).eq(search.some)
        work, result = kept.data, item.result
        with m.If(~here | moves):
            m.d.sync += [
                here.eq(leaves),
                item.some.eq(some.bit_select(head, 1)),
                item.context.eq(work.context),
                result.queries.eq(search.left),
                result.carries.eq(work.carries),
                result.newest.eq(work.now),
                result.oldest.eq(work.oldest),
                result.sequences.eq(work.sequences),
                item.member.eq(work.member),
            ]
        handed = self.results.valid & self.results.ready
        m.d.comb += [
            self.results.valid.eq(here & item.some),
            self.results.payload.eq(result),
            self.member.eq(item.member),
            self.done.commit.eq(moves),
            self.done.context.eq(item.context),
            self.meter.blocked.eq(self.results.valid & ~self.results.ready),
            self.meter.working.eq((search.working | here) & ~self.meter.blocked),
        ]
        # Count up to 64 queries in three pipeline stages.
        counted, sums = Signal(self.config.queries), []
        m.d.sync += counted.eq(Mux(handed, result.queries, 0))
        for at in range(0, len(counted), _COUNTED):
            some_of_them = Signal(range(_COUNTED + 1), name=f"counted_{at}")
            m.d.sync += some_of_them.eq(sum(counted[at : at + _COUNTED]))
            sums.append(some_of_them)
        m.d.sync += self.delivered.eq(sum(sums))
