"""Emitter: brings an area's joined tuples to the router, and gives way where it must."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from seustream.hdl.config import DeviceConfig
from seustream.hdl.decider import join_layout
from seustream.hdl.layouts import TAG_BITS, Layouts

_WAITING, _IN_FLIGHT = 16, 8
"""Joined tuples that wait, and how many may come after it was seen that they do."""
_PATIENCE_BITS = 3


class Emitter(wiring.Component):
    """A queue of joined tuples and ends of probes. What is first in it waits for room where its route
    tag leads. While there is none, and probes of a higher level wait, it gives up: all that wait
    are forgotten, and the probe is taken up again at the first of them.

    latency     5 cycles to the request
    throughput  a joined tuple in 2 cycles, which the router takes; a probe's last in 3

    came, found, room     a joined tuple or an end; there is room, late by `_IN_FLIGHT` of them
    look, tag, leads      asks for the destination of a tag; there a cycle later
    emit, emitting, destination, granted, roomy   the request, and the router's answer
    follows, follows_to   the request after it, if it is of the same probe and there already
    higher                probes of a higher level wait
    ends                  the probe is done with this cycle: the next request is of the one after it
    commit                pulse, a cycle later
    rewind                pulse: `emitting` was given up
    """

    def __init__(self, config: DeviceConfig) -> None:
        self.config = config
        layouts = Layouts(config)
        super().__init__(
            {
                "came": In(1),
                "found": In(join_layout(config)),
                "room": Out(1),
                "look": Out(1),
                "tag": Out(TAG_BITS),
                "leads": In(layouts.destination),
                "emit": Out(1),
                "emitting": Out(join_layout(config)),
                "destination": Out(layouts.destination),
                "follows": Out(1),
                "follows_to": Out(layouts.destination),
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
        m.submodules.joins = joins = memory.Memory(shape=shape, depth=_WAITING, init=[])
        write, read = joins.write_port(), joins.read_port(domain="comb")
        end, first = Signal(bits + 1), Signal(bits + 1)
        m.d.comb += [
            write.addr.eq(end[:-1]),
            write.data.eq(self.found),
            write.en.eq(self.came),
            read.addr.eq(first[:-1]),
        ]
        m.d.sync += self.room.eq((end - first)[: bits + 1] <= _WAITING - _IN_FLIGHT)

        # Stages: out of the queue, destination, what follows, request.
        next_item, item, following = Signal(shape), Signal(shape), Signal(shape)
        have_next, have, have_following = Signal(), Signal(), Signal()
        load, goes_on, moves, both = Signal(), Signal(), Signal(), Signal()
        # An end makes way for what is behind it at once.
        m.d.comb += [
            moves.eq(have_following & (~self.emit | self.granted) & ~self.rewind),
            self.ends.eq(moves & following.end),
            both.eq(self.ends & have & ~item.end),
            goes_on.eq(~have_following | moves),
            self.look.eq(~have | goes_on),
            self.tag.eq(next_item.tag),
            self.follows.eq(have_following & ~following.end),
            load.eq(~have_next | self.look),
        ]
        m.d.sync += end.eq(end + self.came)
        with m.If(load):
            m.d.sync += [
                have_next.eq(end != first),
                next_item.eq(read.data),
                first.eq(first + (end != first)),
            ]
        with m.If(self.look):
            m.d.sync += [have.eq(have_next), item.eq(next_item)]
        with m.If(goes_on):
            m.d.sync += [have_following.eq(have & ~both), following.eq(item)]
            m.d.sync += self.follows_to.eq(self.leads)

        gives_up = Signal()
        m.d.sync += self.commit.eq(self.ends)
        with m.If(both):
            m.d.sync += [
                self.emit.eq(1),
                self.emitting.eq(item),
                self.destination.eq(self.leads),
            ]
        with m.Elif(moves):
            m.d.sync += [
                self.emit.eq(~following.end),
                self.emitting.eq(following),
                self.destination.eq(self.follows_to),
            ]
        with m.Elif(self.granted | gives_up):
            m.d.sync += self.emit.eq(0)

        # Giving up, after the router has had time to see that there is room.
        stuck = Signal(_PATIENCE_BITS)
        waits = self.emit & ~self.roomy & ~self.granted
        with m.If(waits & self.higher):
            m.d.sync += stuck.eq(stuck + 1)
        with m.Else():
            m.d.sync += stuck.eq(0)
        # From a register, for it reaches far; the request is withdrawn meanwhile.
        m.d.comb += gives_up.eq(stuck.all() & waits)
        m.d.sync += self.rewind.eq(gives_up)
        with m.If(self.rewind):
            m.d.sync += [Cat(have_following, have, have_next, stuck).eq(0), Cat(end, first).eq(0)]
        return m
