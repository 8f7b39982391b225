"""Proves that rows equal their program and that masks lose no pair, and finds each planted fault in
them; compares diagrams with truth tables."""

from __future__ import annotations

import dataclasses
import random
from collections import Counter
from collections.abc import Sequence

import pytest

from seustream.compiler.wjasip.equivalence import (
    ALWAYS,
    NEVER,
    Diagrams,
    TooIntricate,
    join_alike,
    losing,
)
from seustream.hdl import isa
from seustream.hdl.control_words import interest_mask, term_masks
from seustream.hdl.isa import Condition
from seustream.hdl.program import AreaProgram, JoinRow
from tests.cosim.generate import random_queries
from tests.cosim.queries import build
from tests.hdl.programs import execute, random_program, truth_tables


@pytest.mark.parametrize("seed", range(20))
def test_equal_functions_are_the_same_diagram_and_others_are_not(seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    variables = list(range(6))
    diagrams = Diagrams(chance.sample(variables, 3))
    known = [(NEVER, 0), (ALWAYS, (1 << 64) - 1)]
    known += [(diagrams.variable(v), table) for v, table in truth_tables(variables).items()]
    for _ in range(300):
        (a, first), (b, second) = chance.choices(known, k=2)
        if chance.random() < 0.5:
            known.append((diagrams.both(a, b), first & second))
        else:
            known.append((diagrams.either(a, b), first | second))
    for diagram, table in known:
        assert all((diagram == other) == (table == its) for other, its in known)
    assert len({diagram for diagram, _ in known}) > 20


def faulty(rows: Sequence[JoinRow], chance: random.Random) -> tuple[str, list[JoinRow]]:
    """Plants one fault in a list of rows."""
    at = chance.randrange(len(rows))
    row = rows[at]
    kind = chance.choice(("missing", "another tag", "one need less", "one need more", "twice"))
    if kind == "one need less" and row.needs:
        changed = [dataclasses.replace(row, needs=row.needs - {chance.choice(sorted(row.needs))})]
    elif kind == "one need more":
        more = chance.choice(sorted({*range(47)} - row.needs))
        changed = [dataclasses.replace(row, needs=row.needs | {more})]
    elif kind == "twice":
        changed = [row, dataclasses.replace(row, first=True)]
    elif kind == "missing":
        changed = []
    else:
        kind, changed = "another tag", [dataclasses.replace(row, tag=row.tag + 1)]
    return kind, [*rows[:at], *changed, *rows[at + 1 :]]


def test_rows_of_random_programs_are_proved_and_faults_in_them_are_found() -> None:
    seen = Counter[str]()
    for seed in range(300):
        chance = random.Random(seed)
        code = random_program(chance, chance.choice([10, 30, 100]), chance.choice([4, 16]))
        program = AreaProgram(tuple(instruction.encode() for instruction in code))
        for tag in range(4):
            rows = program.rows(tag, 31)
            if rows is None:
                seen["too many"] += 1
                continue
            assert join_alike(code, tag, rows), (seed, tag)
            # If a JOIN has several rows, a fault in one may not change it, or its first row may be
            # missing; a fault in a single row always matters.
            alone = [row for row in rows if row.first]
            if not alone or len(alone) != len(rows):
                continue
            kind, wrong = faulty(rows, chance)
            seen[kind] += 1
            assert not join_alike(code, tag, wrong), (seed, tag, kind)
    assert len(seen) == 6, seen
    assert min(seen.values()) > 2, seen


ONE, TWO, THREE = (isa.Cmp(n, 0, n, Condition.EQ, n) for n in range(3))


def test_rows_of_one_join_may_be_in_any_order_and_overlap() -> None:
    code = [ONE, TWO, isa.OrRegisters(0, 1, 16), isa.Emit(16, 5), isa.Nop()]
    first, second = JoinRow(frozenset([1]), 5, True), JoinRow(frozenset([0]), 5, False)
    assert join_alike(code, 0, [first, second])
    both = JoinRow(frozenset([0, 1]), 5, False)
    assert join_alike(code, 0, [first, second, both])
    assert not join_alike(code, 0, [first, both])
    assert not join_alike(code, 0, [first, dataclasses.replace(second, first=True)])


def test_what_is_jumped_over_or_left_is_no_join() -> None:
    code = [
        ONE, TWO, isa.Jmpct(3, 4), isa.Emit(0, 5), isa.Jmpli(), isa.Emit(63, 6), isa.Nop(),
    ]  # fmt: skip
    left = [JoinRow(frozenset([0]), 6, True), JoinRow(frozenset([1]), 6, False)]
    assert join_alike(code, 3, [JoinRow(frozenset([0]), 5, True), *left])
    assert join_alike(code, 2, left)
    assert not join_alike(code, 3, left)
    assert not join_alike(code, 2, [JoinRow(frozenset(), 6, True)])


def test_a_function_that_would_need_a_huge_diagram_is_refused() -> None:
    """The first halves of all pairs of variables come before the second halves."""
    pairs = 15
    code = [*(isa.Cmp(0, 0, 0, Condition.EQ, n) for n in range(pairs))]
    code += [isa.OrRegisters(17, 17, 16)]
    for n in range(pairs):
        code += [isa.AndRegisters(n, 32 + n, 18), isa.OrRegisters(16, 18, 16)]
    code += [isa.Emit(16, 5), isa.Nop()]
    rows = [JoinRow(frozenset([n, 16 + n]), 5, n == 0) for n in range(pairs)]
    assert join_alike(code, 0, rows)
    by_halves = [JoinRow(frozenset(range(pairs)), 4, True), *rows]
    with pytest.raises(TooIntricate):
        join_alike([isa.Emit(17, 4), *code], 0, by_halves, most=10_000)


def mask(*factors: int) -> int:
    return sum(1 << factor for factor in factors)


def test_masks_lose_what_they_ask_too_much_of() -> None:
    code = [
        ONE, TWO, THREE, isa.Jmpct(3, 6), isa.AndRegisters(0, 1, 16), isa.Emit(16, 5), isa.Emit(2, 6),
        isa.Nop(),
    ]  # fmt: skip
    for interest, terms, lost in (
        (None, [0], None),
        (mask(0, 2), [mask(0, 1), mask(2)], None),
        (mask(1, 2), [mask(1), mask(2)], None),
        (mask(2), [0], "interest"),
        (0, [0], "interest"),
        (None, [mask(0, 1)], "terms"),
        (None, [mask(0, 1, 2), mask(2)], "terms"),
        (None, [], "terms"),
    ):
        assert losing(code, 3, interest, terms) == lost, (interest, terms)
    assert losing(code, 2, mask(2), [mask(2)]) is None, "the tag jumps over the first JOIN"
    assert losing([isa.Emit(2, 6), isa.Nop()], 2, 0, [0]) is None, "it joins nothing"


def test_masks_do_not_count_on_selections_or_on_what_always_holds() -> None:
    selected = isa.WINDOW_SELECTION_REGISTERS.start
    code = [ONE, isa.OrRegisters(0, selected, 16), isa.Emit(16, 5), isa.Nop()]
    assert losing(code, 0, mask(0), [0]) == "interest"
    assert losing(code, 0, None, [mask(0)]) == "terms"
    both = [ONE, isa.AndRegisters(0, selected, 16), isa.Emit(16, 5), isa.Nop()]
    assert losing(both, 0, mask(0), [mask(0)]) is None
    always = [isa.Cmp(0, 0, 0, Condition.TRUE, 0), isa.Jmpli(), isa.Emit(63, 5), isa.Nop()]
    assert losing(always, 0, mask(0), [mask(0)]) is None
    never = [isa.Cmp(0, 0, 0, Condition.FALSE, 0), isa.Emit(63, 5), isa.Nop()]
    assert losing(never, 0, mask(0), [0]) == "interest"


def lost(program: AreaProgram, tag: int) -> str | None:
    """Returns what the masks that a processor gets for a tag would lose."""
    masks = interest_mask(program, tag), term_masks(program, tag)
    return losing(program.instructions, tag, *masks)


def tightened(
    interest: int | None, terms: list[int], chance: random.Random
) -> tuple[int | None, list[int]]:
    """Plants one fault: a term lacks, or asks for one factor more, or the interest is in one less."""
    terms = [*terms]
    at = chance.randrange(len(terms))
    kind = chance.randrange(3)
    if kind == 0 and interest:
        interest &= ~(1 << chance.choice([n for n in range(16) if interest >> n & 1]))
    elif kind == 1:
        terms[at] |= 1 << chance.randrange(16)
    else:
        del terms[at]
    return interest, terms


def test_masks_of_random_programs_are_proved_and_faults_in_them_are_found() -> None:
    """By brute force: for each outcome of the factors, with every selection."""
    seen = Counter[object]()
    for seed in range(200):
        chance = random.Random(seed)
        code = random_program(chance, chance.choice([6, 20, 50]), 5)
        program = AreaProgram(tuple(instruction.encode() for instruction in code))
        factors = range(len(program.compares))
        fixed = {Condition.TRUE: True, Condition.FALSE: False}
        every = (1 << 16) - 1
        for tag in range(4):
            assert lost(program, tag) is None, (seed, tag)
            interest, terms = tightened(
                interest_mask(program, tag), term_masks(program, tag), chance
            )
            loses = set()
            for outcome in range(1 << len(factors)):
                held = [
                    fixed.get(Condition(it.condition), bool(outcome >> n & 1))
                    for n, it in enumerate(program.compares)
                ]
                if not execute(code, tag, lambda n, _, held=held: held[n], every, every)[1]:
                    continue
                bits = sum(1 << n for n, holds in enumerate(held) if holds)
                loses |= {"terms"} if not any(term & ~bits == 0 for term in terms) else set()
                loses |= {"interest"} if interest is not None and not interest & bits else set()
            found = losing(code, tag, interest, terms)
            assert found in (loses or {None}), (seed, tag, interest, terms)
            seen[found] += 1
    assert min(seen[what] for what in ("terms", "interest", None)) > 20, seen


@pytest.mark.parametrize("seed", range(40))
def test_masks_of_random_queries_are_proved_and_faults_in_them_are_found(seed: int) -> None:
    """A mask from which no factor can be taken loses a pair as soon as it asks for one more."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    for area in build(random_queries(chance, (0, 1, 2)), (0, 1, 2)).areas:
        program = AreaProgram(area.program)
        for tag in {row.pre_tag for row in area.combinations}:
            assert lost(program, tag) is None
            interest, terms = interest_mask(program, tag), term_masks(program, tag)
            for at, term in enumerate(terms):
                others = terms[:at] + terms[at + 1 :]
                if not any(other & ~term == 0 for other in others):
                    assert losing(program.instructions, tag, interest, others) == "terms"
            if interest is not None:
                assert losing(program.instructions, tag, 0, terms) == "interest"
