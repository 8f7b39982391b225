"""Selection unit: the door of the device."""

from __future__ import annotations

import itertools

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, fifo, memory, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from seustream.hdl.buffer import StreamBuffer
from seustream.hdl.config import DeviceConfig
from seustream.hdl.control_words import SelectionEntry, Target
from seustream.hdl.factors import decide
from seustream.hdl.layouts import SELECTIONS, STREAM_BITS, Layouts
from seustream.hdl.table_bus import write_signature

_RESULTS, _ON_THE_WAY = 16, 8
"""Raw tuples that wait behind the door, and how many may come after there was last room for them."""


def entry_layout(config: DeviceConfig) -> data.StructLayout:
    """A row of a selection table, as `SelectionEntry` encodes it."""
    return data.StructLayout(
        {
            "last": 1,
            "admits": 1,
            "attribute": 2,
            "condition": 3,
            "first": 1,
            "every": 1,
            "bit": 4,
            "constant": max(config.attribute_width, SELECTIONS),
        }
    )


class SelectionUnit(wiring.Component):
    """Goes through the selection table of a tuple's stream, an entry a cycle: comparisons
    make selection bits, masks of bits let the tuple in. A tick goes by as if it had one entry.

    latency     7 cycles and one an entry after the first
    throughput  an entry a cycle

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
        config = self.config
        shape = entry_layout(config)
        address_bits = ceil_log2(config.comparisons)
        m.submodules.table = table = memory.Memory(
            shape=shape, depth=config.streams << address_bits + 1, init=[]
        )
        write, read = table.write_port(), table.read_port()
        bus = self.write
        assert shape.size <= SelectionEntry.HEAD_BITS + 32
        m.d.comb += [
            write.addr.eq(Cat(bus.address[:address_bits], ~self.half, bus.unit)),
            write.data.eq(bus.data[: shape.size]),
            write.en.eq(bus.valid & (bus.target == Target.SELECTION)),
        ]
        # Where each stream's table ends, so that the next tuple's entries follow at once.
        ends = Array(
            Signal(address_bits, name=f"end_{s}_{half}")
            for s in range(1 << STREAM_BITS)
            for half in range(2)
        )
        with m.If(write.en):
            m.d.sync += ends[Cat(~self.half, bus.unit)].eq(bus.address)

        # Raw tuples wait before the door, so that outside hears from a register whether to come.
        m.submodules.before = before_door = StreamBuffer(self.layouts.raw)
        coming = before_door.going
        layout = data.StructLayout({"raw": self.layouts.raw, "replayed": 1, "nothing": 1})
        door, waits, may = Signal(layout, reset_less=True), Signal(), Signal()
        taken, address = Signal(), Signal(address_bits)
        first = Signal(data.StructLayout({"valid": 1, "first": 1, "last": 1, "of": layout}))
        # How many entries of its stream's table follow, and that none does, since it lets the next in.
        left, at_end = Signal(address_bits, reset_less=True), Signal(reset_less=True)
        stages = [
            Signal(
                data.StructLayout({"valid": 1, "first": 1, "last": 1, "of": layout}),
                name=f"stage{stage}",
            )
            for stage in range(4)
        ]
        m.d.comb += [
            self.raw.ready.eq(before_door.coming.ready & ~self.pause),
            before_door.coming.valid.eq(self.raw.valid & ~self.pause),
            before_door.coming.payload.eq(self.raw.payload),
            coming.ready.eq(~self.again & (~waits | taken)),
        ]
        with m.If(self.again):
            m.d.sync += [
                door.raw.stream.eq(self.stream),
                door.raw.attributes.eq(self.attributes),
                door.replayed.eq(1),
                waits.eq(1),
            ]
        with m.Elif(coming.ready):
            m.d.sync += [
                door.raw.eq(coming.payload),
                door.replayed.eq(0),
                waits.eq(coming.valid),
            ]
        nothing = ~self.again & (coming.payload.filler | ~coming.payload.admit)
        follow = ends[Cat(self.half, Mux(self.again, self.stream, coming.payload.stream))]
        with m.If(self.again | coming.ready):
            m.d.sync += [door.nothing.eq(nothing), left.eq(follow)]
            m.d.sync += at_end.eq(nothing | (follow == 0))
        with m.Elif(first.valid):
            m.d.sync += [left.eq(left - 1), at_end.eq(left == 1)]

        # Stages: memory, entry, attribute, comparison, outcome.
        m.d.comb += [
            read.addr.eq(Cat(address, self.half, door.raw.stream)),
            read.en.eq(1),
            first.valid.eq(waits & may),
            first.first.eq(address == 0),
            first.last.eq(at_end),
            first.of.eq(door),
            taken.eq(first.valid & first.last),
        ]
        with m.If(first.valid):
            m.d.sync += address.eq(Mux(first.last, 0, address + 1))
        picks, compared, entry = Signal(shape), Signal(shape), Signal(shape)
        outcome, next_outcome = Signal(), Signal()
        raw = stages[1].of.raw
        value = Signal(config.attribute_width)
        constant = compared.constant[: config.attribute_width]
        m.d.comb += [
            next_outcome.eq(decide(compared.condition, value < constant, value == constant)),
        ]
        m.d.sync += [
            *(later.eq(former) for former, later in itertools.pairwise([first, *stages])),
            picks.eq(read.data),
            compared.eq(picks),
            entry.eq(compared),
            value.eq(raw.attributes[picks.attribute]),
            outcome.eq(next_outcome),
        ]

        # What the entries before came to, and this one.
        here = stages[-1]
        bits, started, admitted = Signal(SELECTIONS), Signal(), Signal()
        before, collected = Signal(SELECTIONS), Signal(SELECTIONS)
        held, lets_in = Signal(), Signal()
        mask = entry.constant[:SELECTIONS]
        m.d.comb += [
            before.eq(Mux(here.first, 0, bits)),
            held.eq(
                Mux(
                    entry.first,
                    outcome,
                    Mux(entry.every, started & outcome, started | outcome),
                )
            ),
            collected.eq(before),
            lets_in.eq(
                (entry.admits & ~entry.first & ~(mask & ~before).any()) | (admitted & ~here.first)
            ),
        ]
        with m.If(~entry.admits):
            m.d.comb += collected.bit_select(entry.bit, 1).eq(held)
        with m.If(here.valid):
            m.d.sync += [bits.eq(collected), started.eq(held), admitted.eq(lets_in)]

        # There is room for all that is on its way, so that nothing of it ever stands still.
        result, done = Signal(self.layouts.selected), Signal()
        m.submodules.results = results = fifo.SyncFIFO(width=len(result.as_value()), depth=_RESULTS)
        m.d.comb += [
            done.eq(here.valid & here.last),
            result.raw.eq(here.of.raw),
            result.bits.eq(Mux(here.of.nothing, 0, collected)),
            result.admitted.eq(~here.of.nothing & lets_in),
            results.w_data.eq(result),
            results.w_en.eq(done & ~here.of.replayed),
            self.selected.payload.eq(results.r_data),
            self.selected.valid.eq(results.r_rdy),
            results.r_en.eq(self.selected.ready),
            self.blocked.eq(waits & ~may),
        ]
        m.d.sync += [
            may.eq(results.level <= _RESULTS - _ON_THE_WAY),
            self.known.eq(done & here.of.replayed),
            self.bits.eq(collected),
        ]
        busy = coming.valid | waits | Cat(stage.valid for stage in stages).any()
        m.d.comb += [
            self.working.eq(busy & ~self.blocked),
            self.idle.eq(~busy & ~self.selected.valid),
        ]
        return m
