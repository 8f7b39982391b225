"""Link: one session with a host, over an unreliable line."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from seustream.hdl.boards.counts import BITS, LinkCounts
from seustream.hdl.boards.deframer import Deframer
from seustream.hdl.boards.framer import Framer
from seustream.hdl.boards.identity import Identity
from seustream.hdl.boards.protocol import NETWORK_COUNTERS, RING, FrameKind, LinkCounter
from seustream.hdl.boards.receiver import Receiver
from seustream.hdl.boards.sender import Sender
from seustream.hdl.buffer import StreamBuffer


class Link(wiring.Component):
    """deframer -> receiver -> stream of the host;  stream to the host -> sender -> framer

    A session begins when the host has opened it under a new number and everything in flight was
    dropped (`clear` until `cleared`); before that no stream flows.

    latency     that of its parts
    throughput  a byte per cycle

    received, transmitted   in, out: the line, as streams of bytes
    from_host, to_host      out, in: the streams of the session
    clear, cleared          out: drop everything in flight, including what the link still offers; in: this is done, at
                            the earliest two cycles later
    open                    out: a session is open
    bad                     out: pulse: something on the line was no intact frame
    stranger                in: what comes is not from the host: it may only open a session
    opens                   out: pulse: a host asks for a session, perhaps again, with the frame that came last
    network                 in: pulses, in the order of `NETWORK_COUNTERS`
    counter, count          in, out: a `LinkCounter` and its value

    `ring` is the number of bytes kept in each direction.
    """

    def __init__(self, identity: Identity, ring: int = RING) -> None:
        self.identity, self.ring = identity, ring
        super().__init__(
            {
                "received": In(stream.Signature(8)),
                "transmitted": Out(stream.Signature(8)),
                "from_host": Out(stream.Signature(8)),
                "to_host": In(stream.Signature(8)),
                "clear": Out(1),
                "cleared": In(1),
                "open": Out(1),
                "bad": Out(1),
                "stranger": In(1),
                "opens": Out(1),
                "network": In(len(NETWORK_COUNTERS)),
                "counter": In(range(len(LinkCounter))),
                "count": Out(BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        identity = self.identity.encode()
        m.submodules.deframer = deframer = Deframer()
        m.submodules.receiver = receiver = Receiver(self.ring)
        m.submodules.sender = sender = Sender(self.ring)
        m.submodules.framer = framer = Framer(identity)
        m.submodules.counts = counts = LinkCounts()
        wiring.connect(m, wiring.flipped(self.received), deframer.bytes)
        wiring.connect(m, deframer.payload, receiver.payload)
        opening = Signal()
        # Skid buffers: a byte leaves the ring late in its cycle, and `ready` of its receiver comes late, too.
        m.submodules.taken = taken = StreamBuffer(8)
        m.submodules.given = given = StreamBuffer(8)
        wiring.connect(m, receiver.bytes, taken.coming)
        wiring.connect(m, taken.going, wiring.flipped(self.from_host))
        # Bytes that wait from an earlier session are dropped a cycle after `opening`, as in the port.
        m.submodules.going = going = StreamBuffer(8)
        drops = Signal()
        m.d.sync += drops.eq(opening)
        wiring.connect(m, wiring.flipped(self.to_host), going.coming)
        m.d.comb += [
            sender.bytes.valid.eq(going.going.valid),
            sender.bytes.payload.eq(going.going.payload),
            going.going.ready.eq(sender.bytes.ready | drops),
        ]
        wiring.connect(m, framer.bytes, given.coming)
        wiring.connect(m, given.going, wiring.flipped(self.transmitted))

        head = deframer.head
        session, lost = Signal(16), Signal(16)
        good, mine, asks, brings = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            asks.eq(head.kind == FrameKind.ASK),
            good.eq(deframer.good & ((head.kind == FrameKind.OPEN) | ~self.stranger)),
            mine.eq(
                good
                & ((head.kind == FrameKind.DATA) | asks)
                & self.open
                & (head.session == session)
            ),
            brings.eq(head.length != 0),
            receiver.keep.eq(mine),
            receiver.sequence.eq(head.sequence),
            receiver.length.eq(head.length),
            sender.acknowledged.eq(mine),
            sender.ack.eq(head.ack),
            sender.credit.eq(head.credit),
            sender.again.eq(asks),
            receiver.clear.eq(opening),
            sender.clear.eq(opening),
            self.clear.eq(opening),
            self.bad.eq(deframer.bad),
        ]

        # Frames to send, each flag set until its frame is begun.
        say_opened, say_lost, acknowledge, say_gap = Signal(), Signal(), Signal(), Signal()
        with m.If(framer.taken):
            with m.If(say_opened):
                m.d.sync += say_opened.eq(0)
            with m.Elif(say_lost):
                m.d.sync += say_lost.eq(0)
            with m.Else():
                m.d.sync += [acknowledge.eq(0), say_gap.eq(0)]
        with m.If(receiver.gap):
            m.d.sync += say_gap.eq(1)
        with m.If(mine & (asks | brings)):
            m.d.sync += acknowledge.eq(1)
        with m.If(good):
            with m.If(head.kind == FrameKind.OPEN):
                m.d.comb += self.opens.eq(1)
                with m.If((head.session != session) | ~(self.open | opening)):
                    m.d.sync += [session.eq(head.session), opening.eq(1), self.open.eq(0)]
                    m.d.sync += [acknowledge.eq(0), say_gap.eq(0)]
                with m.Elif(self.open):
                    m.d.sync += say_opened.eq(1)
            with m.Elif(~mine & ~opening):
                m.d.sync += [say_lost.eq(1), lost.eq(head.session)]
        with m.If(opening & self.cleared):
            m.d.sync += [opening.eq(0), self.open.eq(1), say_opened.eq(1), say_lost.eq(0)]

        events: dict[LinkCounter, Value] = {
            LinkCounter.FRAMES: deframer.good,
            LinkCounter.DAMAGED: deframer.bad,
            LinkCounter.STRANGERS: deframer.good & ~good,
            LinkCounter.SESSIONS: good & (head.kind != FrameKind.OPEN) & ~mine,
            LinkCounter.GAPS: receiver.gap,
            **dict(zip(NETWORK_COUNTERS, self.network, strict=True)),
        }
        # Registered, because the counters lie with the port, which reads them, far from the link's pins.
        m.d.sync += counts.events.eq(Cat(events[counter] for counter in LinkCounter))
        m.d.comb += [
            counts.which.eq(self.counter),
            self.count.eq(counts.count),
        ]

        news, streams = Signal(), Signal()
        m.d.comb += [
            streams.eq(~say_opened & ~say_lost),
            news.eq(self.open & ((sender.length != 0) | acknowledge | say_gap | receiver.eager)),
            framer.start.eq(say_opened | say_lost | news),
            framer.identity.eq(say_opened),
            framer.head.kind.eq(
                Mux(
                    say_opened,
                    FrameKind.OPENED,
                    Mux(
                        say_lost,
                        FrameKind.LOST,
                        Mux(say_gap, FrameKind.GAP, FrameKind.DATA),
                    ),
                )
            ),
            # LOST carries the number that the host used, because the host looks for it.
            framer.head.session.eq(Mux(say_lost & ~say_opened, lost, session)),
            framer.head.sequence.eq(Mux(streams, sender.sequence, 0)),
            framer.head.ack.eq(receiver.ack),
            framer.head.credit.eq(receiver.credit),
            framer.head.length.eq(Mux(say_opened, len(identity), Mux(streams, sender.length, 0))),
            sender.taken.eq(framer.taken & streams),
            receiver.sent.eq(framer.taken & streams),
            sender.place.eq(framer.place),
            framer.byte.eq(sender.byte),
        ]
        return m
