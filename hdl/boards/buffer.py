"""Buffer: two places on a stream, so that no path of logic goes on behind it."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out


class StreamBuffer(wiring.Component):
    """One place for a payload that goes on, one for the next if that is not taken. Payload, `valid` and
    `ready` come out of registers.

    latency     1 cycle
    throughput  a payload a cycle

    coming, going   the stream
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
        with m.Elif(coming.valid & ~keeps):
            m.d.sync += [kept.eq(coming.payload), keeps.eq(1)]
        return m
