"""Tests ControlUnit against the rules of `seustream.hdl.control_words`: verdicts, halves of tables,
counters."""

from __future__ import annotations

import dataclasses
import random
from collections import Counter as Tally

import cocotb
import pytest

from seustream.hdl import isa
from seustream.hdl.config import CONFIGURATIONS, DeviceConfig
from seustream.hdl.control import COUNTED, ControlUnit
from seustream.hdl.control_words import (
    FILTER_BITS,
    JOIN_ROWS,
    LAST_WORD,
    Command,
    ControlOperation,
    Counter,
    Target,
    Verdict,
    units,
)
from seustream.hdl.window_tests import SET_BITS, TEST_BITS
from tests.hdl.bench import PACES, Bench, Driver, Monitor, Scoreboard, simulate

CONFIG = dataclasses.replace(
    CONFIGURATIONS["tiny"],
    streams=3, factors=2, scratch_registers=5, comparisons=8, tags=16, instructions=40, queries=6,
)  # fmt: skip
METERS = range(Counter.CYCLES_OF_UNITS, Counter.CYCLES_OF_UNITS + 2 * len(units(CONFIG)))
CASES = {"three streams": lambda: ControlUnit(CONFIG)}


@pytest.mark.parametrize("case", CASES)
def test_control_unit(case: str) -> None:
    simulate(__name__, CASES, case)


class _Rules:
    """Computes what the control unit must answer, and what it then has loaded."""

    def __init__(self, config: DeviceConfig) -> None:
        self.config = config
        self.loading = self.loaded = self.paused = False
        self.half = 0
        self.written: list[Command] = []
        self.begin()

    def begin(self) -> None:
        n = self.config.streams
        self.programs = [False] * n
        self.selections = [False] * n
        if not hasattr(self, "next"):
            # What was begun before stays in order after a new BEGIN: a table starts at 0.
            self.next = [0] * n
            self.entry = [0] * n
            self.reach = [0] * n
            self.compares = [0] * n

    def answer(self, c: Command) -> Verdict:
        match c.operation:
            case ControlOperation.BEGIN:
                if self.loading:
                    return Verdict.LOADING
                self.loading = True
                self.begin()
            case ControlOperation.WRITE:
                if not self.loading:
                    return Verdict.NOT_LOADING
                verdict = self.write(c)
                if verdict is Verdict.OK:
                    self.written.append(c)
                return verdict
            case ControlOperation.COMMIT:
                if not self.loading:
                    return Verdict.NOT_LOADING
                if not all(self.programs) or not all(self.selections):
                    return Verdict.INCOMPLETE
                self.loading, self.loaded = False, True
                self.half ^= 1
            case ControlOperation.ABORT:
                if not self.loading:
                    return Verdict.NOT_LOADING
                self.loading = False
            case ControlOperation.RESET:
                if self.loading:
                    return Verdict.LOADING
            case ControlOperation.PAUSE:
                self.paused = True
            case ControlOperation.RESUME:
                self.paused = False
            case ControlOperation.READ:
                known = [(0, Counter.OCCUPANCY + self.config.streams), (METERS.start, METERS.stop)]
                if not any(first <= c.address < end for first, end in known):
                    return Verdict.BAD_ADDRESS
        return Verdict.OK

    def write(self, c: Command) -> Verdict:
        config, u = self.config, c.unit
        if u >= config.streams or c.target > max(Target):
            return Verdict.BAD_TARGET
        match Target(c.target):
            case Target.INSTRUCTION:
                return self.instruction(c)
            case Target.SELECTION:
                if c.address not in (0, self.entry[u]) or c.address >= config.comparisons:
                    return Verdict.BAD_ADDRESS
                self.entry[u] = c.address + 1
                self.selections[u] = bool(c.data & 1)
                return Verdict.OK
            case Target.PROBE_PLAN | Target.TERMS | Target.DESTINATION | Target.QUERIES:
                good = c.address < config.tags
            case Target.TEST:
                good = c.address < 1 << TEST_BITS
            case Target.SET:
                good = c.address < 1 << SET_BITS
            case Target.RANGE:
                good = c.address <= 2
            case Target.INDEX:
                good = c.address < config.indexes
            case Target.JOIN_ROW:
                good = c.address < JOIN_ROWS
            case Target.FILTER:
                good = c.address < 1 << FILTER_BITS
            case Target.RAW_ROUTE | Target.ROWS | Target.SEED | Target.PART:
                good = c.address == 0
        return Verdict.OK if good else Verdict.BAD_ADDRESS

    def instruction(self, c: Command) -> Verdict:
        config, u = self.config, c.unit
        if c.address not in (0, self.next[u]) or c.address >= config.instructions:
            return Verdict.BAD_ADDRESS
        reach = self.reach[u] if c.address else 0
        compares = self.compares[u] if c.address else 0
        word, last = c.data & LAST_WORD - 1, bool(c.data & LAST_WORD)
        try:
            instruction = isa.decode(word)
        except isa.UndefinedWord:
            return Verdict.UNDEFINED_WORD
        match instruction:
            case isa.AndRegisters(r=r) | isa.OrRegisters(r=r):
                if not 16 <= r < 16 + config.scratch_registers:
                    return Verdict.BAD_REGISTER
            case isa.Jmpct(address=to) | isa.Jmp(address=to):
                if to <= c.address:
                    return Verdict.BAD_JUMP
                reach = max(reach, to)
            case isa.Cmp(r=r):
                if r >= config.factors:
                    return Verdict.BAD_REGISTER
                if compares >= config.factors:
                    return Verdict.TOO_MANY_COMPARES
                compares += 1
        if last and (not isinstance(instruction, isa.Nop) or reach > c.address):
            return Verdict.NO_LAST_NOP
        if c.data >> 21:
            return Verdict.UNDEFINED_WORD
        self.next[u] = -1 if last else c.address + 1
        self.reach[u], self.compares[u] = reach, compares
        self.programs[u] = last
        return Verdict.OK


def random_instruction(chance: random.Random, at: int) -> isa.Instruction:
    """Returns an instruction that is often good."""
    return chance.choice(
        [
            isa.AndRegisters(chance.randrange(64), 63, chance.choice([15, 16, 18, 20, 21, 40])),
            isa.OrRegisters(chance.randrange(64), 63, chance.choice([16, 16, 20, 63])),
            isa.Cmp(1, 2, 3, chance.randrange(8), chance.choice([0, 1, 2, 3, 15])),
            *[isa.Cmp(0, 1, 2, chance.randrange(8), 1)] * 3,
            isa.Jmpct(chance.randrange(256), min(at + chance.choice([-1, 0, 1, 1, 2, 3]) & 63, 63)),
            isa.Jmp(at + chance.choice([0, 1, 2, 4])),
            isa.Emit(chance.randrange(64), chance.randrange(256)),
            isa.Jmpli(),
            isa.Nop(),
            isa.Nop(),
        ]
    )


def random_command(chance: random.Random, rules: _Rules, config: DeviceConfig) -> Command:
    operation = chance.choice([*ControlOperation, *[ControlOperation.WRITE] * 30])
    if operation is ControlOperation.READ:
        known = [*Counter, Counter.OCCUPANCY + 1, Counter.OCCUPANCY + 2]
        return Command(
            operation, address=chance.choice([*known, *METERS, METERS.stop, 12, 19, 31, 63, 512])
        )
    if operation is not ControlOperation.WRITE:
        return Command(operation, data=chance.getrandbits(1))
    unit = chance.choice([0, 1, 2, 2, 3])
    target = chance.choice([*range(16), *[Target.INSTRUCTION] * 30, *[Target.SELECTION] * 6])
    if target == Target.INSTRUCTION and unit < config.streams:
        at = max(rules.next[unit], 0)
        at = chance.choice([*[at] * 20, 0, at + 1, chance.randrange(1024)])
        word = random_instruction(chance, at).encode() if chance.random() < 0.95 else 0
        if chance.random() < 0.03:
            word = chance.getrandbits(18)  # most of these are undefined
        last = chance.random() < 0.3
        if last and chance.random() < 0.8:
            word = 0
        data = word | LAST_WORD * last | (1 << 21 if chance.random() < 0.02 else 0)
        return Command(operation, target, unit, at & 1023, data)
    if target == Target.SELECTION and unit < config.streams:
        at = chance.choice([*[rules.entry[unit]] * 5, 0, chance.randrange(16)])
        return Command(operation, target, unit, at & 1023, chance.getrandbits(40))
    address = chance.choice([0, 0, 1, 2, 3, 5, 6, 15, 16, 63, 64, 256, 512, chance.randrange(1024)])
    return Command(operation, target, unit, address, chance.getrandbits(64))


@cocotb.test()
async def verdicts_tables_and_halves(dut: object) -> None:
    bench = Bench(dut, CASES)
    chance = bench.chance
    seen: Tally = Tally()
    for idle, pressure in PACES:
        await bench.reset()
        rules = _Rules(CONFIG)
        tally = dict.fromkeys((*COUNTED, *METERS), 0)
        occupancy = [chance.getrandbits(4) for _ in range(CONFIG.streams)]
        bench.set("occupancy", occupancy)
        for _ in METERS:  # the meters begin anew
            await bench.clock()
        responses, writes = Scoreboard("responses"), Scoreboard("writes")
        commands = Driver(bench, "commands", idle)

        def answered(response: dict, responses: Scoreboard = responses) -> None:
            if response["verdict"]:
                response["data"] = 0  # it means nothing then
            responses.came(response)

        Monitor(bench, "responses", pressure, answered)
        for _ in range(260):
            if not rules.loading and chance.random() < 0.7:
                command = Command(ControlOperation.BEGIN)
            elif chance.random() < 0.03:
                command = Command(ControlOperation.RESET)
            elif rules.loading and chance.random() < 0.02:
                command = Command(ControlOperation.COMMIT, data=chance.getrandbits(1))
            else:
                command = random_command(chance, rules, CONFIG)
            if rules.loading and chance.random() < 0.04:
                # Ends tables that have no end, so that a COMMIT is possible.
                for unit in range(CONFIG.streams):
                    for target, data in ((Target.INSTRUCTION, LAST_WORD), (Target.SELECTION, 1)):
                        end = Command(ControlOperation.WRITE, target, unit, 0, data)
                        await _one(bench, rules, end, commands, responses, writes, tally, seen)
                command = Command(ControlOperation.COMMIT, data=chance.getrandbits(1))
            await _one(bench, rules, command, commands, responses, writes, tally, seen, occupancy)
        assert responses.empty
        assert writes.empty
    assert {*seen} >= {*Verdict}, f"never given: {set(Verdict) - set(seen)}"
    assert seen["committed"] > 20
    assert seen["reset"] > 1


_LATE = len(METERS) + 8
"""Cycles until the counts can be read."""


def _spread(meters: int) -> list[dict[str, int]]:
    bits = [meters >> bit & 1 for bit in range(len(METERS))]
    return [{"busy": bits[i], "blocked": bits[i + 1]} for i in range(0, len(bits), 2)]


async def _one(
    bench: Bench, rules: _Rules, command: Command, commands: Driver, responses: Scoreboard,
    writes: Scoreboard, tally: dict, seen: Tally, occupancy: list[int] | None = None,
) -> None:  # fmt: skip
    """Takes one command to its answer; events are counted meanwhile, until a READ."""
    chance = bench.chance
    before = len(rules.written)
    old_half = rules.half
    verdict = rules.answer(command)
    seen[verdict] += 1
    for written in rules.written[before:]:
        members = (written.target, written.unit, written.address, written.data)
        writes.expect((*map(int, members), old_half))
    drains = verdict is Verdict.OK and command.operation in (
        ControlOperation.COMMIT,
        ControlOperation.RESET,
    )
    reading = command.operation is ControlOperation.READ
    commands.queue.append(
        {name: int(getattr(command, name)) for name in Command.__dataclass_fields__}
    )
    clears = forgets = replays = 0
    replaying, calm = 0, [False] * 3  # quiet three cycles ago, two, one
    late, was_replaying = chance.random() < 0.5, False
    answered = False
    was_half, was_paused = bench.bits("tables.half"), rules.paused
    for cycle in range(5_000):
        # Events stop before a READ, so that its answer is known.
        busy = not reading and not drains and chance.random() < 0.5
        events = {}
        if busy:
            events = {counter.name.lower(): chance.randrange(4) for counter in COUNTED}
            for counter in COUNTED:
                tally[counter] += events[counter.name.lower()]
        bench.set("events", events)
        meters = chance.getrandbits(len(METERS)) if busy else 0
        bench.set("meters", _spread(meters))
        for bit, address in enumerate(METERS):
            tally[address] += meters >> bit & 1
        quiet = chance.random() < 0.8
        bench.set("quiet", quiet)
        bench.set("replaying", was_replaying if late else replaying > 0)
        was_replaying = replaying > 0
        if reading and cycle < _LATE:  # earlier counts are still arriving
            commands.enabled = False
        else:
            commands.enabled = True
        if reading and cycle == _LATE:
            responses.expect(
                {
                    "verdict": int(verdict),
                    "data": _read(rules, command, tally, occupancy) * (not verdict),
                }
            )
        elif not reading and cycle == 0:
            responses.expect({"verdict": int(verdict), "data": 0})
        await bench.settle()
        if bench.bits("tables.valid"):
            names = ("target", "unit", "address", "data")
            word = tuple(bench.bits(f"tables.{name}") for name in names)
            writes.came((*word, bench.bits("tables.half")))
        clears += bench.bits("clear")
        forgets += bench.bits("forget")
        if bench.bits("clear") or bench.bits("forget"):
            assert all(calm[:2]), "cleared with something in flight"
            assert bench.bits("pause"), "cleared while tuples may come in"
        replaying = max(replaying - 1, 0)
        if bench.bits("replay"):
            replays += 1
            replaying = chance.randrange(1, 9)
        if replaying:
            assert bench.bits("pause")
        half, pause = bench.bits("tables.half"), bench.bits("pause")
        if half != was_half:
            assert all(calm[:2]), "exchanged with something in flight"
            assert pause
            was_half = half
        calm = [*calm[1:], quiet]
        await bench.clock()
        answered = responses.empty and (not reading or cycle > _LATE)
        if answered and writes.empty:
            break
    else:
        raise AssertionError(f"no answer to {command}")
    assert half == rules.half
    if not drains:
        assert pause == (was_paused or not rules.loaded) or was_paused != rules.paused
    resets = drains and command.operation is ControlOperation.RESET
    commits = drains and not resets
    assert clears == int(resets or (commits and command.data & 1))
    assert forgets == int(resets)
    assert replays == int(commits)
    seen["committed"] += commits
    seen["reset"] += resets
    if resets:
        tally.update(dict.fromkeys(tally, 0))
    for _ in range(_LATE if resets else 3):  # meters are cleared one after the other
        bench.set("events", {})
        bench.set("meters", _spread(0))
        bench.set("quiet", 0)
        await bench.settle()
        assert bench.bits("pause") == (rules.paused or not rules.loaded)
        await bench.clock()


def _read(rules: _Rules, command: Command, tally: dict, occupancy: list[int] | None) -> int:
    if command.address == Counter.STATE:
        return rules.loaded | rules.loading << 1 | rules.paused << 2
    if Counter.OCCUPANCY <= command.address < Counter.OCCUPANCY + CONFIG.streams:
        assert occupancy is not None
        return occupancy[command.address - Counter.OCCUPANCY]
    return tally.get(command.address, 0)
