"""What a loader finds out about programs, on random ones, over every outcome of their factors."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable

import pytest

from seustream.hdl import isa
from seustream.hdl.isa import Condition
from seustream.hdl.program import AreaProgram
from tests.hdl.programs import execute, joins, random_program, read, truth_tables

MOST_VARIABLES = 14
"""Programs that depend on more variables are left out: their truth tables would be too long."""


def derived(seed: int) -> Counter[str]:
    """Compares what a loader derives of one random program with its truth tables, for every outcome
    of its factors and selection bits; returns how often each case occurred."""
    chance, seen = random.Random(seed), Counter[str]()
    code = random_program(chance, chance.choice([4, 20, 30, 50]), 6, plain=chance.random() < 0.5)
    variables = read(code)
    if len(variables) > MOST_VARIABLES:
        return Counter({"too many variables": 1})
    program = AreaProgram(tuple(instruction.encode() for instruction in code))
    holds = truth_tables(variables)
    factors = [variable for variable in variables if variable < 16]
    selections = [variable for variable in variables if variable >= 16]
    factor_holds = truth_tables(factors)
    for tag in range(4):
        where = code, tag
        joined = [(to, table) for to, table in joins(code, tag, variables) if table]
        assert program.joins(tag) or not joined, where
        rows = program.rows(tag, 1 << 16)
        assert rows is not None
        found: list[tuple[int, int]] = []
        for row in rows:
            its = _all_hold(row.needs, holds)
            found.append((row.tag, its if row.first else found.pop()[1] | its))
        assert found == joined, where
        assert program.rows(tag, 31) in (rows, None), where
        # With every selection taken to hold.
        some = 0
        for _, table in joins(code, tag, factors, selections):
            some |= table
        assert _one_holds(program.terms(tag, 1 << 16), factor_holds) == some, where
        for most in (1, 4):
            terms = program.terms(tag, most)
            assert len(terms) <= most
            assert not some & ~_one_holds(terms, factor_holds), where
        interest = program.interest(tag)
        if interest is not None:
            # A factor that always holds may be listed, too.
            cover = [{factor} & factor_holds.keys() for factor in interest]
            assert not some & ~_one_holds(cover, factor_holds), where
            seen["narrow"] += bool(some)
        seen["joins"] += len(joined)
        seen["several of a JOIN"] += not all(row.first for row in rows)
    return seen


def _all_hold(needs: Iterable[int], holds: dict[int, int]) -> int:
    every = (1 << (1 << len(holds))) - 1
    for need in needs:
        every &= holds[need]
    return every


def _one_holds(terms: Iterable[Iterable[int]], holds: dict[int, int]) -> int:
    found = 0
    for term in terms:
        found |= _all_hold(term, holds)
    return found


@pytest.mark.parametrize("first", range(0, 800, 100))
def test_what_is_derived_of_random_programs_is_what_they_do(first: int) -> None:
    seen = Counter[str]()
    for seed in range(first, first + 100):
        try:
            seen += derived(seed)
        except AssertionError:
            print(f"seed {seed}")
            raise
    assert seen["too many variables"] < 20
    assert min(seen[what] for what in ("joins", "narrow", "several of a JOIN")) > 5, seen


@pytest.mark.parametrize("seed", range(20))
def test_a_path_is_what_a_pair_executes_if_no_jmpli_leaves(seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    for _ in range(30):
        code = random_program(chance, 20)
        stays = [isa.Nop() if isinstance(i, isa.Jmpli) else i for i in code]
        program = AreaProgram(tuple(instruction.encode() for instruction in stays))
        for tag in range(4):
            executed, _ = execute(stays, tag, lambda number, cmp: False)
            assert [at for at, _ in program.path(tag)] == executed


def _interest(*code: isa.Instruction, tag: int = 0) -> frozenset[int] | None:
    return AreaProgram(tuple(i.encode() for i in (*code, isa.Nop()))).interest(tag)


EQ, NE = isa.Cmp(0, 0, 0, Condition.EQ, 0), isa.Cmp(1, 0, 1, Condition.NE, 1)


@pytest.mark.parametrize(
    ("code", "interest"),
    [
        ((isa.Emit(63, 1),), None),
        ((EQ, NE, isa.Emit(0, 1)), {0}),
        ((EQ, NE, isa.AndRegisters(0, 1, 16), isa.Emit(16, 1)), {0}),  # the rarer of the two
        ((EQ, NE, isa.OrRegisters(0, 1, 16), isa.Emit(16, 1)), {0, 1}),
        ((EQ, NE, isa.Emit(0, 1), isa.Emit(1, 1)), {0, 1}),
        ((EQ, isa.Emit(32, 1)), None),  # a selection bit alone
        ((EQ, isa.AndRegisters(0, 32, 16), isa.Emit(16, 1)), {0}),
        ((EQ, isa.Jmpli(), isa.Emit(63, 1)), {0}),
        ((EQ, isa.Jmpct(3, 3), isa.Emit(63, 1)), set()),  # of another tag
        ((EQ, isa.Emit(17, 1)), set()),  # never written, so 0
        ((EQ, isa.Cmp(0, 0, 0, Condition.NE, 0), isa.Emit(0, 1)), {1}),  # written twice
        ((isa.Cmp(0, 0, 0, Condition.FALSE, 0), isa.Emit(0, 1)), set()),
    ],
)
def test_interest_worked_by_hand(
    code: tuple[isa.Instruction, ...], interest: set[int] | None
) -> None:
    assert _interest(*code) == interest


LT = isa.Cmp(2, 0, 2, Condition.LT, 2)


@pytest.mark.parametrize(
    ("code", "terms"),
    [
        ((isa.Emit(63, 1),), [[]]),
        ((EQ, NE, isa.AndRegisters(0, 1, 16), isa.Emit(16, 1)), [[0, 1]]),
        ((EQ, NE, isa.OrRegisters(0, 1, 16), isa.Emit(16, 1)), [[0], [1]]),
        ((EQ, NE, isa.AndRegisters(0, 1, 16), isa.Emit(16, 1), isa.Emit(0, 2)), [[0]]),
        ((EQ, isa.AndRegisters(0, 32, 16), isa.Emit(16, 1)), [[0]]),
        ((EQ, NE, isa.Jmpli(), isa.Emit(63, 1)), [[0], [1]]),
        ((EQ, isa.Emit(17, 1)), []),
        # (0 or 1) and (0 or 2): two terms; of one, what they have in common is nothing.
        ((EQ, NE, LT, isa.OrRegisters(0, 1, 16), isa.OrRegisters(0, 2, 17), isa.AndRegisters(16, 17, 18), isa.Emit(18, 1)),
         [[0], [1, 2]]),
    ],
)  # fmt: skip
def test_terms_worked_by_hand(code: tuple[isa.Instruction, ...], terms: list[list[int]]) -> None:
    program = AreaProgram(tuple(i.encode() for i in (*code, isa.Nop())))
    assert sorted(map(sorted, program.terms(0, 4))) == terms


def test_terms_beyond_the_most_give_way_to_what_they_share() -> None:
    """0 and 1, 0 and 2, 3: the first two have the equality in common."""
    code = (
        EQ, NE, LT, isa.Cmp(3, 0, 3, Condition.GT, 3), isa.AndRegisters(0, 1, 16), isa.AndRegisters(0, 2, 17),
        isa.Emit(16, 1), isa.Emit(17, 1), isa.Emit(3, 1), isa.Nop(),
    )  # fmt: skip
    program = AreaProgram(tuple(i.encode() for i in code))
    assert sorted(map(sorted, program.terms(0, 3))) == [[0, 1], [0, 2], [3]]
    assert sorted(map(sorted, program.terms(0, 2))) == [[0], [3]]
    assert program.terms(0, 1) == {frozenset()}


@pytest.mark.parametrize("seed", range(4))
def test_weakened_terms_let_every_pair_pass_that_joins(seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    narrow = 0
    for _ in range(20):
        compares = [isa.Cmp(0, 0, 0, chance.choice([*Condition][:6]), r) for r in range(6)]
        code: list[isa.Instruction] = [*compares]
        for _ in range(6):
            a, b, c = chance.sample(range(6), 3)
            code += [isa.AndRegisters(a, b, 16), isa.AndRegisters(16, c, 17), isa.Emit(17, 1)]
        code.append(isa.Nop())
        program = AreaProgram(tuple(instruction.encode() for instruction in code))
        few = {most: program.terms(0, most) for most in (1, 2, 4)}
        for held in range(1 << 6):
            _, joins = execute(code, 0, lambda n, cmp, held=held: bool(held >> n & 1))
            for most, terms in few.items():
                assert len(terms) <= most
                passes = any(all(held >> n & 1 for n in term) for term in terms)
                assert passes or not joins, (code, held)
                narrow += not passes
    assert narrow > 1000
