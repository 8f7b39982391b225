"""Selection unit: the door of the device."""

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
from seustream.hdl.selectors import LATENCY, Selectors
from seustream.hdl.table_bus import write_signature

_WAITING = 16
"""Raw tuples in the selectors and behind them."""


class SelectionUnit(wiring.Component):
    """Goes through the selection table of a tuple's stream, a row a cycle, and lets in what its bits admit
    (`Selectors`). A tick goes by as if its table had one row.

    latency     10 cycles and one a row after the first
    throughput  a row a cycle

    write, half      tables, and which half of them is in use
    raw              raw tuples
    selected         the same with selection bits, and whether they were admitted
    again, stream, attributes   pulse while `idle`: work out a stored tuple's bits anew
    known, bits      pulse, a cycle after it is idle again, with them
    pause            take no raw tuple
    idle             nothing here
    working, blocked it is busy; it has something, and waits for the sequencer
    """

    def __init__(self, config: DeviceConfig) -> None:
        self.config = config
        self.layouts = layouts = Layouts(config)
        super().__init__(
            {
                "write": In(write_signature()),
                "half": In(1),
                "raw": In(stream.Signature(layouts.raw)),
                "selected": Out(stream.Signature(layouts.selected)),
                "again": In(1),
                "stream": In(STREAM_BITS),
                "attributes": In(layouts.attributes),
                "known": Out(1),
                "bits": Out(SELECTIONS),
                "pause": In(1),
                "idle": Out(1),
                "working": Out(1),
                "blocked": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, bus = self.config, self.write
        m.submodules.selectors = selectors = Selectors(config)
        row_bits, entry_bits = selectors.row_bits, ceil_log2(config.selectors)
        for name in write_signature().members:
            m.d.comb += getattr(selectors.write, name).eq(getattr(bus, name))
        # The last row of each stream's table, so that the next tuple's rows follow at once.
        ends = Array(
            Signal(row_bits, name=f"end_{s}_{half}")
            for s in range(1 << STREAM_BITS)
            for half in range(2)
        )
        with m.If(bus.valid & (bus.target == Target.SELECTION)):
            m.d.sync += ends[Cat(~self.half, bus.unit)].eq(bus.address[entry_bits:])

        # Raw tuples wait before the door, so that outside hears from a register whether to come.
        m.submodules.before = before_door = StreamBuffer(self.layouts.raw)
        coming = before_door.going
        kind = data.StructLayout({"last": 1, "replayed": 1, "nothing": 1})
        raw, of = Signal(self.layouts.raw, reset_less=True), Signal(kind, reset_less=True)
        waits, may, goes, taken, row = (
            Signal(), Signal(), Signal(), Signal(), Signal(row_bits),
        )  # fmt: skip
        left = Signal(row_bits, reset_less=True)  # how many rows follow
        m.d.comb += [
            self.raw.ready.eq(before_door.coming.ready & ~self.pause),
            before_door.coming.valid.eq(self.raw.valid & ~self.pause),
            before_door.coming.payload.eq(self.raw.payload),
            coming.ready.eq(~self.again & (~waits | taken)),
            goes.eq(waits & may),
            taken.eq(goes & of.last),
        ]
        with m.If(self.again):
            m.d.sync += [
                raw.stream.eq(self.stream),
                raw.attributes.eq(self.attributes),
                of.replayed.eq(1),
                waits.eq(1),
            ]
        with m.Elif(coming.ready):
            m.d.sync += [raw.eq(coming.payload), of.replayed.eq(0), waits.eq(coming.valid)]
        nothing = ~self.again & (coming.payload.filler | ~coming.payload.admit)
        follow = ends[Cat(self.half, Mux(self.again, self.stream, coming.payload.stream))]
        # That a row is the last stands in a register, since it lets the next tuple in.
        with m.If(self.again | coming.ready):
            m.d.sync += [
                of.nothing.eq(nothing),
                of.last.eq(nothing | (follow == 0)),
                left.eq(follow),
                row.eq(0),
            ]
        with m.Elif(goes):
            m.d.sync += [of.last.eq(left == 1), left.eq(left - 1), row.eq(row + 1)]
        m.d.comb += [
            selectors.half.eq(self.half),
            selectors.valid.eq(goes),
            selectors.first.eq(row == 0),
            selectors.row.eq(row),
            selectors.stream.eq(raw.stream),
            selectors.attributes.eq(raw.attributes),
        ]

        # Meanwhile raw tuples wait. There is room for all that go, so that nothing stands still.
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
        # The sequencer looks at it at once, so it does not come right out of a FIFO.
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
            self.blocked.eq(waits & ~may),
        ]
        m.d.sync += [
            # One may go in the cycle in which this is found.
            may.eq(raws.level <= _WAITING - 2),
            self.known.eq(done & ended.replayed),
            self.bits.eq(selectors.bits),
        ]
        busy = coming.valid | waits | Cat(here).any()
        m.d.comb += [
            self.working.eq(busy & ~self.blocked),
            self.idle.eq(~busy & ~results.r_rdy & ~self.selected.valid),
        ]
        return m
