"""Framer: one frame after the other onto the line."""

from __future__ import annotations

from amaranth.hdl import Array, Const, Module, Mux, Signal
from amaranth.lib import crc, stream, wiring
from amaranth.lib.wiring import In, Out

from seustream.hdl.boards.deframer import FRAME_CRC, HEAD
from seustream.hdl.boards.protocol import ESCAPE, ESCAPED, FLAG, HEADER, TRAILER
from seustream.hdl.boards.receiver import PLACE_BITS


class Framer(wiring.Component):
    """Flag, head, payload, checksum, flag; what would look like a flag or an escape goes out as
    two bytes.

    latency     2 cycles from `start` to the first flag
    throughput  a byte in 3 cycles

    start       a frame with this head waits
    head        its head
    identity    its payload is the identity, not the stream
    taken       pulse: the frame was begun, with the head as it is
    place, byte a byte of the payload, at most 2 cycles after its place in the stream
    bytes       onto the line
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
        shifted = Signal(8 * HEADER)  # what goes out next of head or checksum
        left = Signal(8)  # bytes of this part, the one at hand included
        length, from_stream = Signal(8), Signal()
        place = Signal(PLACE_BITS)
        byte = Signal(8)
        rom = Array(Const(value, 8) for value in self.identity_bytes)
        rom_bits = len(self.identity_bytes).bit_length()
        m.d.comb += self.place.eq(place)
        with m.If(self.bytes.ready):
            m.d.sync += self.bytes.valid.eq(0)
        free = ~self.bytes.valid | self.bytes.ready

        def put(value: object) -> None:
            m.d.sync += [self.bytes.valid.eq(1), self.bytes.payload.eq(value)]

        special = (byte == FLAG) | (byte == ESCAPE)
        counted, second = Signal(), Signal()  # it goes into the checksum; it was escaped
        m.d.comb += checksum.data.eq(byte)
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
                        place.eq(Mux(self.identity, 0, self.head.sequence)),
                        left.eq(HEADER),
                    ]
                    m.next = "HEAD"
            with m.State("HEAD"):
                m.d.sync += [byte.eq(shifted[:8]), shifted.eq(shifted >> 8), counted.eq(1)]
                m.next = "PUT"
            with m.State("PAYLOAD"):
                m.d.sync += [
                    byte.eq(Mux(from_stream, self.byte, rom[place[:rom_bits]])),
                    place.eq(place + 1),
                    counted.eq(1),
                ]
                m.next = "PUT"
            with m.State("CHECKSUM"):
                m.d.sync += [
                    shifted.eq(checksum.crc),
                    left.eq(TRAILER),
                    length.eq(0),
                ]
                m.next = "TRAILER"
            with m.State("TRAILER"):
                m.d.sync += [byte.eq(shifted[:8]), shifted.eq(shifted >> 8), counted.eq(0)]
                m.next = "PUT"
            with m.State("PUT"):
                with m.If(free):
                    with m.If(special & ~second):
                        put(ESCAPE)
                        m.d.sync += second.eq(1)
                    with m.Else():
                        put(byte ^ Mux(second, ESCAPED, 0))
                        m.d.sync += [second.eq(0), left.eq(left - 1)]
                        m.d.comb += checksum.valid.eq(counted)
                        m.next = "NEXT"
            with m.State("NEXT"):
                # Parts: head, payload, checksum; the last is not counted into itself.
                payload = Signal()
                with m.If(~counted):
                    m.next = "TRAILER"
                    with m.If(left == 0):
                        m.next = "END"
                with m.Elif(left != 0):
                    m.next = "HEAD"
                    with m.If(payload):
                        m.next = "PAYLOAD"
                with m.Elif(~payload & (length != 0)):
                    m.d.sync += [left.eq(length), payload.eq(1)]
                    m.next = "PAYLOAD"
                with m.Else():
                    m.d.sync += payload.eq(0)
                    m.next = "CHECKSUM"
            with m.State("END"):
                with m.If(free):
                    put(FLAG)
                    m.next = "IDLE"
        return m
