"""Selection unit: evaluates selection bits and admits raw tuples, at the input of the device."""

from __future__ import annotations

import itertools

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, fifo, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from seustream.hdl.buffer import StreamBuffer
from seustream.hdl.config import DeviceConfig
from seustream.hdl.control_words import Target
from seustream.hdl.layouts import SELECTIONS, STREAM_BITS, Layouts
from seustream.hdl.ports import Meter, Reselecting, TableBus
from seustream.hdl.selectors import LATENCY, Selectors

_WAITING = 16
"""Raw tuples in the selectors and in the FIFOs behind them."""


class SelectionUnit(wiring.Component):
    """Goes through the selection table of a tuple's stream, a row per cycle, and admits the tuple if its bits do
    (`Selectors`). A tick passes as if its table had one row.

    latency     10 cycles plus one for each row after the first
    throughput  a row per cycle

    tables     in (`TableBus`)
    raw        in: stream of raw tuples (`Layouts.raw`)
    selected   out: the same stream, with selection bits and whether the tuple was admitted (`Layouts.selected`)
    replayed   in (`Reselecting`): stored tuples, while no raw tuples are taken
    pause      in: take no raw tuple
    idle       out: nothing is here
    meter      out (`Meter`): blocked while the sequencer does not take a tuple
    """

    def __init__(self, config: DeviceConfig) -> None:
        self.config = config
        self.layouts = layouts = Layouts(config)
        super().__init__(
            {
                "tables": In(TableBus()),
                "raw": In(stream.Signature(layouts.raw)),
                "selected": Out(stream.Signature(layouts.selected)),
                "replayed": In(Reselecting(config)),
                "pause": In(1),
                "idle": Out(1),
                "meter": Out(Meter()),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, bus = self.config, self.tables
        m.submodules.selectors = selectors = Selectors(config)
        row_bits, entry_bits = selectors.row_bits, ceil_log2(config.selectors)
        wiring.connect(m, wiring.flipped(bus), selectors.tables)
        # The last row of each stream's table, so that the next tuple's rows follow at once.
        ends = Array(
            Signal(row_bits, name=f"end_{s}_{half}")
            for s in range(1 << STREAM_BITS)
            for half in range(2)
        )
        with m.If(bus.valid & (bus.target == Target.SELECTION)):
            m.d.sync += ends[Cat(~bus.half, bus.unit)].eq(bus.address[entry_bits:])

        # Skid buffer at the input, so that `ready` to the outside depends on registers and `pause` only.
        m.submodules.before = before_door = StreamBuffer(self.layouts.raw)
        coming = before_door.going
        kind = data.StructLayout({"last": 1, "replayed": 1, "nothing": 1})
        raw, of = Signal(self.layouts.raw, reset_less=True), Signal(kind, reset_less=True)
        waits, may, goes, taken, row = (
            Signal(), Signal(), Signal(), Signal(), Signal(row_bits),
        )  # fmt: skip
        left = Signal(row_bits, reset_less=True)  # number of rows that follow
        m.d.comb += [
            self.raw.ready.eq(before_door.coming.ready & ~self.pause),
            before_door.coming.valid.eq(self.raw.valid & ~self.pause),
            before_door.coming.payload.eq(self.raw.payload),
            coming.ready.eq(~self.replayed.again & (~waits | taken)),
            goes.eq(waits & may),
            taken.eq(goes & of.last),
        ]
        with m.If(self.replayed.again):
            m.d.sync += [
                raw.stream.eq(self.replayed.stream),
                raw.attributes.eq(self.replayed.attributes),
                of.replayed.eq(1),
                waits.eq(1),
            ]
        with m.Elif(coming.ready):
            m.d.sync += [raw.eq(coming.payload), of.replayed.eq(0), waits.eq(coming.valid)]
        nothing = ~self.replayed.again & (coming.payload.filler | ~coming.payload.admit)
        follow = ends[
            Cat(bus.half, Mux(self.replayed.again, self.replayed.stream, coming.payload.stream))
        ]
        # Whether a row is the last comes from a register, because it is on the path that takes the next tuple.
        with m.If(self.replayed.again | coming.ready):
            m.d.sync += [
                of.nothing.eq(nothing),
                of.last.eq(nothing | (follow == 0)),
                left.eq(follow),
                row.eq(0),
            ]
        with m.Elif(goes):
            m.d.sync += [of.last.eq(left == 1), left.eq(left - 1), row.eq(row + 1)]
        m.d.comb += [
            selectors.valid.eq(goes),
            selectors.first.eq(row == 0),
            selectors.row.eq(row),
            selectors.stream.eq(raw.stream),
            selectors.attributes.eq(raw.attributes),
        ]

        # Raw tuples wait here meanwhile. A tuple goes only if there is room, so that the pipeline never stalls.
        width, result = (
            len(raw.as_value()),
            Signal(data.StructLayout({"bits": SELECTIONS, "admitted": 1})),
        )
        m.submodules.raws = raws = fifo.SyncFIFO(width=width, depth=_WAITING)
        m.submodules.results = results = fifo.SyncFIFO(width=SELECTIONS + 1, depth=_WAITING)
        here = [Signal(name=f"here{i}") for i in range(LATENCY)]
        kinds = [Signal(kind, name=f"kind{i}") for i in range(LATENCY)]
        m.d.sync += [after.eq(now) for now, after in itertools.pairwise([goes, *here])]
        m.d.sync += [after.eq(now) for now, after in itertools.pairwise([of, *kinds])]
        ended, done = kinds[-1], Signal()
        # An output register, because the sequencer examines the tuple at once and the FIFO's output is late.
        selected, moves = self.selected.payload, self.selected.ready | ~self.selected.valid
        with m.If(moves):
            m.d.sync += [
                self.selected.valid.eq(results.r_rdy),
                selected.raw.eq(raws.r_data),
                Cat(selected.bits, selected.admitted).eq(results.r_data),
            ]
        m.d.comb += [
            raws.w_data.eq(raw),
            raws.w_en.eq(taken & ~of.replayed),
            done.eq(here[-1] & ended.last),
            result.bits.eq(Mux(ended.nothing, 0, selectors.bits)),
            result.admitted.eq(~ended.nothing & selectors.admitted),
            results.w_data.eq(result),
            results.w_en.eq(done & ~ended.replayed),
            *(each.r_en.eq(moves & results.r_rdy) for each in (raws, results)),
            self.meter.blocked.eq(waits & ~may),
        ]
        m.d.sync += [
            # One less than full, because a tuple may go in the cycle in which the level is compared.
            may.eq(raws.level <= _WAITING - 2),
            self.replayed.known.eq(done & ended.replayed),
            self.replayed.bits.eq(selectors.bits),
        ]
        busy = coming.valid | waits | Cat(here).any()
        m.d.comb += [
            self.meter.working.eq(busy & ~self.meter.blocked),
            self.idle.eq(~busy & ~results.r_rdy & ~self.selected.valid),
        ]
        return m
