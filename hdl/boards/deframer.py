"""Deframer: turns bytes on the line into frames, and reports which are intact."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import crc, data, stream, wiring
from amaranth.lib.crc import catalog
from amaranth.lib.wiring import In, Out

from seustream.hdl.boards.protocol import ESCAPE, ESCAPED, FLAG, HEADER, MOST, TRAILER

FRAME_CRC = catalog.CRC32_ISO_HDLC
"""CRC of a frame, the same as `zlib.crc32`."""
_ESCAPED_BIT = ESCAPED.bit_length() - 1

HEAD = data.StructLayout(
    {"kind": 8, "session": 16, "sequence": 16, "ack": 16, "credit": 16, "length": 8}
)
assert HEAD.size == 8 * HEADER


class Deframer(wiring.Component):
    """Removes flags and escapes, and checks length and checksum when a frame ends. Payload bytes are output
    as they come, before it is known whether the frame is good.

    latency     2 cycles from a payload byte, and from a frame's last flag
    throughput  a byte per cycle

    bytes       in: stream from the line; always ready
    head        out: head of the current frame, valid once its payload begins
    payload     out: stream of its payload bytes, each with its place in the payload; does not wait
    good        out: pulse: the frame with this head is intact
    bad         out: pulse: what came between two flags is no intact frame
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "bytes": In(stream.Signature(8)),
                "head": Out(HEAD),
                "payload": Out(
                    stream.Signature(data.StructLayout({"byte": 8, "place": range(MOST)}))
                ),
                "good": Out(1),
                "bad": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.crc = checksum = crc.Processor(FRAME_CRC(data_width=8))
        # Pipeline stages: escapes removed; place in the frame.
        incoming = self.bytes.payload
        escaped, byte, come = Signal(), Signal(8), Signal()
        ended, cut_off = Signal(), Signal()  # a flag, and whether an escape was before it
        m.d.comb += self.bytes.ready.eq(1)
        m.d.sync += [
            byte.eq(incoming ^ (escaped << _ESCAPED_BIT)),
            come.eq(self.bytes.valid & (incoming != FLAG) & (incoming != ESCAPE)),
            ended.eq(self.bytes.valid & (incoming == FLAG)),
            cut_off.eq(escaped),
        ]
        with m.If(self.bytes.valid):
            m.d.sync += escaped.eq(incoming == ESCAPE)

        most = HEADER + MOST + TRAILER
        count = Signal(range(most + 2))  # bytes of the frame so far; more than `most` is too many
        head = Signal(HEAD)
        m.d.comb += [self.head.eq(head), checksum.data.eq(byte), checksum.valid.eq(come)]
        m.d.sync += [
            self.payload.valid.eq(0),
            self.payload.payload.byte.eq(byte),
            self.payload.payload.place.eq(count - HEADER),
        ]
        with m.If(come):
            with m.If(count <= most):
                m.d.sync += count.eq(count + 1)
            with m.If(count < HEADER):
                m.d.sync += head.eq(Cat(head.as_value()[8:], byte))
            with m.Elif(count < HEADER + MOST):
                m.d.sync += self.payload.valid.eq(count < HEADER + head.length)

        # A flag ends the current frame and begins a new one.
        whole = Signal()
        m.d.comb += whole.eq(
            checksum.match_detected & (count == HEADER + TRAILER + head.length) & ~cut_off
        )
        m.d.comb += checksum.start.eq(ended)
        m.d.sync += [self.good.eq(ended & whole), self.bad.eq(ended & ~whole & (count != 0))]
        with m.If(ended):
            m.d.sync += count.eq(0)
        return m
