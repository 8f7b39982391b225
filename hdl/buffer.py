"""Stream buffers: a two-entry one that cuts combinational paths, and a deep one in block RAM."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Shape, Signal
from amaranth.lib import fifo, stream, wiring
from amaranth.lib.wiring import In, Out


class StreamBuffer(wiring.Component):
    """Two-entry skid buffer: one register for the payload on offer, one for the next if the first is not
    taken. Payload, `valid` and `ready` all come from registers.

    latency     1 cycle
    throughput  a payload per cycle

    coming, going   in, out: the stream
    """

    def __init__(self, shape: object) -> None:
        super().__init__(
            {"coming": In(stream.Signature(shape)), "going": Out(stream.Signature(shape))}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        coming, going = self.coming, self.going
        kept, keeps = Signal.like(going.payload), Signal()
        m.d.comb += coming.ready.eq(~keeps)
        with m.If(going.ready | ~going.valid):
            m.d.sync += [
                going.valid.eq(coming.valid | keeps),
                going.payload.eq(Mux(keeps, kept, coming.payload)),
                keeps.eq(0),
            ]
        with m.Elif(coming.valid):
            m.d.sync += keeps.eq(1)
        with m.If(~keeps):
            m.d.sync += kept.eq(coming.payload)
        return m


_BLOCK = 2048
"""Bytes, of nine bits each, in a block RAM of an ECP5."""


class BlockBuffer(wiring.Component):
    """FIFO of several block RAMs in series, each followed directly by a register, because a block RAM takes most
    of a cycle of 8 ns. In parallel, a multiplexer would follow them.

    latency     3 cycles per block
    throughput  a payload per cycle

    coming, going   in, out: the stream
    """

    def __init__(self, shape: object, depth: int) -> None:
        self.shape, self.blocks = shape, -(-depth // _BLOCK)
        super().__init__(
            {"coming": In(stream.Signature(shape)), "going": Out(stream.Signature(shape))}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        before = wiring.flipped(self.coming)
        for number in range(self.blocks):
            # One payload is in the FIFO's own output register.
            block = fifo.SyncFIFOBuffered(width=Shape.cast(self.shape).width, depth=_BLOCK + 1)
            m.submodules[f"block{number}"] = block
            register = stream.Signature(self.shape).create(path=(f"register{number}",))
            m.d.comb += [
                block.w_data.eq(before.payload),
                block.w_en.eq(before.valid),
                before.ready.eq(block.w_rdy),
                block.r_en.eq(register.ready | ~register.valid),
            ]
            with m.If(block.r_en):
                m.d.sync += [
                    register.payload.eq(block.r_data),
                    register.valid.eq(block.r_rdy),
                ]
            before = register
        m.d.comb += [
            self.going.payload.eq(before.payload),
            self.going.valid.eq(before.valid),
            before.ready.eq(self.going.ready),
        ]
        return m
