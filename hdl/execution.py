"""Instruction execution units: join an area's pairs, by its program or by the equivalent join rows."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from seustream.hdl import isa
from seustream.hdl.config import DeviceConfig
from seustream.hdl.control_words import ADDRESS_BITS, ROWS_BITS
from seustream.hdl.decider import RowDecider
from seustream.hdl.decoding import FIELDS, PATTERNS
from seustream.hdl.emitter import Emitter
from seustream.hdl.factors import FACTOR, decide
from seustream.hdl.layouts import CONTEXT_BITS, SELECTIONS, TAG_BITS, Layouts
from seustream.hdl.ports import JoinedOffer, Meter, TableBus
from seustream.hdl.probe_queue import ProbeQueue, probe_layout
from seustream.hdl.program_store import ProgramStore
from seustream.hdl.scan import pair_layout

_FACTORS = len(isa.FACTOR_REGISTERS)
_SCRATCH = len(isa.SCRATCH_REGISTERS)
_GROUP = 16
_GROUP_BITS = 4


class ExecutionUnit(wiring.Component):
    """Decides which pairs join; the core of `ArrayExecution` and `SerialExecution`, which differ in where the
    outcomes of comparisons come from, and in how a probe that has rows is decided.

    A pair waits until its selection bits are there, then it runs the program, an instruction after the other.
    Joined tuples wait for the router (`Emitter`). If the emitter gives up (`rewind`), the unit records where the
    probe was left; after the other probes it resumes with that very JOIN.

    latency     11 cycles from a pair to its request by rows; by the program 4 to the first
                instruction, 5 for a jump taken, 11 for a JOIN
    throughput  a row or an instruction per cycle; a pair that runs the program overlaps with the next pair
                only while that is read; the end of a probe comes with its last pair, or alone

    tables         in (`TableBus`)
    enter          in: pulse: a new probe; up to 63 wait
    entering       in: it (`probe_layout`), valid with `enter`
    may_enter      out: a probe may enter in the next cycle
    pairs          in: stream from the scanner (`pair_layout`), in the order of the probes
    hit, hit_take  out: read the selection bits of the window tuple at slot `hit`, valid with `hit_take`
    hit_bits       in: these bits, from the next cycle until the next `hit_take`
    attributes     in: attributes that the probe carries, valid while `hold`
    hold           out: the `attributes` are still needed
    offer          out (`JoinedOffer`)
    stalled        out: a joined tuple is offered, and not taken yet
    waiting        in: by level, probes are not done
    commit         out: pulse: a probe is done
    committed_level, context   out: its level and its context, valid with `commit`
    rewind         out: pulse: this and all later probes are taken back
    resume_level   in: level of the next probe
    resume         out: that probe was left before
    resume_slot    out: at which slot to resume it, valid with `resume`
    resumed        in: pulse: it is resumed
    factors        out: the program's CMPs (`FACTOR`), held while probes are here
    used           out: number of CMPs, held as `factors`
    last_turn      out: last of the turns that a row takes, held as `factors`
    meter          out (`Meter`): blocked while there is no room for a joined tuple
    executed       out: pulse: an instruction is executed
    trace          out: which one (`Layouts.trace`), valid with `executed`
    """

    _compared_bits = 0
    """Width of the two sides of a comparison that an instruction brings along."""

    def __init__(self, config: DeviceConfig, number: int) -> None:
        self.config, self.number = config, number
        self.layouts = layouts = Layouts(config)
        super().__init__(
            {
                "tables": In(TableBus()),
                "enter": In(1),
                "entering": In(probe_layout(config)),
                "may_enter": Out(1),
                "pairs": In(stream.Signature(pair_layout(config))),
                "hit": Out(layouts.slot_bits),
                "hit_take": Out(1),
                "hit_bits": In(SELECTIONS),
                "attributes": In(data.ArrayLayout(layouts.attributes, config.streams)),
                "offer": Out(JoinedOffer(config)),
                "stalled": Out(1),
                "waiting": In(layouts.levels),
                "commit": Out(1),
                "committed_level": Out(layouts.level_bits),
                "context": Out(CONTEXT_BITS),
                "hold": Out(1),
                "rewind": Out(1),
                "resume_level": In(layouts.level_bits),
                "resumed": In(1),
                "resume": Out(1),
                "resume_slot": Out(layouts.slot_bits),
                "factors": Out(data.ArrayLayout(FACTOR, config.factors)),
                "used": Out(range(config.factors + 1)),
                "last_turn": Out(range(config.turns)),
                "meter": Out(Meter()),
                "executed": Out(1),
                "trace": Out(layouts.trace),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.program = self._program = program = ProgramStore(self.config, self.number)
        m.submodules.probes = self._probes = ProbeQueue(self.config)
        m.submodules.decider = self._decider = decider = RowDecider(self.config, self.number)
        m.submodules.emitter = self._emitter = Emitter(self.config)
        wiring.connect(m, wiring.flipped(self.tables), program.tables, decider.tables)
        m.d.comb += [
            self.factors.eq(program.factors),
            self.used.eq(program.used),
            self.last_turn.eq(program.last_turn),
        ]
        self._queue(m)
        self._execute(m)
        self._emit(m)
        return m

    def _queue(self, m: Module) -> None:
        """Connects the probe queue to its inputs and to the emitter, which ends probes or leaves them."""
        probes, emitter = self._probes, self._emitter
        m.d.comb += [
            probes.enter.eq(self.enter),
            probes.entering.eq(self.entering),
            self.may_enter.eq(probes.may_enter),
            probes.sent.eq(emitter.ends),
            probes.commit.eq(emitter.commit),
            probes.left.slot.eq(emitter.emitting.slot),
            probes.left.pc.eq(emitter.emitting.pc),
            probes.rewind.eq(emitter.rewind),
            probes.resume_level.eq(self.resume_level),
            probes.resumed.eq(self.resumed),
            self.resume.eq(probes.resume),
            self.resume_slot.eq(probes.resume_slot),
            self.committed_level.eq(probes.committed_level),
            self.context.eq(probes.context),
        ]

    def _emit(self, m: Module) -> None:
        """Connects the emitter to the router, on behalf of the probe being sent."""
        emitter, probe, offer = self._emitter, self._probes.sending, self.offer
        joined, granted = offer.emitted, Signal()
        m.d.sync += granted.eq(offer.taking)
        higher = Cat(
            self.waiting[level] & (level > probe.level) for level in range(self.layouts.levels)
        )
        m.d.comb += [
            self._program.tag.eq(emitter.tag),
            emitter.leads.eq(self._program.destination),
            offer.emit.eq(emitter.emit),
            offer.level.eq(self._probes.level),
            offer.destination.eq(emitter.destination),
            offer.follows.eq(emitter.follows),
            offer.follows_to.eq(emitter.follows_to),
            emitter.granted.eq(granted),
            emitter.roomy.eq(offer.roomy),
            self.stalled.eq(emitter.emit & ~granted),
            emitter.higher.eq(higher.any()),
            self.commit.eq(emitter.commit),
            self.rewind.eq(emitter.rewind),
            joined.eq(probe.reference),
            joined.tag.eq(emitter.emitting.tag),
            joined.carries.eq(probe.reference.carries | 1 << self.number),
            joined.slots[self.number].eq(emitter.emitting.slot),
        ]

    def _execute(self, m: Module) -> None:
        layouts, probes = self.layouts, self._probes
        self._last = Signal(ADDRESS_BITS, name="last")
        m.d.sync += self._last.eq(self._program.last)
        # The next pair.
        self._pair = Signal(pair_layout(self.config), name="pair", reset_less=True)
        self._waits, self._waits_too = Signal(name="waits"), Signal(name="waits_too")
        self._taken = Signal(name="taken")
        # The pair in execution.
        self._running = Signal(name="running")
        self._slot = Signal(layouts.slot_bits, name="slot")
        self._held = Signal(self._pair.held.shape(), name="held")
        self._window = Signal(self._pair.attributes.shape(), name="window")
        self._factors, self._scratch = (
            Signal(_FACTORS, name="factors"),
            Signal(_SCRATCH, name="scratch"),
        )
        self._window_bits = Signal(SELECTIONS, name="window_bits")
        # Instructions go on; a pair begins; an instruction was read, and is not behind a jump or the end.
        self._go, self._begin = Signal(name="go"), Signal(name="begin")
        self._read_valid, self._valid = Signal(name="read_valid"), Signal(name="valid")
        self._chosen_valid, self._ready = Signal(name="chosen_valid"), Signal(name="ready")
        self._pc, self._at = Signal(ADDRESS_BITS, name="pc"), Signal(ADDRESS_BITS, name="at")
        self._instruction = Signal(self._program.word, name="instruction")
        # The decoded one, and what it finds.
        self._does, self._found = Signal(self._does_layout(), name="does"), Signal(name="found")

        self._buffer(m)
        self._fetch(m)
        self._take(m)
        m.d.comb += [
            self._decider.ended.eq(probes.decided),
            self._decider.level.eq(probes.deciding.level),
            self._decider.clear.eq(self.rewind),
        ]
        self._decide_by_rows(m)
        self._decode(m)
        self._act(m)
        with m.If(self.rewind):
            m.d.sync += [
                self._waits.eq(0),
                self._waits_too.eq(0),
                self._running.eq(0),
                self._read_valid.eq(0),
                self._valid.eq(0),
                self._chosen_valid.eq(0),
                self._ready.eq(0),
            ]

    def _buffer(self, m: Module) -> None:
        """Adds a two-entry buffer for pairs: the next one, whose selection bits are being read, and one more, so
        that `ready` to the scanner comes from a register."""
        pair, waits, waits_too = self._pair, self._waits, self._waits_too
        pair_after, arriving = Signal.like(pair), Signal.like(pair)
        m.d.comb += [
            self.pairs.ready.eq(~waits_too),
            arriving.eq(Mux(waits_too, pair_after, self.pairs.payload)),
            self.hit.eq(arriving.slot),
            self.hit_take.eq(~waits | self._taken),
        ]
        with m.If(self.pairs.ready):
            m.d.sync += pair_after.eq(self.pairs.payload)
        with m.If(self.hit_take):
            m.d.sync += [waits.eq(waits_too | self.pairs.valid), waits_too.eq(0), pair.eq(arriving)]
        with m.Elif(self.pairs.valid):
            m.d.sync += waits_too.eq(1)

    def _fetch(self, m: Module) -> None:
        """Fetches instructions. Pipeline stages: address, memory, instruction register."""
        program, pc, go = self._program, self._pc, self._go
        address, read_pc = Signal(ADDRESS_BITS), Signal(ADDRESS_BITS)
        m.d.comb += address.eq(Mux(self._running, pc, program.start))
        m.d.comb += [program.address.eq(address), program.take.eq(go)]
        with m.If(go):
            m.d.sync += [
                pc.eq(address + 1),
                read_pc.eq(address),
                self._read_valid.eq(self._running | self._begin),
                self._at.eq(read_pc),
                self._valid.eq(self._read_valid),
                self._instruction.eq(program.instruction),
            ]

    def _take(self, m: Module) -> None:
        """Takes the next pair if it is to run the program, and the lone end of a probe."""
        pair, running, waits, taken = self._pair, self._running, self._waits, self._taken
        by_rows = self._probes.deciding.rows != 0
        with m.If(~running & waits & pair.some & ~by_rows):
            m.d.comb += [self._begin.eq(1), taken.eq(~pair.end)]
            with m.If(pair.end):  # remains, and comes after the pair
                m.d.sync += pair.some.eq(0)
            m.d.sync += [
                running.eq(1),
                self._slot.eq(pair.slot),
                self._held.eq(pair.held),
                self._window.eq(pair.attributes),
                self._window_bits.eq(self.hit_bits),
                self._scratch.eq(0),
                *(self._factors[r].eq(self._known(r)) for r in range(_FACTORS)),
            ]
        with m.If(~running & waits & ~pair.some & self._emitter.room):
            m.d.comb += [taken.eq(1), self._probes.decided.eq(1)]

    def _known(self, register: int) -> Value | int:
        """Returns the outcome that a factor register has before the program runs."""
        return 0

    def _decide_by_rows(self, m: Module) -> None:
        """Decides the pairs of a probe that has rows."""

    def _decode(self, m: Module) -> None:
        """Decodes an instruction and selects its operands, in two stages: the register within each group, then the
        group, or a result forwarded from one of the two instructions ahead."""
        probes, instruction, go = self._probes, self._instruction, self._go
        probe, does, found, ready = probes.deciding, self._does, self._found, self._ready
        registers = Signal(isa.REGISTERS)
        m.d.comb += registers.eq(
            Cat(self._factors, self._scratch, self._window_bits, probe.bits, Const(1, 1))
        )
        chosen = Signal(_chosen_layout(does.shape()))
        next_chosen = Signal.like(chosen)
        next_does = next_chosen.does
        view = {kind: data.View(FIELDS[kind], instruction.word) for kind in isa.INSTRUCTIONS}
        is_ = {kind: instruction.word.matches(PATTERNS[kind]) for kind in isa.INSTRUCTIONS}
        numbers = {
            "a": Mux(is_[isa.Emit], view[isa.Emit].r, view[isa.AndRegisters].a),
            "b": view[isa.AndRegisters].b,
        }
        just = Signal(data.StructLayout({"writes": 1, "r": 6, "found": 1}))
        with m.If(go):
            m.d.sync += [
                just.writes.eq(ready & does.writes),
                just.r.eq(does.r),
                just.found.eq(found),
            ]
        operands = {}
        for name, number in numbers.items():
            group = Cat(
                registers[_GROUP * i : _GROUP * (i + 1)].bit_select(number[:_GROUP_BITS], 1)
                for i in range(isa.REGISTERS // _GROUP)
            )
            m.d.comb += [
                next_chosen[name].number.eq(number),
                next_chosen[name].group.eq(group),
            ]
            choice = chosen[name]
            operands[name] = Mux(
                ready & does.writes & (does.r == choice.number),
                found,
                Mux(
                    just.writes & (just.r == choice.number),
                    just.found,
                    choice.group.bit_select(choice.number[_GROUP_BITS:], 1),
                ),
            )
        here = Signal()  # the probe was left at this slot; known before its first instruction
        m.d.sync += here.eq(probes.was_left & (self._slot == probes.left_slot))
        m.d.comb += [
            next_does.r.eq(Mux(is_[isa.Cmp], view[isa.Cmp].r, view[isa.AndRegisters].r)),
            next_does.writes.eq(is_[isa.AndRegisters] | is_[isa.OrRegisters] | is_[isa.Cmp]),
            next_does.conjunction.eq(is_[isa.AndRegisters]),
            next_does.cmp.eq(is_[isa.Cmp]),
            next_does.join.eq(is_[isa.Emit]),
            next_does.tag.eq(view[isa.Emit].tag),
            next_does.jumps.eq(
                is_[isa.Jmp]
                | (is_[isa.Jmpct] & (view[isa.Jmpct].tag != probe.reference.tag))
            ),
            next_does.jumps_if_none.eq(is_[isa.Jmpli]),
            next_does.target.eq(
                Mux(is_[isa.Jmp], view[isa.Jmp].address,
                    Mux(is_[isa.Jmpct], view[isa.Jmpct].address, self._last))
            ),
            next_does.last.eq(self._at == self._last),
            next_does.at.eq(self._at),
            next_does.word.eq(instruction.word),
        ]  # fmt: skip
        self._look_up(m, next_does)
        with m.If(go):
            m.d.sync += [
                chosen.eq(next_chosen),
                self._chosen_valid.eq(self._valid),
                does.eq(chosen.does),
                does.a.eq(operands["a"]),
                does.b.eq(operands["b"]),
                # A resumed probe had executed this JOIN before it was left.
                does.again.eq(here & (chosen.does.at < probes.left_pc)),
                ready.eq(self._chosen_valid),
            ]

    def _look_up(self, m: Module, does: data.View) -> None:
        """Gives an instruction what its comparison needs."""
        raise NotImplementedError

    def _compare(self, does: data.View) -> Value:
        """Returns the outcome of a comparison."""
        raise NotImplementedError

    def _act(self, m: Module) -> None:
        """Executes the decoded instruction."""
        does, ready, found, go = self._does, self._ready, self._found, self._go
        factors, scratch, running = self._factors, self._scratch, self._running
        probe, room = self._probes.deciding, self._emitter.room
        acts = Signal()
        m.d.comb += [acts.eq(ready & go), self.executed.eq(acts & ~self.rewind)]
        m.d.comb += found.eq(
            Mux(
                does.cmp,
                self._compare(does),
                Mux(does.conjunction, does.a & does.b, does.a | does.b),
            )
        )
        with m.If(acts & does.writes):
            with m.If(does.cmp):
                m.d.sync += factors.bit_select(does.r[:4], 1).eq(found)
            with m.Else():
                m.d.sync += scratch.bit_select(does.r[:4], 1).eq(found)
        jump, joins = Signal(), Signal()
        m.d.comb += [
            jump.eq(does.jumps | (does.jumps_if_none & ~factors.any())),
            joins.eq(ready & does.join & does.a & ~does.again),
        ]
        waiting = ready & does.join & ~room
        m.d.comb += go.eq(~waiting)
        has = running | self._waits
        m.d.comb += [
            self.meter.blocked.eq(has & ~room & (waiting | ~running)),
            self.meter.working.eq(has & ~self.meter.blocked),
        ]
        with m.If(acts & jump):
            m.d.sync += self._pc.eq(does.target)
        with m.If(acts & does.last):
            m.d.sync += running.eq(0)
        with m.If(acts & (jump | does.last)):
            m.d.sync += [
                self._read_valid.eq(0),
                self._valid.eq(0),
                self._chosen_valid.eq(0),
                ready.eq(0),
            ]

        # Joined tuples come from only one of the two at a time, for the ends of probes are between them.
        emitter, decider = self._emitter, self._decider
        m.d.comb += [
            emitter.came.eq(decider.came | (joins & go)),
            emitter.found.eq(decider.found),
            emitter.level.eq(decider.its_level),
        ]
        with m.If(joins):
            m.d.comb += [
                emitter.found.some.eq(1),
                emitter.found.end.eq(0),
                emitter.found.tag.eq(does.tag),
                emitter.found.slot.eq(self._slot),
                emitter.found.pc.eq(does.at),
                emitter.level.eq(probe.level),
            ]

        m.d.comb += [
            self.trace.tag.eq(probe.reference.tag),
            self.trace.carries.eq(probe.reference.carries),
            self.trace.probe.eq(probe.reference.slots),
            self.trace.slot.eq(self._slot),
            self.trace.address.eq(does.at),
            self.trace.word.eq(does.word),
            self.trace.factors.eq(factors),
            self.trace.joins.eq(joins),
        ]

    def _does_layout(self) -> data.StructLayout:
        """Layout of the decoded instruction in execution: its operands `a` and `b` and result register `r`, its
        fields as a jump and as a JOIN, and the outcome of a comparison, or its two sides."""
        return data.StructLayout(
            {
                "a": 1,
                "b": 1,
                "r": 6,
                "writes": 1,
                "conjunction": 1,
                "cmp": 1,
                "join": 1,
                "again": 1,
                "tag": TAG_BITS,
                "jumps": 1,
                "jumps_if_none": 1,
                "target": ADDRESS_BITS,
                "last": 1,
                "at": ADDRESS_BITS,
                "word": isa.WORD_BITS,
                "held": 1,
                "left": self._compared_bits,
                "right": self._compared_bits,
                "condition": 3,
            }
        )


def _chosen_layout(does: data.Layout) -> data.StructLayout:
    """Layout of the next instruction, whose operands are half selected: for each its register number, and
    the value of that register in every group."""
    operand = data.StructLayout({"number": _GROUP_BITS + 2, "group": isa.REGISTERS // _GROUP})
    return data.StructLayout({"does": does, "a": operand, "b": operand})


class ArrayExecution(ExecutionUnit):
    """Execution behind a factor array, which has found the outcomes of all comparisons. If the tag of a probe has
    rows, these decide its pairs (`RowDecider`), a row per cycle. All other pairs run the program from the
    instruction after the leading run of CMPs, whose outcomes they begin with. No `attributes` are needed."""

    def _known(self, register: int) -> Value:
        source = self._program.sources[register]
        return source.known & self._pair.held.bit_select(source.factor, 1)

    def _decide_by_rows(self, m: Module) -> None:
        probes, decider, pair = self._probes, self._decider, self._pair
        probe = probes.deciding
        resumed = probes.was_left & (pair.slot == probes.left_slot)
        step, after_it = Signal(ROWS_BITS), Signal(ROWS_BITS, init=1)
        factors_held = Cat(pair.held, Const(0, _FACTORS - self.config.factors))
        m.d.comb += [
            decider.row.eq(probe.row + step),
            decider.has.eq(Cat(factors_held, self.hit_bits, probe.bits)),
            decider.slot.eq(pair.slot),
            decider.pc.eq(step),
            decider.again.eq(resumed & (step < probes.left_pc)),
        ]
        by_rows = probe.rows != 0
        with m.If(self._waits & pair.some & by_rows & self._emitter.room):
            m.d.comb += decider.asked.eq(1)
            m.d.sync += [step.eq(after_it), after_it.eq(after_it + 1)]
            with m.If(after_it == probe.rows):
                m.d.comb += [self._taken.eq(1), probes.decided.eq(pair.end)]
                m.d.sync += [step.eq(0), after_it.eq(1)]
        with m.If(self.rewind):
            m.d.sync += [step.eq(0), after_it.eq(1)]

    def _look_up(self, m: Module, does: data.View) -> None:
        m.d.comb += does.held.eq(self._held.bit_select(self._instruction.factor, 1))

    def _compare(self, does: data.View) -> Value:
        return does.held


class SerialExecution(ExecutionUnit):
    """Execution without a factor array: every pair runs the whole program, and each CMP compares the two
    attributes itself. No probe has rows; ends of probes take the way through the decider all the same."""

    def __init__(self, config: DeviceConfig, number: int) -> None:
        self._compared_bits = config.attribute_width
        super().__init__(config, number)

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        m.d.comb += self.hold.eq(self._probes.busy)
        return m

    def _look_up(self, m: Module, does: data.View) -> None:
        cmp = data.View(FIELDS[isa.Cmp], self._instruction.word)
        m.d.comb += [
            does.left.eq(self.attributes[cmp.probe_stream][cmp.probe_attribute]),
            does.right.eq(self._window[cmp.window_attribute]),
            does.condition.eq(cmp.condition),
            does.held.eq(
                self._probes.deciding.reference.carries.bit_select(cmp.probe_stream, 1)
                | (cmp.condition == isa.Condition.TRUE)
            ),
        ]

    def _compare(self, does: data.View) -> Value:
        a, b = does.left, does.right
        return does.held & decide(does.condition, a < b, a == b)
