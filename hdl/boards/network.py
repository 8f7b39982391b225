"""Network: connects the bytes of a gigabit PHY with those of the host link, across the clock domains."""

from __future__ import annotations

from amaranth.hdl import Cat, DomainRenamer, Module, Signal
from amaranth.lib import data, fifo, stream, wiring
from amaranth.lib.wiring import In, Out

from seustream.hdl.boards.board import NetworkAddress
from seustream.hdl.boards.counts import PulseCrossing
from seustream.hdl.boards.mac import FrameReceiver, FrameTransmitter
from seustream.hdl.boards.packets import (
    LENGTH_BITS,
    SENDER,
    SENDER_BYTES,
    PacketReceiver,
    PacketTransmitter,
)
from seustream.hdl.boards.protocol import (
    DATAGRAM,
    FLAG,
    LONGEST,
    NETWORK_COUNTERS,
    NETWORK_RING,
    LinkCounter,
)
from seustream.hdl.buffer import BlockBuffer, StreamBuffer

_CALM = 16
"""Cycles without a byte after which an incomplete datagram is sent."""
_IN, _OUT = NETWORK_RING, 4096
"""Bytes buffered in the PHY's clock domain. Incoming bytes wait if the processor is slower than its port, up to
everything that a host may send ahead. Outgoing bytes wait until a datagram is complete."""
_CROSSING = 16
"""Bytes in the clock domain crossings. The comparators and Gray counters for thousands of bytes would be slower than
the PHY's clock."""
_COMING = data.StructLayout({"byte": 8, "begin": 1})
_LEAVING = data.StructLayout({"byte": 8, "last": 1})
_READY = data.StructLayout({"host": SENDER, "size": LENGTH_BITS})


class DatagramReader(wiring.Component):
    """Removes the senders, and inserts a flag at the beginning of each datagram, so that an incomplete frame
    of another datagram cannot precede it.

    latency     1 cycle
    throughput  a byte per cycle, less 11 cycles per datagram

    coming      in: stream of senders and payloads; always ready
    bytes       out: stream of payloads; does not wait
    sender      out: sender of the current bytes
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "coming": In(stream.Signature(_COMING)),
                "bytes": Out(stream.Signature(8)),
                "sender": Out(SENDER),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        left = Signal(range(SENDER_BYTES))  # bytes left of a sender
        byte, begins = self.coming.payload.byte, self.coming.payload.begin
        m.d.comb += self.coming.ready.eq(1)
        m.d.sync += [
            self.bytes.valid.eq(self.coming.valid & (begins | (left == 0))),
            self.bytes.payload.eq(byte),
        ]
        with m.If(self.coming.valid):
            with m.If(begins | (left != 0)):
                sender = Cat(self.sender.as_value()[8:], byte)
                m.d.sync += [self.sender.eq(sender), left.eq(left - 1)]
            with m.If(begins):
                m.d.sync += [left.eq(SENDER_BYTES - 1), self.bytes.payload.eq(FLAG)]
        return m


class DatagramWriter(wiring.Component):
    """Packs frames of the host link into datagrams, as many as fit or as there are. A frame that a reset of
    the link cuts off leaves with the second frame after it at the latest.

    latency     as long as a datagram, plus 16 cycles when no more bytes come
    throughput  a byte per cycle

    bytes       in: stream from the link
    host        in: destination of the datagrams
    going       out: stream of the same bytes
    ready       out: stream of complete datagrams: destination and size
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "bytes": In(stream.Signature(8)),
                "host": In(SENDER),
                "going": Out(stream.Signature(8)),
                "ready": Out(stream.Signature(_READY)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        size, inside = Signal(LENGTH_BITS), Signal()
        flag, again = Signal(), Signal()  # this byte is a flag; so was the one before
        calm = Signal(range(_CALM + 1))
        full = Signal()  # another frame would not fit if all of it were escaped
        m.d.comb += [
            self.ready.payload.host.eq(self.host),
            self.ready.payload.size.eq(size),
            full.eq(size > DATAGRAM - LONGEST),
            self.ready.valid.eq((size != 0) & ~inside & (full | (calm == _CALM))),
            self.going.payload.eq(self.bytes.payload),
            flag.eq(self.bytes.payload == FLAG),
        ]
        with m.If(self.ready.valid):
            with m.If(self.ready.ready):
                m.d.sync += size.eq(0)
        with m.Else():
            m.d.comb += [
                self.going.valid.eq(self.bytes.valid),
                self.bytes.ready.eq(self.going.ready),
            ]
        with m.If(self.going.valid & self.going.ready):
            m.d.sync += [
                size.eq(size + 1),
                calm.eq(0),
                again.eq(flag),
            ]
            with m.If(flag):
                # The second of two flags begins a frame, whatever was cut off before them.
                m.d.sync += inside.eq(~inside | again)
        with m.Elif(calm != _CALM):
            m.d.sync += calm.eq(calm + 1)
        return m


class NetworkPort(wiring.Component):
    """PHY -> frames -> packets -> FIFO -> crossing -> link
    link -> datagrams -> crossing -> FIFO -> packets -> frames -> PHY

    The PHY's side is in the domain `phy`, at 125 MHz. The host is the sender that last asked for a session; the
    link ignores what others send, except a frame that opens a session.

    latency     that of its parts, plus 4 cycles for the clock domain crossing
    throughput  a byte per cycle of either clock

    received, receiving   in, from the PHY: a byte, and that there is one
    sent, sending         out, to the PHY: the same
    bytes, replies        out, in: streams to and from the link
    stranger    out: the current bytes are not from the host
    opens       in: pulse, two cycles after a frame's last byte: its sender asks for a session
    events      out: pulses, in the order of `NETWORK_COUNTERS`
    """

    def __init__(self, address: NetworkAddress) -> None:
        self.address = address
        super().__init__(
            {
                "received": In(8),
                "receiving": In(1),
                "sent": Out(8),
                "sending": Out(1),
                "bytes": Out(stream.Signature(8)),
                "replies": In(stream.Signature(8)),
                "stranger": Out(1),
                "opens": In(1),
                "events": Out(len(NETWORK_COUNTERS)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        at_phy = DomainRenamer("phy")
        m.submodules.frames_in = frames_in = at_phy(FrameReceiver())
        m.submodules.frames_out = frames_out = at_phy(FrameTransmitter())
        m.submodules.packets_in = packets_in = at_phy(PacketReceiver(self.address))
        m.submodules.packets_out = packets_out = at_phy(PacketTransmitter(self.address))
        m.submodules.leaving = leaving = at_phy(StreamBuffer(_LEAVING))
        clocks = {"w_domain": "phy", "r_domain": "sync"}
        back = {"w_domain": "sync", "r_domain": "phy"}
        m.submodules.waiting = waiting = at_phy(BlockBuffer(_COMING, _IN))
        m.submodules.coming = coming = fifo.AsyncFIFO(width=_COMING.size, depth=_CROSSING, **clocks)
        m.submodules.going = going = fifo.AsyncFIFO(width=8, depth=_CROSSING, **back)
        m.submodules.gathered = gathered = at_phy(BlockBuffer(8, _OUT))
        m.submodules.sizes = sizes = fifo.AsyncFIFO(width=_READY.size, depth=4, **back)
        m.submodules.reader = reader = DatagramReader()
        m.submodules.writer = writer = DatagramWriter()

        m.d.comb += [
            frames_in.byte.eq(self.received),
            frames_in.active.eq(self.receiving),
            self.sent.eq(frames_out.byte),
            self.sending.eq(frames_out.active),
        ]
        for name in ("begin", "data", "come", "good"):
            m.d.comb += getattr(packets_in, name).eq(getattr(frames_in, name))
        for name in ("asked", "length", "arp", "check", "byte"):
            m.d.comb += getattr(packets_out, name).eq(getattr(packets_in, name))
        for name in ("place", "read", "answered"):
            m.d.comb += getattr(packets_in, name).eq(getattr(packets_out, name))
        m.d.comb += [
            leaving.coming.valid.eq(packets_out.bytes.valid),
            leaving.coming.payload.byte.eq(packets_out.bytes.payload),
            leaving.coming.payload.last.eq(packets_out.last),
            packets_out.bytes.ready.eq(leaving.coming.ready),
            frames_out.bytes.valid.eq(leaving.going.valid),
            frames_out.bytes.payload.eq(leaving.going.payload.byte),
            frames_out.last.eq(leaving.going.payload.last),
            leaving.going.ready.eq(frames_out.bytes.ready),
        ]

        # In. If a byte of a packet is lost, so is the rest of that packet.
        lost, begins, overflow = Signal(), Signal(), Signal()
        m.d.comb += [
            begins.eq(packets_in.bytes.payload.begin),
            waiting.coming.payload.eq(packets_in.bytes.payload),
            waiting.coming.valid.eq(packets_in.bytes.valid & (begins | ~lost)),
            overflow.eq(waiting.coming.valid & ~waiting.coming.ready),
        ]
        with m.If(waiting.coming.valid):
            m.d.phy += lost.eq(~waiting.coming.ready)
        m.d.comb += [
            coming.w_data.eq(waiting.going.payload),
            coming.w_en.eq(waiting.going.valid),
            waiting.going.ready.eq(coming.w_rdy),
            reader.coming.payload.eq(coming.r_data),
            reader.coming.valid.eq(coming.r_rdy),
            coming.r_en.eq(reader.coming.ready),
        ]
        wiring.connect(m, reader.bytes, wiring.flipped(self.bytes))

        events = {
            LinkCounter.WHOLE: frames_in.good,
            LinkCounter.BROKEN: frames_in.bad,
            LinkCounter.PASSED: packets_in.dropped,
            LinkCounter.ASKED: packets_in.kept,
            LinkCounter.DATAGRAMS: packets_in.datagram,
            LinkCounter.OVERFLOWS: overflow,
        }
        for place, counter in enumerate(NETWORK_COUNTERS):
            crossing = PulseCrossing("phy")
            m.submodules[counter.name.lower()] = crossing
            m.d.comb += [crossing.come.eq(events[counter]), self.events[place].eq(crossing.goes)]

        # Out.
        host, speaker, spoke = Signal(SENDER), Signal(SENDER), Signal(SENDER)
        same = Signal()
        # The link examines a frame when the sender of the next datagram may already be arriving, so both what it is
        # told and what it opens are about the sender of two cycles before.
        m.d.sync += [speaker.eq(reader.sender), spoke.eq(speaker), same.eq(speaker == host)]
        with m.If(self.opens):
            m.d.sync += host.eq(spoke)
        m.d.comb += [self.stranger.eq(~same), writer.host.eq(host)]
        wiring.connect(m, wiring.flipped(self.replies), writer.bytes)
        ready = Signal(_READY)
        m.d.comb += [
            going.w_data.eq(writer.going.payload),
            going.w_en.eq(writer.going.valid),
            writer.going.ready.eq(going.w_rdy),
            sizes.w_data.eq(writer.ready.payload),
            sizes.w_en.eq(writer.ready.valid),
            writer.ready.ready.eq(sizes.w_rdy),
            ready.eq(sizes.r_data),
            packets_out.host.eq(ready.host),
            packets_out.size.eq(ready.size),
            packets_out.ready.eq(sizes.r_rdy),
            sizes.r_en.eq(packets_out.taken),
            gathered.coming.payload.eq(going.r_data),
            gathered.coming.valid.eq(going.r_rdy),
            going.r_en.eq(gathered.coming.ready),
            packets_out.payload.eq(gathered.going.payload),
            gathered.going.ready.eq(packets_out.more),
        ]
        return m
