"""Selection unit: the door of the device."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from seustream.hdl.config import DeviceConfig
from seustream.hdl.control_words import SelectionEntry, Target
from seustream.hdl.factors import decide
from seustream.hdl.layouts import SELECTIONS, STREAM_BITS, Layouts
from seustream.hdl.table_bus import write_signature


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
    make selection bits, masks of bits let the tuple in. A tick goes by.

    latency     5 cycles and one an entry after the first
    throughput  as latency

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

        # A raw tuple waits at the door, so that outside hears from a register whether to come.
        door, waits = Signal(self.layouts.raw, reset_less=True), Signal()
        enters = Signal()
        m.d.comb += self.raw.ready.eq(~waits & ~self.pause)
        with m.If(self.raw.ready):
            m.d.sync += [door.eq(self.raw.payload), waits.eq(self.raw.valid)]
        with m.Elif(enters):
            m.d.sync += waits.eq(0)

        raw = Signal(self.layouts.raw)
        replayed = Signal()
        address = Signal(address_bits)
        at = Signal(address_bits)
        which = Signal(STREAM_BITS)
        m.d.comb += [
            read.addr.eq(Cat(at, self.half, which)),
            read.en.eq(1),
            which.eq(raw.stream),
            at.eq(address),
        ]
        # An entry is compared in one cycle, its outcome used in the next.
        compared, entry = Signal(shape), Signal(shape)
        bits, collected = Signal(SELECTIONS), Signal(SELECTIONS)
        started, held, outcome, next_outcome = Signal(), Signal(), Signal(), Signal()
        value = Signal(config.attribute_width)
        constant = compared.constant[: config.attribute_width]
        m.d.comb += [
            value.eq(raw.attributes[compared.attribute]),
            next_outcome.eq(decide(compared.condition, value < constant, value == constant)),
            held.eq(
                Mux(
                    entry.first,
                    outcome,
                    Mux(entry.every, started & outcome, started | outcome),
                )
            ),
            collected.eq(bits),
        ]
        with m.If(~entry.admits):
            m.d.comb += collected.bit_select(entry.bit, 1).eq(held)
        lets_in = Signal()
        mask = entry.constant[:SELECTIONS]
        m.d.comb += lets_in.eq(entry.admits & ~entry.first & ~(mask & ~bits).any())
        m.d.sync += [
            address.eq(at + 1),
            compared.eq(read.data),
            entry.eq(compared),
            outcome.eq(next_outcome),
        ]

        m.d.sync += [self.known.eq(0), self.bits.eq(collected)]
        # What leaves is written whenever there is a place for it, and counts when it is said to.
        result = self.selected.payload
        free, nothing = Signal(), Signal()
        m.d.comb += free.eq(~self.selected.valid | self.selected.ready)
        with m.If(free):
            m.d.sync += [
                self.selected.valid.eq(0),
                result.raw.eq(raw),
                result.bits.eq(Mux(nothing, 0, collected)),
                result.admitted.eq(~nothing & lets_in),
            ]
        with m.FSM() as fsm:
            with m.State("IDLE"):
                m.d.comb += [at.eq(0), which.eq(Mux(self.again, self.stream, door.stream))]
                m.d.sync += [raw.eq(door), replayed.eq(self.again)]
                with m.If(self.again):
                    m.d.sync += [raw.stream.eq(self.stream), raw.attributes.eq(self.attributes)]
                    m.next = "ENTER"
                with m.Elif(waits):
                    m.d.comb += enters.eq(1)
                    with m.If(door.admit & ~door.filler):
                        m.next = "ENTER"
                    with m.Else():
                        m.next = "TICK"
                m.d.sync += bits.eq(0)
            with m.State("ENTER"):
                m.next = "COMPARE"
            with m.State("COMPARE"):
                m.next = "ENTRIES"
            with m.State("ENTRIES"):
                m.d.sync += [bits.eq(collected), started.eq(held)]
                ends = entry.last | (lets_in & ~replayed)
                with m.If(ends & replayed):
                    m.d.sync += self.known.eq(1)
                    m.next = "IDLE"
                with m.Elif(ends & free):
                    m.d.sync += self.selected.valid.eq(1)
                    m.next = "IDLE"
                with m.Elif(ends):
                    m.d.comb += self.blocked.eq(1)
                    # The entry must not move on while the result waits.
                    m.d.sync += [
                        entry.eq(entry),
                        outcome.eq(outcome),
                        bits.eq(bits),
                        started.eq(started),
                    ]
            with m.State("TICK"):
                m.d.comb += nothing.eq(1)
                m.d.comb += self.blocked.eq(~free)
                with m.If(free):
                    m.d.sync += self.selected.valid.eq(1)
                    m.next = "IDLE"
        nothing_here = fsm.ongoing("IDLE") & ~waits & ~self.again
        m.d.comb += self.working.eq(~nothing_here & ~self.blocked)
        m.d.comb += self.idle.eq(fsm.ongoing("IDLE") & ~waits & ~self.selected.valid)
        return m
