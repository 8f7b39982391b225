"""Probe queue: the probes that an execution unit knows of."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, memory, wiring
from amaranth.utils import ceil_log2

from seustream.hdl import isa
from seustream.hdl.config import DeviceConfig
from seustream.hdl.control_words import ADDRESS_BITS, ROW_BITS, ROWS_BITS
from seustream.hdl.layouts import Layouts

KNOWN = 32
_SELECTIONS = len(isa.PROBE_SELECTION_REGISTERS)


def probe_layout(config: DeviceConfig) -> data.StructLayout:
    """A probe that waits for its pairs: its level, the selection bits it begins with, and which rows
    its pairs are joined by."""
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


class ProbeQueue:
    """The probe whose pairs are decided, the one whose joined tuples are sent, and all that wait, up
    to thirty-two; where a probe of each level was left. A part of the execution unit: in its module
    (`m`), at its ports.

    latency     a probe that enters an empty queue is `deciding` and `sending` 2 cycles later; the next
                is `deciding` in the cycle after `decided`, and `sending` in the one after `sent`
    throughput  one enters, one is decided and one is done a cycle

    enter, entering, may_enter, commit, rewind, resume_level, resumed, resume, resume_slot,
    level, committed_level, context, busy    ports of the unit
    decided        pulse of the unit: all pairs of `deciding` have come
    sent           pulse of the unit: `sending` is done; `commit` is a cycle later
    left           what the unit emits, `slot` and `pc`: where `sending` is left with `rewind`
    deciding, sending           registers
    resumed, resumed_slot, resumed_pc   `deciding` was left, and where
    same_level     the probe after `sending`, if there is one, is of its level; a cycle late
    """

    def __init__(
        self, m: Module, unit: wiring.Component, decided: Value, sent: Value, left: data.View
    ) -> None:
        layouts = unit.layouts
        shape = probe_layout(unit.config)
        kept = data.StructLayout({"probe": shape, "resumed": 1})
        m.submodules.queue = queue = memory.Memory(shape=kept, depth=KNOWN, init=[])
        bits = ceil_log2(KNOWN)
        end, to_decide, to_send = (
            Signal(bits + 1, name=name) for name in ("end", "to_decide", "to_send")
        )
        write = queue.write_port()
        m.d.comb += [
            write.addr.eq(end[:-1]),
            write.data.probe.eq(unit.entering),
            write.data.resumed.eq(unit.resume),
            write.en.eq(unit.enter),
        ]
        m.d.sync += [
            end.eq(end + unit.enter),
            to_decide.eq(to_decide + decided),
            to_send.eq(to_send + sent),
        ]
        with m.If(unit.rewind):
            m.d.sync += Cat(end, to_decide, to_send).eq(0)
        # One less than there is room for: `enter` may be on its way.
        m.d.sync += unit.may_enter.eq((end - to_send)[: bits + 1] < KNOWN - 1)
        m.d.comb += unit.busy.eq(end != to_send)
        self.deciding, self.sending = Signal(shape), Signal(shape)
        self.resumed = Signal()
        decides, decides_next, sends, sends_next = (
            queue.read_port(domain="comb") for _ in range(4)
        )
        level = self.sending.level
        self.same_level = Signal()
        m.d.sync += self.same_level.eq(sends_next.data.probe.level == level)
        m.d.comb += [
            decides.addr.eq(to_decide[:bits]),
            decides_next.addr.eq(to_decide[:bits] + 1),
            sends.addr.eq(to_send[:bits]),
            sends_next.addr.eq(to_send[:bits] + 1),
            unit.level.eq(level),
        ]
        m.d.sync += [
            Cat(self.deciding, self.resumed).eq(Mux(decided, decides_next.data, decides.data)),
            self.sending.eq(Mux(sent, sends_next.data.probe, sends.data.probe)),
            unit.committed_level.eq(level),
            unit.context.eq(self.sending.reference.context),
        ]

        resumes = Array(Signal(name=f"resume_{n}") for n in range(layouts.levels))
        slots = Array(Signal(layouts.slot_bits, name=f"slot_{n}") for n in range(layouts.levels))
        pcs = Array(Signal(ADDRESS_BITS, name=f"pc_{n}") for n in range(layouts.levels))
        # Of each level, whether the probe that was left has yet to be taken up again.
        pending = Array(Signal(name=f"pending_{n}") for n in range(layouts.levels))
        with m.If(unit.resumed):
            m.d.sync += pending[unit.resume_level].eq(0)
        with m.If(unit.rewind):
            m.d.sync += [pending[n].eq(resumes[n] | (n == level)) for n in range(layouts.levels)]
        m.d.comb += [
            unit.resume.eq(pending[unit.resume_level]),
            unit.resume_slot.eq(slots[unit.resume_level]),
        ]
        with m.If(unit.commit):
            m.d.sync += resumes[unit.committed_level].eq(0)
        with m.If(unit.rewind):
            m.d.sync += [
                resumes[level].eq(1),
                slots[level].eq(left.slot),
                pcs[level].eq(left.pc),
            ]
        self.resumed_slot = slots[self.deciding.level]
        self.resumed_pc = pcs[self.deciding.level]
