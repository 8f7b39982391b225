"""Program store: holds an area's program, facts derived from it, and the destinations of its route tags."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from seustream.hdl import isa
from seustream.hdl.config import DeviceConfig
from seustream.hdl.control_words import ADDRESS_BITS, Target
from seustream.hdl.decoding import FIELDS, PATTERNS
from seustream.hdl.factors import FACTOR
from seustream.hdl.layouts import TAG_BITS, Layouts
from seustream.hdl.ports import TableBus

_FACTORS = len(isa.FACTOR_REGISTERS)


class ProgramStore(wiring.Component):
    """Writes an area's program and all destinations from the table bus to the half that is not
    in use, and derives the factors of each program from its CMPs.

    latency     3 cycles from a word of the program to its place, 1 for a destination
    throughput  a word per cycle, those of a program in order; every read port, one read per cycle

    tables         in: table bus (`TableBus`), whose `half` counts from the next cycle on
    factors, used, last_turn   out: CMPs of the program, their number, and the last turn of a row
    last           out: address of its last instruction
    start          out: address after the leading run of CMPs (without lanes: 0)
    sources        out: per factor register, the factor of the last leading CMP that writes it
    address, take  in: read the instruction at this address
    instruction    out: its word, the factor of a CMP, and whether it is a JOIN; a cycle later
    tag, destination   in, out: a route tag; where it leads, a cycle later
    """

    def __init__(self, config: DeviceConfig, number: int) -> None:
        self.config, self.number = config, number
        self.layouts = layouts = Layouts(config)
        factor_bits = ceil_log2(max(2, config.factors))
        self.word = data.StructLayout({"word": isa.WORD_BITS, "factor": factor_bits, "join": 1})
        source = data.StructLayout({"factor": factor_bits, "known": 1})
        super().__init__(
            {
                "tables": In(TableBus()),
                "factors": Out(data.ArrayLayout(FACTOR, config.factors)),
                "used": Out(range(config.factors + 1)),
                "last_turn": Out(range(config.turns)),
                "last": Out(ADDRESS_BITS),
                "start": Out(ADDRESS_BITS),
                "sources": Out(data.ArrayLayout(source, _FACTORS)),
                "address": In(ADDRESS_BITS),
                "take": In(1),
                "instruction": Out(self.word),
                "tag": In(TAG_BITS),
                "destination": Out(layouts.destination),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, bus = self.config, self.tables
        # Copy for the block RAM, which lies elsewhere. A different reset value keeps synthesis from merging the two.
        half, half_read = Signal(), Signal(init=1)
        m.d.sync += [half.eq(self.tables.half), half_read.eq(self.tables.half)]
        other, factor_bits = ~half, len(self.instruction.factor)
        last = Array(Signal(ADDRESS_BITS, name=f"last_{h}") for h in range(2))
        start = Array(Signal(ADDRESS_BITS, name=f"start_{h}") for h in range(2))
        used = Array(Signal(range(config.factors + 1), name=f"used_{h}") for h in range(2))
        last_turn = Array(Signal(range(config.turns), name=f"last_turn_{h}") for h in range(2))
        factors = Array(Signal(self.factors.shape(), name=f"factors_{h}") for h in range(2))
        sources = Array(Signal(self.sources.shape(), name=f"sources_{h}") for h in range(2))
        m.submodules.instructions = instructions = memory.Memory(
            shape=self.word, depth=2 << ADDRESS_BITS, init=[]
        )
        write, read = instructions.write_port(), instructions.read_port()
        m.d.comb += [
            read.addr.eq(Cat(self.address, half_read)),
            read.en.eq(self.take),
            self.instruction.eq(read.data),
        ]
        # First stage: classify the word. Second stage: derive its factor, comparator and turn.
        mine, begins, is_cmp, is_join = Signal(), Signal(), Signal(), Signal()
        word, address = Signal(isa.WORD_BITS), Signal(ADDRESS_BITS)
        m.d.sync += [
            mine.eq(bus.valid & (bus.unit == self.number) & (bus.target == Target.INSTRUCTION)),
            begins.eq(bus.address == 0),
            is_cmp.eq(bus.data[: isa.WORD_BITS].matches(PATTERNS[isa.Cmp])),
            is_join.eq(bus.data[: isa.WORD_BITS].matches(PATTERNS[isa.Emit])),
            word.eq(bus.data[: isa.WORD_BITS]),
            address.eq(bus.address),
        ]
        used_so_far, leading_so_far = Signal(range(config.factors + 1)), Signal()
        number, after = Signal.like(used_so_far), Signal.like(used_so_far)
        still = Signal()
        # Factors of the same attributes go to the same comparators, to each in turn.
        few, alike = config.kinds, config.comparators_alike
        before = [Signal(range(config.factors + 1), name=f"before_{k}") for k in range(few)]
        kind, place = Signal(ceil_log2(few)), Signal(range(config.factors + 1))
        # Third stage: a register, so that no adder is on the path to a table.
        stored = Signal(
            data.StructLayout(
                {"mine": 1, "begins": 1, "cmp": 1, "join": 1, "still": 1, "number": number.shape(),
                 "kind": kind.shape(), "place": place.shape(),
                 "word": isa.WORD_BITS, "address": ADDRESS_BITS}
            )
        )  # fmt: skip
        m.d.comb += [
            number.eq(Mux(begins, 0, used_so_far)),
            after.eq(number + is_cmp),
            still.eq(begins | leading_so_far),
            kind.eq(data.View(FIELDS[isa.Cmp], word).window_attribute),
            place.eq(Mux(begins, 0, Array(before)[kind] if few > 1 else before[0])),
        ]
        with m.If(mine):
            m.d.sync += [used_so_far.eq(after), leading_so_far.eq(still & is_cmp)]
            for number_of_kind, count in enumerate(before):
                more = is_cmp & (kind == number_of_kind)
                m.d.sync += count.eq(Mux(begins, 0, count) + more)
        m.d.sync += [
            stored.mine.eq(mine),
            stored.begins.eq(begins),
            stored.cmp.eq(is_cmp),
            stored.join.eq(is_join),
            stored.still.eq(still),
            stored.number.eq(number),
            stored.kind.eq(kind),
            stored.place.eq(place),
            stored.word.eq(word),
            stored.address.eq(address),
        ]
        cmp = data.View(FIELDS[isa.Cmp], stored.word)
        among, turn = ceil_log2(alike), Signal(4)
        comparator = Signal(4)
        m.d.comb += [
            turn.eq(stored.place >> among),
            comparator.eq(Cat(stored.kind, stored.place[:among])),
            write.addr.eq(Cat(stored.address, other)),
            write.data.word.eq(stored.word),
            write.data.factor.eq(stored.number),
            write.data.join.eq(stored.join),
            write.en.eq(stored.mine),
        ]
        with m.If(stored.mine):
            with m.If(stored.begins):
                m.d.sync += [sources[other].eq(0), last_turn[other].eq(0)]
            m.d.sync += [
                last[other].eq(stored.address),
                used[other].eq(stored.number + stored.cmp),
            ]
            with m.If(stored.still):
                # Without lanes the execution unit compares by itself, from the beginning.
                m.d.sync += start[other].eq(stored.address if config.lanes else 0)
            with m.If(stored.cmp):
                m.d.sync += factors[other][stored.number].eq(
                    Cat(cmp.window_attribute, cmp.probe_stream, cmp.probe_attribute,
                        cmp.condition, cmp.r[:4], comparator, turn)
                )  # fmt: skip
                with m.If(turn > last_turn[other]):
                    m.d.sync += last_turn[other].eq(turn)
                with m.If(stored.still):
                    m.d.sync += sources[other][cmp.r[:4]].eq(Cat(stored.number[:factor_bits], 1))
        # Registers are possible: the halves are exchanged only when nothing is executed.
        m.d.comb += self.last.eq(last[half])
        m.d.sync += [
            self.factors.eq(factors[half]),
            self.used.eq(used[half]),
            self.last_turn.eq(last_turn[half]),
            self.start.eq(start[half]),
            self.sources.eq(sources[half]),
        ]

        # Destinations by route tag.
        m.submodules.destinations = destinations = memory.Memory(
            shape=self.layouts.destination, depth=2 << TAG_BITS, init=[]
        )
        write, read = destinations.write_port(), destinations.read_port()
        m.d.comb += [
            write.addr.eq(Cat(bus.address[:TAG_BITS], other)),
            write.data.eq(bus.data[: len(write.data.as_value())]),
            write.en.eq(bus.valid & (bus.target == Target.DESTINATION)),
            read.addr.eq(Cat(self.tag, half_read)),
            read.en.eq(1),
            self.destination.eq(read.data),
        ]
        return m
