"""Drain: keeps raw tuples back until the groups formed before them have left."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from seustream.hdl.config import DeviceConfig
from seustream.hdl.layouts import Layouts

_STILL = 8
"""Consecutive cycles without anything in flight."""


class RawDrain(wiring.Component):
    """Passes raw tuples. A filler that is admitted is a drain: raw tuples after it wait until nothing is in flight
    and the groups have left.

    latency     0 cycles
    throughput  a raw tuple per cycle

    coming     in: stream of raw tuples
    going      out: the same stream without drains
    quiet      in: nothing is in flight
    draining   out: a drain is in progress
    drain      out: the groups are to leave; stays until `drained`
    drained    in: pulse: they have left
    """

    def __init__(self, config: DeviceConfig) -> None:
        raw = stream.Signature(Layouts(config).raw)
        super().__init__(
            {
                "coming": In(raw),
                "going": Out(raw),
                "quiet": In(1),
                "draining": Out(1),
                "drain": Out(1),
                "drained": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        coming, going, drains, draining = self.coming, self.going, Signal(), self.draining
        m.d.comb += [
            drains.eq(coming.payload.filler & coming.payload.admit),
            going.payload.eq(coming.payload),
            going.valid.eq(coming.valid & ~drains & ~draining),
            coming.ready.eq(going.ready & ~draining),
        ]
        with m.If(coming.valid & coming.ready & drains):
            m.d.sync += draining.eq(1)
        with m.Elif(self.drained):
            m.d.sync += draining.eq(0)
        # Require several consecutive idle cycles, because a tuple that has just gone in is not visible at once.
        still = Signal(range(_STILL + 1))
        with m.If(~draining | ~self.quiet):
            m.d.sync += still.eq(0)
        with m.Elif(still != _STILL):
            m.d.sync += still.eq(still + 1)
        m.d.comb += self.drain.eq(draining & (still == _STILL))
        return m
