"""Probe FIFO: probes waiting before a join area."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Module, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from seustream.hdl.config import DeviceConfig
from seustream.hdl.layouts import Layouts

IN_FLIGHT = 7
"""Probes that may come after `room` was last seen high: on the way from router or sequencer."""
_RAW_DEPTH = 64
"""Places for raw tuples, which bring what they carry: as many as are on their way through an area."""


class ProbeFifo(wiring.Component):
    """One queue a level, a level being how many streams a probe carries short of one. Raw tuples, which
    are of level 0, come by themselves and bring what they carry.

    A probe stays in its queue while it is worked on: `take` reads on, `commit` lets the
    oldest one taken go, `rewind` takes back all that were taken and not let go. That is
    how an area turns to other work when it cannot go on with a probe.

    latency     take: `reference` 1 cycle later
    throughput  one push, one raw push, one take, one commit a cycle

    push, push_level, pushed    a joined tuple comes in
    push_raw, raw_pushed        a raw tuple does
    room                        by level, there is room; may be late by `IN_FLIGHT` pushes
    available                   by level, there is a probe to take
    waiting                     by level, there is a probe not let go; a cycle late
    take, take_level, reference
    raw                         what was taken, if it was of level 0; until the next is taken
    commit, commit_level
    rewind
    """

    def __init__(self, config: DeviceConfig) -> None:
        self.config = config
        self.layouts = layouts = Layouts(config)
        # A power of two, so that pointers wrap by themselves.
        self.depth = 1 << ceil_log2(config.probe_fifo_depth + IN_FLIGHT)
        # By level, how many wait at most while there is room.
        of_raw = min(config.probe_fifo_depth, _RAW_DEPTH - IN_FLIGHT)
        self.waiting_at_most = [of_raw, *[config.probe_fifo_depth] * (layouts.levels - 1)]
        levels, level = layouts.levels, layouts.level_bits
        super().__init__(
            {
                "push": In(1),
                "push_level": In(level),
                "pushed": In(layouts.reference),
                "push_raw": In(1),
                "raw_pushed": In(layouts.raw_probe),
                "room": Out(levels),
                "available": Out(levels),
                "waiting": Out(levels),
                "take": In(1),
                "take_level": In(level),
                "reference": Out(layouts.reference),
                "raw": Out(layouts.raw_probe),
                "commit": In(1),
                "commit_level": In(level),
                "rewind": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        levels, bits = self.layouts.levels, ceil_log2(self.depth)
        ends, taken, kept = (
            Array(Signal(bits + 1, name=f"{name}_{level}") for level in range(levels))
            for name in ("end", "taken", "kept")
        )
        m.submodules.raws = raws = memory.Memory(
            shape=self.layouts.raw_probe, depth=_RAW_DEPTH, init=[]
        )
        write, read = raws.write_port(), raws.read_port()
        m.d.comb += [
            write.addr.eq(ends[0]),
            write.data.eq(self.raw_pushed),
            write.en.eq(self.push_raw),
            read.addr.eq(taken[0]),
            read.en.eq(self.take & (self.take_level == 0)),
            self.raw.eq(read.data),
            self.reference.context.eq(self.raw.context),
            self.reference.tag.eq(self.raw.stream),
            self.reference.stream.eq(self.raw.stream),
            self.reference.carries.eq(1 << self.raw.stream),
        ]
        with m.If(self.push_raw):
            m.d.sync += ends[0].eq(ends[0] + 1)
        if levels > 1:
            m.submodules.probes = probes = memory.Memory(
                shape=self.layouts.reference, depth=(levels - 1) * self.depth, init=[]
            )
            write, read = probes.write_port(), probes.read_port()
            joined = Signal()  # is what was taken
            at, from_ = (self.push_level - 1)[: len(self.push_level)], self.take_level - 1
            m.d.comb += [
                write.addr.eq(Cat(ends[self.push_level][:bits], at)),
                write.data.eq(self.pushed),
                write.en.eq(self.push),
                read.addr.eq(Cat(taken[self.take_level][:bits], from_[: len(self.take_level)])),
                read.en.eq(self.take),
            ]
            with m.If(self.take):
                m.d.sync += joined.eq(self.take_level != 0)
            with m.If(joined):
                m.d.comb += self.reference.eq(read.data)
            with m.If(self.push):
                m.d.sync += ends[self.push_level].eq(ends[self.push_level] + 1)
        for level in range(levels):
            m.d.comb += self.available[level].eq(ends[level] != taken[level])
            m.d.sync += self.waiting[level].eq(ends[level] != kept[level])
            m.d.sync += self.room[level].eq(
                (ends[level] - kept[level])[: bits + 1] < self.waiting_at_most[level]
            )
        with m.If(self.take):
            m.d.sync += taken[self.take_level].eq(taken[self.take_level] + 1)
        with m.If(self.commit):
            m.d.sync += kept[self.commit_level].eq(kept[self.commit_level] + 1)
        with m.If(self.rewind):
            m.d.sync += [taken[level].eq(kept[level]) for level in range(levels)]
        return m
