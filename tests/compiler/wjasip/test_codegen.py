"""A program computes the combinations of its area.

`run` implements the eight instructions again, directly from sections 6.3 and 6.4 of the
specification; generated programs run on every outcome of factors and selections.
"""

from __future__ import annotations

import dataclasses
import itertools
import random

import pytest

from seustream.compiler.pipeline import Options
from seustream.compiler.plan.limits import LimitExceeded
from seustream.compiler.wjasip.assembler import disassemble
from seustream.compiler.wjasip.check import check_program
from seustream.compiler.wjasip.codegen import generate, with_programs
from seustream.hdl import isa
from seustream.hdl.config import CONFIGURATIONS, DeviceConfig
from seustream.hdl.device import Area, Combination, Factor
from seustream.hdl.isa import Condition, Instruction
from tests.compiler.plan.cases import compiled_all
from tests.compiler.plan.eight import compiled_eight
from tests.compiler.plan.random_queries import query

DEFAULT = CONFIGURATIONS["default"]
STYLES = pytest.mark.parametrize("thesis", [False, True], ids=["cost", "thesis"])


def small(**members: int) -> DeviceConfig:
    return dataclasses.replace(DEFAULT, **members)  # type: ignore[arg-type]


# --- an interpreter of its own ------------------------------------------------


def run(
    program: tuple[Instruction, ...],
    tag: int,
    outcome: dict[tuple[int, int, int, Condition], bool],
    window_bits: set[int],
    probe_bits: set[int],
) -> list[int]:
    """Returns the route tags of the JOINs a pair makes; `outcome` decides the CMPs."""
    registers = [False] * 64
    registers[63] = True
    for bit in window_bits:
        registers[32 + bit] = True
    for bit in probe_bits:
        registers[48 + bit] = True
    emitted, address, last = [], 0, len(program) - 1
    for _ in range(len(program) + 1):
        instruction = program[address]
        if address == last:
            assert instruction == isa.Nop()
            return emitted
        address += 1
        match instruction:
            case isa.Cmp(w, s, p, condition, r):
                if condition in (Condition.TRUE, Condition.FALSE):
                    registers[r] = condition == Condition.TRUE
                else:
                    registers[r] = outcome[w, s, p, Condition(condition)]
            case isa.AndRegisters(a, b, r):
                registers[r] = registers[a] and registers[b]
            case isa.OrRegisters(a, b, r):
                registers[r] = registers[a] or registers[b]
            case isa.Jmpct(wanted, target):
                address = address if tag == wanted else target
            case isa.Jmp(target):
                address = target
            case isa.Jmpli():
                address = address if any(registers[:16]) else last
            case isa.Emit(r, post):
                if registers[r]:
                    emitted.append(post)
    raise AssertionError("the program does not end")


def holds(row: Combination, held: set[int], window_bits: set[int], probe_bits: set[int]) -> bool:
    return (
        held >= set(row.factors)
        and window_bits >= set(row.window_selections)
        and probe_bits >= set(row.probe_selections)
    )


def subsets(count: int) -> list[set[int]]:
    return [{i for i in range(count) if mask >> i & 1} for mask in range(1 << count)]


def check_equivalent(area: Area, program: tuple[Instruction, ...]) -> None:
    """Tries every outcome of the factors and of the selection bits the area mentions, for every
    pre-tag and one unknown tag: the JOINs must be the combinations that hold, each once."""
    windows = 1 + max((b for row in area.combinations for b in row.window_selections), default=-1)
    probes = 1 + max((b for row in area.combinations for b in row.probe_selections), default=-1)
    tags = [*sorted({row.pre_tag for row in area.combinations}), 255]
    keys = [
        (f.window_attribute, f.probe_stream, f.probe_attribute, f.condition) for f in area.factors
    ]
    for held, window_bits, probe_bits in itertools.product(
        subsets(len(keys)), subsets(windows), subsets(probes)
    ):
        outcome = {key: number in held for number, key in enumerate(keys)}
        for tag in tags:
            wanted = [
                row.post_tag
                for row in area.combinations
                if row.pre_tag == tag and holds(row, held, window_bits, probe_bits)
            ]
            assert sorted(run(program, tag, outcome, window_bits, probe_bits)) == sorted(wanted)


# --- equivalence --------------------------------------------------------------


def random_area(chance: random.Random) -> Area:
    conditions = list(Condition)[:6]
    keys = chance.sample([(w, s, p, c) for w in range(2) for s in (0, 2) for p in range(2) for c in conditions], chance.randrange(5))  # fmt: skip
    factors = tuple(Factor(w, s, p, c) for w, s, p, c in keys)
    rows, posts = [], iter(chance.sample(range(10, 250), 8))
    for _ in range(chance.randrange(1, 8)):
        rows.append(
            Combination(
                chance.choice((0, 1, 5, 7)),
                tuple(i for i in range(len(factors)) if chance.random() < 0.4),
                tuple(i for i in range(2) if chance.random() < 0.25),
                tuple(i for i in range(2) if chance.random() < 0.25),
                next(posts),
            )
        )
    return Area(factors, tuple(sorted(rows, key=lambda row: (row.pre_tag, row.post_tag))))


@STYLES
def test_random_areas(thesis: bool) -> None:
    chance = random.Random(31)
    for _ in range(60):
        area = random_area(chance)
        program = generate(area, thesis, DEFAULT, "R")
        check_equivalent(area, program)
        check_program(tuple(i.encode() for i in program), DEFAULT, 0)


@pytest.mark.parametrize("plan", ["cost", "thesis"])
def test_areas_of_random_queries(plan: str) -> None:
    chance = random.Random(32)
    for _ in range(15):
        text = "\n".join(query(chance) for _ in range(chance.choice((1, 2, 3))))
        c = compiled_all(text, Options(plan=plan))
        for area, program in zip(c.tables.areas, c.programs, strict=True):
            if len(area.factors) <= 6:
                check_equivalent(area, program)


@pytest.mark.parametrize("plan", ["cost", "thesis"])
def test_areas_of_the_worked_example(plan: str) -> None:
    c = compiled_eight(plan)
    for area, program in zip(c.tables.areas, c.programs, strict=True):
        check_equivalent(area, program)


@STYLES
def test_every_area_of_two_combinations_and_two_factors(thesis: bool) -> None:
    factors = (Factor(0, 1, 0, Condition.EQ), Factor(1, 1, 1, Condition.LT))
    choices = list(itertools.product(((), (0,), (1,), (0, 1)), ((), (0,)), ((), (0,))))
    for first, second in itertools.product(choices, choices):
        for tags in ((0, 0), (0, 1)):
            area = Area(
                factors, (Combination(tags[0], *first, 9), Combination(tags[1], *second, 10))
            )
            check_equivalent(area, generate(area, thesis, DEFAULT, "R"))


# --- style --------------------------------------------------------------------

EQ, LT = Factor(0, 1, 0, Condition.EQ), Factor(1, 1, 1, Condition.LT)


def listing(area: Area, thesis: bool) -> list[str]:
    words = [i.encode() for i in generate(area, thesis, DEFAULT, "R")]
    return disassemble(words, ("R", "S", "T")).split("\n")


def test_thesis_has_all_conjunctions_in_front() -> None:
    area = Area(
        (EQ, LT),
        (Combination(0, (), (), (), 9), Combination(1, (0, 1), (), (), 8), Combination(2, (1, 0), (), (), 7)),
    )  # fmt: skip
    assert listing(area, thesis=True) == [
        "CMP 0,S0,=,0",
        "CMP 1,S1,<,1",
        "CMP 0,R0,true,2",
        "JMPLI",
        "AND 0,1,16",
        "JMPCT 0,7",
        "JOIN 2,9",
        "JMPCT 1,9",
        "JOIN 16,8",
        "JMPCT 2,11",
        "JOIN 16,7",
        "NOP",
    ]


def test_cost_has_conjunctions_in_their_group_and_no_register_for_true() -> None:
    area = Area(
        (EQ, LT),
        (Combination(0, (), (), (), 9), Combination(1, (0, 1), (), (), 8), Combination(2, (1, 0), (), (), 7)),
    )  # fmt: skip
    assert listing(area, thesis=False) == [
        "CMP 0,S0,=,0",
        "CMP 1,S1,<,1",
        "JMPCT 0,4",
        "JOIN 63,9",
        "JMPCT 1,7",
        "AND 0,1,16",
        "JOIN 16,8",
        "JMPCT 2,10",
        "AND 0,1,16",
        "JOIN 16,7",
        "NOP",
    ]


def test_jmpli_only_where_nothing_is_unconditional() -> None:
    """A combination that needs only selections must not be skipped when no factor holds."""
    selected = Area((EQ,), (Combination(0, (), (0,), (), 9),))
    assert "JMPLI" not in listing(selected, thesis=False)
    assert listing(selected, thesis=True)[:3] == ["CMP 0,S0,=,0", "CMP 0,R0,true,1", "JMPLI"]
    assert "JMPLI" in listing(Area((EQ,), (Combination(0, (0,), (0,), (), 9),)), thesis=False)


def test_selections_have_their_own_registers() -> None:
    area = Area((EQ,), (Combination(0, (0,), (3, 1), (2,), 9),))
    assert listing(area, thesis=False)[2:] == [
        "JMPCT 0,7",
        "AND 0,33,16",
        "AND 16,35,17",
        "AND 17,50,18",
        "JOIN 18,9",
        "NOP",
    ]
    assert isa.WINDOW_SELECTION_REGISTERS[15] == 47
    assert isa.PROBE_SELECTION_REGISTERS[14] == 62


def test_common_beginnings_are_computed_once() -> None:
    factors = tuple(Factor(0, 1, i, Condition.EQ) for i in range(4))
    rows = tuple(
        Combination(0, (0, 1, 2, last)[: last + 1], (), (), 9 + last) for last in (1, 2, 3)
    )
    for thesis in (False, True):
        ands = [line for line in listing(Area(factors, rows), thesis) if line.startswith("AND")]
        assert ands == ["AND 0,1,16", "AND 16,2,17", "AND 17,3,18"]


def test_a_thesis_conjunction_is_computed_in_the_order_of_post_tags() -> None:
    rows = (Combination(0, (0, 2), (), (), 9), Combination(1, (0, 1), (), (), 8))
    factors = tuple(Factor(0, 1, i, Condition.EQ) for i in range(3))
    lines = listing(Area(factors, rows), thesis=True)
    assert lines[4:6] == ["AND 0,1,16", "AND 0,2,17"]
    assert "JOIN 17,9" in lines


@STYLES
def test_an_area_nothing_probes(thesis: bool) -> None:
    assert listing(Area(), thesis) == ["JMPLI", "NOP"]


# --- limits -------------------------------------------------------------------


@STYLES
def test_scratch_registers_run_out(thesis: bool) -> None:
    factors = tuple(Factor(0, 1, i, Condition.EQ) for i in range(4))
    area = Area(factors, (Combination(0, (0, 1, 2, 3), (), (), 9),))
    generate(area, thesis, small(scratch_registers=3), "R")
    with pytest.raises(LimitExceeded, match=r"scratch registers: 3 needed, at most 2 \(area R\)"):
        generate(area, thesis, small(scratch_registers=2), "R")


def test_scratch_registers_serve_again_in_the_next_group() -> None:
    factors = tuple(Factor(0, 1, i % 4, list(Condition)[i // 4]) for i in range(8))
    rows = tuple(Combination(tag, (tag, 7), (), (), 100 + tag) for tag in range(7))
    config = small(scratch_registers=1)
    check_equivalent(Area(factors, rows), generate(Area(factors, rows), False, config, "R"))
    with pytest.raises(LimitExceeded, match="scratch registers: 2 needed, at most 1"):
        generate(Area(factors, rows), True, config, "R")


@STYLES
def test_instructions_run_out(thesis: bool) -> None:
    rows = tuple(Combination(tag, (0,), (), (), 100 + tag) for tag in range(10))
    area = Area((EQ,), rows)
    length = len(generate(area, thesis, DEFAULT, "R"))
    generate(area, thesis, small(instructions=length), "R")
    with pytest.raises(
        LimitExceeded, match=rf"instructions: {length} needed, at most {length - 1}"
    ):
        generate(area, thesis, small(instructions=length - 1), "R")


def test_a_program_of_the_most_instructions() -> None:
    """The last group's jump just reaches the NOP at 1,023."""
    rows = tuple(Combination(tag, (0,), (), (), 255) for tag in range(256)) + tuple(
        Combination(255, (0,), (), (), 254) for _ in range(509)
    )
    area = Area((EQ,), rows)
    program = generate(area, False, DEFAULT, "R")
    assert len(program) == 1024
    assert [i for i in program if isinstance(i, isa.Jmpct)][-1].address == 1023
    with pytest.raises(LimitExceeded, match="instructions: 1025 needed, at most 1024"):
        generate(Area((EQ,), (*rows, rows[-1])), False, DEFAULT, "R")


def test_tables_get_their_programs() -> None:
    c = compiled_all("SELECT * FROM R, S WHERE R.a = S.d WINDOW 5")
    bare = dataclasses.replace(
        c.tables, areas=tuple(dataclasses.replace(area, program=()) for area in c.tables.areas)
    )
    tables, programs = with_programs(bare, False, DEFAULT, ("R", "S"))
    assert tables == c.tables
    for area, program in zip(tables.areas, programs, strict=True):
        assert area.program == tuple(instruction.encode() for instruction in program)
