"""Selectors: evaluate a row of a selection table for a raw tuple."""

from __future__ import annotations

import itertools

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from seustream.hdl.config import DeviceConfig
from seustream.hdl.control_words import Target
from seustream.hdl.layouts import SELECTIONS, STREAM_BITS, Layouts
from seustream.hdl.ports import TableBus

LATENCY = 6


class Selectors(wiring.Component):
    """Evaluates `selectors` entries per cycle. The place of a comparison in its row, and the row's group, determine
    its selection bit; the last place may hold a mask of bits that admits the tuple. The rows of a tuple follow
    each other; masks are in the last row with a comparison, or after it.

    latency     6 cycles
    throughput  a row per cycle

    tables             in: table bus (`TableBus`)
    valid, first       in: a row is wanted; it is the first of its tuple
    row, stream, attributes   in: which row, of which stream's table, for which attributes
    bits, admitted     out: result of this row and those before it, 6 cycles later
    """

    def __init__(self, config: DeviceConfig) -> None:
        self.config = config
        self.layouts = layouts = Layouts(config)
        self.count = config.selectors
        self.row_bits = ceil_log2(-(-config.comparisons // config.selectors))
        super().__init__(
            {
                "tables": In(TableBus()),
                "valid": In(1),
                "first": In(1),
                "row": In(self.row_bits),
                "stream": In(STREAM_BITS),
                "attributes": In(layouts.attributes),
                "bits": Out(SELECTIONS),
                "admitted": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        valids, firsts = (
            [Signal(name=f"{name}{i}") for i in range(LATENCY)] for name in ("valid", "first")
        )
        for stages, now in ((valids, self.valid), (firsts, self.first)):
            m.d.sync += [after.eq(before) for before, after in itertools.pairwise([now, *stages])]
        kinds, operands = self._tables(m)
        outcomes = self._compare(m, operands)
        # Pipeline stages: memory, row, value, outcome, bits, verdict on the mask.
        mask = self._collect(m, kinds, operands, outcomes, valids[3], firsts[3])
        admitted = Signal()  # by an earlier row of the tuple
        m.d.comb += self.admitted.eq(mask | (admitted & ~firsts[-1]))
        with m.If(valids[-1]):
            m.d.sync += admitted.eq(self.admitted)
        return m

    def _tables(self, m: Module) -> tuple[data.View, data.View]:
        """Returns the kinds of the row's entries and their operands, in its third cycle."""
        shape, layouts = self.layouts.selection_entry, self.layouts
        bus, lane_bits = self.tables, ceil_log2(self.count)
        row, to = bus.address[lane_bits:][: self.row_bits], bus.address[:lane_bits]
        depth = 2 << STREAM_BITS + self.row_bits
        at = Cat(self.row, bus.half, self.stream)
        # Writes go through registers, because the block RAM is spread over the chip.
        writes, into = Signal(), Signal(self.count)
        place, lane, entry = (
            Signal(range(depth), reset_less=True),
            Signal(lane_bits, reset_less=True),
            Signal(shape, name="entry", reset_less=True),
        )
        here = bus.valid & (bus.target == Target.SELECTION)
        m.d.sync += [
            writes.eq(here),
            place.eq(Cat(row, ~bus.half, bus.unit)),
            lane.eq(to),
            entry.eq(bus.data[: shape.size]),
            into.eq(Cat(here & (to == number) for number in range(self.count))),
        ]

        operands = Signal(data.ArrayLayout(layouts.operand, self.count))
        for number in range(self.count):
            m.submodules[f"operands{number}"] = one = memory.Memory(
                shape=layouts.operand, depth=depth, init=[]
            )
            write, read = one.write_port(), one.read_port()
            m.d.comb += [
                write.addr.eq(place),
                write.data.eq(entry.operand),
                write.en.eq(into[number]),
                read.addr.eq(at),
                read.en.eq(1),
            ]
            m.d.sync += operands[number].eq(read.data)

        # Entries come in order: the whole row is written with each, and entries still to come are empty in it.
        group_bits = ceil_log2(SELECTIONS // self.count)
        kind = data.StructLayout({"compares": 1, "admits": 1, "every": 1, "group": group_bits})
        row_of = data.ArrayLayout(kind, self.count)
        m.submodules.kinds = whole = memory.Memory(shape=row_of, depth=depth, init=[])
        write, read = whole.write_port(), whole.read_port()
        gathered, kinds = Signal(row_of), Signal(row_of)
        with m.If(writes):
            for number in range(self.count):
                with m.If(lane == number):
                    m.d.sync += gathered[number].eq(entry.kind.as_value()[: kind.size])
                with m.Elif(lane < number):
                    m.d.sync += gathered[number].eq(0)
        m.d.sync += [write.en.eq(writes), write.addr.eq(place), kinds.eq(read.data)]
        m.d.comb += [write.data.eq(gathered), read.addr.eq(at), read.en.eq(1)]
        return kinds, operands

    def _compare(self, m: Module, operands: data.View) -> Signal:
        """Returns whether each comparison holds, two cycles later."""
        width = self.config.attribute_width
        attributes = [Signal.like(self.attributes, name=f"attributes{i}") for i in range(2)]
        m.d.sync += [attributes[0].eq(self.attributes), attributes[1].eq(attributes[0])]
        outcomes = Signal(self.count)
        for number in range(self.count):
            own, value = operands[number], Signal(width, name=f"value{number}")
            does = Signal(own.shape(), name=f"does{number}")
            m.d.sync += [value.eq(attributes[1][own.attribute]), does.eq(own)]
            constant = does.constant[:width]
            holds = Mux(does.equal, value == constant, value < constant) ^ does.negated
            m.d.sync += outcomes[number].eq(holds)
        return outcomes

    def _collect(
        self,
        m: Module,
        kinds: data.View,
        operands: data.View,
        outcomes: Signal,
        valid: Signal,
        first: Signal,
    ) -> Signal:
        """Computes the selection bits from a row's outcomes. Returns whether its mask admits the tuple, two cycles
        later."""
        later = [Signal.like(kinds, name=f"kinds{i}") for i in range(3)]
        masks = [Signal(SELECTIONS, name=f"mask{i}") for i in range(3)]
        m.d.sync += [after.eq(before) for before, after in itertools.pairwise([kinds, *later])]
        m.d.sync += [
            after.eq(before)
            for before, after in itertools.pairwise([operands[-1].constant[:SELECTIONS], *masks])
        ]
        # For a bit that needs every comparison, `found` says that one does not hold; for other bits, that one
        # holds; in this row or those before.
        found, every = Signal(SELECTIONS), Signal(SELECTIONS)
        found_before, every_before = Signal(SELECTIONS), Signal(SELECTIONS)
        for bit in range(SELECTIONS):
            entry, holds = later[1][bit % self.count], outcomes[bit % self.count]
            here = entry.compares & (entry.group == bit // self.count)
            m.d.comb += [
                found[bit].eq((here & (holds ^ entry.every)) | (found_before[bit] & ~first)),
                every[bit].eq((here & entry.every) | (every_before[bit] & ~first)),
            ]
        bits, admits, kind = Signal(SELECTIONS), Signal(), later[2][-1]
        with m.If(valid):
            m.d.sync += [found_before.eq(found), every_before.eq(every)]
        m.d.sync += [bits.eq(found ^ every), self.bits.eq(bits)]
        # The mask needs all of its bits, or any.
        misses = (masks[2] & (bits ^ kind.every.replicate(SELECTIONS))).any()
        m.d.sync += admits.eq(kind.admits & (misses ^ kind.every))
        return admits
