"""Router: takes joined tuples from the areas and sends them where their route tag leads."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from seustream.hdl.arbiter import RoundRobin
from seustream.hdl.config import DeviceConfig
from seustream.hdl.layouts import CONTEXT_BITS, FOLLOWING, OFFERS, Layouts


class Router(wiring.Component):
    """Each area keeps its copy of the join routing table, so a joined tuple comes with its
    destinations; of raw tuples those come that lead to the output. One is taken only when
    there is room at all its destinations; a tuple that must wait never keeps another waiting that
    need not.

    A tuple goes only from one level to the next, and what the highest level makes goes to the
    output: areas that prefer the highest level therefore always find an end.

    latency     5 cycles from the look at the rooms into a FIFO
    throughput  1 tuple a cycle, to all its destinations at once, also of one area while it says what follows,
                else in 3 cycles; of raw tuples, whose sender offers two in turn, 2 in 3

    emit, emitted        per sender, first the areas: a tuple
    level, destination   per area: what its probe's level was, where to
    follows, follows_to  per area: once this one is granted, or where there is none, another is there at once, of the same
                         level; and after that one another
    taking, granted      per sender: its tuple is taken in this cycle; it was in the cycle before, and is held until then
    roomy                per sender: its tuple may be taken in this cycle, for there is room; where it was granted, the next
    rooms, output_room   per area and level; at the output
    push, output         per area: a tuple for its probe FIFO; for the output
    pushed, push_level
    sent, context        how many places the tuple pushed goes to, if an area made it, and whose it is
    working, stuck       one is taken; none is, for there is no room where one leads
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
        # Stages: room here, room there, turn, tuple.
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
            # What is offered, and what follows it; what was granted makes way in this cycle.
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
