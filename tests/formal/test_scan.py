"""Proves the scanner: each probe is led past every window tuple that it may meet, once, and comes
to one end (P5, P1, P11); with an index, past every one of its bucket."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from amaranth.hdl import Array, Cat, Const, Module, Mux, ResetInserter, Signal, Value
from amaranth.lib import data, wiring

from seustream.hdl.config import DeviceConfig
from seustream.hdl.control_words import TERMS
from seustream.hdl.factors import decide
from seustream.hdl.index import EqualityIndex, bucket, hashed
from seustream.hdl.isa import Condition
from seustream.hdl.scan import Scanner
from seustream.hdl.walk import ChainWalker
from tests.formal.harness import (
    Case,
    Specification,
    altered,
    anything,
    before,
    check,
    constant,
    drive,
    narrowed,
    proof,
    small,
)

BUFFERS = 4
"""Probes whose comparisons are kept: fewer than in a build, so that each place is soon used
again."""


class ScannerMeetsAll(Specification):
    """Any one slot of the window is followed; the others contain anything.

    A loader puts comparisons only where those of a probe are no longer needed, those of some
    probes ahead, and the last one of a probe as that is staged; the execution unit takes up at most
    three probes.
    """

    indexes = 0

    def __init__(self, depth: int, lanes: int, factors: int, *faults: tuple[str, str]) -> None:
        super().__init__()
        self.depth, self.lanes, self.factors = depth, lanes, factors
        self.faults = faults

    @contextlib.contextmanager
    def setting(self) -> Iterator[None]:
        bits = (BUFFERS - 1).bit_length()
        with narrowed({"BUFFER_BITS": bits, "BEGUN": BUFFERS}, {}):
            yield

    def make(self, config: DeviceConfig) -> Scanner:
        return altered(Scanner, *self.faults)(config)

    def describe(self, m: Module) -> None:
        config = small(
            depth=self.depth,
            lanes=self.lanes,
            factors=self.factors,
            comparators=1,
            attribute_width=1,
            indexes=self.indexes,
        )
        scanner = self.make(config)
        made = scanner.elaborate(None)
        scanner._MustUse__used = True
        flush = anything(m, 1, "flush")
        m.submodules.scanner = ResetInserter(flush)(made)
        drive(m, scanner, "staged", "may_begin", "tuples", "factors", "last_turn", "put",
              "resume", "pairs", "lookups", "wait", "worth")  # fmt: skip
        bits, banks = len(scanner.resume_slot), scanner.banks
        bank_bits = scanner.bank_bits

        # Which pairs are of interest, by route tag: any of two.
        worths = Array(
            scanner.worth.shape()(constant(m, scanner.worth.shape().size, f"worth{tag}"))
            for tag in range(2)
        )
        m.d.comb += scanner.worth.eq(worths[before(m, scanner.tag)[0]])

        # The window: a row takes 3 cycles, if it is not to wait.
        wait = anything(m, 1, "wait")
        m.d.comb += scanner.wait.eq(wait)
        slot = constant(m, bits, "slot")
        stored = constant(m, 4 * config.attribute_width, "stored")
        asked = (scanner.row == slot[bank_bits:]) & ~before(m, wait)
        for _ in range(3):
            asked = before(m, asked)
        for b in range(banks):
            here = asked & ((slot[:bank_bits] if bank_bits else 0) == b)
            other = anything(m, stored.shape(), f"other{b}")
            m.d.comb += scanner.tuples[b].as_value().eq(Mux(here, stored, other))
        factors = constant(m, scanner.factors.as_value().shape(), "factors")
        used = constant(m, range(self.factors + 1), "used")
        m.d.comb += scanner.factors.as_value().eq(factors)
        # A load leaves some time before the first probe. There is one comparator.
        self.assume(m, used <= self.factors)
        m.d.comb += scanner.last_turn.eq(Mux(used == 0, 0, used - 1))
        for number in range(self.factors):
            self.assume(m, scanner.factors[number].comparator == 0)
            self.assume(m, scanner.factors[number].turn == number)
        awake = Signal()
        m.d.sync += awake.eq(1)

        # The loader: a probe, and what it is compared by, in one of the buffers. After a flush it
        # may go on with any of them.
        size = scanner.staged.payload.as_value().shape()
        payload = anything(m, size, "payload")
        shape = scanner.staged.payload.shape()
        probe = shape(payload)
        in_use = Signal(3)
        m.d.sync += in_use.eq(Mux(flush, 0, in_use + scanner.begin - scanner.freed))
        self.claim(m, ~scanner.freed | (in_use != 0))
        # With two turns a row, half as many are kept.
        room = Mux(used > 1, BUFFERS // 2, BUFFERS)
        valid = anything(m, 1, "valid") & (in_use < room) & awake
        stays = before(m, scanner.staged.valid & ~scanner.staged.ready & ~flush)
        self.assume(m, ~stays | flush | (valid & (payload == before(m, payload))))
        buffer = Signal(2)
        other_buffer = anything(m, 2, "other_buffer")
        m.d.sync += buffer.eq(Mux(flush, other_buffer, buffer + scanner.begin))
        self.assume(m, ~scanner.staged.valid | (probe.buffer == buffer))
        put = scanner.put
        m.d.comb += put.as_value().eq(anything(m, put.as_value().shape(), "put"))
        ahead = (put.buffer - buffer)[:2]
        self.assume(m, ~put.valid | (in_use + ahead < room))
        # A probe is picked some cycles before its comparisons are put, and none is picked before a flush.
        self.assume(m, ~put.valid | (awake & ~before(m, flush)))
        self.assume(m, ~put.valid | ~stays | (ahead != 0))
        self.assume(m, (put.turn == 0) | (put.turn < used))
        compared = [
            [Signal.like(put.comparison) for _ in range(self.factors)] for _ in range(BUFFERS)
        ]
        for b in range(BUFFERS):
            for number in range(self.factors):
                now = compared[b][number]
                its_place = Mux(used > 1, put.buffer[0] == b % 2, put.buffer == b)
                here = put.valid & (put.comparator == 0) & its_place & (put.turn == number)
                m.d.comb += now.eq(Mux(here, put.comparison, before(m, now)))
        m.d.comb += [scanner.staged.valid.eq(valid), scanner.staged.payload.as_value().eq(payload)]
        self.assume(m, (probe.count <= self.depth) & ~(probe.plan.indexed & (config.indexes == 0)))

        # Probes begun and not ended, the oldest first: whether they are to meet the slot, and the
        # outcome of the factor for it. A probe that begins or is taken in the cycle of a flush does
        # not count.
        held, begin = Signal(3), scanner.begin & ~flush
        entry = data.StructLayout(
            {"meets": 1, "outcome": self.factors, "compared": self.factors, "must": 1}
        )
        queue = [Signal(entry, name=f"begun{i}") for i in range(4)]
        m.d.comb += scanner.may_begin.eq((held + begin < 3) & anything(m, 1, "may_begin"))
        offset = (slot - probe.tail)[:bits]
        resume, resume_slot = anything(m, 1, "resume"), scanner.resume_slot
        m.d.comb += scanner.resume.eq(resume)
        resume_offset = (resume_slot - probe.tail)[:bits]
        self.assume(m, ~(scanner.begin & resume) | (resume_offset < probe.count))
        outcomes = []
        for number in range(self.factors):
            its = Signal.like(put.comparison, name=f"its_{number}")
            m.d.comb += its.eq(Array(each[number] for each in compared)[probe.buffer])
            window = stored.word_select(its.window_attribute, config.attribute_width)
            holds = decide(its.condition, its.operand < window, its.operand == window)
            always = its.condition == Condition.TRUE
            outcomes.append(holds & (its.carried | always) & (number < used))
            for each in worths:
                self.assume(m, ~each.interest.factors[number] | (number < used))
                for term in range(TERMS):
                    self.assume(m, ~each.terms[term][number] | (number < used))
        outcome, worth = Cat(outcomes), worths[probe.reference.tag[0]]
        # Its turns are those of all factors that decide it; a factor's turn is its number.
        compared = Signal(self.factors)
        first, last = (
            (probe.plan.turns[name] if self.factors > 1 else 0) for name in ("first", "last")
        )
        for number in range(self.factors):
            m.d.comb += compared[number].eq((number >= first) & (number <= last))
            of_it = Cat(
                worth.interest.factors[number], *(worth.terms[t][number] for t in range(TERMS))
            )
            self.assume(m, ~(scanner.staged.valid & of_it.any()) | compared[number])
        if self.factors > 1:
            self.assume(m, (first <= last) & (last <= Mux(used == 0, 0, used - 1)))
        meets = (
            (offset < probe.count)
            & (~resume | (offset <= resume_offset))
            & (worth.interest.always | (worth.interest.factors & outcome).any())
            & Cat((worth.terms[term] & ~outcome) == 0 for term in range(TERMS)).any()
        )
        must = Const(1)
        if self.indexes:
            must = self._walk(m, config, scanner, probe, slot, stored, held)
        pairs = scanner.pairs
        m.d.comb += pairs.ready.eq(anything(m, 1, "ready"))
        accepted = pairs.valid & pairs.ready
        ends = accepted & pairs.payload.end
        for i in range(4):
            with m.If(begin & (held - ends == i)):
                m.d.sync += [
                    queue[i].meets.eq(meets),
                    queue[i].outcome.eq(outcome),
                    queue[i].compared.eq(compared),
                    queue[i].must.eq(must),
                ]
            with m.Elif(ends & (i < 3)):
                m.d.sync += queue[i].eq(queue[(i + 1) % 4])
        met = Signal()
        meets_now = pairs.payload.some & (pairs.payload.slot == slot)
        with m.If(flush):
            m.d.sync += [held.eq(0), met.eq(0)]
        with m.Else():
            m.d.sync += held.eq(held + begin - ends)
            with m.If(ends):
                m.d.sync += met.eq(0)
            with m.Elif(accepted & meets_now):
                m.d.sync += met.eq(1)
        with m.If(pairs.valid & ~flush):
            self.claim(m, (held != 0) & (pairs.payload.some | pairs.payload.end))
            with m.If(pairs.payload.end):
                self.claim(m, met | meets_now | ~(queue[0].meets & queue[0].must))
            with m.If(meets_now):
                self.claim(m, queue[0].meets & ~met)
                in_use = ((1 << used) - 1) & queue[0].compared
                self.claim(m, ((pairs.payload.held ^ queue[0].outcome) & in_use) == 0)
        waits = before(m, pairs.valid & ~pairs.ready & ~flush)
        what = pairs.payload.as_value()
        self.claim(m, ~waits | (pairs.valid & (what == before(m, what))))

        # Every pair of a probe without an index is counted.
        counts = Array(Signal(len(scanner.tally), name=f"count{i}") for i in range(4))
        first, last = Signal(2), Signal(2)
        with m.If(scanner.begin):
            m.d.sync += [counts[last].eq(probe.count), last.eq(last + 1)]
        with m.If(scanner.ended):
            m.d.sync += first.eq(first + 1)
        with m.If(flush):
            m.d.sync += [first.eq(0), last.eq(0)]
        if not self.indexes:
            self.claim(m, ~scanner.ended | (scanner.tally == counts[first]))
        # Nothing lasts for ever.
        idle = Signal(7)
        with m.If((held != 0) & pairs.ready & ~pairs.valid):
            m.d.sync += idle.eq(idle + ~before(m, wait))
        with m.Else():
            m.d.sync += idle.eq(0)
        rows = 4 * self.depth if self.indexes else self.depth // banks
        longest = 40 + rows * self.factors
        self.claim(m, idle <= longest)

        self.reach(m, ends & queue[0].meets & (held == (1 if self.indexes else 2)))
        self.reach(m, accepted & met & pairs.payload.some)
        self.reach(m, ends & meets_now)
        if not self.indexes:
            self.reach(m, begin & before(m, begin))
        self.reach(m, idle == 7)


class WalkMeetsAllOfItsBucket(ScannerMeetsAll):
    """With an equality index, into which tuples go all the while, but to no slot that the current
    probe can see. Tuples of other buckets may be met or not."""

    indexes = 1

    def __init__(
        self,
        depth: int,
        factors: int,
        *faults: tuple[str, str],
        index: tuple[tuple[str, str], ...] = (),
    ) -> None:
        super().__init__(depth, 1, factors, *faults)
        self.index = index

    def make(self, config: DeviceConfig) -> Scanner:
        walker = altered(ChainWalker, *ALWAYS_WALKS, *self.faults)
        return altered(Scanner, ChainWalker=walker)(config)

    def _walk(
        self,
        m: Module,
        config: DeviceConfig,
        scanner: Scanner,
        probe: data.View,
        slot: Value,
        stored: Value,
        held: Value,
    ) -> Value:
        m.submodules.index = index = altered(EqualityIndex, *self.index)(config)
        bits, depth = len(slot), self.depth
        # The ring: where it ends, how much of it was written, how far back the view begins.
        head, filled = Signal(bits), Signal(bits + 1)
        back = Signal(bits + 1)
        insert = anything(m, 1, "insert") & ((held == 0) | (back != depth)) & ~scanner.begin
        this, key = anything(m, 1, "this"), anything(m, 1, "key")
        here = insert & (head == slot)
        known = Signal()  # the followed slot contains `stored`
        with m.If(here):
            m.d.sync += known.eq(this)
        with m.If(insert):
            m.d.sync += [head.eq(head + 1), back.eq(back + 1)]
            m.d.sync += filled.eq(Mux(filled == depth, depth, filled + 1))
        seed = constant(m, index.seed.shape(), "seed")
        its = bucket(hashed(stored[:1], seed, config.bucket_bits), config.bucket_bits)
        m.d.comb += [
            index.seed.eq(seed),
            index.insert.eq(insert),
            index.slot.eq(head),
            index.key.eq(Mux(here & this, stored[:1], key)),
        ]
        wiring.connect(m, scanner.lookups[0], index.lookup)
        begins = anything(m, bits + 1, "back")
        with m.If(scanner.begin):
            self.assume(m, (begins <= filled) & (probe.count <= begins))
            self.assume(m, (probe.tail == (head - begins)[:bits]) & (held == 0))
            offset = (slot - probe.tail)[:bits]
            self.assume(m, known | (offset >= probe.count))
            self.assume(m, probe.plan.indexed & (probe.plan.index == 0))
            # A walk is taken up again where it joined, so at a tuple of its bucket.
            resumed = scanner.resume
            self.assume(m, ~resumed | (scanner.resume_slot == slot))
            self.assume(m, ~resumed | (its == probe.bucket))
            m.d.sync += back.eq(begins)
        return its == probe.bucket


def scans(depth: int, lanes: int, factors: int, *faults: tuple[str, str]) -> object:
    return lambda: ScannerMeetsAll(depth, lanes, factors, *faults)


def walks(
    factors: int,
    *faults: tuple[str, str],
    index: tuple[tuple[str, str], ...] = (),
    depth: int = 2,
) -> object:
    return lambda: WalkMeetsAllOfItsBucket(depth, factors, *faults, index=index)


ALWAYS_WALKS = (
    ("~staged.count[bank_bits + 1 :].any() if self.config.lanes else Const(0)", "Const(0)"),
    ("_LONG_BITS = 3", "_LONG_BITS = 0"),
)
"""For windows of two, which would otherwise be scanned; and a chain of two is remembered."""


PAIR_TWICE = scans(4, 2, 1, ("one.eq(lowest(rest))", "one.eq(one)"))
BUFFER_BEFORE = scans(
    4,
    1,
    1,
    ("info.turn, info.buffer, last_turn", "info.turn, (info.buffer - 1)[:BUFFER_BITS], last_turn"),
)
TAG_LATE = scans(4, 1, 1, ("infos[depth - 2].buffer", "infos[depth - 3].buffer"))
TURN_LOST = scans(4, 1, 2, ("whole.eq((turn == turns.last) | ~item.some)", "whole.eq(1)"))
TERM_IGNORED = scans(
    4, 1, 2, ("(~worth.terms[number] | held).all()", "(~worth.terms[number] | held).any()")
)
MARK_OF_ANOTHER = walks(1, index=(("olds.mark.eq(to)", "olds.mark.eq(olds.mark)"),))
ENDS_AT_ITS_OWN = walks(1, ("link.mark != asker", "link.mark == asker"))
NOT_LINKED = walks(1, index=(("older_write.en.eq(links.valid)", "older_write.en.eq(0)"),))


@pytest.mark.parametrize(
    "case",
    [
        proof("scan", scans(4, 2, 1), "search", 29, campaign=False),
        proof("scan", scans(4, 2, 1), "search", 32),
        proof("scan", scans(4, 2, 1), "meet", 33),
        proof("scan-1", scans(4, 1, 1), "search", 31),
        proof("scan-in-turns", scans(4, 1, 2), "search", 31),
        proof("scan-in-turns", scans(4, 1, 2), "meet", 37),
        proof("walk", walks(1), "search", 38),
        proof("walk-in-turns", walks(2), "search", 34),
        proof("walk", walks(1), "meet", 46),
        proof(
            "last-left-out",
            scans(4, 2, 1, ("b <= high", "b < high")),
            "search",
            30,
            "FAIL",
            campaign=False,
        ),
        proof("too-many", scans(4, 2, 1, ("b >= low", "b >= 0")), "search", 31, "FAIL"),
        proof("pair-twice", PAIR_TWICE, "search", 32, "FAIL"),
        proof("buffer-before", BUFFER_BEFORE, "search", 31, "FAIL"),
        proof("tag-late", TAG_LATE, "search", 31, "FAIL"),
        proof("turn-lost", TURN_LOST, "search", 31, "FAIL"),
        proof("term-by-halves", TERM_IGNORED, "search", 31, "FAIL"),
        proof("chain-not-linked", NOT_LINKED, "search", 38, "FAIL"),
        proof("mark-of-another", MARK_OF_ANOTHER, "search", 38, "FAIL"),
        proof("ends-where-it-is-not-foreign", ENDS_AT_ITS_OWN, "search", 38, "FAIL"),
        proof(
            "scan-after-walk-too-late",
            walks(1, ("probe.before, probe.final)", "probe.before - 1, probe.final)")),
            "search",
            45,
            "FAIL",
            limit=1800,
        ),
        proof(
            "ends-early",
            walks(1, ("offset >= judge.before", "offset >= judge.count"), depth=4),
            "search",
            40,
            "FAIL",
        ),
    ],
)
def test_scan(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)
