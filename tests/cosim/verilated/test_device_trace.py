"""Tests what the processor executes, instruction by instruction: see `watched`."""

from __future__ import annotations

import dataclasses
import random

import pytest

from seustream.compiler.errors import CompileError
from seustream.compiler.pipeline import PLANS, Options, compile_text
from seustream.compiler.wjasip.image import encode
from seustream.engine.graph import GraphRun
from seustream.hdl import isa
from seustream.hdl.config import DeviceConfig
from seustream.hdl.device import Tables
from tests.cosim.contract import SHALLOW, TINY
from tests.cosim.generate import random_arrivals, random_queries
from tests.cosim.queries import UNBOUNDED, Query, arrivals, assemble, build, run
from tests.cosim.verilated.watched import Seen, Watched
from tests.system.generate import generate

BOTH = pytest.mark.parametrize("config", [TINY, SHALLOW], ids=lambda config: config.name)


def random_program(chance: random.Random, joins: dict[int, list[int]]) -> tuple[int, ...]:
    """Returns a program of all kinds of instructions with forward jumps, after a few comparisons
    where compilers put them; more comparisons may follow anywhere. `joins` gives, by tag of the
    probe, what may be joined: each tag has a section of its own, which its jumps do not leave."""
    code: list[isa.Instruction] = []

    def compare() -> isa.Instruction:
        numbers = [chance.randrange(n) for n in (4, 3, 4, 8, 6)]
        return isa.Cmp(*numbers)

    def register() -> int:
        kinds = (range(6), range(6), range(16, 20), range(16, 20), range(32, 35), range(48, 51))
        return chance.choice([*(chance.choice(kind) for kind in kinds), 63])

    def some(count: int, posts: list[int]) -> None:
        end = len(code) + count
        while len(code) < end:
            forward = chance.randrange(len(code) + 1, end + 1)
            compares = sum(isinstance(one, isa.Cmp) for one in code)
            match chance.randrange(9):
                case 0 | 1:
                    code.append(isa.AndRegisters(register(), register(), chance.randrange(16, 20)))
                case 2:
                    code.append(isa.OrRegisters(register(), register(), chance.randrange(16, 20)))
                case 3:
                    code.append(isa.Jmpct(chance.choice([*joins, 0]), forward))
                case 4:
                    code.append(chance.choice([isa.Jmp(forward), isa.Nop(), isa.Jmpli()]))
                case 5 | 6 | 7 if posts:
                    code.append(isa.Emit(register(), chance.choice(posts)))
                case 8 if compares < 16:
                    code.append(compare())

    code += [compare() for _ in range(chance.randrange(6))]
    some(chance.randrange(6), [])
    for tag, posts in joins.items():
        count = chance.randrange(2, 10)
        code.append(isa.Jmpct(tag, len(code) + 1 + count))
        some(count, posts)
    return assemble(*code, isa.Nop())


def with_random_programs(chance: random.Random, tables: Tables) -> Tables:
    areas = []
    for area in tables.areas:
        joins: dict[int, list[int]] = {}
        for row in area.combinations:
            joins.setdefault(row.pre_tag, []).append(row.post_tag)
        areas.append(dataclasses.replace(area, program=random_program(chance, joins)))
    return dataclasses.replace(tables, areas=tuple(areas))


@BOTH
@pytest.mark.parametrize("seed", range(12))
def test_random_programs(config: DeviceConfig, seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    seen: list[Seen] = []
    while not sum(one.joins for one in seen):
        groups = chance.choice([(0, 1), (0, 1, 2), (0, 0, 2)])
        tables = with_random_programs(chance, build(random_queries(chance, groups), groups))
        device = Watched(config)
        device.load(encode(tables, config))
        run(device, random_arrivals(chance, groups, 40))
        seen.append(device.seen)


@BOTH
@pytest.mark.parametrize("plan", PLANS)
def test_compiled_programs(config: DeviceConfig, plan: str) -> None:
    """Runs query sets of the differential suite, as the host driver feeds them."""
    total = Seen()
    for seed in range(7_000, 7_040):
        case = generate(seed)
        try:
            c = compile_text(case.text, f"seed {seed}", Options(config=config, plan=plan))
        except CompileError:
            continue  # too large for the configuration
        print(f"seed {seed}")
        device = Watched(config)
        driver = GraphRun(c, device, slack=case.slack)
        for stream in case.streams:
            driver.push(stream.name, stream.arrivals.slice(0, 12))
        for _ in driver.finish():
            pass
        total.pairs += device.seen.pairs
        total.joins += device.seen.joins
        total.tags |= device.seen.tags
    assert total.pairs > total.joins > 300
    assert len(total.tags) > 6


def test_a_probe_left_for_others_is_taken_up_where_it_was_left() -> None:
    """Runs cross products through FIFOs of four places, which joined tuples of the first areas
    fill."""
    query = Query(dict.fromkeys(range(4), UNBOUNDED))
    device = Watched(TINY)
    device.load(encode(build([query], (0, 1, 2, 3)), TINY))
    run(device, arrivals([(t % 4, t, ()) for t in range(24)], (0, 1, 2, 3)))
    assert device.seen.joins > 1000
