"""Receiver: keeps the payload of good frames, in order, until it is taken."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from seustream.hdl.boards.protocol import MOST, PLACES

PLACE_BITS = PLACES.bit_length() - 1
_AHEAD_BITS = 3


class Receiver(wiring.Component):
    """Keeps bytes in a ring. Payload is written behind the bytes kept as it comes, and is added to them
    only when it is known to be good and the next in order; otherwise it is overwritten.

    latency     4 cycles from `keep` to the first byte
    throughput  a byte per cycle

    payload     in: stream of the bytes of the current frame; always ready
    keep        in: pulse: the frame was good ...
    sequence, length   in: ... and its payload has this place and length
    gap         out: pulse: that place is beyond the next one, for the first time since something was kept
    bytes       out: the stream
    ack, credit out: the place of the next byte expected, and the number of bytes that there is room for
    eager       out: there is much more room than was last announced
    sent        in: pulse: ack and credit are being sent
    clear       in: discard everything; the next place is 0

    `depth` is a power of two, at least the payload of two frames.
    """

    def __init__(self, depth: int) -> None:
        self.depth = depth
        super().__init__(
            {
                "payload": In(
                    stream.Signature(data.StructLayout({"byte": 8, "place": range(MOST)}))
                ),
                "keep": In(1),
                "sequence": In(PLACE_BITS),
                "length": In(8),
                "gap": Out(1),
                "bytes": Out(stream.Signature(8)),
                "ack": Out(PLACE_BITS),
                "credit": Out(PLACE_BITS),
                "eager": Out(1),
                "sent": In(1),
                "clear": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.received = ring = memory.Memory(shape=8, depth=self.depth, init=[])
        write, read = ring.write_port(), ring.read_port()
        first, end = Signal(PLACE_BITS), Signal(PLACE_BITS)  # places of the bytes kept
        address = len(write.addr)
        payload = self.payload.payload
        room, had = Signal(PLACE_BITS), Signal(PLACE_BITS)
        m.d.sync += had.eq(room)  # a cycle ago: frames are further apart than that
        m.d.comb += [
            self.payload.ready.eq(1),
            room.eq(self.depth - (end - first)),
            # Beyond the room, a write would overwrite bytes not yet taken.
            write.en.eq(self.payload.valid & (payload.place < had)),
            write.addr.eq((end + payload.place)[:address]),
            write.data.eq(payload.byte),
            self.ack.eq(end),
            self.credit.eq(room),
        ]
        told = Signal()
        with m.If(self.keep & (self.sequence == end) & (self.length <= had)):
            m.d.sync += end.eq(end + self.length)
            with m.If(self.length != 0):
                m.d.sync += told.eq(0)
        # A place more than half the range ahead counts as behind: that payload was received before.
        m.d.sync += self.gap.eq(0)
        with m.If(self.keep & (self.length != 0) & ~told):
            ahead = Signal(PLACE_BITS)
            m.d.comb += ahead.eq(self.sequence - end)
            with m.If((ahead != 0) & ~ahead[-1]):
                m.d.sync += [self.gap.eq(1), told.eq(1)]

        # Bytes are read ahead into a queue, because the ring is block RAM and the receiver is far away: registers
        # hold whether there are more bytes, and whether there is room for two that are read meanwhile.
        asked, more, ahead, free = Signal(PLACE_BITS), Signal(), Signal(_AHEAD_BITS + 1), Signal()
        put, got = (Signal(_AHEAD_BITS + 1, name=name) for name in ("put", "got"))
        reading, takes = Signal(), Signal()
        m.submodules.queue = queue = memory.Memory(shape=8, depth=1 << _AHEAD_BITS, init=[])
        queue_write, queue_read = queue.write_port(), queue.read_port(domain="comb")
        m.d.comb += [
            read.en.eq(more & free),
            read.addr.eq(asked[:address]),
            queue_write.addr.eq(put[:-1]),
            queue_write.data.eq(read.data),
            queue_write.en.eq(reading),
            queue_read.addr.eq(got[:-1]),
            self.bytes.valid.eq(got != put),
            self.bytes.payload.eq(queue_read.data),
            takes.eq(self.bytes.valid & self.bytes.ready),
        ]
        m.d.sync += [
            asked.eq(asked + read.en),
            more.eq((asked + read.en)[:PLACE_BITS] != end),
            ahead.eq(ahead + read.en - takes),
            free.eq(ahead <= (1 << _AHEAD_BITS) - 2),
            reading.eq(read.en),
            put.eq(put + reading),
            got.eq(got + takes),
            first.eq(first + takes),
        ]

        promised = Signal(PLACE_BITS)  # first place beyond the room that was last announced
        limit = Signal(PLACE_BITS)
        m.d.comb += limit.eq(first + self.depth)
        m.d.sync += self.eager.eq((limit - promised)[:PLACE_BITS] >= self.depth // 2)
        with m.If(self.sent):
            m.d.sync += promised.eq(limit)
        with m.If(self.clear):
            m.d.sync += [
                first.eq(0),
                end.eq(0),
                Cat(asked, more, ahead, reading, put, got).eq(0),
                told.eq(0),
                promised.eq(self.depth),
            ]
        return m
