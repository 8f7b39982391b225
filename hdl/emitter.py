"""Emitter: offers an area's joined tuples to the router, and gives way to higher levels when it must."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from seustream.hdl.config import DeviceConfig
from seustream.hdl.decider import join_layout
from seustream.hdl.layouts import FOLLOWING, TAG_BITS, Layouts

_WAITING, _IN_FLIGHT = 32, 10
"""Depth of the queue of joined tuples, and how many may still arrive after it reported no room."""
_PATIENCE_BITS = 3


class Emitter(wiring.Component):
    """Queues joined tuples and ends of probes. The first in the queue waits for room at the destination of its
    route tag. If there is none for a while, and probes of a higher level wait, it gives up: the queue is
    flushed, and the probe will be resumed at the first tuple in it.

    latency     6 cycles to the request
    throughput  a joined tuple per cycle, with or without the end of its probe, or such an end alone

    came, found, level    in: pulse with a joined tuple, an end, or both, and its level
    room                  out: there is room; may be late by `_IN_FLIGHT` entries
    tag, leads            out, in: a route tag; its destination, a cycle later
    emit, emitting, destination   out: the request to the router
    granted, roomy        in: it is taken; there is room for it
    follows, follows_to   out: for the first and the second request after this one, whether it is ready already and of
                          the same level, and where it goes; without a request, the first is the next one
    higher                in: probes of a higher level wait
    ends                  out: the probe is done in this cycle: the next request belongs to the probe after it
    commit                out: the same, a cycle later
    rewind                out: pulse: `emitting` was given up
    """

    def __init__(self, config: DeviceConfig) -> None:
        self.config = config
        layouts = Layouts(config)
        super().__init__(
            {
                "came": In(1),
                "found": In(join_layout(config)),
                "level": In(layouts.level_bits),
                "room": Out(1),
                "tag": Out(TAG_BITS),
                "leads": In(layouts.destination),
                "emit": Out(1),
                "emitting": Out(join_layout(config)),
                "destination": Out(layouts.destination),
                "follows": Out(FOLLOWING),
                "follows_to": Out(data.ArrayLayout(layouts.destination, FOLLOWING)),
                "granted": In(1),
                "roomy": In(1),
                "higher": In(1),
                "ends": Out(1),
                "commit": Out(1),
                "rewind": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        shape, bits = join_layout(self.config), ceil_log2(_WAITING)
        # `same`: it has the level of the entry that came before.
        waiting = data.StructLayout(
            {"join": shape, "to": Layouts(self.config).destination, "same": 1}
        )
        m.submodules.joins = joins = memory.Memory(shape=waiting, depth=_WAITING, init=[])
        write, read = joins.write_port(), joins.read_port(domain="comb")
        end, first = Signal(bits + 1), Signal(bits + 1)
        # Pipeline stages: destination, register; then the queue.
        came, found = Signal(2), [Signal(shape, name=f"found{stage}") for stage in range(2)]
        to, same = Signal(waiting["to"].shape), Signal()
        level, level_before = Signal.like(self.level), Signal.like(self.level)
        m.d.comb += self.tag.eq(self.found.tag)
        m.d.sync += [
            came.eq(Cat(self.came, came)),
            found[0].eq(self.found),
            found[1].eq(found[0]),
            to.eq(self.leads),
            level.eq(self.level),
            same.eq(level == level_before),
            end.eq(end + came[-1]),
        ]
        m.d.comb += [
            write.addr.eq(end[:-1]),
            write.data.join.eq(found[-1]),
            write.data.to.eq(to),
            write.data.same.eq(same),
            write.en.eq(came[-1]),
            read.addr.eq(first[:-1]),
        ]
        with m.If(came[0]):
            m.d.sync += level_before.eq(level)
        m.d.sync += self.room.eq((end - first)[: bits + 1] <= _WAITING - _IN_FLIGHT)

        # Pipeline stages: out of the queue, what follows, request. A lone end is merged with the tuple of its
        # probe before it, if that is not a request yet; otherwise it takes a cycle of its own.
        item, following = Signal(waiting), Signal(waiting)
        have, have_following, here = Signal(), Signal(), Signal()
        load, goes_on, moves, leaves = Signal(), Signal(), Signal(), Signal()
        with_it = Signal()
        next_one = have_following & following.join.some & following.same
        m.d.comb += [
            leaves.eq(Mux(self.emit, self.granted, here) & ~self.rewind),
            self.ends.eq(leaves & self.emitting.end),
            moves.eq(have_following & (~here | leaves) & ~self.rewind),
            goes_on.eq(~have_following | moves),
            with_it.eq(
                have & ~item.join.some & have_following & following.join.some & ~following.join.end
            ),
            load.eq(~have | goes_on | with_it),
            self.follows.eq(Cat(next_one, next_one & have & item.join.some & item.same)),
            self.follows_to[0].eq(following.to),
            self.follows_to[1].eq(item.to),
        ]
        with m.If(load):
            m.d.sync += [
                have.eq(end != first),
                item.eq(read.data),
                first.eq(first + (end != first)),
            ]
        with m.If(goes_on):
            m.d.sync += [have_following.eq(have & ~with_it), following.eq(item)]
        with m.Elif(with_it):
            m.d.sync += following.join.end.eq(1)

        gives_up = Signal()
        m.d.sync += self.commit.eq(self.ends)
        with m.If(moves):
            m.d.sync += [
                here.eq(1),
                self.emit.eq(following.join.some),
                self.emitting.eq(following.join),
                self.emitting.end.eq(following.join.end | with_it),
                self.destination.eq(following.to),
            ]
        with m.Elif(leaves):
            m.d.sync += [here.eq(0), self.emit.eq(0)]
        with m.Elif(gives_up):
            m.d.sync += self.emit.eq(0)

        # Give up only after the router has had time to see that there is room.
        stuck = Signal(_PATIENCE_BITS)
        waits = self.emit & ~self.roomy & ~self.granted
        with m.If(waits & self.higher):
            m.d.sync += stuck.eq(stuck + 1)
        with m.Else():
            m.d.sync += stuck.eq(0)
        # `rewind` comes from a register, for it has a high fan-out; the request is withdrawn meanwhile.
        m.d.comb += gives_up.eq(stuck.all() & waits)
        m.d.sync += self.rewind.eq(gives_up)
        with m.If(self.rewind):
            m.d.sync += Cat(here, have_following, have, came, stuck, end, first).eq(0)
        return m
