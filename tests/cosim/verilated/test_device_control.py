"""Tests the processor's commands, one by one: what it refuses, why, and that a refusal has no effect.

The host checks an image before it sends it, so most of these answers never occur through the device
contract. A board may have another host.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Sequence

import pytest

from seustream.compiler.wjasip.check import check_program
from seustream.compiler.wjasip.image import encode
from seustream.cosim.verilated.device import VerilatedDevice
from seustream.hdl import isa
from seustream.hdl.config import DeviceConfig
from seustream.hdl.control_words import (
    FILTER_BITS,
    LAST_WORD,
    Command,
    ControlOperation,
    Counter,
    SelectionEntry,
    Target,
    Verdict,
    load_commands,
)
from seustream.hdl.device import LoadRefused, Status
from seustream.hdl.isa import Condition
from seustream.hdl.window_tests import SET_BITS, TEST_BITS
from tests.cosim.contract import EQUAL, SHALLOW, SMALL, TINY
from tests.cosim.devices import verilated
from tests.cosim.queries import (
    RANGE,
    ROWS,
    UNBOUNDED,
    On,
    Query,
    R,
    Row,
    S,
    arrivals,
    build,
    rows_of,
    run,
)

QUERIES = [
    Query({R: ROWS(5), S: RANGE(6)}, (EQUAL,)),
    Query({R: UNBOUNDED, S: UNBOUNDED}, ((On(R, 1, "<", S, 0),),), {S: SMALL}),
]
OTHERS = [Query({R: ROWS(2), S: RANGE(9)}, ((On(R, 0, ">", S, 0),),)), QUERIES[0]]
RAWS = arrivals([(t % 2, t, (t % 5, t % 3)) for t in range(20)])

BEGIN, COMMIT, ABORT = (
    Command(operation)
    for operation in (ControlOperation.BEGIN, ControlOperation.COMMIT, ControlOperation.ABORT)
)
NOP = isa.Nop().encode()


def write(target: Target, unit: int, address: int, data: int) -> Command:
    return Command(ControlOperation.WRITE, target, unit, address, data)


def tables_of(queries: Sequence[Query], config: DeviceConfig = TINY) -> list[Command]:
    return [*load_commands(build(queries), config)]


def program(*words: int | isa.Instruction, unit: int = S) -> list[Command]:
    """Returns the commands that write a whole program."""
    code = [word if isinstance(word, int) else word.encode() for word in words]
    last = len(code) - 1
    return [
        write(Target.INSTRUCTION, unit, address, word | (LAST_WORD if address == last else 0))
        for address, word in enumerate(code)
    ]


def entry(address: int, **members: int) -> Command:
    return write(Target.SELECTION, R, address, SelectionEntry(**members).encode(False))


def state(device: VerilatedDevice) -> int:
    return device.send(Command(ControlOperation.READ, address=Counter.STATE))[2]


CMP = isa.Cmp(0, R, 0, Condition.EQ, 0)
UNDEFINED = 0x00001
AND_TRUE = isa.AndRegisters(63, 63, 16)

# Only the last command is refused; those before it are good.
REFUSED: dict[str, tuple[list[Command], Verdict]] = {
    "write before begin": ([tables_of(OTHERS)[0]], Verdict.NOT_LOADING),
    "commit before begin": ([COMMIT], Verdict.NOT_LOADING),
    "abort before begin": ([ABORT], Verdict.NOT_LOADING),
    "write after abort": ([BEGIN, ABORT, tables_of(OTHERS)[0]], Verdict.NOT_LOADING),
    "begin twice": ([BEGIN, BEGIN], Verdict.LOADING),
    "reset while loading": ([BEGIN, Command(ControlOperation.RESET)], Verdict.LOADING),
    "commit of nothing": ([BEGIN, COMMIT], Verdict.INCOMPLETE),
    "commit of a part": ([BEGIN, *tables_of(OTHERS)[:200], COMMIT], Verdict.INCOMPLETE),
    "commit with a program begun anew": (
        [BEGIN, *tables_of(OTHERS), write(Target.INSTRUCTION, R, 0, NOP), COMMIT],
        Verdict.INCOMPLETE,
    ),
    "commit with a selection table begun anew": (
        [BEGIN, *tables_of(OTHERS), entry(0, admits=1), COMMIT],
        Verdict.INCOMPLETE,
    ),
    "commit after another load's end": (
        [BEGIN, *tables_of(OTHERS), ABORT, BEGIN, COMMIT],
        Verdict.INCOMPLETE,
    ),
    "undefined word": ([BEGIN, *program(CMP, UNDEFINED)], Verdict.UNDEFINED_WORD),
    "bits above a word": (
        [BEGIN, write(Target.INSTRUCTION, S, 0, NOP | LAST_WORD << 1)],
        Verdict.UNDEFINED_WORD,
    ),
    "jump backward": ([BEGIN, *program(CMP, CMP, isa.Jmp(1))], Verdict.BAD_JUMP),
    "jump to itself": ([BEGIN, *program(CMP, isa.Jmp(1))], Verdict.BAD_JUMP),
    "conditional jump backward": ([BEGIN, *program(CMP, isa.Jmpct(R, 0))], Verdict.BAD_JUMP),
    "compare into scratch": (
        [BEGIN, *program(isa.Cmp(0, R, 0, Condition.EQ, 16))],
        Verdict.BAD_REGISTER,
    ),
    "and into a factor": ([BEGIN, *program(isa.AndRegisters(63, 63, 15))], Verdict.BAD_REGISTER),
    "or into a selection": ([BEGIN, *program(isa.OrRegisters(63, 63, 32))], Verdict.BAD_REGISTER),
    "and into true": ([BEGIN, *program(isa.AndRegisters(63, 63, 63))], Verdict.BAD_REGISTER),
    "too many compares": (
        [BEGIN, *program(*[CMP] * TINY.factors, CMP)],
        Verdict.TOO_MANY_COMPARES,
    ),
    "last is no nop": ([BEGIN, *program(CMP, AND_TRUE)], Verdict.NO_LAST_NOP),
    "jump past the end": ([BEGIN, *program(isa.Jmp(3), CMP, isa.Nop())], Verdict.NO_LAST_NOP),
    "conditional jump far past the end": (
        [BEGIN, *program(isa.Jmpct(R, 1023), CMP, isa.Nop())],
        Verdict.NO_LAST_NOP,
    ),
    "the longer jump of two past the end": (
        [BEGIN, *program(isa.Jmpct(R, 5), isa.Jmp(3), CMP, isa.Nop())],
        Verdict.NO_LAST_NOP,
    ),
    "program without a beginning": (
        [BEGIN, write(Target.INSTRUCTION, S, 1, NOP)],
        Verdict.BAD_ADDRESS,
    ),
    "address left out": (
        [BEGIN, *program(CMP, CMP, CMP)[:2], write(Target.INSTRUCTION, S, 3, NOP)],
        Verdict.BAD_ADDRESS,
    ),
    "address again": (
        [BEGIN, *program(CMP, CMP, CMP)[:2], *program(CMP, CMP, NOP)[1:2]],
        Verdict.BAD_ADDRESS,
    ),
    "after the end": (
        [BEGIN, *program(NOP), write(Target.INSTRUCTION, S, 1, NOP)],
        Verdict.BAD_ADDRESS,
    ),
    "another area's address": (
        [BEGIN, *program(CMP, CMP, CMP)[:2], write(Target.INSTRUCTION, R, 2, NOP)],
        Verdict.BAD_ADDRESS,
    ),
    "selection without a beginning": ([BEGIN, entry(1)], Verdict.BAD_ADDRESS),
    "selection out of order": ([BEGIN, entry(0), entry(2)], Verdict.BAD_ADDRESS),
    "selection over the table": (
        [BEGIN, *(entry(n) for n in range(TINY.comparisons + 1))],
        Verdict.BAD_ADDRESS,
    ),
    "plan of no tag": ([BEGIN, write(Target.PROBE_PLAN, R, 256, 0)], Verdict.BAD_ADDRESS),
    "route of no tag": ([BEGIN, write(Target.DESTINATION, 0, 256, 0)], Verdict.BAD_ADDRESS),
    "queries of no tag": ([BEGIN, write(Target.QUERIES, 0, 1023, 0)], Verdict.BAD_ADDRESS),
    "window test that is not there": (
        [BEGIN, write(Target.TEST, 0, 1 << TEST_BITS, 0)],
        Verdict.BAD_ADDRESS,
    ),
    "query set that is not there": (
        [BEGIN, write(Target.SET, 0, 1 << SET_BITS, 0)],
        Verdict.BAD_ADDRESS,
    ),
    "part with an address": ([BEGIN, write(Target.PART, 0, 1, 0)], Verdict.BAD_ADDRESS),
    "range of no kind": ([BEGIN, write(Target.RANGE, R, 3, 0)], Verdict.BAD_ADDRESS),
    "rows with an address": ([BEGIN, write(Target.ROWS, R, 1, 0)], Verdict.BAD_ADDRESS),
    "raw route with an address": ([BEGIN, write(Target.RAW_ROUTE, R, 1, 0)], Verdict.BAD_ADDRESS),
    "index that is not there": (
        [BEGIN, write(Target.INDEX, R, TINY.indexes, 0)],
        Verdict.BAD_ADDRESS,
    ),
    "filter over the tables": (
        [BEGIN, write(Target.FILTER, R, 1 << FILTER_BITS, 0)],
        Verdict.BAD_ADDRESS,
    ),
    "counter that is not there": (
        [Command(ControlOperation.READ, address=Counter.OCCUPANCY + TINY.streams)],
        Verdict.BAD_ADDRESS,
    ),
}


def half_way() -> VerilatedDevice:
    device = verilated(TINY)
    device.load(encode(build(QUERIES), TINY))
    run(device, RAWS[:10])
    return device


@functools.cache
def untouched() -> tuple[Status, list[Row]]:
    """Returns the counters half way, and the results of the rest if nothing is sent."""
    device = half_way()
    status = device.status()
    rows = sorted(rows_of(run(device, RAWS[10:])))
    assert rows
    return status, rows


@functools.cache
def swapped() -> list[Row]:
    """Returns the results of the second half under the other image."""
    device = half_way()
    device.load(encode(build(OTHERS), TINY))
    rows = sorted(rows_of(run(device, RAWS[10:])))
    assert rows
    assert rows != untouched()[1]
    return rows


@pytest.mark.parametrize(("commands", "verdict"), REFUSED.values(), ids=REFUSED)
def test_refused_and_as_it_was(commands: list[Command], verdict: Verdict) -> None:
    """Holds also when everything else of another image has been written before."""
    status, rows = untouched()
    for before in ([], [BEGIN, *tables_of(OTHERS), ABORT]):
        device = half_way()
        assert device.send(*before, *commands)[:2] == (len(before) + len(commands), verdict)
        if state(device) & 2:
            assert device.send(ABORT)[1] is Verdict.OK
        assert device.status() == status
        assert sorted(rows_of(run(device, RAWS[10:]))) == rows


@pytest.mark.parametrize(
    "commands",
    [
        commands
        for commands, _ in REFUSED.values()
        if commands[0] == BEGIN and ABORT not in commands
    ],
    ids=[
        name
        for name, (commands, _) in REFUSED.items()
        if commands[0] == BEGIN and ABORT not in commands
    ],
)
def test_a_refused_word_is_not_written(commands: list[Command]) -> None:
    """The load can go on as if the word had never been sent."""
    device = half_way()
    device.send(*commands)
    assert device.send(*tables_of(OTHERS), COMMIT)[1] is Verdict.OK
    assert sorted(rows_of(run(device, RAWS[10:]))) == swapped()


@pytest.mark.parametrize("target", [*Target])
def test_a_unit_that_is_not_there(target: Target) -> None:
    device = verilated(SHALLOW)
    answer = device.send(BEGIN, write(target, SHALLOW.streams, 0, 0))
    assert answer[:2] == (2, Verdict.BAD_TARGET)


def test_state_says_what_goes_on() -> None:
    device = verilated(TINY)
    seen = [state(device)]
    for command in (BEGIN, *tables_of(OTHERS), COMMIT):
        assert device.send(command)[1] is Verdict.OK
        if state(device) != seen[-1]:
            seen.append(state(device))
    for operation in (
        ControlOperation.PAUSE,
        ControlOperation.RESUME,
        ControlOperation.BEGIN,
        ControlOperation.ABORT,
    ):
        assert device.send(Command(operation))[1] is Verdict.OK
        seen.append(state(device))
    assert seen == [0, 2, 1, 5, 1, 3, 1]


@pytest.mark.parametrize("seed", range(20))
def test_programs_are_refused_where_the_host_refuses_them(seed: int) -> None:
    """Sends nearly good programs: the processor finds what `check_program` finds."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    device = verilated(TINY)
    outcomes = set()
    for _ in range(60):
        words = nearly_good(chance)
        try:
            check_program(words, TINY, S)
            good = True
        except LoadRefused:
            good = False
        verdict = device.send(BEGIN, *program(*words))[1]
        assert (verdict is Verdict.OK) == good, ([f"{word:05X}" for word in words], verdict)
        outcomes.add(verdict)
        device.send(ABORT)
    assert Verdict.OK in outcomes
    assert len(outcomes) > 2


def nearly_good(chance: random.Random) -> tuple[int, ...]:
    n = chance.randrange(1, 12)
    words = []
    for address in range(n - 1):
        forward = chance.randrange(address + 1, n)
        scratch = chance.randrange(16, 32)
        words.append(
            chance.choice(
                [
                    isa.Cmp(0, chance.randrange(4), 1, chance.randrange(8), chance.randrange(16)),
                    isa.AndRegisters(chance.randrange(64), chance.randrange(64), scratch),
                    isa.OrRegisters(chance.randrange(64), chance.randrange(64), scratch),
                    isa.Jmpct(chance.randrange(256), forward),
                    isa.Jmp(forward),
                    isa.Emit(chance.randrange(64), chance.randrange(256)),
                    isa.Jmpli(),
                ]
            ).encode()
        )
    words.append(NOP)
    if chance.random() < 0.7:
        words[chance.randrange(n)] ^= 1 << chance.randrange(isa.WORD_BITS)
    if chance.random() < 0.1:
        words = words[:-1] or [UNDEFINED]
    return tuple(words)
