"""MAC: converts Ethernet frames to and from the bytes of a gigabit PHY: preamble, padding, checksum, gap."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import crc, stream, wiring
from amaranth.lib.wiring import In, Out

from seustream.hdl.boards.deframer import FRAME_CRC

PREAMBLE, START = 0x55, 0xD5
SHORTEST, CHECKSUM, GAP = 60, 4, 12
"""Minimum bytes of a frame without its checksum; bytes of the checksum; and bytes between two frames."""


class FrameReceiver(wiring.Component):
    """Outputs the bytes of a frame as they come, before it is known whether the frame is intact.

    latency     1 cycle
    throughput  a byte per cycle

    byte, active   in: from the PHY
    begin       out: pulse: a frame begins with the next byte
    data, come  out: a byte of the frame, including its checksum; valid with `come`
    good, bad   out: pulse: the frame has ended, intact or not; what never began as a frame is bad
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "byte": In(8),
                "active": In(1),
                "begin": Out(1),
                "data": Out(8),
                "come": Out(1),
                "good": Out(1),
                "bad": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.crc = checksum = crc.Processor(FRAME_CRC(data_width=8))
        m.d.comb += checksum.data.eq(self.byte)
        m.d.sync += [signal.eq(0) for signal in (self.begin, self.come, self.good, self.bad)]
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += checksum.start.eq(1)
                with m.If(self.active & (self.byte == START)):
                    m.d.sync += self.begin.eq(1)
                    m.next = "FRAME"
                with m.Elif(self.active & (self.byte != PREAMBLE)):
                    m.next = "NOISE"
            with m.State("FRAME"):
                m.d.comb += checksum.valid.eq(self.active)
                m.d.sync += [self.data.eq(self.byte), self.come.eq(self.active)]
                with m.If(~self.active):
                    m.d.sync += [
                        self.good.eq(checksum.match_detected),
                        self.bad.eq(~checksum.match_detected),
                    ]
                    m.next = "IDLE"
            with m.State("NOISE"):
                with m.If(~self.active):
                    m.d.sync += self.bad.eq(1)
                    m.next = "IDLE"
        return m


class FrameTransmitter(wiring.Component):
    """Sends frames to the PHY; their bytes must come one per cycle, without a pause.

    latency     9 cycles
    throughput  a byte per cycle, less 24 cycles per frame

    bytes, last in: stream of the bytes of a frame, without checksum; `last` comes with the last of them
    byte, active   out: to the PHY
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "bytes": In(stream.Signature(8)),
                "last": In(1),
                "byte": Out(8),
                "active": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.crc = checksum = crc.Processor(FRAME_CRC(data_width=8))
        place = Signal(range(SHORTEST + 1))
        byte = Signal(8)
        m.d.sync += [self.byte.eq(byte), self.active.eq(1)]
        m.d.comb += checksum.data.eq(byte)

        def ends() -> None:
            m.d.sync += place.eq(0)
            m.next = "CHECKSUM"

        with m.If(place != SHORTEST):
            m.d.sync += place.eq(place + 1)
        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += [self.active.eq(0), place.eq(0)]
                with m.If(self.bytes.valid):
                    m.next = "PREAMBLE"
            with m.State("PREAMBLE"):
                m.d.comb += [byte.eq(PREAMBLE), checksum.start.eq(1)]
                with m.If(place == 7):
                    m.d.comb += byte.eq(START)
                    m.d.sync += place.eq(0)
                    m.next = "FRAME"
            with m.State("FRAME"):
                m.d.comb += [
                    byte.eq(self.bytes.payload),
                    self.bytes.ready.eq(1),
                    checksum.valid.eq(1),
                ]
                with m.If(self.last):
                    m.next = "PADDING"
                    with m.If(place >= SHORTEST - 1):
                        ends()
            with m.State("PADDING"):
                m.d.comb += checksum.valid.eq(1)
                with m.If(place == SHORTEST - 1):
                    ends()
            with m.State("CHECKSUM"):
                m.d.comb += byte.eq(checksum.crc.word_select(place[:2], 8))
                with m.If(place == CHECKSUM - 1):
                    m.d.sync += place.eq(0)
                    m.next = "GAP"
            with m.State("GAP"):
                m.d.sync += self.active.eq(0)
                with m.If(place == GAP - 2):
                    m.next = "IDLE"
        return m
