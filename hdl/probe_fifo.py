"""Probe FIFO: probes waiting before a join area."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Module, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from seustream.hdl.config import DeviceConfig
from seustream.hdl.layouts import Layouts

IN_FLIGHT = 7
"""Probes that may come after `room` was last seen high: on the way from the router."""


class ProbeFifo(wiring.Component):
    """One queue a level, a level being how many streams a probe carries short of one.

    A probe stays in its queue while it is worked on: `take` reads on, `commit` lets the
    oldest one taken go, `rewind` takes back all that were taken and not let go. That is
    how an area turns to other work when it cannot go on with a probe.

    latency     take: `reference` 1 cycle later
    throughput  one push, one take, one commit a cycle

    push, push_level, pushed    a probe comes in
    room                        by level, there is room; may be late by `IN_FLIGHT` pushes
    available                   by level, there is a probe to take; a cycle late
    waiting                     by level, there is a probe not let go; a cycle late
    take, take_level, reference
    commit, commit_level
    rewind
    """

    def __init__(self, config: DeviceConfig) -> None:
        self.config = config
        self.layouts = layouts = Layouts(config)
        # A power of two, so that pointers wrap by themselves.
        self.depth = 1 << ceil_log2(config.probe_fifo_depth + IN_FLIGHT)
        levels, level = layouts.levels, layouts.level_bits
        super().__init__(
            {
                "push": In(1),
                "push_level": In(level),
                "pushed": In(layouts.reference),
                "room": Out(levels),
                "available": Out(levels),
                "waiting": Out(levels),
                "take": In(1),
                "take_level": In(level),
                "reference": Out(layouts.reference),
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
        m.submodules.probes = probes = memory.Memory(
            shape=self.layouts.reference, depth=levels * self.depth, init=[]
        )
        write, read = probes.write_port(), probes.read_port()
        m.d.comb += [
            write.addr.eq(Cat(ends[self.push_level][:bits], self.push_level)),
            write.data.eq(self.pushed),
            write.en.eq(self.push),
            read.addr.eq(Cat(taken[self.take_level][:bits], self.take_level)),
            read.en.eq(self.take),
            self.reference.eq(read.data),
        ]
        for level in range(levels):
            m.d.sync += self.available[level].eq(ends[level] != taken[level])
            m.d.sync += self.waiting[level].eq(ends[level] != kept[level])
            m.d.sync += self.room[level].eq(
                (ends[level] - kept[level])[: bits + 1] < self.config.probe_fifo_depth
            )
        with m.If(self.push):
            m.d.sync += ends[self.push_level].eq(ends[self.push_level] + 1)
        with m.If(self.take):
            m.d.sync += taken[self.take_level].eq(taken[self.take_level] + 1)
        with m.If(self.commit):
            m.d.sync += kept[self.commit_level].eq(kept[self.commit_level] + 1)
        with m.If(self.rewind):
            m.d.sync += [taken[level].eq(kept[level]) for level in range(levels)]
        return m
