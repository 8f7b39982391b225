"""Probe queue: holds the probes that an execution unit has been given."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from seustream.hdl import isa
from seustream.hdl.config import DeviceConfig
from seustream.hdl.control_words import ADDRESS_BITS, ROW_BITS, ROWS_BITS
from seustream.hdl.layouts import CONTEXT_BITS, Layouts

KNOWN = 64
_SELECTIONS = len(isa.PROBE_SELECTION_REGISTERS)


def probe_layout(config: DeviceConfig) -> data.StructLayout:
    """Layout of a probe that waits for its pairs: its level, its initial selection bits, and the join rows that
    decide its pairs."""
    layouts = Layouts(config)
    return data.StructLayout(
        {
            "reference": layouts.reference,
            "level": layouts.level_bits,
            "bits": _SELECTIONS,
            "row": ROW_BITS,
            "rows": ROWS_BITS,
        }
    )


class ProbeQueue(wiring.Component):
    """Holds the probe whose pairs are being decided, the one whose joined tuples are being sent, and all that wait,
    up to sixty-three; and records where a probe of each level was left.

    latency     a probe that enters an empty queue is `deciding` and `sending` 3 cycles later; the next
                one is `deciding` in the cycle after `decided`, and `sending` in the cycle after `sent`
    throughput  one probe entered, one decided and one done per cycle

    enter, entering   in: pulse with a new probe
    may_enter      out: a probe may enter in the next cycle
    decided        in: pulse: all pairs of `deciding` have come
    sent, commit   in: pulses: `sending` is done; the same, a cycle later
    left           in: slot and program address of the tuple being emitted: where `sending` is left on `rewind`
    rewind         in: pulse: `sending` and all later probes are taken back
    resume_level, resumed   in: level of the next probe to enter; pulse: it is resumed
    resume, resume_slot     out: that probe was left before, and at which slot
    deciding, sending       out: the probes; from registers
    was_left, left_slot, left_pc   out: `deciding` was left, and where
    level          out: level of `sending`
    committed_level, context   out: valid with `commit`
    busy           out: there is a probe
    """

    def __init__(self, config: DeviceConfig) -> None:
        self.config = config
        self.layouts = layouts = Layouts(config)
        shape, level = probe_layout(config), layouts.level_bits
        place = data.StructLayout({"slot": layouts.slot_bits, "pc": ADDRESS_BITS})
        super().__init__(
            {
                "enter": In(1),
                "entering": In(shape),
                "may_enter": Out(1),
                "decided": In(1),
                "sent": In(1),
                "commit": In(1),
                "left": In(place),
                "rewind": In(1),
                "resume_level": In(level),
                "resumed": In(1),
                "resume": Out(1),
                "resume_slot": Out(layouts.slot_bits),
                "deciding": Out(shape),
                "sending": Out(shape),
                "was_left": Out(1),
                "left_slot": Out(layouts.slot_bits),
                "left_pc": Out(ADDRESS_BITS),
                "level": Out(level),
                "committed_level": Out(level),
                "context": Out(CONTEXT_BITS),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        layouts = self.layouts
        bits = ceil_log2(KNOWN)
        end, to_send = Signal(bits + 1, name="end"), Signal(bits + 1, name="to_send")
        m.d.sync += [end.eq(end + self.enter), to_send.eq(to_send + self.sent)]
        with m.If(self.rewind):
            m.d.sync += Cat(end, to_send).eq(0)
        # One less than there is room for, so that what is to be written may be there before it counts.
        size = (end - to_send)[: bits + 1]
        level = self.sending.level
        m.d.comb += [
            self.may_enter.eq(Mux(self.enter, size < KNOWN - 2, size < KNOWN - 1)),
            self.busy.eq(end != to_send),
            self.level.eq(level),
        ]
        m.d.sync += [
            self.committed_level.eq(level),
            self.context.eq(self.sending.reference.context),
        ]
        # Each output of the queue has a memory of its own, because they need different parts of a probe.
        entering = Cat(self.entering, self.resume)
        self._leave(m, "decided", end, entering, self.decided, Cat(self.deciding, self.was_left))
        self._leave(m, "sent", end, self.entering.as_value(), self.sent, self.sending.as_value())

        resumes = Array(Signal(name=f"resume_{n}") for n in range(layouts.levels))
        slots = Array(Signal(layouts.slot_bits, name=f"slot_{n}") for n in range(layouts.levels))
        pcs = Array(Signal(ADDRESS_BITS, name=f"pc_{n}") for n in range(layouts.levels))
        # By level, the probe that was left has yet to be resumed.
        pending = Array(Signal(name=f"pending_{n}") for n in range(layouts.levels))
        with m.If(self.resumed):
            m.d.sync += pending[self.resume_level].eq(0)
        with m.If(self.rewind):
            m.d.sync += [pending[n].eq(resumes[n] | (n == level)) for n in range(layouts.levels)]
        m.d.comb += [
            self.resume.eq(pending[self.resume_level]),
            self.resume_slot.eq(slots[self.resume_level]),
            self.left_slot.eq(slots[self.deciding.level]),
            self.left_pc.eq(pcs[self.deciding.level]),
        ]
        with m.If(self.commit):
            m.d.sync += resumes[self.committed_level].eq(0)
        with m.If(self.rewind):
            m.d.sync += [
                resumes[level].eq(1),
                slots[level].eq(self.left.slot),
                pcs[level].eq(self.left.pc),
            ]
        return m

    def _leave(
        self, m: Module, name: str, end: Signal, entering: Value, leaves: Signal, first: Value
    ) -> None:
        """Keeps the first probe and the one after it in registers, so that the next one follows without a gap."""
        m.submodules[f"queue_{name}"] = queue = memory.Memory(
            shape=len(entering), depth=KNOWN, init=[]
        )
        write, read = queue.write_port(), queue.read_port(domain="comb")
        got = Signal(len(end), name=f"got_{name}")
        after = Signal(len(entering), name=f"after_{name}")
        have, have_after = Signal(name=f"have_{name}"), Signal(name=f"have_after_{name}")
        more, moves = got != end, ~have | leaves
        m.d.comb += [
            write.addr.eq(end[:-1]),
            write.data.eq(entering),
            write.en.eq(self.enter),
            read.addr.eq(got[:-1]),
        ]
        with m.If(~have_after | moves):
            m.d.sync += [after.eq(read.data), have_after.eq(more), got.eq(got + more)]
        with m.If(moves):
            m.d.sync += [first.eq(after), have.eq(have_after)]
        with m.If(self.rewind):
            m.d.sync += Cat(have, have_after, got).eq(0)
