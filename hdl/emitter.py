"""Emitter: brings an area's joined tuples to the router, and gives way where it must."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from seustream.hdl.config import DeviceConfig
from seustream.hdl.decider import join_layout
from seustream.hdl.layouts import TAG_BITS, Layouts

_WAITING, _IN_FLIGHT = 32, 10
"""Joined tuples that wait, and how many may come after it was seen that they do."""
_PATIENCE_BITS = 3


class Emitter(wiring.Component):
    """A queue of joined tuples and ends of probes. What is first in it waits for room where its route
    tag leads. While there is none, and probes of a higher level wait, it gives up: all that wait
    are forgotten, and the probe is taken up again at the first of them.

    latency     6 cycles to the request
    throughput  a joined tuple in 2 cycles, which the router takes; an end with the one before it

    came, found, room     a joined tuple or an end; there is room, late by `_IN_FLIGHT` of them
    tag, leads            the destination of a tag, a cycle later
    emit, emitting, destination, granted, roomy   the request, and the router's answer
    follows, follows_to   the request after it, if it is there already and of the same level
    same_level            the probe after this one is of its level
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
                "tag": Out(TAG_BITS),
                "leads": In(layouts.destination),
                "emit": Out(1),
                "emitting": Out(join_layout(config)),
                "destination": Out(layouts.destination),
                "follows": Out(1),
                "follows_to": Out(layouts.destination),
                "granted": In(1),
                "roomy": In(1),
                "same_level": In(1),
                "higher": In(1),
                "ends": Out(1),
                "commit": Out(1),
                "rewind": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        shape, bits = join_layout(self.config), ceil_log2(_WAITING)
        waiting = data.StructLayout({"join": shape, "to": Layouts(self.config).destination})
        m.submodules.joins = joins = memory.Memory(shape=waiting, depth=_WAITING, init=[])
        write, read = joins.write_port(), joins.read_port(domain="comb")
        end, first = Signal(bits + 1), Signal(bits + 1)
        # Stages: destination, register; then it waits.
        came, found = Signal(2), [Signal(shape, name=f"found{stage}") for stage in range(2)]
        to = Signal(waiting["to"].shape)
        m.d.comb += self.tag.eq(self.found.tag)
        m.d.sync += [
            came.eq(Cat(self.came, came)),
            found[0].eq(self.found),
            found[1].eq(found[0]),
            to.eq(self.leads),
            end.eq(end + came[-1]),
        ]
        m.d.comb += [
            write.addr.eq(end[:-1]),
            write.data.join.eq(found[-1]),
            write.data.to.eq(to),
            write.en.eq(came[-1]),
            read.addr.eq(first[:-1]),
        ]
        m.d.sync += self.room.eq((end - first)[: bits + 1] <= _WAITING - _IN_FLIGHT)

        # Stages: out of the queue, what follows, request.
        item, following = Signal(waiting), Signal(waiting)
        have, have_following = Signal(), Signal()
        load, goes_on, moves, both = Signal(), Signal(), Signal(), Signal()
        # An end makes way for what is behind it at once.
        after_end = have & ~item.join.end
        m.d.comb += [
            moves.eq(have_following & (~self.emit | self.granted) & ~self.rewind),
            self.ends.eq(moves & following.join.end),
            both.eq(self.ends & after_end),
            goes_on.eq(~have_following | moves),
            load.eq(~have | goes_on),
            self.follows.eq(have_following & (~following.join.end | (after_end & self.same_level))),
            self.follows_to.eq(Mux(following.join.end, item.to, following.to)),
        ]
        with m.If(load):
            m.d.sync += [
                have.eq(end != first),
                item.eq(read.data),
                first.eq(first + (end != first)),
            ]
        with m.If(goes_on):
            m.d.sync += [have_following.eq(have & ~both), following.eq(item)]

        gives_up = Signal()
        m.d.sync += self.commit.eq(self.ends)
        with m.If(moves):
            m.d.sync += [
                self.emit.eq(~following.join.end | after_end),
                # Of an end alone whatever is behind it.
                self.emitting.eq(Mux(following.join.end, item.join, following.join)),
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
            m.d.sync += Cat(have_following, have, came, stuck, end, first).eq(0)
        return m
