"""Chain walker: which window tuples a probe may meet, found in the equality index."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from seustream.hdl.config import DeviceConfig
from seustream.hdl.factors import BUFFER_BITS
from seustream.hdl.layouts import Layouts
from seustream.hdl.loader import staged_layout

PROBES = 5
"""Probes that are walked at once: as many as the cycles between two steps along a chain."""
BEGUN = 16
"""Probes that are here at once before they are walked, and as many from then on: those that are walked, and those that are
through with it while their candidates wait for the probes before them."""
_WAITING = 8
_OFTEN_BITS = 4
_LONG_BITS = 3
_TRIED_BITS = 4
"""A chain of eight is not forgotten; one of fewer in a window that is still small may be soon. Where
it is tried again, a sixteenth of the steps is allowed."""


def item_layout(config: DeviceConfig) -> data.StructLayout:
    """A candidate, or with `scan` all tuples up to one; `some`: there is one. `last` of a probe, whose
    `tail`, `buffer` and, with the last, number of pairs (`tally`) come with it."""
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
    """Walks the chains of five probes at once, a step of one of them a cycle. The newest tuple of a probe's
    bucket is looked up before it comes to be walked, in another memory. What a walk finds waits in
    a queue for each, of eight, and leaves in the order of the probes, of each from the newest tuple to
    the oldest. A chain with more candidates than a quarter of the rows of the window is left: what is left is scanned.
    Of its bucket it is noted that the chain is long; the next probes scan at once, but for one now
    and then, for the chain may be shorter by now.

    latency     14 to 18 cycles from a probe to its first item
    throughput  a step along a chain a cycle, of one probe in 5 cycles; a probe a cycle in which no index takes
                an insert

    staged, begin       the next probe, where fewer than sixteen wait to be walked; pulse: it is taken
    may_begin           it may be, in the next cycle
    resume, resume_slot the probe was begun before: go on with this slot
    ask, bucket, ready  per index: the newest slot of this bucket is wanted; an ask is taken in the next cycle
    newest              per index: it is this, 2 cycles later
    after, older        the slot before this one in its chain, and this one's mark; per index, 2 cycles later
    items               what is to be compared
    working             a probe is here
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
                "ask": Out(config.indexes),
                "bucket": Out(layouts.bucket_bits),
                "ready": In(config.indexes),
                "newest": In(data.ArrayLayout(slot, config.indexes)),
                "after": Out(slot),
                "older": In(data.ArrayLayout(layouts.link, config.indexes)),
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
                "final": slot,  # the newest tuple still to be looked at, counted from the tail
                "bucket": self.layouts.bucket_bits,
                "chains": 2,  # of which index
                "walks": 1,
                "asks": 1,  # it is not through
                "slot": slot,
                "before": slot,  # the last candidate, counted from the tail
                "visible": pointer,  # candidates so far
                "certain": pointer,  # ... without the last one
                "most": pointer,  # ... and with how many the rest is scanned
                "pending": 1,  # the last candidate waits: it may be the last of all, or strange to the bucket
                "candidate": slot,
            }
        )
        # A ring that turns: a probe is at 0 when it asks, at 2 when it is answered, and at 4 when the step
        # is judged; so a step is read from registers, not out of five. One enters in the place of
        # one that is through.
        self._probes = [Signal(probe, name=f"probe{place}") for place in range(PROBES)]
        for place, here in enumerate(self._probes):
            m.d.sync += self._probes[(place + 1) % PROBES].eq(here)
        # How many have begun, are ready to be walked, are about to be, are walked, and are through. What does not
        # change of one that is walked is kept by its number.
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
        """Takes a probe, and looks up the newest tuple of its bucket, and whether its chain is known to be
        long."""
        staged = self.staged.payload
        bank_bits = max(1, self.config.lanes).bit_length() - 1
        # Two rows are looked at in the time that a walk takes to no purpose.
        few = ~staged.count[bank_bits + 1 :].any() if self.config.lanes else Const(0)

        # Stages: ask, memory, answer, offset, verdict.
        stages = [Signal(entry, name=f"stage{i}", reset_less=True) for i in range(5)]
        here = [Signal(name=f"here{i}") for i in range(5)]
        # All indexes take an ask in this cycle: one is asked, which moves on. Where they do not no probe is
        # taken, so that who hands it on hears from a register.
        quiet, moves = Signal(), Signal()
        looks, offset = stages[0].probe, Signal(self.layouts.slot_bits)
        asked = self.ready.all() if self.config.indexes else Const(1)
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
                # All that is newer was met before, by whichever way.
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
            m.d.comb += [
                self.ask.eq(Mux(here[0] & looks.walks, 1 << looks.chains, 0)),
                self.bucket.eq(looks.bucket),
            ]
            answered, offsets, judged = (stage.probe for stage in stages[2:])
            m.d.sync += [
                stages[2].known.eq(self._known_long(m, looks.bucket)),
                offsets.candidate.eq(self.newest[answered.chains]),
                offset.eq(self.newest[answered.chains] - answered.tail),
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
        """Lets a probe wait for a place in the ring."""
        waits, have, fetched = Signal(entry), Signal(), self._fetched
        # There is a number for one more.
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
        times = Signal(_OFTEN_BITS)  # a chain was known to be long
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
        """Remembers whether a bucket's chain was too long for a walk when it was last walked."""
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
        """Stages: ask, memory, answer, offset, verdict; the verdict on a step is there a cycle before its probe
        has its turn again."""
        slot_bits = self.layouts.slot_bits
        under_way = [Signal(name=f"under_way{stage}") for stage in range(4)]
        offset, verdict_offset = Signal(slot_bits), Signal(slot_bits)
        candidate, next_candidate = Signal(slot_bits), Signal(slot_bits)
        ends, inside, found, too_long = Signal(), Signal(), Signal(), Signal()
        # The last candidate is not of the bucket.
        strange, foreign = Signal(), Signal()
        asks, probe, after = self._probes[0], self._probes[-1], self._probes[0]
        judged, number = under_way[-1], probe.number

        # What waits to leave.
        pointer = self.layouts.pointer_bits
        waiting = data.StructLayout({"scan": 1, "some": 1, "slot": slot_bits, "tally": pointer})
        m.submodules.waiting = queues = memory.Memory(
            shape=waiting, depth=BEGUN * _WAITING, init=[]
        )
        write, read = queues.write_port(), queues.read_port(domain="comb")
        bits = ceil_log2(_WAITING)
        # How many each has had; of the one that leaves, how many have left.
        ins, out_of = (
            Array(Signal(bits + 1, name=f"in{i}") for i in range(BEGUN)),
            Signal(bits + 1),
        )
        leaving = self._left[:-2]
        item, ends_it = write.data, Signal()  # it is the last of its probe
        m.d.comb += write.addr.eq(Cat(ins[number][:bits], number))
        with m.If(write.en):
            m.d.sync += ins[number].eq(ins[number] + 1)
        # Room for what this step finds and for what the next one does; who enters has all of it.
        level, room = Signal(bits + 1), Signal()
        m.d.comb += level.eq(ins[number] - Mux(number == leaving, out_of, 0))
        m.d.sync += room.eq(self._enters | (level < _WAITING - 1))

        if self.config.indexes:
            m.d.comb += self.after.eq(asks.slot)
            m.d.sync += Cat(under_way).eq(Cat(asks.walks & asks.asks & room, under_way))
            asker, judge = self._probes[2:4]
            link = Signal(self.layouts.link)
            m.d.comb += link.eq(self.older[asker.chains])
            m.d.sync += [
                offset.eq(link.slot - asker.tail),
                candidate.eq(link.slot),
                strange.eq(link.mark != asker.bucket[: len(link.mark)]),
                foreign.eq(strange),
                # A chain leads from newer tuples to older ones.
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
                # All that is older, and the last candidate itself.
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

        # Out of here, probe by probe. How many items of the one that leaves wait, and whether the last of it is
        # among them, is kept by itself, and heard of a cycle later: so who takes one waits for registers only.
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
        # The next one with its number comes later than that.
        ends, ended = Signal(), Signal.like(leaving)
        m.d.sync += [
            ends.eq(taken & out.last),
            ended.eq(leaving),
        ]
        with m.If(ends):
            m.d.sync += [ins[ended].eq(0), complete[ended].eq(0)]
