"""What a loader finds out about programs, on random ones, over every outcome of their factors."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from seustream.hdl import isa
from seustream.hdl.isa import Condition
from seustream.hdl.program import AreaProgram
from tests.hdl.programs import execute, random_program


@pytest.mark.parametrize("seed", range(8))
def test_a_pair_without_a_factor_of_interest_joins_nothing(seed: int) -> None:
    """The other way round a factor of interest may hold and nothing be joined."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    joined = narrow = 0
    for number in range(60):
        code = random_program(chance, chance.choice([4, 10, 20]), 5, plain=number % 2 == 0)
        program = AreaProgram(tuple(instruction.encode() for instruction in code))
        compares = sum(isinstance(instruction, isa.Cmp) for instruction in code)
        for tag in range(4):
            interest, terms = program.interest(tag), program.terms(tag, 1)
            every = program.terms(tag, 1 << 16)
            assert len(terms) <= 1
            bits = [(0, 0), (0xFFFF, 0x7FFF), (chance.getrandbits(16), chance.getrandbits(15))]
            for outcomes in range(1 << compares):

                def outcome(n: int, cmp: isa.Cmp, outcomes: int = outcomes) -> bool:
                    if cmp.condition in (Condition.TRUE, Condition.FALSE):
                        return cmp.condition == Condition.TRUE
                    return bool(outcomes >> n & 1)

                held = {
                    n
                    for n, cmp in enumerate(i for i in code if isinstance(i, isa.Cmp))
                    if outcome(n, cmp)
                }
                for window_bits, probe_bits in bits:
                    _, joins = execute(code, tag, outcome, window_bits, probe_bits)
                    if not joins:
                        continue
                    joined += 1
                    assert program.joins(tag)
                    assert interest is None or interest & held, (code, tag, held)
                    narrow += interest is not None
                    assert any(term <= held for term in terms), (code, tag, held)
                    assert any(term <= held for term in every), (code, tag, held)
    assert joined
    assert narrow


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


@pytest.mark.parametrize("seed", range(4))
def test_a_pair_in_which_a_term_holds_joins_if_its_selections_do(seed: int) -> None:
    """All terms together are exact, so that no pair is executed in vain."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    joined = 0
    for _ in range(60):
        code = random_program(chance, chance.choice([4, 10, 20]), 4)
        program = AreaProgram(tuple(instruction.encode() for instruction in code))
        compares = [i for i in code if isinstance(i, isa.Cmp)]
        for tag in range(4):
            every = program.terms(tag, 1 << 16)
            for outcomes in range(1 << len(compares)):

                def outcome(n: int, cmp: isa.Cmp, outcomes: int = outcomes) -> bool:
                    if cmp.condition in (Condition.TRUE, Condition.FALSE):
                        return cmp.condition == Condition.TRUE
                    return bool(outcomes >> n & 1)

                held = {n for n, cmp in enumerate(compares) if outcome(n, cmp)}
                _, joins = execute(code, tag, outcome, 0xFFFF, 0x7FFF)
                assert any(term <= held for term in every) == bool(joins), (code, tag, held)
                joined += bool(joins)
    assert joined


@pytest.mark.parametrize("seed", range(4))
def test_rows_join_what_the_program_joins(seed: int) -> None:
    """As often, in the same order, by any outcome and any selection bits."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    seen: Counter = Counter()
    for _ in range(120):
        code = random_program(chance, chance.choice([4, 20, 30]), 6)
        program = AreaProgram(tuple(instruction.encode() for instruction in code))
        compares = [i for i in code if isinstance(i, isa.Cmp)]
        for tag in range(4):
            rows = program.rows(tag, 31)
            seen["too many"] += program.rows(tag, 0) is None
            assert rows is not None
            assert len(rows) <= 31
            seen["several of a JOIN"] += not all(row.first for row in rows)
            for _ in range(40):
                bits = chance.getrandbits(16), chance.getrandbits(15)
                outcomes = chance.getrandbits(6)

                def outcome(n: int, cmp: isa.Cmp, outcomes: int = outcomes) -> bool:
                    if cmp.condition in (Condition.TRUE, Condition.FALSE):
                        return cmp.condition == Condition.TRUE
                    return bool(outcomes >> n & 1)

                has = {n for n, cmp in enumerate(compares) if outcome(n, cmp)}
                has |= {16 + n for n in range(31) if (bits[0] | bits[1] << 16) >> n & 1}
                joined, done = [], False
                for row in rows:
                    before = done and not row.first
                    done = before or row.needs <= has
                    if done and not before:
                        joined.append(row.tag)
                _, joins = execute(code, tag, outcome, *bits)
                assert joined == [emitted for _, emitted in joins], (code, tag, has)
                seen["joins"] += bool(joins)
    assert min(seen[what] for what in ("too many", "several of a JOIN", "joins")) > 5, seen


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
