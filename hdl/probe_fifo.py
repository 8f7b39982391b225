"""Probe FIFO: holds the probes that wait for a join area."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from seustream.hdl.config import DeviceConfig
from seustream.hdl.layouts import CONTEXT_BITS, STREAM_BITS, Layouts
from seustream.hdl.ports import JoinedProbes, RawProbes

IN_FLIGHT = 7
"""Probes that may still arrive after `room` was last seen high: in flight from router or sequencer."""
_BROUGHT, _RAW_IN_FLIGHT = 16, 5
"""Places for the data that raw tuples bring; and how many raw tuples may still arrive after `room` was last seen
high, fewer than joined ones because the sequencer is nearer than the router."""


class ProbeFifo(wiring.Component):
    """Keeps one queue per level; the level of a probe is the number of streams that it carries, less one. Raw
    tuples, which have level 0, enter by a port of their own and bring their data along.

    A probe stays in its queue while it is in process: `take` reads the next one, `commit` releases the
    oldest one taken, `rewind` puts back all that were taken and not released. This is how an area turns to
    other work when it cannot continue with a probe. The data of raw tuples is given once, in their order and
    at any time; a raw tuple that is taken again has its data fetched like that of a joined tuple.

    latency     take: `reference` 1 cycle later
    throughput  one push, one raw push, one take, one give and one commit per cycle

    joined_probes   in (`JoinedProbes`)
    raw_probes      in (`RawProbes`)
    available       out: by level, there is a probe to take in the next cycle, unless a rewind comes
    waiting         out: by level, there is a probe not released; a cycle late
    take            in: pulse: take a probe
    take_level      in: its level, valid with `take`
    reference       out: it (`Layouts.reference`), from the next cycle until the next take
    brings          out: it is a raw tuple, taken for the first time; valid as `reference` is
    raw             out: data of the first raw tuple that is not given yet (`Layouts.brought`)
    give            in: pulse: `raw` is given
    commit          in: pulse: release the oldest probe taken of a level
    commit_level    in: that level, valid with `commit`
    rewind          in: pulse: put back all probes that are not released
    """

    def __init__(self, config: DeviceConfig) -> None:
        self.config = config
        self.layouts = layouts = Layouts(config)
        # A power of two, so that pointers wrap by themselves.
        self.depth = 1 << ceil_log2(config.probe_fifo_depth + IN_FLIGHT)
        levels, level = layouts.levels, layouts.level_bits
        super().__init__(
            {
                "joined_probes": In(JoinedProbes(config)),
                "raw_probes": In(RawProbes(config)),
                "available": Out(levels),
                "waiting": Out(levels),
                "take": In(1),
                "take_level": In(level),
                "reference": Out(layouts.reference),
                "brings": Out(1),
                "raw": Out(layouts.brought),
                "give": In(1),
                "commit": In(1),
                "commit_level": In(level),
                "rewind": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        levels, bits = self.layouts.levels, ceil_log2(self.depth)
        raw, pushed = self.raw_probes, self.joined_probes
        ends, taken, kept = (
            Array(Signal(bits + 1, name=f"{name}_{level}") for level in range(levels))
            for name in ("end", "taken", "kept")
        )
        who = data.StructLayout({"context": CONTEXT_BITS, "stream": STREAM_BITS})
        m.submodules.raws = raws = memory.Memory(shape=who, depth=self.depth, init=[])
        m.submodules.brought = brought = memory.Memory(
            shape=self.layouts.brought, depth=_BROUGHT, init=[]
        )
        write, write_brought = raws.write_port(), brought.write_port()
        read, read_brought = raws.read_port(), brought.read_port()
        # First raw tuple never taken, and first whose data is not given; a rewind does not change them.
        fresh, is_fresh, of_raw = Signal(bits + 1, name="fresh"), Signal(), Signal()
        given, given_next = Signal(bits + 1, name="given"), Signal(bits + 1)
        after_given = Signal(bits + 1, init=1)  # keeps the adder off the path to the memory
        m.d.comb += [
            of_raw.eq(self.take & (self.take_level == 0)),
            is_fresh.eq(taken[0] == fresh),
            *(port.addr.eq(ends[0]) for port in (write, write_brought)),
            *(port.en.eq(raw.push) for port in (write, write_brought)),
            write.data.context.eq(raw.pushed.context),
            write.data.stream.eq(raw.pushed.stream),
            write_brought.data.eq(raw.pushed.brought),
            read.addr.eq(taken[0]),
            read.en.eq(of_raw),
            given_next.eq(Mux(self.give, after_given, given)),
            read_brought.addr.eq(given_next),
            read_brought.en.eq(1),
            self.raw.eq(read_brought.data),
            self.reference.context.eq(read.data.context),
            self.reference.tag.eq(read.data.stream),
            self.reference.stream.eq(read.data.stream),
            self.reference.carries.eq(1 << read.data.stream),
        ]
        m.d.sync += given.eq(given_next)
        with m.If(self.give):
            m.d.sync += after_given.eq(after_given + 1)
        with m.If(raw.push):
            m.d.sync += ends[0].eq(ends[0] + 1)
        with m.If(self.take):
            m.d.sync += self.brings.eq(of_raw & is_fresh)
        with m.If(of_raw & is_fresh & ~self.rewind):
            m.d.sync += fresh.eq(fresh + 1)
        if levels > 1:
            m.submodules.probes = probes = memory.Memory(
                shape=self.layouts.reference, depth=(levels - 1) * self.depth, init=[]
            )
            write, read = probes.write_port(), probes.read_port()
            joined = Signal()  # the probe taken last is a joined tuple
            at, from_ = (pushed.level - 1)[: len(pushed.level)], self.take_level - 1
            m.d.comb += [
                write.addr.eq(Cat(ends[pushed.level][:bits], at)),
                write.data.eq(pushed.pushed),
                write.en.eq(pushed.push),
                read.addr.eq(Cat(taken[self.take_level][:bits], from_[: len(self.take_level)])),
                read.en.eq(self.take),
            ]
            with m.If(self.take):
                m.d.sync += joined.eq(self.take_level != 0)
            with m.If(joined):
                m.d.comb += self.reference.eq(read.data)
            with m.If(pushed.push):
                m.d.sync += ends[pushed.level].eq(ends[pushed.level] + 1)
        for level in range(levels):
            takes = self.take & (self.take_level == level)
            more = ends[level] != (taken[level] + 1)[: bits + 1]
            m.d.comb += self.available[level].eq(Mux(takes, more, ends[level] != taken[level]))
            m.d.sync += self.waiting[level].eq(ends[level] != kept[level])
            waits = (ends[level] - kept[level])[: bits + 1]
            room = waits < self.config.probe_fifo_depth
            if level == 0:
                room &= (ends[0] - given)[: bits + 1] < _BROUGHT - _RAW_IN_FLIGHT
            m.d.sync += pushed.room[level].eq(room)
        m.d.comb += raw.room.eq(pushed.room[0])
        with m.If(self.take):
            m.d.sync += taken[self.take_level].eq(taken[self.take_level] + 1)
        with m.If(self.commit):
            m.d.sync += kept[self.commit_level].eq(kept[self.commit_level] + 1)
        with m.If(self.rewind):
            m.d.sync += [taken[level].eq(kept[level]) for level in range(levels)]
        return m
