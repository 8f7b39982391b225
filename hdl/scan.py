"""Scanner: leads a probe past the window tuples it may meet, and finds the pairs worth executing."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, fifo, memory, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from seustream.hdl.arbiter import lowest
from seustream.hdl.config import MAX_ATTRIBUTES, DeviceConfig
from seustream.hdl.control_words import TERMS
from seustream.hdl.factors import FACTOR, FactorArray, put_layout
from seustream.hdl.index import bucket
from seustream.hdl.layouts import Layouts
from seustream.hdl.loader import staged_layout

_ROWS_WAITING = 16
_ROWS_IN_FLIGHT = 12
_OFTEN_BITS = 4
_LONG_BITS = 3
"""A chain of eight is not forgotten; one of fewer in a window that is still small may be soon."""


def pair_layout(config: DeviceConfig) -> data.StructLayout:
    """A pair for the execution unit, or the `end` of a probe. `held` has the outcome of every
    factor; without lanes the window tuple's attributes take its place."""
    layouts = Layouts(config)
    return data.StructLayout(
        {
            "end": 1,
            "slot": layouts.slot_bits,
            "held": config.factors if config.lanes else 0,
            "attributes": data.ArrayLayout(
                config.attribute_width, 0 if config.lanes else MAX_ATTRIBUTES
            ),
        }
    )


class Scanner(wiring.Component):
    """Reads the window row by row, `lanes` tuples a cycle, through the factor array; or, for
    an indexed probe, the row of one candidate after the other, until there were more than a scan
    would take time for: then it scans what is left. Either way goes from the newest tuple to the
    oldest, so that a probe can be taken up by another way than it was left. Only tuples in the
    view of the probe's context count. Rows with a pair of interest wait in a small FIFO, from which
    pairs leave one by one.

    latency     11 cycles from a row's address to its first pair
    throughput  `lanes` pairs a cycle while none is of interest, a candidate each 4 cycles;
                1 pair of interest a cycle; 2 cycles between probes

    staged      the next probe
    begin       pulse: this probe is now worked on (`staged` was taken)
    resume, resume_slot   the probe was begun before: go on with this slot
    factors, last_turn    the area's factors; a row is issued in as many turns as there are
                          factors for the same comparator
    put                   a comparison for a probe that is staged later
    wait                  no row can be read in the next cycle
    row, tuples           of the window buffer
    newest, bucket, after, ask, ready, answer   of the indexes; `index` says which
    pairs       pairs of interest, and the end of each probe
    tally       per probe, at its end: how many pairs were looked at
    hold        the comparisons of the probe before the one begun are still needed
    flush       pulse that goes with the component's reset: forget everything
    working, blocked   it is busy; it has a row, and waits for the window or the execution unit
    """

    def __init__(self, config: DeviceConfig) -> None:
        self.config = config
        self.layouts = layouts = Layouts(config)
        self.banks = max(1, config.lanes)
        self.bank_bits = self.banks.bit_length() - 1
        self.row_bits = layouts.slot_bits - self.bank_bits
        slot = layouts.slot_bits
        super().__init__(
            {
                "staged": In(stream.Signature(staged_layout(config))),
                "begin": Out(1),
                "may_begin": In(1),
                "resume": In(1),
                "resume_slot": In(slot),
                "factors": In(data.ArrayLayout(FACTOR, config.factors)),
                "last_turn": In(range(config.turns)),
                "put": In(put_layout(config)),
                "wait": In(1),
                "row": Out(self.row_bits),
                "tuples": In(data.ArrayLayout(layouts.attributes, self.banks)),
                "index": Out(2),
                "ask": Out(1),
                "newest": Out(1),
                "bucket": Out(slot),
                "after": Out(slot),
                "ready": In(1),
                "answer": In(slot),
                "pairs": Out(stream.Signature(pair_layout(config))),
                "tally": Out(layouts.pointer_bits),
                "ended": Out(1),
                "hold": Out(1),
                "flush": In(1),
                "working": Out(1),
                "blocked": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        issue = data.StructLayout(
            {
                "mask": self.banks,
                "row": self.row_bits,
                "last": 1,
                "buffer": 1,  # where the probe's comparisons are
                "turn": range(self.config.turns),  # which of them
                "whole": 1,  # the last turn of its row
            }
        )
        self._issued = Signal(issue)
        self._valid = Signal()
        self._first = Signal()
        self._may_issue = Signal()
        self._is_long, self._is_short = Signal(), Signal()  # it turned out, of a bucket's chain
        self._walk_and_scan(m)
        self._compare(m, issue)
        return m

    # --- which rows ---------------------------------------------------------------

    def _walk_and_scan(self, m: Module) -> None:
        layouts, bank_bits = self.layouts, self.bank_bits
        slot_bits, pointer = layouts.slot_bits, layouts.pointer_bits
        probe = self.staged.payload

        tail = Signal(slot_bits)
        count = Signal(pointer)
        key = Signal(slot_bits)
        final = Signal(slot_bits)  # the newest tuple still to be looked at, counted from the tail
        wanted = Signal(slot_bits)
        indexed = Signal()
        first = Signal()
        m.d.comb += [self._first.eq(first), self.bucket.eq(key), self.ended.eq(0)]
        with m.If(self._valid):
            m.d.sync += first.eq(0)

        # Which comparisons this cycle is for, and whether they are the last of a row.
        turn, buffer, whole = Signal(range(self.config.turns)), Signal(), Signal()
        m.d.comb += [self._issued.turn.eq(turn), self._issued.buffer.eq(buffer), whole.eq(1)]
        last_turn = Signal.like(turn)
        m.d.sync += last_turn.eq(self.last_turn)
        if self.config.lanes and self.config.turns > 1:
            m.d.comb += whole.eq(turn == last_turn)
            with m.If(self._valid):
                m.d.sync += turn.eq(Mux(self._issued.whole, 0, turn + 1))

        # Steps count rows from the tail's, so that the newest may be in that row again.
        step = Signal(self.row_bits + 1)
        at_newest = Signal()
        low, high = (Signal(max(1, bank_bits), name=n) for n in ("low", "high"))
        looked = Signal(pointer)  # tuples that a scan looks at, and a walk before it

        # Of an index walk: where the candidate is, counted from the tail.
        slot = Signal(slot_bits)
        offset = Signal(slot_bits)
        before = Signal(pointer)
        visible = Signal(pointer)  # candidates so far
        ends, inside, found = Signal(), Signal(), Signal()  # what is known of it
        too_long, known_long = Signal(), Signal()
        if self.config.indexes:
            known_long = self._known_long(m, key)

        # Four rows are looked at in the time of one candidate.
        few = ~probe.count[bank_bits + 2 :].any() if self.config.lanes else Const(0)
        walks = probe.plan.indexed & ~few

        waiting = Signal()
        with m.FSM() as fsm:
            with m.State("IDLE"):
                m.d.comb += self.staged.ready.eq(self.may_begin)
                m.d.comb += waiting.eq(~self.may_begin)
                with m.If(self.staged.valid & self.staged.ready):
                    m.d.comb += self.begin.eq(1)
                    m.d.sync += [
                        tail.eq(probe.tail),
                        count.eq(probe.count),
                        looked.eq(probe.count),
                        final.eq(probe.count - 1),
                        key.eq(bucket(probe.bucket, slot_bits)),
                        self.index.eq(probe.plan.index),
                        indexed.eq(walks),
                        wanted.eq(self.resume_slot),
                        first.eq(1),
                        before.eq(1 << slot_bits),
                        visible.eq(0),
                    ]
                    if self.config.lanes:
                        m.d.sync += buffer.eq(probe.buffer)
                    m.next = "PREPARE"
                    if self.config.indexes:
                        with m.If(walks):
                            m.next = "ENTER"
                    with m.If(self.resume):
                        m.next = "RESUME"
                    with m.If(probe.count == 0):
                        m.next = "NOTHING"
            with m.State("RESUME"):
                # All that is newer was met before, by whichever way.
                m.d.sync += final.eq(wanted - tail)
                m.next = "PREPARE"
                if self.config.indexes:
                    with m.If(indexed):
                        m.next = "ENTER"
            with m.State("PREPARE"):
                end = Signal(pointer)
                m.d.comb += end.eq(final + tail[:bank_bits])
                m.d.sync += [
                    step.eq(end[bank_bits:]),
                    at_newest.eq(1),
                    high.eq(end[:bank_bits]),
                    low.eq(tail[:bank_bits]),
                ]
                m.next = "ROWS"
            with m.State("ROWS"):
                bank = range(self.banks)
                at_oldest = step == 0
                m.d.comb += [
                    self._valid.eq(self._may_issue),
                    self._issued.row.eq(tail[bank_bits:] + step),
                    self._issued.last.eq(at_oldest),
                    self._issued.whole.eq(whole),
                    self._issued.mask.eq(
                        Cat((~at_oldest | (b >= low)) & (~at_newest | (b <= high)) for b in bank)
                    ),
                    self.tally.eq(looked),
                ]
                m.d.comb += waiting.eq(~self._may_issue)
                with m.If(self._may_issue & whole):
                    m.d.sync += [step.eq(step - 1), at_newest.eq(0)]
                    with m.If(at_oldest):
                        m.d.comb += self.ended.eq(1)
                        m.next = "IDLE"
            if self.config.indexes:
                with m.State("ENTER"):
                    m.d.comb += [self.ask.eq(1), self.newest.eq(1)]
                    with m.If(self.ready):
                        m.next = "WAIT"
                with m.State("WAIT"):
                    m.next = "LOOK"
                with m.State("LOOK"):
                    m.d.sync += [slot.eq(self.answer), offset.eq(self.answer - tail)]
                    m.next = "JUDGE"
                with m.State("JUDGE"):
                    m.d.sync += [
                        ends.eq(offset >= before),
                        inside.eq(offset < count),
                        found.eq((offset < count) & (offset <= final)),
                    ]
                    if self.config.lanes:
                        # A candidate takes four cycles in which a scan looks at four rows; of
                        # rows in turns, at two or less.
                        rows = Mux(last_turn == 0, count >> bank_bits + 2, count >> bank_bits + 1)
                        m.d.sync += too_long.eq(visible > rows)
                    m.next = "CANDIDATE"
                    with m.If(known_long & before[-1]):
                        m.next = "PREPARE"
                with m.State("CANDIDATE"):
                    m.d.comb += [
                        self.after.eq(slot),
                        self._issued.row.eq(slot[bank_bits:]),
                        self._issued.mask.eq((1 << slot[:bank_bits])[: self.banks]),
                        self._issued.whole.eq(whole),
                    ]
                    with m.If(ends):
                        m.next = "NOTHING"
                    with m.Elif(too_long):
                        # All that is older, this one too.
                        m.d.comb += self._is_long.eq(visible[_LONG_BITS:].any())
                        m.d.sync += looked.eq(visible + before)
                        with m.If(before <= final):
                            m.d.sync += final.eq(before - 1)
                        m.next = "PREPARE"
                    with m.Else():
                        m.d.comb += waiting.eq(~self._may_issue)
                    with m.If(~ends & ~too_long & self._may_issue):
                        m.d.comb += self._valid.eq(found)
                        with m.If(whole | ~found):
                            m.d.sync += [visible.eq(visible + inside), before.eq(offset)]
                            m.d.comb += self.ask.eq(1)
                            m.next = "WAIT"
            with m.State("NOTHING"):
                m.d.comb += [
                    self._valid.eq(self._may_issue),
                    self._issued.last.eq(1),
                    self._issued.whole.eq(1),
                    self.tally.eq(visible),
                    self._is_short.eq(count != 0),
                ]
                m.d.comb += waiting.eq(~self._may_issue)
                with m.If(self._may_issue):
                    m.d.comb += self.ended.eq(1)
                    m.next = "IDLE"
        here = ~fsm.ongoing("IDLE") | self.staged.valid
        m.d.comb += [self.working.eq(here & ~waiting), self.blocked.eq(here & waiting)]

    def _known_long(self, m: Module, key: Signal) -> Signal:
        """Remembers whether the bucket's chain was too long for a walk when it was last walked. Now and
        then it is walked all the same, for it may be shorter by now."""
        m.submodules.long = long = memory.Memory(shape=1, depth=self.config.depth, init=[])
        write, read = long.write_port(), long.read_port()
        known, times = Signal(), Signal(_OFTEN_BITS)
        m.d.comb += [
            write.addr.eq(key),
            write.data.eq(self._is_long),
            write.en.eq(self._is_long | self._is_short),
            read.addr.eq(key),
            read.en.eq(1),
        ]
        m.d.sync += known.eq(read.data & ~times.all())
        with m.If(self.ended & read.data):
            m.d.sync += times.eq(times + 1)
        return known

    # --- which pairs --------------------------------------------------------------

    def _compare(self, m: Module, issue: data.StructLayout) -> None:
        config, banks = self.config, self.banks
        lanes = config.lanes
        probe = self.staged.payload
        m.d.comb += self.row.eq(self._issued.row)

        # Stages: row, address, memory, tuples, pick, compare, decide; then which pairs are of
        # interest, and whether any is. Without lanes nothing is compared.
        depth = 6 if lanes else 3
        infos = [Signal(issue, name=f"info{i}", reset_less=True) for i in range(depth + 1)]
        valids = [Signal(name=f"valid{i}") for i in range(depth + 1)]
        m.d.comb += [infos[0].eq(self._issued), valids[0].eq(self._valid)]
        for i in range(depth):
            m.d.sync += infos[i + 1].eq(infos[i])
            m.d.sync += valids[i + 1].eq(valids[i])
        info, valid = infos[depth], valids[depth]

        found = Signal(
            data.StructLayout(
                {
                    "last": 1,
                    "row": self.row_bits,
                    "mask": banks,
                    "held": data.ArrayLayout(config.factors if lanes else 0, banks),
                    "attributes": data.ArrayLayout(0 if lanes else self.layouts.attributes.size, 1),
                }
            ),
            reset_less=True,
        )
        seen, pushed = (Signal.like(found, name=name) for name in ("seen", "pushed"))
        whole, push = [Signal(name=f"whole{stage}") for stage in range(2)], Signal()
        if lanes:
            m.submodules.array = array = FactorArray(config)
            worth = data.StructLayout({"plan": probe.plan.shape(), "terms": probe.terms.shape()})
            plans = [Signal(worth, name=f"plan{i}", reset_less=True) for i in range(6)]
            first, begun = Signal(), Signal()
            m.d.sync += [first.eq(valids[0] & self._first), begun.eq(first)]
            with m.If(self.begin):
                m.d.sync += self.hold.eq(1)
            with m.Elif(begun):
                m.d.sync += self.hold.eq(0)
            self._comparisons(m, array, infos[2])
            with m.If(self.begin):
                m.d.sync += [plans[0].plan.eq(probe.plan), plans[0].terms.eq(probe.terms)]
            with m.If(begun):
                m.d.sync += plans[1].eq(plans[0])
            m.d.sync += [plans[i + 1].eq(plans[i]) for i in range(1, 5)]
            m.d.comb += array.tuples.eq(self.tuples)
            held = self._gather(m, array, infos[depth - 1], valid)
            m.d.sync += seen.held.eq(Cat(held))
            mask = Cat(
                seen.mask[lane] & _of_interest(seen.held[lane], plans[5].plan, plans[5].terms)
                for lane in range(lanes)
            )
        else:
            mask = seen.mask
            m.d.sync += seen.attributes[0].eq(self.tuples[0])
        m.d.sync += [
            seen.last.eq(info.last),
            seen.row.eq(info.row),
            seen.mask.eq(info.mask),
            found.eq(seen),
            found.mask.eq(mask),
            pushed.eq(found),
            Cat(whole).eq(Cat(valid & info.whole, whole[0])),
            push.eq(whole[1] & (found.last | found.mask.any())),
        ]

        rows = fifo.SyncFIFOBuffered(width=len(found.as_value()), depth=_ROWS_WAITING)
        m.submodules.rows = rows
        m.d.comb += [rows.w_data.eq(pushed), rows.w_en.eq(push)]
        m.d.sync += self._may_issue.eq((rows.level <= _ROWS_WAITING - _ROWS_IN_FLIGHT) & ~self.wait)

        # Two rows wait outside the FIFO, so that it hears from a register whether to go on.
        row, row_after, coming = (
            Signal(found.shape(), name=n) for n in ("row", "row_after", "coming")
        )
        some, some_after, load = Signal(), Signal(), Signal()
        m.d.comb += [
            coming.eq(Mux(some_after, row_after, rows.r_data)),
            rows.r_en.eq(~some_after),
        ]
        with m.If(~some_after):
            m.d.sync += row_after.eq(rows.r_data)
        with m.If(load):
            m.d.sync += [some.eq(some_after | rows.r_rdy), some_after.eq(0), row.eq(coming)]
        with m.Elif(rows.r_rdy):
            m.d.sync += some_after.eq(1)

        # One pair a cycle, the newest first; after them the end, if it is the last row. Which is next, and whether
        # it is the last of a row, is known a cycle before.
        left, one, only = Signal(banks + 1), Signal(banks + 1), Signal()
        waiting, rest = Signal(banks + 1), Signal(banks + 1)
        m.d.comb += [
            waiting.eq(Cat(reversed(coming.mask), coming.last)),
            rest.eq(left & ~one),
            load.eq(~some | (only & self.pairs.ready)),
        ]
        with m.If(load):
            m.d.sync += [
                left.eq(waiting),
                one.eq(lowest(waiting)),
                only.eq(lowest(waiting) == waiting),
            ]
        with m.Elif(self.pairs.ready):
            m.d.sync += [left.eq(rest), one.eq(lowest(rest)), only.eq(lowest(rest) == rest)]
        pair = self.pairs.payload
        lane = Signal(range(max(2, banks)))
        for number in range(banks):
            with m.If(one[number]):
                m.d.comb += lane.eq(banks - 1 - number)
                if lanes:
                    m.d.comb += pair.held.eq(row.held[banks - 1 - number])
        if not lanes:
            m.d.comb += pair.attributes.eq(row.attributes[0])
        m.d.comb += [
            pair.end.eq(one[banks]),
            pair.slot.eq(Cat(lane[: self.bank_bits], row.row)),
            self.pairs.valid.eq(some),
        ]

    def _comparisons(self, m: Module, array: FactorArray, info: data.View) -> None:
        """Work of the comparators for the tuples that are read in this cycle."""
        put, bits = self.put, ceil_log2(self.config.turns)
        for number, comparison in enumerate(array.comparisons):
            m.submodules[f"comparisons{number}"] = kept = memory.Memory(
                shape=comparison.shape(), depth=2 << bits, init=[]
            )
            write, read = kept.write_port(), kept.read_port(domain="comb")
            now = Signal(comparison.shape(), name=f"comparison_{number}", reset_less=True)
            m.d.sync += now.eq(read.data)
            m.d.comb += [
                write.addr.eq(Cat(put.turn[:bits], put.buffer)),
                write.data.eq(put.comparison),
                write.en.eq(put.valid & (put.comparator == number)),
                read.addr.eq(Cat(info.turn, info.buffer)),
                comparison.eq(now),
            ]

    def _gather(
        self, m: Module, array: FactorArray, info: data.View, valid: Signal
    ) -> list[Signal]:
        """Per lane, the outcomes of all factors, once the last turn of a row is known. `info` is
        of the turn that comes to an end in the next cycle."""
        now = Signal(self.config.factors, reset_less=True)  # whose turn it is
        m.d.sync += now.eq(Cat(info.turn == factor.turn for factor in self.factors))
        gathered = []
        for lane in range(self.config.lanes):
            held = Signal(self.config.factors, name=f"gathered_{lane}")
            before = Signal(self.config.factors, name=f"before_{lane}", reset_less=True)
            outcomes = array.held[lane]
            for number, factor in enumerate(self.factors):
                outcome = outcomes.bit_select(factor.comparator[: ceil_log2(len(outcomes))], 1)
                with m.If(now[number]):
                    m.d.comb += held[number].eq(outcome)
                with m.Else():
                    m.d.comb += held[number].eq(before[number])
                with m.If(now[number] & valid):
                    m.d.sync += before[number].eq(outcome)
            gathered.append(held)
        return gathered


def _of_interest(held: Value, plan: data.View, terms: data.View) -> Value:
    """Asserted if a pair in which these factors hold may join."""
    whole = Cat((~terms[number] | held).all() for number in range(TERMS))
    return whole.any() & (plan.always | (held & plan.interest).any())
