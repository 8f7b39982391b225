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

PROBES = 4
"""Probes that are walked at once: as many as the cycles between two steps along a chain."""
BEGUN = 1 << BUFFER_BITS
"""Probes that are here at once: those that are walked, and those that are through with it while their
candidates wait for the probes before them. No more have their comparisons put."""
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
    """Walks the chains of four probes at once, a step of one of them a cycle. What it finds waits in
    a queue for each, of eight, and leaves in the order of the probes, of each from the newest tuple to
    the oldest. A chain with more candidates than half the rows of the window is left: what is left is scanned.
    Of its bucket it is noted that the chain is long; the next probes scan at once, but for one now
    and then, for the chain may be shorter by now.

    latency     9 to 12 cycles from a probe to its first item
    throughput  a candidate a cycle, of one probe in 4 cycles; a probe in 3 cycles

    staged, begin       the next probe, where fewer than eight are not through; pulse: it is taken
    may_begin           it may be
    resume, resume_slot the probe was begun before: go on with this slot
    index, newest, bucket, after, ask, ready   of the indexes; `index` says which
    answered, answer    2 cycles later: which was asked, its answer
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
                "index": Out(2),
                "ask": Out(1),
                "newest": Out(1),
                "bucket": Out(slot),
                "after": Out(slot),
                "ready": In(1),
                "answered": Out(2),
                "answer": In(slot),
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
                "bucket": slot,
                "chains": 2,  # of which index
                "walks": 1,
                "asks": 1,  # it is not through
                "first": 1,  # it is the first
                "slot": slot,
                "before": pointer,  # the last candidate, counted from the tail
                "visible": pointer,  # candidates so far
                "most": pointer,  # ... and with how many the rest is scanned
                "pending": 1,  # the last candidate waits, for it may be the last of all
                "candidate": slot,
            }
        )
        # A ring that turns: a probe is at 0 when it asks and when its last step is judged, at 2 when
        # it is answered; so a step is read from registers, not out of four. One enters where one that
        # is through would come to 0.
        self._probes = [Signal(probe, name=f"probe{place}") for place in range(PROBES)]
        for place, here in enumerate(self._probes):
            m.d.sync += self._probes[(place + 1) % PROBES].eq(here)
        self._to_enter, self._to_leave = Signal(number + 1), Signal(number + 1)
        self._enters = Signal()
        self._entering = Signal()
        m.d.comb += self.working.eq(
            (self._to_enter != self._to_leave) | self._entering | self.staged.valid
        )
        self._long = Signal()
        self._short = Signal()
        self._enter(m)
        self._walk(m)
        return m

    def _enter(self, m: Module) -> None:
        """Takes a probe, looks up whether its chain is known to be long, and lets it wait for a place in
        the ring."""
        slot_bits = self.layouts.slot_bits
        shape = data.StructLayout(
            {"probe": self._probes[0].shape(), "buffer": BUFFER_BITS, "known": 1}
        )
        staged = self.staged.payload
        bank_bits = max(1, self.config.lanes).bit_length() - 1
        # Two rows are looked at in the time that a walk takes to no purpose.
        few = ~staged.count[bank_bits + 1 :].any() if self.config.lanes else Const(0)

        # Stages: memory, verdict; then the ring.
        looked, waits = Signal(shape), Signal(shape)
        have_looked, have, lately, moves = Signal(), Signal(), Signal(2), Signal()
        m.d.comb += [
            moves.eq(~have | self._enters),
            # The execution unit says so two cycles late.
            self.staged.ready.eq(self.may_begin & (~have_looked | moves) & ~lately.any()),
            self.begin.eq(self.staged.valid & self.staged.ready),
            self._entering.eq(have_looked | have),
        ]
        m.d.sync += lately.eq(Cat(self.begin, lately))
        with m.If(~have_looked | moves):
            probe = looked.probe
            m.d.sync += [
                have_looked.eq(self.begin),
                probe.tail.eq(staged.tail),
                probe.count.eq(staged.count),
                # All that is newer was met before, by whichever way.
                probe.final.eq(Mux(self.resume, self.resume_slot - staged.tail, staged.count - 1)),
                probe.bucket.eq(staged.bucket),
                probe.chains.eq(staged.plan.index),
                probe.walks.eq(
                    staged.plan.indexed & ~few & (staged.count != 0) if self.config.indexes else 0
                ),
                probe.asks.eq(1),
                probe.first.eq(1),
                probe.before.eq(1 << slot_bits),
                looked.buffer.eq(staged.buffer),
            ]
        with m.If(moves):
            m.d.sync += [have.eq(have_looked), waits.eq(looked)]
        times = Signal(_OFTEN_BITS)  # a chain was known to be long
        if self.config.indexes:
            known = self._known_long(m, staged.bucket, ~have_looked | moves)
            with m.If(moves):
                m.d.sync += waits.known.eq(known)
            with m.If(self._enters & waits.probe.walks & waits.known):
                m.d.sync += times.eq(times + 1)

        # What does not change stays where it is.
        constant = data.StructLayout({"tail": slot_bits, "buffer": BUFFER_BITS})
        m.submodules.constants = self._constants = memory.Memory(
            shape=constant, depth=BEGUN, init=[]
        )
        kept, entered = self._constants.write_port(), self._probes[0]
        rows = waits.probe.count >> bank_bits + 1
        few_steps = (rows >> _TRIED_BITS) | (1 << _LONG_BITS) - 1
        m.d.comb += [
            self._enters.eq(have & ~self._probes[-1].asks),
            kept.addr.eq(self._to_enter),
            kept.data.tail.eq(waits.probe.tail),
            kept.data.buffer.eq(waits.buffer),
            kept.en.eq(self._enters),
        ]
        with m.If(self._enters):
            m.d.sync += [
                self._to_enter.eq(self._to_enter + 1),
                entered.eq(waits.probe),
                entered.number.eq(self._to_enter),
                entered.walks.eq(waits.probe.walks & (~waits.known | times.all())),
                entered.most.eq(Mux(waits.known, few_steps, rows)),
            ]

    def _known_long(self, m: Module, key: Value, asks: Value) -> Value:
        """Remembers whether a bucket's chain was too long for a walk when it was last walked."""
        m.submodules.long = long = memory.Memory(shape=1, depth=self.config.depth, init=[])
        write, read = long.write_port(), long.read_port()
        m.d.comb += [
            write.addr.eq(self._probes[0].bucket),
            write.data.eq(self._long),
            write.en.eq(self._long | self._short),
            read.addr.eq(key),
            read.en.eq(asks),
        ]
        return read.data

    def _walk(self, m: Module) -> None:
        """Stages: ask, memory, answer, offset, verdict; the verdict on a step is there when its probe
        has its turn again."""
        slot_bits = self.layouts.slot_bits
        under_way = [Signal(name=f"under_way{stage}") for stage in range(4)]
        offset, verdict_offset = Signal(slot_bits), Signal(slot_bits)
        candidate, next_candidate = Signal(slot_bits), Signal(slot_bits)
        ends, inside, found, too_long = Signal(), Signal(), Signal(), Signal()
        probe, after = self._probes[0], self._probes[1]
        judged, number = under_way[-1], probe.number

        # What waits to leave.
        pointer = self.layouts.pointer_bits
        waiting = data.StructLayout(
            {"scan": 1, "some": 1, "last": 1, "slot": slot_bits, "tally": pointer}
        )
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
        leaving = self._to_leave[:-1]
        item = write.data
        m.d.comb += write.addr.eq(Cat(ins[number][:bits], number))
        with m.If(write.en):
            m.d.sync += ins[number].eq(ins[number] + 1)
        # Room for what this turn finds and for what the next one does; who enters has all of it.
        level, room, next_number = Signal(bits + 1), Signal(), self._probes[-1].number
        m.d.comb += level.eq(ins[next_number] - Mux(next_number == leaving, out_of, 0))
        m.d.sync += room.eq(self._enters | (level < _WAITING - 1))

        if self.config.indexes:
            m.d.comb += [
                self.index.eq(probe.chains),
                self.bucket.eq(probe.bucket),
                self.after.eq(probe.slot),
                self.newest.eq(probe.first),
                self.ask.eq(probe.walks & probe.asks & room & ~(judged & (ends | too_long))),
            ]
            asked = [Signal(2, name=f"asked{stage}") for stage in range(2)]
            m.d.sync += Cat(asked).eq(Cat(self.index, asked))
            m.d.comb += self.answered.eq(asked[-1])
            m.d.sync += Cat(under_way).eq(Cat(self.ask & self.ready, under_way))
            asker, judge = self._probes[2:4]
            m.d.sync += [
                offset.eq(self.answer - asker.tail),
                candidate.eq(self.answer),
                # A chain leads from newer tuples to older ones.
                ends.eq(offset >= judge.before),
                inside.eq(offset < judge.count),
                found.eq((offset < judge.count) & (offset <= judge.final)),
                too_long.eq(judge.visible > judge.most),
                verdict_offset.eq(offset),
                next_candidate.eq(candidate),
            ]
            with m.If(under_way[1]):
                m.d.sync += [judge.slot.eq(self.answer), judge.first.eq(0)]

        m.d.comb += [item.some.eq(probe.pending), item.slot.eq(probe.candidate)]
        with m.If(judged):
            with m.If(ends):
                m.d.comb += [write.en.eq(1), item.last.eq(1), self._short.eq(1)]
                m.d.comb += item.tally.eq(probe.visible)
                m.d.sync += [after.walks.eq(0), after.asks.eq(0)]
            with m.Elif(too_long):
                # All that is older, and the last candidate itself.
                m.d.comb += [
                    write.en.eq(1),
                    item.scan.eq(1),
                    item.some.eq(1),
                    item.last.eq(1),
                    item.slot.eq(Mux(probe.before <= probe.final, probe.before, probe.final)),
                    item.tally.eq(probe.visible + probe.before),
                    self._long.eq(probe.visible[_LONG_BITS:].any()),
                ]
                m.d.sync += [after.walks.eq(0), after.asks.eq(0)]
            with m.Else():
                m.d.sync += [
                    after.before.eq(verdict_offset),
                    after.visible.eq(probe.visible + inside),
                ]
                with m.If(found):
                    m.d.comb += write.en.eq(probe.pending)
                    m.d.sync += [after.pending.eq(1), after.candidate.eq(next_candidate)]
        with m.Elif(probe.asks & ~probe.walks):
            m.d.comb += [
                write.en.eq(1),
                item.scan.eq(probe.count != 0),
                item.some.eq(probe.count != 0),
                item.last.eq(1),
                item.slot.eq(probe.final),
                item.tally.eq(probe.count),
            ]
            m.d.sync += after.asks.eq(0)

        # Out of here, probe by probe.
        constants, out = self._constants.read_port(domain="comb"), self.items.payload
        m.d.comb += [
            read.addr.eq(Cat(out_of[:bits], leaving)),
            self.items.valid.eq(ins[leaving] != out_of),
            out.scan.eq(read.data.scan),
            out.some.eq(read.data.some),
            out.last.eq(read.data.last),
            out.slot.eq(read.data.slot),
            constants.addr.eq(leaving),
            out.tail.eq(constants.data.tail),
            out.buffer.eq(constants.data.buffer),
            out.tally.eq(read.data.tally),
        ]
        with m.If(self.items.valid & self.items.ready):
            m.d.sync += out_of.eq(out_of + 1)
            with m.If(out.last):
                m.d.sync += [
                    self._to_leave.eq(self._to_leave + 1),
                    ins[leaving].eq(0),
                    out_of.eq(0),
                ]
