"""Group member: finds how a result takes part in its group."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from seustream.hdl.config import DeviceConfig
from seustream.hdl.control_words import GROUP_PLAN_AT, Target
from seustream.hdl.layouts import TAG_BITS, Layouts
from seustream.hdl.ports import TableBus
from seustream.hdl.query_search import PLACE_BITS, PLACES


class GroupMember(wiring.Component):
    """Looks up the group plan of each tuple that is requested, and picks key and value from its components once
    they are there.

    latency     2 cycles from the components
    throughput  a tuple per cycle

    tables        in: table bus (`TableBus`)
    asked, tag    in: pulse: a tuple of this route tag is requested; tuples arrive in the same order
    came, fetched in: pulse: the next of them has arrived
    member        out: how it is grouped, 2 cycles after `came`
    whole         out: some results are grouped, so that attributes are wanted; held
    """

    def __init__(self, config: DeviceConfig) -> None:
        self.config = config
        self.layouts = layouts = Layouts(config)
        super().__init__(
            {
                "tables": In(TableBus()),
                "asked": In(1),
                "tag": In(TAG_BITS),
                "came": In(1),
                "fetched": In(layouts.fetched),
                "member": Out(layouts.member),
                "whole": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bus, layouts, n = self.tables, self.layouts, self.config.streams
        shape = layouts.group_plan
        part, written = Signal(shape), Signal()
        with m.If(bus.valid & (bus.target == Target.PART)):
            m.d.sync += part.eq(bus.data[GROUP_PLAN_AT:])
        m.submodules.plans = plans = memory.Memory(shape=shape, depth=2 << TAG_BITS, init=[])
        write, read = plans.write_port(), plans.read_port()
        m.d.comb += [
            written.eq(bus.valid & (bus.target == Target.QUERIES)),
            write.addr.eq(Cat(bus.address[:TAG_BITS], ~bus.half)),
            write.data.eq(part),
            write.data.grouped.eq(part.grouped & bus.data.any()),
            write.en.eq(written),
            read.addr.eq(Cat(self.tag, bus.half)),
            read.en.eq(1),
        ]
        # All tags are written, from tag 0 on, so that tag 0 starts the OR anew.
        some = [Signal(name=f"some_{half}") for half in range(2)]
        for half in range(2):
            with m.If(written & (bus.half != half)):
                others = some[half] & (bus.address[:TAG_BITS] != 0)
                m.d.sync += some[half].eq(write.data.grouped | others)
        m.d.sync += self.whole.eq(Mux(bus.half, some[1], some[0]))

        # Plans wait here for the components of their tuples.
        m.submodules.kept = kept = memory.Memory(shape=shape, depth=PLACES, init=[])
        keep, plan = kept.write_port(), kept.read_port(domain="comb")
        asked, begin, end = Signal(), Signal(PLACE_BITS), Signal(PLACE_BITS)
        m.d.sync += [asked.eq(self.asked), end.eq(end + asked), begin.eq(begin + self.came)]
        m.d.comb += [
            keep.addr.eq(end),
            keep.data.eq(read.data),
            keep.en.eq(asked),
            plan.addr.eq(begin),
        ]

        # Pipeline stages: select the attribute in every stream; select the stream.
        chosen, fetched = Signal(shape, reset_less=True), self.fetched
        m.d.sync += chosen.eq(plan.data)
        picked = {}
        for name in ("key", "value"):
            of_stream = Signal(
                data.ArrayLayout(self.config.attribute_width, n), name=f"{name}s", reset_less=True
            )
            place = plan.data[name]
            for s in range(n):
                m.d.sync += of_stream[s].eq(fetched.components[s].attributes[place.attribute])
            its = Array(of_stream[s] for s in range(n))[chosen[name].stream]
            picked[name] = Mux(chosen[name].there, its, 0)
        m.d.sync += [
            self.member.grouped.eq(chosen.grouped),
            self.member.query.eq(chosen.query),
            self.member.key.eq(picked["key"]),
            self.member.value.eq(picked["value"]),
        ]
        return m
