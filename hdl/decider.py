"""Row decider: joins pairs by the join rows of their probe's route tag, without running the program."""

from __future__ import annotations

import itertools

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from seustream.hdl.config import DeviceConfig
from seustream.hdl.control_words import ADDRESS_BITS, JOIN_ROWS, NEEDS_BITS, ROW_BITS, Target
from seustream.hdl.layouts import TAG_BITS, Layouts
from seustream.hdl.ports import TableBus


def join_layout(config: DeviceConfig) -> data.StructLayout:
    """Layout of a joined tuple (`some`), the `end` of its probe, or both: its tag and slot, and the instruction
    or row that it comes from (`pc`)."""
    slot = Layouts(config).slot_bits
    return data.StructLayout(
        {"some": 1, "end": 1, "tag": TAG_BITS, "slot": slot, "pc": ADDRESS_BITS}
    )


class RowDecider(wiring.Component):
    """Looks up a row and tests whether the pair has what it needs. The ends of probes go through the same
    pipeline, so that nothing overtakes.

    latency     5 cycles
    throughput  a row per cycle

    tables         in: table bus (`TableBus`) with the rows
    asked, row     in: pulse: test a pair by this row
    ended          in: pulse, with the last `asked` of a probe or alone: the end of the probe
    has            in: what the pair has: outcomes of factors, selection bits (`Layouts.join_row`)
    level          in: level of the probe
    slot, pc       in: slot of the pair, and number of the row among those of its tag
    again          in: this row joined the pair before
    came, found    out: pulse, with a joined tuple, an end, or both
    its_level      out: level, valid with `came`
    clear          in: pulse: flush the pipeline
    """

    def __init__(self, config: DeviceConfig, number: int) -> None:
        self.config, self.number = config, number
        self.layouts = layouts = Layouts(config)
        super().__init__(
            {
                "tables": In(TableBus()),
                "asked": In(1),
                "row": In(ROW_BITS),
                "ended": In(1),
                "has": In(NEEDS_BITS),
                "slot": In(layouts.slot_bits),
                "pc": In(ADDRESS_BITS),
                "level": In(layouts.level_bits),
                "again": In(1),
                "came": Out(1),
                "found": Out(join_layout(config)),
                "its_level": Out(layouts.level_bits),
                "clear": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        layouts, bus = self.layouts, self.tables
        half = Signal()
        m.d.sync += half.eq(bus.half)  # changes only when nothing is executed
        m.submodules.rows = rows = memory.Memory(
            shape=layouts.join_row, depth=2 * JOIN_ROWS, init=[]
        )
        write, read = rows.write_port(), rows.read_port()
        m.d.comb += [
            write.addr.eq(Cat(bus.address[:ROW_BITS], ~half)),
            write.data.eq(bus.data[: layouts.join_row.size]),
            write.en.eq(bus.valid & (bus.unit == self.number) & (bus.target == Target.JOIN_ROW)),
        ]

        # Pipeline stages: address, memory, row, verdict; registers around the memory, which lies elsewhere.
        pair = data.StructLayout(
            {
                "asked": 1,
                "end": 1,
                "has": NEEDS_BITS,
                "slot": layouts.slot_bits,
                "pc": ADDRESS_BITS,
                "level": layouts.level_bits,
                "again": 1,
            }
        )
        first = Signal(pair)
        stages = [Signal(pair, name=f"pair{stage}") for stage in range(3)]
        address, row = Signal(ROW_BITS), Signal(layouts.join_row)
        m.d.comb += [
            first.asked.eq(self.asked),
            first.end.eq(self.ended),
            first.has.eq(self.has),
            first.slot.eq(self.slot),
            first.pc.eq(self.pc),
            first.level.eq(self.level),
            first.again.eq(self.again),
            read.addr.eq(Cat(address, half)),
            read.en.eq(1),
        ]
        m.d.sync += [later.eq(former) for former, later in itertools.pairwise([first, *stages])]
        m.d.sync += [address.eq(self.row), row.eq(read.data)]

        # The verdict; a JOIN takes part once, even if several of its rows hold.
        decided, joined = Signal(pair), Signal()
        holds, starts, tag = Signal(), Signal(), Signal(TAG_BITS)
        m.d.sync += [
            decided.eq(stages[-1]),
            holds.eq(~(row.needs & ~stages[-1].has).any()),
            starts.eq(row.first),
            tag.eq(row.tag),
        ]
        before = joined & ~starts
        with m.If(decided.asked):
            m.d.sync += joined.eq(before | holds)
        found = self.found
        m.d.comb += [
            found.some.eq(decided.asked & holds & ~before & ~decided.again),
            found.end.eq(decided.end),
            found.tag.eq(tag),
            found.slot.eq(decided.slot),
            found.pc.eq(decided.pc),
            self.its_level.eq(decided.level),
            self.came.eq(found.some | found.end),
        ]
        with m.If(self.clear):
            for stage in (*stages, decided):
                m.d.sync += [stage.asked.eq(0), stage.end.eq(0)]
        return m
