"""Chain walker: finds the window tuples that a probe may join, by the equality index."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from seustream.hdl.config import DeviceConfig
from seustream.hdl.factors import BUFFER_BITS
from seustream.hdl.layouts import Layouts
from seustream.hdl.loader import staged_layout
from seustream.hdl.ports import IndexLookup

PROBES = 5
"""Probes walked at once: as many as there are cycles between two steps along a chain."""
BEGUN = 16
"""Probes held before their walk, and as many again from the walk on: those being walked, and those whose walk is
complete but whose candidates wait for the probes before them."""
_WAITING = 8
_OFTEN_BITS = 4
_LONG_BITS = 3
_TRIED_BITS = 4
"""A chain of at least 2^`_LONG_BITS` candidates is remembered as long; a shorter one, left in a window that is still
small, is not. When a long chain is tried again, a sixteenth (`_TRIED_BITS`) of the steps is allowed."""


def item_layout(config: DeviceConfig) -> data.StructLayout:
    """Layout of an item: a candidate or, with `scan`, all tuples from `slot` to the oldest; without `some` there
    is none. It is the `last` item of its probe, or not. The `tail` and `buffer` of the probe come with each
    item, and its number of pairs (`tally`) with the last."""
    layouts = Layouts(config)
    return data.StructLayout(
        {
            "scan": 1,
            "some": 1,
            "last": 1,
            "slot": layouts.slot_bits,  # to scan, counted from the tail
            "tail": layouts.slot_bits,
            "buffer": BUFFER_BITS,
            "tally": layouts.pointer_bits,
        }
    )


class ChainWalker(wiring.Component):
    """Walks the chains of five probes in turn, one step per cycle. The newest tuple of a probe's bucket is looked
    up before the walk, in another memory. The candidates found wait in a queue of eight per probe and leave in
    the order of the probes, for each probe from the newest tuple to the oldest. A walk is abandoned when it has
    found more candidates than a quarter of the rows of the window: the remaining tuples are scanned. The bucket
    is then remembered as long, and later probes scan at once. One of them now and then walks again, because
    the chain may have become shorter.

    latency     14 to 18 cycles from a probe to its first item
    throughput  a step along a chain per cycle, of one probe a step in 5 cycles; a probe per cycle in which no
                index takes an insert

    staged, begin       in, out: stream of probes, taken while fewer than sixteen wait to be walked; pulse: one is taken
    may_begin           in: one may be taken in the next cycle
    resume, resume_slot in: the staged probe was begun before: resume at this slot
    lookups             out, per index (`IndexLookup`)
    items               out: stream of tuples to be compared
    working             out: there is a probe here
    """

    def __init__(self, config: DeviceConfig) -> None:
        self.config = config
        self.layouts = layouts = Layouts(config)
        slot = layouts.slot_bits
        super().__init__(
            {
                "staged": In(stream.Signature(staged_layout(config))),
                "begin": Out(1),
                "may_begin": In(1),
                "resume": In(1),
                "resume_slot": In(slot),
                "lookups": Out(IndexLookup(config)).array(config.indexes),
                "items": Out(stream.Signature(item_layout(config))),
                "working": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        slot, pointer = self.layouts.slot_bits, self.layouts.pointer_bits
        number = ceil_log2(BEGUN)
        probe = data.StructLayout(
            {
                "number": number,
                "tail": slot,
                "count": pointer,
                "final": slot,  # the newest tuple still to be compared, counted from the tail
                "bucket": self.layouts.bucket_bits,
                "chains": 2,  # number of the index
                "walks": 1,
                "asks": 1,  # the walk is not complete
                "slot": slot,
                "before": slot,  # the last candidate, counted from the tail
                "visible": pointer,  # candidates so far
                "certain": pointer,  # ... without the last one
                "most": pointer,  # ... and the number beyond which the rest is scanned
                "pending": 1,  # the last candidate is held back: it may be the last of all, or of another bucket
                "candidate": slot,
            }
        )
        # A rotating ring: a probe is at place 0 when it asks, at 2 when the answer comes, and at 4 when the step
        # is judged. Each stage therefore reads a fixed register instead of a 5:1 multiplexer. A probe enters in
        # the place of one whose walk is complete.
        self._probes = [Signal(probe, name=f"probe{place}") for place in range(PROBES)]
        for place, here in enumerate(self._probes):
            m.d.sync += self._probes[(place + 1) % PROBES].eq(here)
        # Number of probes that have begun, become ready, been fetched for the ring, entered it, and left. The
        # constant fields of a probe are kept in a memory by its number during the walk.
        self._begun, self._ready, self._fetched, self._entered, self._left = (
            Signal(number + 2, name=name)
            for name in ("begun", "are_ready", "fetched", "entered", "left")
        )
        entry = data.StructLayout({"probe": probe, "buffer": BUFFER_BITS, "known": 1})
        m.submodules.begin = self._looked_up = memory.Memory(shape=entry, depth=BEGUN, init=[])
        constant = data.StructLayout({"tail": slot, "buffer": BUFFER_BITS})
        m.submodules.kept = self._kept = memory.Memory(shape=constant, depth=BEGUN, init=[])
        self._enters = Signal(name="enters")
        m.d.comb += self.working.eq((self._begun != self._left) | self.staged.valid)
        self._long, self._short, self._through = (
            Signal(name=name) for name in ("long", "short", "through")
        )
        self._walk(m)
        self._begin(m, entry)
        self._enter(m, entry)
        return m

    def _begin(self, m: Module, entry: data.StructLayout) -> None:
        """Takes a probe and looks up the newest tuple of its bucket, and whether its chain is remembered as
        long."""
        staged = self.staged.payload
        bank_bits = max(1, self.config.lanes).bit_length() - 1
        # Two rows are scanned in the time that even an unsuccessful walk takes.
        few = ~staged.count[bank_bits + 1 :].any() if self.config.lanes else Const(0)

        # Pipeline stages: ask, memory, answer, offset, verdict.
        stages = [Signal(entry, name=f"stage{i}", reset_less=True) for i in range(5)]
        here = [Signal(name=f"here{i}") for i in range(5)]
        # `quiet`: all indexes take a request in this cycle, so that a probe that asks moves on. While they do not,
        # no probe is taken; this way `ready` to the loader comes from a register.
        quiet, moves = Signal(), Signal()
        looks, offset = stages[0].probe, Signal(self.layouts.slot_bits)
        ready = Cat(lookup.ready for lookup in self.lookups)
        asked = ready.all() if self.config.indexes else Const(1)
        begun = (self._begun - self._fetched)[: len(self._begun)]
        room = Mux(self.begin, begun < BEGUN - 1, begun < BEGUN)
        m.d.comb += [
            moves.eq(here[0] & quiet),
            self.begin.eq(self.staged.valid & self.staged.ready),
        ]
        m.d.sync += [quiet.eq(asked), self.staged.ready.eq(asked & room & self.may_begin)]
        for i in range(1, len(stages)):
            m.d.sync += [stages[i].eq(stages[i - 1]), here[i].eq(here[i - 1] if i > 1 else moves)]
        with m.If(~here[0] | moves):
            m.d.sync += [
                here[0].eq(self.begin),
                looks.tail.eq(staged.tail),
                looks.count.eq(staged.count),
                # All newer tuples were compared before, by a walk or a scan.
                looks.final.eq(Mux(self.resume, self.resume_slot - staged.tail, staged.count - 1)),
                looks.bucket.eq(staged.bucket),
                looks.chains.eq(staged.plan.index),
                looks.walks.eq(
                    staged.plan.indexed & ~few & (staged.count != 0) if self.config.indexes else 0
                ),
                looks.asks.eq(1),
                stages[0].buffer.eq(staged.buffer),
            ]
        if self.config.indexes:
            ask = Signal(len(self.lookups))
            newest = Signal(data.ArrayLayout(self.layouts.slot_bits, len(self.lookups)))
            m.d.comb += ask.eq(Mux(here[0] & looks.walks, 1 << looks.chains, 0))
            for number, lookup in enumerate(self.lookups):
                m.d.comb += [
                    lookup.ask.eq(ask[number]),
                    lookup.bucket.eq(looks.bucket),
                    newest[number].eq(lookup.newest),
                ]
            answered, offsets, judged = (stage.probe for stage in stages[2:])
            m.d.sync += [
                stages[2].known.eq(self._known_long(m, looks.bucket)),
                offsets.candidate.eq(newest[answered.chains]),
                offset.eq(newest[answered.chains] - answered.tail),
                judged.slot.eq(offsets.candidate),
                judged.before.eq(offset),
                judged.visible.eq(offset < offsets.count),
                judged.pending.eq((offset < offsets.count) & (offset <= offsets.final)),
            ]
        write = self._looked_up.write_port()
        m.d.comb += [
            write.addr.eq(self._ready[:-2]),
            write.data.eq(stages[-1]),
            write.en.eq(here[-1]),
        ]
        m.d.sync += [
            self._begun.eq(self._begun + self.begin),
            self._ready.eq(self._ready + here[-1]),
        ]

    def _enter(self, m: Module, entry: data.StructLayout) -> None:
        """Holds the next probe until there is a place in the ring."""
        waits, have, fetched = Signal(entry), Signal(), self._fetched
        # There is a free number for one more.
        numbered, walked = Signal(), (self._entered - self._left)[: len(self._left)]
        m.d.sync += numbered.eq(Mux(self._enters, walked < BEGUN - 1, walked < BEGUN))
        read, write = self._looked_up.read_port(domain="comb"), self._kept.write_port()
        m.d.comb += [
            read.addr.eq(fetched[:-2]),
            self._enters.eq(have & numbered & (~self._probes[-1].asks | self._through)),
            write.addr.eq(self._entered[:-2]),
            write.data.tail.eq(waits.probe.tail),
            write.data.buffer.eq(waits.buffer),
            write.en.eq(self._enters),
        ]
        with m.If(~have | self._enters):
            m.d.sync += [
                waits.eq(read.data),
                have.eq(fetched != self._ready),
                fetched.eq(fetched + (fetched != self._ready)),
            ]
        times = Signal(_OFTEN_BITS)  # counts chains that were remembered as long
        bank_bits = max(1, self.config.lanes).bit_length() - 1
        rows = waits.probe.count >> bank_bits + 2
        few_steps = (rows >> _TRIED_BITS) | (1 << _LONG_BITS) - 1
        known = waits.known if self.config.indexes else Const(0)
        entered = self._probes[0]
        with m.If(self._enters):
            m.d.sync += [
                self._entered.eq(self._entered + 1),
                times.eq(times + (waits.probe.walks & known)),
                entered.eq(waits.probe),
                entered.number.eq(self._entered[:-2]),
                entered.walks.eq(waits.probe.walks & (~known | times.all())),
                entered.most.eq(Mux(known, few_steps, rows)),
            ]

    def _known_long(self, m: Module, key: Value) -> Value:
        """Remembers per bucket whether its chain was too long when it was last walked."""
        m.submodules.long = long = memory.Memory(
            shape=1, depth=1 << self.layouts.bucket_bits, init=[]
        )
        write, read = long.write_port(), long.read_port()
        m.d.comb += [
            write.addr.eq(self._probes[-1].bucket),
            write.data.eq(self._long),
            write.en.eq(self._long | self._short),
            read.addr.eq(key),
            read.en.eq(1),
        ]
        return read.data

    def _walk(self, m: Module) -> None:
        """Walks in pipeline stages: ask, memory, answer, offset, verdict. The verdict on a step is there a cycle
        before its probe has its turn again."""
        slot_bits = self.layouts.slot_bits
        under_way = [Signal(name=f"under_way{stage}") for stage in range(4)]
        offset, verdict_offset = Signal(slot_bits), Signal(slot_bits)
        candidate, next_candidate = Signal(slot_bits), Signal(slot_bits)
        ends, inside, found, too_long = Signal(), Signal(), Signal(), Signal()
        # The last candidate is not of this bucket.
        strange, foreign = Signal(), Signal()
        asks, probe, after = self._probes[0], self._probes[-1], self._probes[0]
        judged, number = under_way[-1], probe.number

        # Candidates that wait to leave.
        pointer = self.layouts.pointer_bits
        waiting = data.StructLayout({"scan": 1, "some": 1, "slot": slot_bits, "tally": pointer})
        m.submodules.waiting = queues = memory.Memory(
            shape=waiting, depth=BEGUN * _WAITING, init=[]
        )
        write, read = queues.write_port(), queues.read_port(domain="comb")
        bits = ceil_log2(_WAITING)
        # Items written so far, per probe; and items read, of the probe that leaves.
        ins, out_of = (
            Array(Signal(bits + 1, name=f"in{i}") for i in range(BEGUN)),
            Signal(bits + 1),
        )
        leaving = self._left[:-2]
        item, ends_it = write.data, Signal()  # it is the last item of its probe
        m.d.comb += write.addr.eq(Cat(ins[number][:bits], number))
        with m.If(write.en):
            m.d.sync += ins[number].eq(ins[number] + 1)
        # Room for the candidates of this step and of the next; a probe that enters has an empty queue.
        level, room = Signal(bits + 1), Signal()
        m.d.comb += level.eq(ins[number] - Mux(number == leaving, out_of, 0))
        m.d.sync += room.eq(self._enters | (level < _WAITING - 1))

        if self.config.indexes:
            older = Signal(data.ArrayLayout(self.layouts.link, len(self.lookups)))
            for at, lookup in enumerate(self.lookups):
                m.d.comb += [lookup.after.eq(asks.slot), older[at].eq(lookup.older)]
            m.d.sync += Cat(under_way).eq(Cat(asks.walks & asks.asks & room, under_way))
            asker, judge = self._probes[2:4]
            link = Signal(self.layouts.link)
            m.d.comb += link.eq(older[asker.chains])
            m.d.sync += [
                offset.eq(link.slot - asker.tail),
                candidate.eq(link.slot),
                strange.eq(link.mark != asker.bucket[: len(link.mark)]),
                foreign.eq(strange),
                # A chain leads from newer tuples to older ones, so it has ended if this one is not older.
                ends.eq(offset >= judge.before),
                inside.eq(offset < judge.count),
                found.eq((offset < judge.count) & (offset <= judge.final)),
                too_long.eq(judge.visible > judge.most),
                verdict_offset.eq(offset),
                next_candidate.eq(candidate),
            ]
            with m.If(under_way[1]):
                m.d.sync += judge.slot.eq(link.slot)

        m.d.comb += [item.some.eq(probe.pending), item.slot.eq(probe.candidate)]
        scans = probe.asks & ~probe.walks
        m.d.comb += self._through.eq(Mux(judged, foreign | ends | too_long, scans))
        with m.If(self._through):
            m.d.sync += after.asks.eq(0)
        with m.If(judged):
            with m.If(foreign | ends):
                m.d.comb += [
                    write.en.eq(1),
                    item.some.eq(probe.pending & ~foreign),
                    ends_it.eq(1),
                    item.tally.eq(Mux(foreign, probe.certain, probe.visible)),
                    self._short.eq(1),
                ]
            with m.Elif(too_long):
                # Scan the last candidate and all older tuples.
                m.d.comb += [
                    write.en.eq(1),
                    item.scan.eq(1),
                    item.some.eq(1),
                    ends_it.eq(1),
                    item.slot.eq(Mux(probe.before <= probe.final, probe.before, probe.final)),
                    item.tally.eq(probe.visible + probe.before),
                    self._long.eq(probe.visible[_LONG_BITS:].any()),
                ]
            with m.Else():
                m.d.sync += [
                    after.before.eq(verdict_offset),
                    after.visible.eq(probe.visible + inside),
                    after.certain.eq(probe.visible),
                ]
                with m.If(found):
                    m.d.comb += write.en.eq(probe.pending)
                    m.d.sync += [after.pending.eq(1), after.candidate.eq(next_candidate)]
        with m.Elif(scans):
            m.d.comb += [
                write.en.eq(1),
                item.scan.eq(probe.count != 0),
                item.some.eq(probe.count != 0),
                ends_it.eq(1),
                item.slot.eq(probe.final),
                item.tally.eq(probe.count),
            ]

        # Items leave probe by probe. For the probe that leaves, the number of waiting items, and whether its last is
        # among them, are kept in registers of their own, a cycle late: `valid` and `last` depend on registers only.
        complete = Array(Signal(name=f"complete{i}") for i in range(BEGUN))
        head_waits, head_complete = Signal(bits + 1, name="head_waits"), Signal()
        came, came_to, came_last = Signal(), Signal.like(leaving), Signal()
        m.d.sync += [came.eq(write.en), came_to.eq(number), came_last.eq(ends_it)]
        with m.If(write.en & ends_it):
            m.d.sync += complete[number].eq(1)
        kept, out = self._kept.read_port(domain="comb"), self.items.payload
        taken = Signal()
        m.d.comb += [
            read.addr.eq(Cat(out_of[:bits], leaving)),
            self.items.valid.eq(head_waits.any()),
            taken.eq(self.items.valid & self.items.ready),
            out.scan.eq(read.data.scan),
            out.some.eq(read.data.some),
            out.last.eq(head_complete & (head_waits == 1)),
            out.slot.eq(read.data.slot),
            kept.addr.eq(leaving),
            out.tail.eq(kept.data.tail),
            out.buffer.eq(kept.data.buffer),
            out.tally.eq(read.data.tally),
        ]
        here = came & (came_to == leaving)
        m.d.sync += [
            head_waits.eq(head_waits + here - taken),
            head_complete.eq(head_complete | (here & came_last)),
            out_of.eq(out_of + taken),
        ]
        follower = (leaving + 1)[: len(leaving)]
        with m.If(taken & out.last):
            m.d.sync += [
                self._left.eq(self._left + 1),
                out_of.eq(0),
                head_waits.eq(ins[follower]),
                head_complete.eq(complete[follower]),
            ]
        # The next probe with this number enters later than this.
        ends, ended = Signal(), Signal.like(leaving)
        m.d.sync += [
            ends.eq(taken & out.last),
            ended.eq(leaving),
        ]
        with m.If(ends):
            m.d.sync += [ins[ended].eq(0), complete[ended].eq(0)]
