"""Proves the execution unit: every JOIN that the program has for a pair comes out once, whatever the
router does and however often the probe is left and taken up again (P8, P1).

The program is one of a few, or any of 4 instructions that a load accepts. Beside the unit it is
evaluated by its definition, all at once.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data

from seustream.hdl import isa
from seustream.hdl.config import DeviceConfig
from seustream.hdl.control_words import NEEDS_BITS, Target
from seustream.hdl.decider import RowDecider, join_layout
from seustream.hdl.decoding import FIELDS, PATTERNS
from seustream.hdl.emitter import Emitter
from seustream.hdl.execution import ArrayExecution, SerialExecution
from seustream.hdl.factors import decide
from seustream.hdl.ports import TableBus
from seustream.hdl.probe_queue import ProbeQueue
from seustream.hdl.program import AreaProgram, JoinRow
from seustream.hdl.program_store import ProgramStore
from tests.formal.harness import (
    Case,
    Specification,
    altered,
    anything,
    before,
    build,
    check,
    constant,
    drive,
    hold,
    proof,
    small,
)

NUMBER = 1
PROGRAMS = {
    "two-joins": (isa.Cmp(1, 0, 2, 1, 0), isa.Emit(0, 0), isa.Emit(63, 1)),
    "jmpli": (isa.Cmp(0, 2, 1, 0, 1), isa.Jmpli(), isa.Emit(32, 1), isa.Emit(48, 0)),
    "either": (
        isa.Cmp(0, 0, 0, 1, 0),
        isa.Cmp(1, 0, 2, 1, 1),
        isa.OrRegisters(0, 1, 16),
        isa.Emit(16, 0),
    ),
    "late-cmp": (isa.Emit(63, 0), isa.Cmp(3, 0, 0, 5, 1), isa.Emit(1, 1)),
    "jumps": (
        isa.Cmp(0, 0, 0, 1, 0),
        isa.Jmpct(1, 4),
        isa.OrRegisters(0, 33, 16),
        isa.Jmp(5),
        isa.AndRegisters(0, 49, 16),
        isa.Emit(16, 0),
    ),
}
# 8 instructions and 2 route tags, so that the memories are small.
ADDRESS, TAG = {"ADDRESS_BITS": 3}, {"TAG_BITS": 1}
BUS = {"TableBus": altered(TableBus, **ADDRESS)}
JOINS = {"join_layout": altered(join_layout, **ADDRESS, **TAG)}
ROWS = {"ROW_BITS": 2, "JOIN_ROWS": 4}
SMALL = {
    **ADDRESS,
    **TAG,
    **BUS,
    "RowDecider": altered(RowDecider, **ADDRESS, **TAG, **ROWS, **BUS),
    "Emitter": altered(Emitter, **TAG, **JOINS),
    "ProgramStore": altered(ProgramStore, **ADDRESS, **TAG, **BUS),
    "ProbeQueue": altered(ProbeQueue, **ADDRESS),
}


class Program:
    """Holds any program, and computes what it does with a pair by the definition of its
    instructions."""

    def __init__(
        self, spec: Specification, m: Module, config: DeviceConfig, program: str | None
    ) -> None:
        self.config = config
        if program:
            self.words = [Const(i.encode(), isa.WORD_BITS) for i in PROGRAMS[program]]
        else:
            self.words = [constant(m, isa.WORD_BITS, f"word{a}") for a in range(3)]
        self.words.append(Const(0, isa.WORD_BITS))
        length = self.length = len(self.words)
        compares = Const(0)
        self.numbers = []
        for a, word in enumerate(self.words[:-1]):
            legal = [word == 0, word.matches(PATTERNS[isa.Jmpli])]
            for kind in (isa.AndRegisters, isa.OrRegisters):
                legal.append(word.matches(PATTERNS[kind]) & (view(word, kind).r[4:] == 1))
            for kind in (isa.Jmp, isa.Jmpct):
                to = view(word, kind).address
                legal.append(word.matches(PATTERNS[kind]) & (to > a) & (to < length))
            is_cmp = word.matches(PATTERNS[isa.Cmp])
            legal.append(is_cmp & (view(word, isa.Cmp).r < config.factors))
            legal.append(word.matches(PATTERNS[isa.Emit]) & (view(word, isa.Emit).tag < 2))
            spec.assume(m, Cat(legal).any())
            number = Signal(3, name=f"compares{a}")
            m.d.comb += number.eq(compares)
            self.numbers.append(number)
            compares = number + is_cmp
        spec.assume(m, compares <= config.factors)

    def run(
        self, m: Module, tag: Value, outcome: object, window_bits: Value, probe_bits: Value
    ) -> tuple[list[Value], list[Value]]:
        """Returns by address whether an instruction is executed, and whether it joins. `outcome`
        gives the result of a CMP from its word and number."""
        factors: list[Value] = [Const(0, 1)] * 16
        scratch: list[Value] = [Const(0, 1)] * 16
        executed, joins = [], []
        jumps: list[tuple[Value, Value]] = []
        falls: Value = Const(1, 1)

        def named(value: Value) -> Signal:
            # Otherwise the expression would double with every instruction.
            it = Signal(len(value))
            m.d.comb += it.eq(value)
            return it

        for a, word in enumerate(self.words):
            here = falls
            for taken, to in jumps:
                here = here | (taken & (to == a))
            here = named(here)
            executed.append(here)
            factors, scratch = ([named(r) for r in group] for group in (factors, scratch))
            registers = Cat(*factors, *scratch, window_bits, probe_bits, Const(1, 1))
            is_and, is_or = (
                word.matches(PATTERNS[kind]) for kind in (isa.AndRegisters, isa.OrRegisters)
            )
            ands = view(word, isa.AndRegisters)
            x, y = registers.bit_select(ands.a, 1), registers.bit_select(ands.b, 1)
            for r in range(16):
                writes = here & (is_and | is_or) & (ands.r == 16 + r)
                scratch[r] = Mux(writes, Mux(is_and, x & y, x | y), scratch[r])
            if a < self.length - 1:
                found = outcome(word, self.numbers[a])
                for r in range(self.config.factors):
                    writes = here & word.matches(PATTERNS[isa.Cmp]) & (view(word, isa.Cmp).r == r)
                    factors[r] = Mux(writes, found, factors[r])
            join = view(word, isa.Emit)
            joins.append(here & word.matches(PATTERNS[isa.Emit]) & registers.bit_select(join.r, 1))
            jmpct = view(word, isa.Jmpct)
            leaves = word.matches(PATTERNS[isa.Jmpct]) & (jmpct.tag != tag)
            none = word.matches(PATTERNS[isa.Jmpli]) & ~Cat(factors).any()
            jmp = word.matches(PATTERNS[isa.Jmp])
            jumps += [
                (here & leaves, jmpct.address),
                (here & none, Const(self.length - 1)),
                (here & jmp, view(word, isa.Jmp).address),
            ]
            falls = here & ~leaves & ~none & ~jmp
        return executed, joins


def view(word: Value, kind: type[isa.Instruction]) -> data.View:
    return data.View(FIELDS[kind], word)


class ExecutionIsTheProgram(Specification):
    """Two probes of level 0, any one of which is followed, and any number of level 1. The
    followed one meets two window tuples, in any order, or those of them that are of interest; its end
    comes with the last of them, or by itself.

    As in an area, a probe that was taken back is entered again, in its turn of its level,
    and its pairs begin anew with the one that the unit asks for. `alone`: there is only the
    followed probe, and nothing is late but the router, so that more can happen in as many cycles.
    `by_rows`: pairs are joined by the rows that the program comes to.
    """

    def __init__(
        self,
        program: str | None,
        lanes: int = 1,
        alone: bool = False,
        fault: tuple[str, str] | None = None,
        by_rows: bool = False,
    ) -> None:
        super().__init__()
        self.program, self.lanes, self.alone, self.by_rows = program, lanes, alone, by_rows
        parts = dict(SMALL)
        changes = (fault,) if fault else ()
        if by_rows and fault:
            parts["RowDecider"] = altered(RowDecider, fault, **ADDRESS, **TAG, **ROWS, **BUS)
            changes = ()
        self.make = altered(ArrayExecution if lanes else SerialExecution, *changes, **parts)

    def describe(self, m: Module) -> None:
        config = small(streams=3, depth=2, lanes=self.lanes, factors=2, attribute_width=1)
        unit = self.make(config, NUMBER)
        build(m, "unit", unit)
        drive(
            m, unit, "tables", "enter", "entering", "pairs", "hit_bits", "attributes",
            "offer", "waiting", "resume_level", "resumed",
        )  # fmt: skip
        program = Program(self, m, config, self.program)
        length = program.length

        # Load, then exchange the halves.
        rows: list[list[JoinRow]] = [[], []]
        if self.by_rows:
            assert self.program
            words = (*(i.encode() for i in PROGRAMS[self.program]), 0)
            rows = [AreaProgram(words).rows(tag, 4) or [] for tag in range(2)]
        table = [pack_row(row) for own in rows for row in own]
        assert len(table) <= 4
        clock = Signal(4)
        loaded = clock == length + 2 + len(table)
        with m.If(~loaded):
            m.d.sync += clock.eq(clock + 1)
        bus = unit.tables
        leads = [constant(m, 4, f"leads{t}") for t in range(2)]
        m.d.comb += [bus.valid.eq(~loaded), bus.unit.eq(NUMBER), bus.half.eq(loaded)]
        with m.If(clock < length):
            m.d.comb += [
                bus.target.eq(Target.INSTRUCTION),
                bus.address.eq(clock),
                bus.data.eq(Array(program.words)[clock]),
            ]
        with m.Elif(clock >= length + 2):
            m.d.comb += [
                bus.target.eq(Target.JOIN_ROW),
                bus.address.eq(clock - length - 2),
                bus.data.eq(Array(table or [0])[(clock - length - 2)[:2]]),
            ]
        with m.Else():
            m.d.comb += [
                bus.target.eq(Target.DESTINATION),
                bus.address.eq(clock - length),
                bus.data.eq(Array(leads)[(clock - length)[:1]]),
            ]

        # Probes that are entered and not done, the oldest first. Level 0: 0 and 1, then none.
        size = unit.entering.as_value().shape()
        probes = [constant(m, size, f"probe{n}") for n in range(2)]
        mine = constant(m, 1, "mine")
        shape = unit.entering.shape()
        for n in range(2):
            self.assume(m, shape(probes[n]).level == 0)
            self.assume(m, ~shape(probes[n]).reference.carries[NUMBER])
        self.assume(m, (shape(probes[0]).reference.tag < 2) & (shape(probes[1]).reference.tag < 2))
        other = anything(m, size, "other")
        for it in (*probes, other):
            probe = shape(it)
            if any(rows):
                self.assume(
                    m, probe.rows == Mux(probe.reference.tag[0], len(rows[1]), len(rows[0]))
                )
                self.assume(m, probe.row == Mux(probe.reference.tag[0], len(rows[0]), 0))
            else:
                self.assume(m, probe.rows == 0)
        done, entered = Signal(2), Signal(2)  # of level 0
        which = (done + entered)[:2]
        higher, wants = anything(m, 1, "enter_higher"), anything(m, 1, "wants")
        queue = [
            Signal(
                data.StructLayout({"high": 1, "which": 1, "resumed": 1, "from": 1}),
                name=f"queue{i}",
            )
            for i in range(4)
        ]
        held = Signal(3)  # entered, not done
        # A probe that is entered in the cycle of a rewind does not count.
        enter = loaded & wants & before(m, unit.may_enter) & (higher | (which < 2)) & (held < 4)
        m.d.comb += [
            unit.enter.eq(enter),
            unit.resumed.eq(enter),
            unit.resume_level.eq(higher),
            unit.entering.as_value().eq(Mux(higher, other, Array(probes)[which[:1]])),
        ]
        self.assume(m, shape(other).level == 1)
        first = queue[0]
        commits_low = unit.commit & ~first.high
        with m.If(unit.rewind):
            m.d.sync += [held.eq(0), entered.eq(0)]
        with m.Else():
            m.d.sync += [
                held.eq(held + enter - unit.commit),
                entered.eq(entered + (enter & ~higher) - commits_low),
                done.eq(done + commits_low),
            ]
            with m.If(unit.commit):
                m.d.sync += [queue[i].eq(queue[i + 1]) for i in range(3)]
            for i in range(4):
                with m.If(enter & (held - unit.commit == i)):
                    m.d.sync += [
                        queue[i].high.eq(higher),
                        queue[i].which.eq(which),
                        queue[i].resumed.eq(unit.resume),
                        getattr(queue[i], "from").eq(unit.resume_slot),
                    ]
        self.claim(m, ~unit.commit | (held != 0))
        if self.alone:
            self.assume(m, wants & ~higher & (which == 0) | (which == 1) & ~wants)
            self.assume(m, mine == 0)
        is_mine = (held != 0) & ~first.high & (first.which == mine)
        # The probe whose pairs are decided, which may be ahead.
        decided = Signal(3)
        m.d.sync += decided.eq(Mux(unit.rewind, 0, decided + unit._probes.decided - unit.commit))
        self.claim(m, ~unit._probes.decided | (decided < held))
        self.claim(m, ~unit.commit | (decided != 0))
        decides = Array(queue)[decided[:2]]
        decides_mine = (decided < held) & ~decides.high & (decides.which == mine)

        # Pairs: the probe they belong to, and how far they are: two places, then the end. `order`
        # gives the window tuple that is met first.
        order, present = constant(m, 1, "order"), constant(m, 2, "present")
        paired, place = Signal(3), Signal(2)
        at = Array(queue)[paired[:2]]
        slots = Signal()
        m.d.comb += slots.eq(place[0] ^ order)
        is_its = ~at.high & (at.which == mine)
        before_resumed = at.resumed & (place[0] == 0) & (getattr(at, "from") != slots)
        has_pair = (place != 2) & is_its & present.bit_select(slots, 1) & ~before_resumed
        there = (paired < held - before(m, enter)) & loaded
        ends = place == 2
        offers = Signal()
        m.d.comb += offers.eq(there & (ends | has_pair))
        moves, together = there & ~ends & ~has_pair, constant(m, 1, "together")
        last_pair = has_pair & (place[0] | ~present.bit_select(~slots, 1))
        ends_now = Signal()
        m.d.comb += ends_now.eq(ends | (last_pair & together))
        accepted = unit.pairs.valid & unit.pairs.ready
        lazy = anything(m, 1, "lazy")
        if self.alone:
            self.assume(m, ~lazy)
        waited = before(m, unit.pairs.valid & ~unit.pairs.ready & ~unit.rewind)
        m.d.comb += unit.pairs.valid.eq(offers & (~lazy | waited))
        pair = unit.pairs.payload
        found = [constant(m, max(1, len(pair.as_value()) - 3), f"found{s}") for s in range(2)]
        m.d.comb += pair.as_value().eq(Cat(has_pair, ends_now, slots, Array(found)[slots]))
        with m.If(unit.rewind):
            m.d.sync += [paired.eq(0), place.eq(0)]
        with m.Else():
            m.d.sync += paired.eq(paired + (accepted & ends_now) - unit.commit)
            with m.If(accepted & ends_now):
                m.d.sync += place.eq(0)
            with m.Elif(accepted | moves):
                m.d.sync += place.eq(place + 1)
        window_bits = [constant(m, 16, f"window_bits{s}") for s in range(2)]
        m.d.comb += unit.hit_bits.eq(Array(window_bits)[hold(m, unit.hit, unit.hit_take)])
        attributes = constant(m, unit.attributes.as_value().shape(), "attributes")
        m.d.comb += unit.attributes.as_value().eq(attributes)

        # The router takes what it has room for, or not; anything may be waiting. It grants a cycle
        # later, and takes only what it reported as roomy (see `test_router`).
        turn, granted = Signal(), Signal()
        gone, follows = granted | ~unit.offer.emit, unit.offer.follows
        there_is = Mux(
            turn, Mux(granted, follows[1], follows[0]), Mux(gone, follows[0], unit.offer.emit)
        )
        m.d.comb += [
            turn.eq(unit.offer.emit & unit.offer.roomy & anything(m, 1, "turn")),
            granted.eq(before(m, turn)),
            unit.offer.taking.eq(turn),
            unit.offer.roomy.eq(anything(m, 1, "roomy") & before(m, there_is)),
        ]
        self.claim(m, ~granted | (unit.offer.emit & ~unit.rewind))
        m.d.comb += unit.waiting.eq(anything(m, 2, "waiting"))

        # The outcome by the definition.
        its = shape(Array(probes)[mine])
        expected, reached = [], []
        for s in range(2):

            def outcome(word: Value, number: Value, s: int = s) -> Value:
                if self.lanes:
                    return found[s].bit_select(number[:1], 1)
                cmp = view(word, isa.Cmp)
                probe = unit.attributes.shape()(attributes)[cmp.probe_stream][cmp.probe_attribute]
                stored = found[s].word_select(cmp.window_attribute, 1)
                carried = its.reference.carries.bit_select(cmp.probe_stream, 1)
                holds = decide(cmp.condition, probe < stored, probe == stored)
                return holds & (carried | (cmp.condition == isa.Condition.TRUE))

            executed, joins = program.run(m, its.reference.tag, outcome, window_bits[s], its.bits)
            reached.append(Cat(executed))
            expected.append(Cat(j & present[s] for j in joins))
        expected_all = Signal(2 * length)
        m.d.comb += expected_all.eq(Cat(expected))
        joined = Signal(2 * length)  # those that came out
        slot = unit.offer.emitted.slots[NUMBER]
        mark = Signal(2 * length)
        emitting, address = unit._emitter.emitting, Signal(3)
        m.d.comb += address.eq(emitting.pc)
        if any(rows):  # each JOIN of these has a tag of its own
            code = PROGRAMS[self.program] if self.program else ()
            for at, instruction in enumerate(code):
                if isinstance(instruction, isa.Emit):
                    with m.If(emitting.tag == instruction.tag):
                        m.d.comb += address.eq(at)
        m.d.comb += mark.eq(1 << (address + Mux(slot, length, 0)))
        out = granted & is_mine
        with m.If(out):
            m.d.sync += joined.eq(joined | mark)
            self.claim(m, (expected_all & mark) != 0)
            self.claim(m, (joined & mark) == 0)
            join = view(Array(program.words)[address], isa.Emit)
            emitted = unit.offer.emitted
            self.claim(m, emitted.tag == join.tag)
            self.claim(m, emitted.carries == its.reference.carries | 1 << NUMBER)
            self.claim(m, emitted.slots[0] == its.reference.slots[0])
            self.claim(m, emitted.context == its.reference.context)
            self.claim(m, unit.offer.destination.as_value() == Array(leads)[join.tag[:1]])
            self.claim(m, unit.offer.level == 0)
        with m.If(unit.commit & is_mine):
            self.claim(m, joined == expected_all)
            self.claim(m, unit.context == its.reference.context)
        with m.If(unit.executed & decides_mine):
            trace = unit.trace
            self.claim(m, Array(reached)[trace.slot].bit_select(trace.address, 1))
            self.claim(m, trace.word == Array(program.words)[trace.address])
            self.claim(m, trace.tag == its.reference.tag)
        # A tuple that waits for the router does not change until it is granted, and is withdrawn
        # only as the probe is taken back.
        waits = before(m, unit.offer.emit & ~granted)
        what = Cat(
            unit.offer.emitted.as_value(), unit.offer.destination.as_value(), unit.offer.level
        )
        same = what == before(m, what)
        self.claim(m, ~waits | (unit.offer.emit & same) | unit.rewind)

        # What it announces of the next one comes true.
        said = before(m, gone & follows[0] & ~unit.rewind)
        to = unit.offer.destination.as_value() == before(m, unit.offer.follows_to[0].as_value())
        self.claim(
            m, ~said | (unit.offer.emit & to & (unit.offer.level == before(m, unit.offer.level)))
        )

        rewound = Signal()
        with m.If(unit.rewind & is_mine & (joined != 0)):
            m.d.sync += rewound.eq(1)
        both = (expected[0] != 0) & (expected[1] != 0)
        self.reach(m, unit.commit & is_mine & both & together)
        if any(rows):
            self.claim(m, ~unit.executed)
        else:
            self.reach(m, unit.executed & decides_mine & (unit.trace.address == length - 1))
        self.reach(m, unit.commit & is_mine & rewound)


def pack_row(row: JoinRow) -> int:
    """Packs a row like `Layouts.join_row`, with a tag of 8 bits."""
    needs = sum(1 << need for need in row.needs)
    return needs | row.tag << NEEDS_BITS | row.first << NEEDS_BITS + 8


def runs(
    program: str | None,
    lanes: int = 1,
    alone: bool = False,
    fault: tuple[str, str] | None = None,
    by_rows: bool = False,
) -> object:
    return lambda: ExecutionIsTheProgram(program, lanes, alone, fault, by_rows)


OR_IS_AND = ("does.a & does.b, does.a | does.b", "does.a & does.b, does.a & does.b")
REPEATS = ("(chosen.does.at < probes.left_pc)", "0")
ANY_ROW = ("~(row.needs & ~stages[-1].has).any()", "(row.needs & stages[-1].has).any()")
TWICE = ("& holds & ~before &", "& holds &")
FORGETS = ("(chosen.does.at < probes.left_pc)", "(chosen.does.at <= probes.left_pc)")


@pytest.mark.parametrize(
    "case",
    [
        proof("two-joins", runs("two-joins"), "search", 16, campaign=False),
        *(proof(name, runs(name), "search", 18) for name in PROGRAMS),
        *(proof(f"{name}-serial", runs(name, lanes=0), "search", 17) for name in PROGRAMS),
        *(proof(f"{name}-alone", runs(name, alone=True), "search", 36) for name in PROGRAMS),
        *(
            proof(f"{name}-by-rows", runs(name, by_rows=True), "search", 20)
            for name in ("two-joins", "jmpli", "jumps")
        ),
        proof("jmpli-rows", runs("jmpli", alone=True, by_rows=True), "search", 33),
        proof("two-rows", runs("two-joins", alone=True, by_rows=True), "meet", 52),
        proof(
            "any-row",
            runs("two-joins", alone=True, fault=ANY_ROW, by_rows=True),
            "search",
            32,
            "FAIL",
        ),
        proof(
            "row-twice", runs("either", alone=True, fault=TWICE, by_rows=True), "search", 32, "FAIL"
        ),
        proof("any-program", runs(None, alone=True), "search", 18),
        proof("two-joins-alone", runs("two-joins", alone=True), "meet", 52),
        proof("two-joins", runs("two-joins"), "meet", 56),
        proof("repeats", runs("two-joins", alone=True, fault=REPEATS), "search", 50, "FAIL"),
        proof("forgets", runs("two-joins", alone=True, fault=FORGETS), "search", 50, "FAIL"),
        proof("or-is-and", runs("jumps", alone=True, fault=OR_IS_AND), "search", 42, "FAIL"),
    ],
)
def test_execution(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)
