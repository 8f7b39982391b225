"""Sender: keeps bytes to send until the other side has acknowledged them."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from seustream.hdl.boards.protocol import LEAST, MOST, STEP
from seustream.hdl.boards.receiver import PLACE_BITS

_LATE = 4
"""Bytes that may still come before `ready` goes low."""


class Sender(wiring.Component):
    """Keeps bytes that are not acknowledged yet in a ring. The framer takes the next of them, as many
    as the other side has room for; after `again` it starts over with the first, in shorter
    frames if some were lost.

    latency     4 cycles from a byte to `length`
    throughput  a byte in per cycle

    bytes       in: the stream to send
    sequence, length   out: the next payload: its place, and its maximum length (0: there is none)
    taken       in: pulse: it is being sent, as it is in this cycle
    place, byte in, out: a place in the ring; the byte there, a cycle later
    acknowledged, ack, credit  in: pulse: the other side's acknowledgement and room
    again       in: pulse, with `acknowledged`: go back to the place acknowledged
    empty       out: everything was acknowledged
    clear       in: discard everything; the next place is 0

    `depth` is a power of two, at least the payload of two frames.
    """

    def __init__(self, depth: int) -> None:
        self.depth = depth
        super().__init__(
            {
                "bytes": In(stream.Signature(8)),
                "sequence": Out(PLACE_BITS),
                "length": Out(8),
                "taken": In(1),
                "place": In(PLACE_BITS),
                "byte": Out(8),
                "acknowledged": In(1),
                "ack": In(PLACE_BITS),
                "credit": In(PLACE_BITS),
                "again": In(1),
                "empty": Out(1),
                "clear": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.sending = ring = memory.Memory(shape=8, depth=self.depth, init=[])
        write, read = ring.write_port(), ring.read_port()
        address = len(write.addr)
        # Places: first byte not acknowledged, next to send, end of the bytes kept, end of the other side's room.
        first, sent = Signal(PLACE_BITS), Signal(PLACE_BITS)
        end, limit = Signal(PLACE_BITS), Signal(PLACE_BITS)
        # Number of bytes kept, and of those in flight: a cycle late, like everything that is compared here, for
        # the sake of the critical path. None of it changes in two consecutive cycles.
        kept, gone = Signal(PLACE_BITS), Signal(PLACE_BITS)
        room = Signal()
        m.d.sync += [
            kept.eq(end - first),
            gone.eq(sent - first),
            room.eq(kept < self.depth - _LATE),
        ]
        m.d.comb += [
            self.bytes.ready.eq(room),
            self.empty.eq(kept == 0),
            write.en.eq(self.bytes.valid & self.bytes.ready),
            write.addr.eq(end[:address]),
            write.data.eq(self.bytes.payload),
            read.addr.eq(self.place[:address]),
            read.en.eq(1),
            self.byte.eq(read.data),
            self.sequence.eq(sent),
        ]
        with m.If(write.en):
            m.d.sync += end.eq(end + 1)

        # In pipeline stages, for there is time: bytes waiting and bytes allowed, their minimum, the length of a frame.
        waiting, allowed, least = Signal(PLACE_BITS), Signal(PLACE_BITS), Signal(PLACE_BITS)
        length = Signal(8)
        most = Signal(8, init=MOST)
        fresh = Signal(3)  # the stages that have seen the current value of `sent`
        m.d.sync += [
            waiting.eq(end - sent),
            allowed.eq(limit - sent),
            least.eq(Mux(waiting < allowed, waiting, allowed)),
            length.eq(Mux(least > most, most, least)),
            fresh.eq(Cat(1, fresh)),
        ]
        m.d.comb += self.length.eq(Mux(fresh.all(), length, 0))
        with m.If(self.taken):
            m.d.sync += [sent.eq(sent + self.length), fresh.eq(0)]

        # Acknowledgements, also in stages; one for bytes that were never sent is noise.
        heard, again = Signal(2), Signal(2)
        ack, far, more = Signal(PLACE_BITS), Signal(PLACE_BITS), Signal(PLACE_BITS)
        known, new = Signal(), Signal()
        # `past`: the acknowledgement goes beyond the next byte to send. `lost`: it leaves out bytes in flight.
        past, lost = Signal(), Signal()
        m.d.sync += [
            heard.eq(Cat(self.acknowledged, heard)),
            again.eq(Cat(self.again, again)),
            more.eq(self.ack - first),
            known.eq(more <= kept),
            new.eq(more != 0),
            past.eq(gone < more),
            lost.eq(gone > more),
        ]
        with m.If(self.acknowledged):
            m.d.sync += [ack.eq(self.ack), far.eq(self.ack + self.credit)]
        with m.If(heard[1] & known):
            m.d.sync += [first.eq(ack), limit.eq(far)]
            with m.If(again[1] | past):
                m.d.sync += [sent.eq(ack), fresh.eq(0)]
            with m.If(again[1] & lost):
                m.d.sync += most.eq(Mux(most < 2 * LEAST, LEAST, most >> 1))
            with m.Elif(new):
                m.d.sync += most.eq(Mux(most > MOST - STEP, MOST, most + STEP))
        with m.If(self.clear):
            m.d.sync += [s.eq(0) for s in (first, sent, end, limit, kept, fresh, heard)]
            m.d.sync += [most.eq(MOST), room.eq(0)]
        return m
