"""Control unit: executes commands, checks the words they write, and counts events."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from seustream.hdl import isa
from seustream.hdl.config import DeviceConfig
from seustream.hdl.control_words import (
    ADDRESS_BITS,
    DATA_BITS,
    FILTER_BITS,
    JOIN_ROWS,
    OPERATION_BITS,
    TARGET_BITS,
    UNIT_BITS,
    ControlOperation,
    Counter,
    Target,
    Verdict,
    units,
)
from seustream.hdl.decoding import FIELDS, PATTERNS
from seustream.hdl.layouts import Layouts
from seustream.hdl.meters import Meters
from seustream.hdl.ports import TableBus
from seustream.hdl.window_tests import SET_BITS, TEST_BITS

COMMAND = data.StructLayout(
    {
        "operation": OPERATION_BITS,
        "target": TARGET_BITS,
        "unit": UNIT_BITS,
        "address": ADDRESS_BITS,
        "data": DATA_BITS,
    }
)
RESPONSE = data.StructLayout({"verdict": 4, "data": DATA_BITS})

METER = data.StructLayout({"busy": 1, "blocked": 1})
"""Activity of a unit in a cycle. A unit that is neither busy nor blocked is starved: it has no work."""

COUNTED = [counter for counter in Counter if counter < Counter.STATE]


class ControlUnit(wiring.Component):
    """Executes one command after the other and answers each. Words are written to the half of the tables that is
    not in use; COMMIT waits until nothing is in flight, exchanges the halves and starts a replay, which evaluates
    the stored tuples anew.

    latency     READ and refusals 6 cycles; COMMIT and RESET when the device is empty
    throughput  a WRITE in 6 cycles

    commands, responses   in, out: streams, one response per command
    tables         out: table bus (`TableBus`)
    pause          out: take no raw tuple
    quiet          in: nothing is in flight
    clear, forget  out: pulses: empty the windows; also clear clock and counters
    replay, replaying   out: pulse: start a replay; in: it runs, may be a cycle late
    events         in: increment of each counter
    occupancy      in: tuples stored, per stream
    meters         in: for each unit, whether it is busy and whether it is blocked in this cycle
    """

    def __init__(self, config: DeviceConfig) -> None:
        self.config = config
        self.layouts = layouts = Layouts(config)
        # More than one pair or result can be counted in a cycle.
        self.event_bits = max(layouts.pointer_bits + 2, config.queries.bit_length())
        self.events_layout = data.StructLayout(
            {counter.name.lower(): self.event_bits for counter in COUNTED}
        )
        super().__init__(
            {
                "commands": In(stream.Signature(COMMAND)),
                "responses": Out(stream.Signature(RESPONSE)),
                "tables": Out(TableBus()),
                "pause": Out(1, init=1),
                "quiet": In(1),
                "clear": Out(1),
                "forget": Out(1),
                "replay": Out(1),
                "replaying": In(1),
                "events": In(self.events_layout),
                "occupancy": In(data.ArrayLayout(layouts.pointer_bits, config.streams)),
                "meters": In(data.ArrayLayout(METER, len(units(config)))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self._loaded, self._loading, self._paused = Signal(), Signal(), Signal()
        command = Signal(COMMAND)
        verdict = Signal(Verdict)
        busy, done = Signal(), Signal()
        m.d.comb += verdict.eq(Verdict.OK)
        self._count(m)
        writing, complete = Signal(), Signal()
        found, refused = Signal(Verdict), Signal(Verdict)
        self._check(m, command, writing, found, complete)
        m.d.sync += refused.eq(found)

        response = self.responses.payload
        with m.If(self.responses.ready):
            m.d.sync += self.responses.valid.eq(0)
        m.d.comb += self.commands.ready.eq(~busy & ~self.responses.valid)
        with m.If(self.commands.valid & self.commands.ready):
            m.d.sync += [command.eq(self.commands.payload), busy.eq(1)]
        # A word goes out a cycle after its checks passed; the tables expect it from a register.
        m.d.comb += writing.eq(0)
        m.d.sync += self.tables.valid.eq(0)

        # The checks of a word take three more cycles, as pipeline stages.
        looked = Signal(3)
        m.d.sync += looked.eq(Mux(busy & ~done, Cat(1, looked), 0))
        held = Signal()  # raw tuples are held for a COMMIT or RESET
        clearing = Signal()
        m.d.sync += [self.clear.eq(0), self.forget.eq(0)]
        known = len(self.meters.as_value())
        m.submodules.meters = meters = Meters(self.config, known)
        m.d.comb += [
            meters.events.eq(self.meters),
            meters.address.eq(command.address[: len(meters.address)]),
            meters.forget.eq(self.forget),
        ]
        metered, uncounted = Signal(), Signal()
        m.d.sync += metered.eq(command.address >= Counter.CYCLES_OF_UNITS)
        m.d.sync += uncounted.eq(
            Mux(
                metered,
                command.address >= Counter.CYCLES_OF_UNITS + known,
                command.address >= len(self._counters),
            )
        )
        read = Mux(metered, meters.count, Array(self._counters)[command.address[:5]])
        with m.FSM():
            with m.State("COMMAND"):
                with m.If(busy & looked.all()):
                    with m.Switch(command.operation):
                        with m.Case(ControlOperation.BEGIN):
                            with m.If(self._loading):
                                m.d.comb += verdict.eq(Verdict.LOADING)
                            with m.Else():
                                m.d.sync += self._loading.eq(1)
                            m.d.comb += done.eq(1)
                        with m.Case(ControlOperation.WRITE):
                            with m.If(~self._loading):
                                m.d.comb += verdict.eq(Verdict.NOT_LOADING)
                            with m.Else():
                                m.d.comb += verdict.eq(refused)
                                with m.If(refused == Verdict.OK):
                                    m.d.comb += writing.eq(1)
                            m.d.comb += done.eq(1)
                        with m.Case(ControlOperation.ABORT):
                            with m.If(~self._loading):
                                m.d.comb += verdict.eq(Verdict.NOT_LOADING)
                            m.d.sync += self._loading.eq(0)
                            m.d.comb += done.eq(1)
                        with m.Case(ControlOperation.COMMIT):
                            with m.If(~self._loading):
                                m.d.comb += [verdict.eq(Verdict.NOT_LOADING), done.eq(1)]
                            with m.Elif(~complete):
                                m.d.comb += [verdict.eq(Verdict.INCOMPLETE), done.eq(1)]
                            with m.Else():
                                m.d.sync += held.eq(1)
                                m.next = "DRAIN"
                        with m.Case(ControlOperation.RESET):
                            with m.If(self._loading):
                                m.d.comb += [verdict.eq(Verdict.LOADING), done.eq(1)]
                            with m.Else():
                                m.d.sync += held.eq(1)
                                m.next = "DRAIN"
                        with m.Case(ControlOperation.PAUSE):
                            m.d.sync += self._paused.eq(1)
                            m.d.comb += done.eq(1)
                        with m.Case(ControlOperation.RESUME):
                            m.d.sync += self._paused.eq(0)
                            m.d.comb += done.eq(1)
                        with m.Case(ControlOperation.READ):
                            m.d.comb += done.eq(1)
                            with m.If(uncounted):
                                m.d.comb += verdict.eq(Verdict.BAD_ADDRESS)
            with m.State("DRAIN"):
                # Quiet is observed while raw tuples are held, so nothing can have come in since.
                settled = Signal(3)
                with m.If(self.quiet):
                    m.d.sync += settled.eq(settled + 1)
                with m.Else():
                    m.d.sync += settled.eq(0)
                with m.If(settled.all()):
                    m.d.sync += settled.eq(0)
                    resets = command.operation == ControlOperation.RESET
                    m.d.comb += clearing.eq(resets | command.data[0])
                    m.d.sync += [self.clear.eq(clearing), self.forget.eq(resets)]
                    with m.If(~resets):
                        m.d.sync += [
                            self.tables.half.eq(~self.tables.half),
                            self._loaded.eq(1),
                            self._loading.eq(0),
                        ]
                    m.next = "CLEARED"
            with m.State("CLEARED"):
                m.next = "CHANGED"
            with m.State("CHANGED"):
                m.d.comb += self.replay.eq(command.operation == ControlOperation.COMMIT)
                m.next = "BEGUN"
            with m.State("BEGUN"):
                m.next = "REPLAY"
            with m.State("REPLAY"):
                with m.If(~self.replaying):
                    m.d.sync += held.eq(0)
                    m.d.comb += done.eq(1)
                    m.next = "COMMAND"
        # The answer comes from registers.
        answer, answered = Signal(), Signal(Verdict)
        m.d.sync += [answer.eq(done), answered.eq(verdict)]
        with m.If(answer):
            m.d.sync += [
                busy.eq(0),
                self.responses.valid.eq(1),
                response.verdict.eq(answered),
                response.data.eq(Mux(command.operation == ControlOperation.READ, read, 0)),
            ]
        m.d.sync += self.pause.eq(self._paused | held | ~self._loaded)
        with m.If(writing):
            m.d.sync += self.tables.valid.eq(1)
        m.d.sync += [
            self.tables.target.eq(command.target),
            self.tables.unit.eq(command.unit),
            self.tables.address.eq(command.address),
            self.tables.data.eq(command.data),
        ]
        return m

    # --- counters -----------------------------------------------------------------

    def _count(self, m: Module) -> None:
        counters: list[Value] = [Const(0, DATA_BITS)] * (Counter.OCCUPANCY + self.config.streams)
        for counter in COUNTED:
            value = Signal(48, name=counter.name.lower())
            # Two pipeline stages keep the long sum off the critical path.
            event = Signal(self.event_bits, name=f"{counter.name.lower()}_event")
            m.d.sync += event.eq(getattr(self.events, counter.name.lower()))
            m.d.sync += value.eq(value + event)
            with m.If(self.forget):
                m.d.sync += value.eq(0)
            counters[counter] = value
        state = Signal(3)
        m.d.comb += state.eq(self._loaded | self._loading << 1 | self._paused << 2)
        counters[Counter.STATE] = state
        for stream_number in range(self.config.streams):
            counters[Counter.OCCUPANCY + stream_number] = self.occupancy[stream_number]
        self._counters = counters

    # --- checks -------------------------------------------------------------------

    def _check(
        self, m: Module, command: data.View, writing: Signal, verdict: Signal, complete: Signal
    ) -> None:
        """Gives the verdict on a WRITE, and whether all tables that must end with a last entry do so."""
        config = self.config
        n = config.streams
        programs, selections = Signal(n), Signal(n)  # per unit, the table has its last entry
        m.d.comb += complete.eq(programs.all() & selections.all())
        m.d.comb += verdict.eq(Verdict.OK)
        unit_is = 1 << command.unit
        fresh = (command.operation == ControlOperation.BEGIN) & ~self._loading
        with m.If(fresh):
            m.d.sync += [programs.eq(0), selections.eq(0)]

        def refuse(reason: Verdict) -> None:
            m.d.comb += verdict.eq(reason)

        # A program or a selection table must be written in order, from its first entry to its last.
        expected = {
            target: Array(
                Signal(ADDRESS_BITS + 1, name=f"{target.name.lower()}_next_{s}") for s in range(n)
            )
            for target in (Target.INSTRUCTION, Target.SELECTION)
        }
        furthest = Array(Signal(ADDRESS_BITS, name=f"furthest_{s}") for s in range(n))
        compares = Array(Signal(range(config.factors + 2), name=f"cmps_{s}") for s in range(n))

        # Addresses are checked in two stages: first the order of entries, then everything else.
        address, unit = command.address, command.unit
        in_order, beyond = Signal(), Signal()
        m.d.sync += in_order.eq((address == 0) | (address == expected[Target.SELECTION][unit]))
        reaches = {
            Target.SELECTION: ~in_order | (address >= config.comparisons),
            Target.PROBE_PLAN: address >= config.tags,
            Target.TERMS: address >= config.tags,
            Target.DESTINATION: address >= config.tags,
            Target.QUERIES: address >= config.tags,
            Target.TEST: address >= 1 << TEST_BITS,
            Target.SET: address >= 1 << SET_BITS,
            Target.PART: address != 0,
            Target.RANGE: address > 2,
            Target.INDEX: address >= config.indexes,
            Target.RAW_ROUTE: address != 0,
            Target.ROWS: address != 0,
            Target.SEED: address != 0,
            Target.JOIN_ROW: address >= JOIN_ROWS,
            Target.FILTER: address >= 1 << FILTER_BITS,
        }
        with m.Switch(command.target):
            for table, too_far in reaches.items():
                with m.Case(table):
                    m.d.sync += beyond.eq(too_far)
        with m.If(unit >= n):
            refuse(Verdict.BAD_TARGET)
        with m.Else():
            with m.Switch(command.target):
                with m.Case(Target.INSTRUCTION):
                    self._check_instruction(
                        m, command, writing, verdict, expected[Target.INSTRUCTION][unit],
                        furthest[unit], compares[unit], programs,
                    )  # fmt: skip
                with m.Case(*reaches):
                    with m.If(beyond):
                        refuse(Verdict.BAD_ADDRESS)
                    with m.If(writing & (command.target == Target.SELECTION)):
                        m.d.sync += expected[Target.SELECTION][unit].eq(address + 1)
                        m.d.sync += selections.eq(
                            Mux(command.data[0], selections | unit_is, selections & ~unit_is)
                        )

    def _check_instruction(
        self,
        m: Module,
        command: data.View,
        writing: Signal,
        verdict: Signal,
        expected: Value,
        furthest: Value,
        compares: Value,
        programs: Signal,
    ) -> None:
        """Makes the same checks of a program as `seustream.compiler.wjasip.check`, except those of attributes."""
        config = self.config
        word, last = command.data[: isa.WORD_BITS], command.data[isa.WORD_BITS]
        address = command.address
        view = {kind: data.View(FIELDS[kind], word) for kind in isa.INSTRUCTIONS}
        in_order = Signal()
        m.d.sync += in_order.eq((address == 0) | (address == expected))
        target, count = Signal(ADDRESS_BITS), Signal(compares.shape())
        most = Signal(ADDRESS_BITS)
        scratch = isa.SCRATCH_REGISTERS[: config.scratch_registers]
        found = Signal(Verdict)
        m.d.sync += found.eq(Verdict.UNDEFINED_WORD)
        m.d.sync += [
            count.eq(Mux(address == 0, 0, compares)),
            most.eq(Mux(address == 0, 0, furthest)),
        ]
        reach = Signal(ADDRESS_BITS)
        m.d.sync += reach.eq(Mux(target > most, target, most))
        with m.Switch(word):
            for kind in (isa.AndRegisters, isa.OrRegisters):
                with m.Case(PATTERNS[kind]):
                    r = view[kind].r
                    good = (r >= scratch.start) & (r < scratch.stop)
                    m.d.sync += found.eq(Mux(good, Verdict.OK, Verdict.BAD_REGISTER))
            for kind in (isa.Jmpct, isa.Jmp):
                with m.Case(PATTERNS[kind]):
                    m.d.comb += target.eq(view[kind].address)
                    forward = view[kind].address > address
                    m.d.sync += found.eq(Mux(forward, Verdict.OK, Verdict.BAD_JUMP))
            with m.Case(PATTERNS[isa.Cmp]):
                m.d.sync += found.eq(Verdict.OK)
                with m.If(view[isa.Cmp].r >= config.factors):
                    m.d.sync += found.eq(Verdict.BAD_REGISTER)
                with m.Elif(count >= config.factors):
                    m.d.sync += found.eq(Verdict.TOO_MANY_COMPARES)
            for kind in (isa.Emit, isa.Jmpli, isa.Nop):
                with m.Case(PATTERNS[kind]):
                    m.d.sync += found.eq(Verdict.OK)
        with m.If(~in_order | (address >= config.instructions)):
            m.d.comb += verdict.eq(Verdict.BAD_ADDRESS)
        with m.Elif(found != Verdict.OK):
            m.d.comb += verdict.eq(found)
        with m.Elif(last & ((word != 0) | (reach > address))):
            m.d.comb += verdict.eq(Verdict.NO_LAST_NOP)
        with m.Elif(command.data[isa.WORD_BITS + 1 :].any()):
            m.d.comb += verdict.eq(Verdict.UNDEFINED_WORD)
        unit_is = 1 << command.unit
        with m.If(writing):
            m.d.sync += [
                # After the last instruction only address 0, a new program, is in order.
                expected.eq(Mux(last, (1 << ADDRESS_BITS + 1) - 1, address + 1)),
                furthest.eq(reach),
                compares.eq(count + word.matches(PATTERNS[isa.Cmp])),
                programs.eq(Mux(last, programs | unit_is, programs & ~unit_is)),
            ]
