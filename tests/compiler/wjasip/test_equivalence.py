"""Proves that rows equal their program and finds each planted fault in them; compares diagrams with
truth tables."""

from __future__ import annotations

import dataclasses
import random
from collections import Counter
from collections.abc import Sequence

import pytest

from seustream.compiler.wjasip.equivalence import ALWAYS, NEVER, Diagrams, TooIntricate, join_alike
from seustream.hdl import isa
from seustream.hdl.isa import Condition
from seustream.hdl.program import AreaProgram, JoinRow
from tests.hdl.programs import random_program, truth_tables


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
