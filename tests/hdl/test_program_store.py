"""Tests ProgramStore on random programs: every word and what is known of it, in both halves."""

from __future__ import annotations

import dataclasses
from collections import Counter

import cocotb
import pytest

from seustream.hdl import isa
from seustream.hdl.config import CONFIGURATIONS
from seustream.hdl.control_words import LAST_WORD, Command, ControlOperation, Target
from seustream.hdl.program_store import ProgramStore
from tests.hdl.bench import Bench, Load, simulate
from tests.hdl.programs import places_of, random_program

_NUMBER = 1
_FACTOR_BITS = 4
_CONFIG = dataclasses.replace(CONFIGURATIONS["tiny"], streams=4)
CASES = {
    "lanes": lambda: ProgramStore(_CONFIG, _NUMBER),
    "two comparators": lambda: ProgramStore(dataclasses.replace(_CONFIG, comparators=2), _NUMBER),
    "eight comparators": lambda: ProgramStore(dataclasses.replace(_CONFIG, comparators=8), _NUMBER),
    "serial": lambda: ProgramStore(dataclasses.replace(_CONFIG, lanes=0, indexes=0), _NUMBER),
}


@pytest.mark.parametrize("case", CASES)
def test_program_store(case: str) -> None:
    simulate(__name__, CASES, case)


@cocotb.test()
async def every_word_and_what_is_known_of_it(dut: object) -> None:
    bench = Bench(dut, CASES)
    chance, config = bench.chance, bench.component.config
    await bench.reset()
    bench.set("take", 1)
    load = Load(bench)
    seen: Counter = Counter()
    before: tuple | None = None
    for _ in range(40):
        program = random_program(chance, chance.choice([2, 6, 15, 30]), config.factors)
        leads = [{"areas": chance.randrange(16), "output": chance.getrandbits(1)} for _ in range(8)]
        await load.words(_commands(program, leads))
        # They are not for this area, and must change nothing.
        bench.set("tables.unit", 2)
        if before:
            await _exchange(bench, load)
            await _check(bench, *before, seen)
            await _exchange(bench, load)
        await _check(bench, program, leads, seen)
        before = program, leads
        bench.set("tables.target", Target.INSTRUCTION)
        bench.set("tables.valid", 1)
        await bench.tick()
        bench.set("tables.valid", 0)
    assert seen["CMP after others"]
    assert seen["register written twice"]


async def _exchange(bench: Bench, load: Load) -> None:
    load.half ^= 1
    bench.set("tables.half", load.half)


def _commands(program: list[isa.Instruction], leads: list[dict]) -> list[Command]:
    end = len(program) - 1
    return [
        Command(
            ControlOperation.WRITE,
            Target.INSTRUCTION,
            _NUMBER,
            at,
            i.encode() | LAST_WORD * (at == end),
        )
        for at, i in enumerate(program)
    ] + [
        Command(
            ControlOperation.WRITE, Target.DESTINATION, 0, tag, lead["areas"] | lead["output"] << 4
        )
        for tag, lead in enumerate(leads)
    ]


async def _check(
    bench: Bench, program: list[isa.Instruction], leads: list[dict], seen: Counter
) -> None:
    for _ in range(5):
        await bench.tick()
    cmps = [at for at, i in enumerate(program) if isinstance(i, isa.Cmp)]
    leading = next(at for at, i in enumerate(program) if not isinstance(i, isa.Cmp))
    for at, instruction in enumerate(program):
        bench.set("address", at)
        await bench.tick()
        await bench.settle()
        read = bench.get("instruction")
        assert read["word"] == instruction.encode()
        assert read["join"] == isinstance(instruction, isa.Emit)
        assert at not in cmps or read["factor"] == cmps.index(at)
        await bench.clock()
    for tag, lead in enumerate(leads):
        bench.set("tag", tag)
        await bench.tick()
        await bench.settle()
        assert bench.get("destination") == lead
        await bench.clock()
    await bench.settle()
    assert bench.bits("last") == len(program) - 1
    assert bench.bits("start") == (leading if bench.component.config.lanes else 0)
    assert bench.bits("used") == len(cmps)
    factors, sources = bench.get("factors"), [{"factor": 0, "known": 0}] * 16
    places = places_of([program[at].window_attribute for at in cmps], bench.component.config)
    for number, at in enumerate(cmps):
        cmp = program[at]
        assert factors[number] == {
            "window_attribute": cmp.window_attribute, "probe_stream": cmp.probe_stream,
            "probe_attribute": cmp.probe_attribute, "condition": cmp.condition, "register": cmp.r,
            **places[number],
        }  # fmt: skip
        seen["CMP after others"] += at >= leading
        if at < leading:
            seen["register written twice"] += sources[cmp.r]["known"]
            sources[cmp.r] = {"factor": number, "known": 1}
    assert bench.get("sources") == sources
    assert bench.bits("last_turn") == max((place["turn"] for place in places), default=0)
    await bench.clock()
