"""Router: takes joined tuples from the areas and sends them to the destinations of their route tags."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from seustream.hdl.arbiter import RoundRobin
from seustream.hdl.config import DeviceConfig
from seustream.hdl.layouts import CONTEXT_BITS, FOLLOWING, OFFERS, Layouts


class Router(wiring.Component):
    """Sends one tuple at a time to all of its destinations. Each area keeps its copy of the join routing table, so
    a joined tuple comes with its destinations; raw tuples come only if they lead to the output. A tuple is
    taken only when there is room at all its destinations; one that must wait never holds up another that
    need not.

    A tuple goes only from one level to the next, and tuples made by the highest level go to the output. Areas that
    prefer the highest level therefore always make progress.

    latency     5 cycles from sampling the rooms to the push into a FIFO
    throughput  1 tuple per cycle, to all its destinations at once, also from a single area while it announces what
                follows, otherwise one in 3 cycles; of raw tuples, whose sender offers two in turn, 2 in 3 cycles

    emit, emitted        in, per sender, the areas first: a tuple is offered
    level, destination   in, per area: level of its probe, and where the tuple goes
    follows, follows_to  in, per area: after the grant of this tuple, or if there is none, another of the same level
                         is ready at once, and another after that one; where they go
    taking, granted      out, per sender: its tuple is taken in this cycle; it was taken in the cycle before, and is
                         held until then
    roomy                out, per sender: its tuple may be taken in this cycle, for there is room; if that was granted,
                         the next one
    rooms, output_room   in: room per area and level; room at the output
    push, output         out, per area: pulse: a tuple for its probe FIFO; pulse: a tuple for the output
    pushed, push_level   out: that tuple and its level
    sent, context        out: number of places that the pushed tuple goes to, 0 unless an area made it; its context
    working, stuck       out: a tuple is taken; none is, because one lacks room at its destination
    """

    def __init__(self, config: DeviceConfig) -> None:
        self.config = config
        self.layouts = layouts = Layouts(config)
        self.senders = config.streams + OFFERS
        n = config.streams
        super().__init__(
            {
                "emit": In(self.senders),
                "emitted": In(data.ArrayLayout(layouts.reference, self.senders)),
                "level": In(data.ArrayLayout(layouts.level_bits, n)),
                "destination": In(data.ArrayLayout(layouts.destination, n)),
                "follows": In(data.ArrayLayout(FOLLOWING, n)),
                "follows_to": In(
                    data.ArrayLayout(data.ArrayLayout(layouts.destination, FOLLOWING), n)
                ),
                "taking": Out(self.senders),
                "granted": Out(self.senders),
                "roomy": Out(self.senders),
                "rooms": In(data.ArrayLayout(layouts.levels, n)),
                "output_room": In(1),
                "push": Out(n),
                "output": Out(1),
                "pushed": Out(layouts.reference),
                "push_level": Out(layouts.level_bits),
                "sent": Out(range(n + 2)),
                "context": Out(CONTEXT_BITS),
                "working": Out(1),
                "stuck": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        n, layouts = self.config.streams, self.layouts
        m.submodules.arbiter = arbiter = RoundRobin(self.senders)
        # Pipeline stages: rooms sampled, room at the destinations, arbitration, tuple.
        rooms, output_room = Signal.like(self.rooms), Signal()
        m.d.sync += [rooms.eq(self.rooms), output_room.eq(self.output_room)]
        m.d.comb += [arbiter.enable.eq(1), arbiter.requests.eq(self.emit & self.roomy)]
        m.d.comb += self.taking.eq(arbiter.granted)
        m.d.sync += self.granted.eq(self.taking)
        m.d.sync += [self.push.eq(0), self.output.eq(0), self.sent.eq(0)]
        lacks_room = Signal(self.senders)
        m.d.comb += [
            self.working.eq(arbiter.granted.any()),
            self.stuck.eq(lacks_room.any() & ~self.working),
        ]
        for sender in range(self.senders):
            destination = Signal(layouts.destination, name=f"destination_{sender}")
            level = Signal(layouts.level_bits, name=f"level_{sender}")
            room = Signal(n + 1, name=f"room_{sender}")
            if sender < n:
                m.d.comb += [
                    destination.eq(self.destination[sender]),
                    level.eq(self.level[sender] + 1),
                ]
            else:
                m.d.comb += destination.output.eq(1)
            for area in range(n):
                levels = Array(rooms[area][number] for number in range(layouts.levels))
                m.d.comb += room[area].eq(levels[level])
            m.d.comb += room[n].eq(output_room)
            fits = ~(Cat(destination.areas, destination.output) & ~room).any()
            m.d.comb += lacks_room[sender].eq(self.emit[sender] & ~fits)
            # The tuple on offer and those that follow it; a granted tuple makes way in this cycle.
            first, *later = self.emit[sender] & fits, Const(0), Const(0)
            if sender < n:
                later = [
                    follows & ~(Cat(to.areas, to.output) & ~room).any()
                    for follows, to in zip(
                        self.follows[sender], self.follows_to[sender], strict=True
                    )
                ]
            gone = self.granted[sender] | ~self.emit[sender]
            m.d.sync += self.roomy[sender].eq(
                Mux(
                    self.taking[sender],
                    Mux(self.granted[sender], later[1], later[0]),
                    Mux(gone, later[0], first),
                )
            )
            with m.If(self.granted[sender]):
                if sender < n:
                    m.d.sync += self.sent.eq(sum(Cat(destination.areas, destination.output)))
                m.d.sync += [
                    self.context.eq(self.emitted[sender].context),
                    self.push.eq(destination.areas),
                    self.output.eq(destination.output),
                    self.pushed.eq(self.emitted[sender]),
                    self.push_level.eq(level),
                ]
        return m
