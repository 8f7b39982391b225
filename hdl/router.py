"""Router: takes joined tuples from the areas and sends them to the destinations of their route tags."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from seustream.hdl.arbiter import RoundRobin
from seustream.hdl.config import DeviceConfig
from seustream.hdl.layouts import CONTEXT_BITS, OFFERS, Layouts
from seustream.hdl.ports import JoinedOffer, JoinedProbes, Meter, RawOffers


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

    offers        in, per area (`JoinedOffer`): joined tuples
    raws          in (`RawOffers`): raw tuples for the output
    probes        out, per area (`JoinedProbes`)
    output        out: pulse: a tuple for the output
    pushed        out: its reference (`Layouts.reference`), valid with `output`
    output_room   in: there is room at the output; may be late by `IN_FLIGHT` tuples
    sent          out: number of places that a tuple goes to, in the cycle in which it is pushed, 0 unless an area made it
    context       out: its context, valid with `sent`
    circulated    out: pulse: a tuple that an area made was taken in the cycle before
    meter         out (`Meter`): a tuple is taken; none is, because one lacks room at its destination
    """

    def __init__(self, config: DeviceConfig) -> None:
        self.config = config
        self.layouts = layouts = Layouts(config)
        self.senders = config.streams + OFFERS
        n = config.streams
        super().__init__(
            {
                "offers": In(JoinedOffer(config)).array(n),
                "raws": In(RawOffers(config)),
                "probes": Out(JoinedProbes(config)).array(n),
                "output": Out(1),
                "pushed": Out(layouts.reference),
                "output_room": In(1),
                "sent": Out(range(n + 2)),
                "context": Out(CONTEXT_BITS),
                "circulated": Out(1),
                "meter": Out(Meter()),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        n, layouts = self.config.streams, self.layouts
        m.submodules.arbiter = arbiter = RoundRobin(self.senders)
        # The senders: a bit for each, the areas first.
        emit = Cat(Cat(offer.emit for offer in self.offers), self.raws.emit)
        taking, granted, roomy, lacks_room = (
            Signal(self.senders, name=name) for name in ("taking", "granted", "roomy", "lacks_room")
        )
        # Pipeline stages: rooms sampled, room at the destinations, arbitration, tuple.
        rooms, output_room = Signal(data.ArrayLayout(layouts.levels, n), name="rooms"), Signal()
        m.d.sync += [
            rooms.as_value().eq(Cat(probes.room for probes in self.probes)),
            output_room.eq(self.output_room),
        ]
        m.d.comb += [arbiter.enable.eq(1), arbiter.requests.eq(emit & roomy)]
        m.d.comb += taking.eq(arbiter.granted)
        m.d.sync += granted.eq(taking)
        # The tuple that was taken goes to all its destinations.
        push, pushed_level = Signal(n), Signal(layouts.level_bits)
        m.d.sync += [push.eq(0), self.output.eq(0), self.sent.eq(0)]
        for area, probes in enumerate(self.probes):
            m.d.comb += [
                probes.push.eq(push[area]),
                probes.pushed.eq(self.pushed),
                probes.level.eq(pushed_level),
                self.offers[area].taking.eq(taking[area]),
                self.offers[area].roomy.eq(roomy[area]),
            ]
        m.d.comb += [
            self.raws.granted.eq(granted[n:]),
            self.circulated.eq(granted[:n].any()),
            self.meter.working.eq(arbiter.granted.any()),
            self.meter.blocked.eq(lacks_room.any() & ~self.meter.working),
        ]
        for sender in range(self.senders):
            destination = Signal(layouts.destination, name=f"destination_{sender}")
            level = Signal(layouts.level_bits, name=f"level_{sender}")
            room = Signal(n + 1, name=f"room_{sender}")
            if sender < n:
                offer = self.offers[sender]
                emitted = offer.emitted
                m.d.comb += [destination.eq(offer.destination), level.eq(offer.level + 1)]
            else:
                emitted = self.raws.emitted[sender - n]
                m.d.comb += destination.output.eq(1)
            for area in range(n):
                levels = Array(rooms[area][number] for number in range(layouts.levels))
                m.d.comb += room[area].eq(levels[level])
            m.d.comb += room[n].eq(output_room)
            fits = ~(Cat(destination.areas, destination.output) & ~room).any()
            m.d.comb += lacks_room[sender].eq(emit[sender] & ~fits)
            # The tuple on offer and those that follow it; a granted tuple makes way in this cycle.
            first, *later = emit[sender] & fits, Const(0), Const(0)
            if sender < n:
                later = [
                    follows & ~(Cat(to.areas, to.output) & ~room).any()
                    for follows, to in zip(offer.follows, offer.follows_to, strict=True)
                ]
            gone = granted[sender] | ~emit[sender]
            m.d.sync += roomy[sender].eq(
                Mux(
                    taking[sender],
                    Mux(granted[sender], later[1], later[0]),
                    Mux(gone, later[0], first),
                )
            )
            with m.If(granted[sender]):
                if sender < n:
                    m.d.sync += self.sent.eq(sum(Cat(destination.areas, destination.output)))
                m.d.sync += [
                    self.context.eq(emitted.context),
                    push.eq(destination.areas),
                    self.output.eq(destination.output),
                    self.pushed.eq(emitted),
                    pushed_level.eq(level),
                ]
        return m
