"""Probe queue: the probes that an execution unit knows of."""

from __future__ import annotations

from amaranth.hdl import Array, Module, Signal
from amaranth.lib import data, wiring

from seustream.hdl import isa
from seustream.hdl.config import DeviceConfig
from seustream.hdl.control_words import ADDRESS_BITS
from seustream.hdl.layouts import Layouts

_SELECTIONS = len(isa.PROBE_SELECTION_REGISTERS)


def probe_layout(config: DeviceConfig) -> data.StructLayout:
    """A probe that waits for its pairs: its level, and the selection bits it begins with."""
    layouts = Layouts(config)
    return data.StructLayout(
        {"reference": layouts.reference, "level": layouts.level_bits, "bits": _SELECTIONS}
    )


class ProbeQueue:
    """The probe whose pairs come, and up to three after it; where a probe of each level was left.
    A part of the execution unit: in its module (`m`), at its ports.

    latency     a probe that enters an empty queue is `current` 2 cycles later, as is the next
                after `commit`
    throughput  one enters and one is done a cycle

    enter, entering, may_enter, commit, rewind, resume_level, resumed, resume, resume_slot,
    level, context, busy        ports of the unit
    current     register of the unit for the probe whose pairs come
    left        what the unit joins, `slot` and `pc`: where `current` is left with `rewind`
    resumed, resumed_slot, resumed_pc   `current` was left, and where
    """

    def __init__(
        self, m: Module, unit: wiring.Component, current: data.View, left: data.View
    ) -> None:
        layouts = unit.layouts
        queue = Array(Signal(current.shape(), name=f"probe_{i}") for i in range(4))
        first, end = Signal(3), Signal(3)
        with m.If(unit.enter):
            m.d.sync += [queue[end[:2]].eq(unit.entering), end.eq(end + 1)]
        with m.If(unit.commit):
            m.d.sync += first.eq(first + 1)
        with m.If(unit.rewind):
            m.d.sync += [first.eq(0), end.eq(0)]
        # One less than there is room for: `enter` may be on its way.
        m.d.sync += unit.may_enter.eq((end - first)[:3] < 3)
        m.d.comb += unit.busy.eq(end != first)
        # The first of the queue, two cycles after `commit`: none needs to know it earlier.
        m.d.sync += current.eq(queue[first[:2]])
        m.d.comb += [
            unit.level.eq(current.level),
            unit.context.eq(current.reference.context),
        ]
        resumes = Array(Signal(name=f"resume_{n}") for n in range(layouts.levels))
        slots = Array(Signal(layouts.slot_bits, name=f"slot_{n}") for n in range(layouts.levels))
        pcs = Array(Signal(ADDRESS_BITS, name=f"pc_{n}") for n in range(layouts.levels))
        # Of each level, whether the probe that was left has yet to be taken up again.
        pending = Array(Signal(name=f"pending_{n}") for n in range(layouts.levels))
        with m.If(unit.resumed):
            m.d.sync += pending[unit.resume_level].eq(0)
        with m.If(unit.rewind):
            m.d.sync += [
                pending[n].eq(resumes[n] | (n == current.level)) for n in range(layouts.levels)
            ]
        m.d.comb += [
            unit.resume.eq(pending[unit.resume_level]),
            unit.resume_slot.eq(slots[unit.resume_level]),
        ]
        level = current.level
        with m.If(unit.commit):
            m.d.sync += resumes[level].eq(0)
        with m.If(unit.rewind):
            m.d.sync += [
                resumes[level].eq(1),
                slots[level].eq(left.slot),
                pcs[level].eq(left.pc),
            ]
        self.resumed_slot, self.resumed_pc = slots[level], pcs[level]
        self.resumed = resumes[level]
