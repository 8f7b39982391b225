"""Framer: puts one frame after the other on the line."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import crc, fifo, stream, wiring
from amaranth.lib.wiring import In, Out

from seustream.hdl.boards.deframer import FRAME_CRC, HEAD
from seustream.hdl.boards.protocol import ESCAPE, ESCAPED, FLAG, HEADER, TRAILER
from seustream.hdl.boards.receiver import PLACE_BITS

_AHEAD = 4
"""Payload bytes read ahead; sending the head takes longer than reading them."""


class Framer(wiring.Component):
    """Sends flag, head, payload, checksum and flag; a byte that looks like a flag or an escape is sent as
    two bytes.

    latency     2 cycles from `start` to the first flag
    throughput  a byte per cycle, and 5 cycles per frame

    start       in: a frame waits
    head        in: its head, valid with `start`
    identity    in: its payload is the identity, not the stream
    taken       out: pulse: the frame is begun, with the head as it is in this cycle
    place, byte out, in: a place in the stream; the byte of the payload there, a cycle later
    bytes       out: stream to the line
    """

    def __init__(self, identity: bytes) -> None:
        self.identity_bytes = identity
        super().__init__(
            {
                "start": In(1),
                "head": In(HEAD),
                "identity": In(1),
                "taken": Out(1),
                "place": Out(PLACE_BITS),
                "byte": In(8),
                "bytes": Out(stream.Signature(8)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.crc = checksum = crc.Processor(FRAME_CRC(data_width=8))
        shifted = Signal(8 * HEADER)  # rest of head or checksum
        left = Signal(8)  # bytes left of this part, including the current one
        length, from_stream = Signal(8), Signal()
        place, rom_byte = Signal(PLACE_BITS), Signal(8)
        rom = Array(Const(value, 8) for value in self.identity_bytes)
        rom_bits = len(self.identity_bytes).bit_length()

        # Bytes of the payload are read ahead, because their memory is far away; `ahead` counts those being read
        # or waiting.
        m.submodules.payload = payload = fifo.SyncFIFO(width=8, depth=_AHEAD)
        reads, pops = Signal(), Signal()
        to_read, ahead = Signal(8), Signal(range(_AHEAD + 1))
        read, byte_read = Signal(2), Signal(8)
        m.d.comb += reads.eq((to_read != 0) & (ahead < _AHEAD))
        m.d.comb += self.place.eq(place)
        m.d.sync += [
            place.eq(place + reads),
            to_read.eq(to_read - reads),
            ahead.eq(ahead + reads - pops),
            read.eq(Cat(reads, read)),
            rom_byte.eq(rom[place[:rom_bits]]),
            byte_read.eq(Mux(from_stream, self.byte, rom_byte)),
        ]
        m.d.comb += [payload.w_data.eq(byte_read), payload.w_en.eq(read[1]), payload.r_en.eq(pops)]

        # The current byte goes out, as two if it must be escaped.
        byte, has, second = Signal(8), Signal(), Signal()
        counted, fresh = Signal(), Signal()  # it belongs in the checksum; it is not in it yet
        special, free, advance = Signal(), Signal(), Signal()
        m.d.comb += [
            special.eq((byte == FLAG) | (byte == ESCAPE)),
            free.eq(~self.bytes.valid | self.bytes.ready),
            advance.eq(~has | (free & (second | ~special))),
            checksum.data.eq(byte),
            checksum.valid.eq(fresh & counted),
        ]
        m.d.sync += fresh.eq(0)

        def put(value: object) -> None:
            m.d.sync += [self.bytes.valid.eq(1), self.bytes.payload.eq(value)]

        with m.If(self.bytes.ready):
            m.d.sync += self.bytes.valid.eq(0)
        with m.If(has & free):
            with m.If(special & ~second):
                put(ESCAPE)
                m.d.sync += second.eq(1)
            with m.Else():
                put(byte ^ Mux(second, ESCAPED, 0))
                m.d.sync += [second.eq(0), has.eq(0)]

        def bring(value: object, counts: int) -> None:
            m.d.sync += [byte.eq(value), has.eq(1), fresh.eq(1), counted.eq(counts)]
            m.d.sync += left.eq(left - 1)

        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += checksum.start.eq(1)
                with m.If(self.start & free):
                    m.d.comb += self.taken.eq(1)
                    put(FLAG)
                    m.d.sync += [
                        shifted.eq(self.head.as_value()),
                        length.eq(self.head.length),
                        from_stream.eq(~self.identity),
                        left.eq(HEADER),
                    ]
                    m.d.sync += place.eq(Mux(self.identity, 0, self.head.sequence))
                    m.d.sync += to_read.eq(self.head.length)
                    m.next = "HEAD"
            with m.State("HEAD"):
                with m.If(advance):
                    bring(shifted[:8], 1)
                    m.d.sync += shifted.eq(shifted >> 8)
                    with m.If(left == 1):
                        m.d.sync += left.eq(length)
                        m.next = "CHECKSUM"
                        with m.If(length != 0):
                            m.next = "PAYLOAD"
            with m.State("PAYLOAD"):
                with m.If(advance):
                    bring(payload.r_data, 1)
                    m.d.comb += pops.eq(1)
                    with m.If(left == 1):
                        m.next = "CHECKSUM"
            with m.State("CHECKSUM"):
                with m.If(~has):
                    m.d.sync += [shifted.eq(checksum.crc), left.eq(TRAILER)]
                    m.next = "TRAILER"
            with m.State("TRAILER"):
                with m.If(advance):
                    bring(shifted[:8], 0)
                    m.d.sync += shifted.eq(shifted >> 8)
                    with m.If(left == 1):
                        m.next = "END"
            with m.State("END"):
                with m.If(~has & free):
                    put(FLAG)
                    m.next = "IDLE"
        return m
