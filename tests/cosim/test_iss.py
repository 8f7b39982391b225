"""Tests what only the instruction-level model promises: that it executes words, and shows them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pytest

from seustream.compiler.wjasip.image import encode
from seustream.cosim.iss import IssDevice
from seustream.hdl import isa
from seustream.hdl.config import CONFIGURATIONS
from seustream.hdl.device import Area, Comparison, Retention, Route, Selection, Tables
from seustream.hdl.isa import Condition
from tests.cosim.queries import (
    UNBOUNDED,
    On,
    Query,
    R,
    S,
    T,
    Where,
    arrivals,
    assemble,
    build,
    rows_of,
    run,
    with_area,
)

TINY = CONFIGURATIONS["tiny"]
KEEP = Retention(None)
QUERY = Query({R: UNBOUNDED, S: UNBOUNDED}, ((On(R, 0, "<", S, 0),),), {R: Where(((0, ">", 1),))})

Step = tuple[int, int, int, str]


def executed(tables: Tables, rows: Sequence[tuple[int, int, tuple[int, ...]]]) -> list[Step]:
    """Returns tag, area, address and text of every instruction executed."""
    steps: list[Step] = []
    device = IssDevice(
        TINY, lambda tag, area, address, op: steps.append((tag, area, address, str(op)))
    )
    device.load(encode(tables, TINY))
    run(device, arrivals(rows))
    return steps


def one_area(*code: isa.Instruction) -> Tables:
    """Returns tables in which R and T probe S, which has this program; a tuple joined as tag t is a
    result of query t - 3."""
    tags = range(3, 3 + TINY.queries)
    return Tables(
        groups=(0, 1, 2),
        selections=((), (), ()),
        admission=((0,), (0,), (0,)),
        areas=(
            Area(program=assemble(isa.Nop())),
            Area(program=assemble(*code), retention=KEEP),
            Area(program=assemble(isa.Nop())),
        ),
        routes={
            R: Route(False, frozenset({S})),
            S: Route(True),
            T: Route(False, frozenset({S})),
            **{tag: Route(queries=frozenset({tag - 3})) for tag in tags},
        },
        windows=((UNBOUNDED,) * 3,) * TINY.queries,
    )


def tags_joined(tables: Tables, rows: Sequence[tuple[int, int, tuple[int, ...]]]) -> set[int]:
    device = IssDevice(TINY)
    device.load(encode(tables, TINY))
    return {row[0] + 3 for row in rows_of(run(device, arrivals(rows)))}


def test_the_words_are_executed_whatever_the_factors_say() -> None:
    tables = build([QUERY])
    bare = with_area(with_area(tables, R, factors=(), combinations=()), S, combinations=())
    raws = arrivals([(t % 2, t, (t // 2 % 5,)) for t in range(16)])
    results = []
    for each in (tables, bare):
        device = IssDevice(TINY)
        device.load(encode(each, TINY))
        results.append(rows_of(run(device, raws)))
    assert results[0] == results[1]
    assert results[0]


WORKED_EXAMPLE = """
    30080 36082 34504 34886 30308 10000 80050 800D1 4000D 20010 20838
    20C40 24448 40814 2041C 2042C 21054 2046C 21084 2049C 42416 24028
    45C18 20060 4741A 20478 48C1C 24490 4A41E 240A8 00000
"""


@pytest.mark.parametrize(
    ("probe", "window", "tags"),
    [
        ((R, (1, 9, 2)), (1, 2), {4, 14, 16, 18}),
        ((R, (1, 2, 2)), (1, 2), {4, 16, 18}),
        ((R, (1, 0, 3)), (1, 2), {4}),
        ((R, (0, 3, 0)), (1, 2), {14}),
        ((R, (0, 0, 0)), (1, 2), set()),
        ((T, (2,)), (1, 2), {7, 11, 21, 27, 33, 39}),
        ((T, (3,)), (1, 2), {21, 33}),
    ],
)
def test_the_program_of_the_worked_example(
    probe: tuple[int, tuple[int, ...]], window: tuple[int, ...], tags: set[int]
) -> None:
    """Covers the area of S: R(a,b,c) and T(f) meet S(d,e)."""
    words = tuple(int(word, 16) for word in WORKED_EXAMPLE.split())
    tables = with_area(one_area(isa.Nop()), S, program=words)
    assert tags_joined(tables, [(S, 0, window), (probe[0], 1, probe[1])]) == tags


def test_registers_are_zero_at_the_start_of_each_pair_but_for_the_last() -> None:
    tables = one_area(
        isa.Emit(20, 3),
        isa.OrRegisters(63, 63, 20),
        isa.Emit(20, 4),
        isa.Emit(62, 5),
        isa.Emit(0, 6),
        isa.Emit(63, 7),
        isa.Nop(),
    )
    rows = [(S, 0, ()), (S, 0, ()), (R, 1, ()), (T, 2, ())]
    assert tags_joined(tables, rows) == {4, 7}


def test_a_register_can_be_written_again() -> None:
    tables = one_area(
        isa.Cmp(0, R, 0, Condition.TRUE, 0),
        isa.Cmp(0, R, 0, Condition.FALSE, 0),
        isa.OrRegisters(0, 63, 16),
        isa.AndRegisters(16, 0, 16),
        isa.Emit(16, 3),
        isa.Emit(63, 4),
        isa.Nop(),
    )
    assert tags_joined(tables, [(S, 0, ()), (R, 1, ())]) == {4}


def test_trace_follows_the_jumps() -> None:
    tables = one_area(
        isa.Cmp(0, R, 0, Condition.EQ, 0),
        isa.Jmpct(T, 4),
        isa.Emit(63, 3),
        isa.Jmp(6),
        isa.Jmpli(),
        isa.Emit(0, 4),
        isa.Nop(),
    )
    assert executed(tables, [(S, 0, ()), (R, 1, ()), (T, 1, ())]) == [
        (R, S, 0, "CMP 0,0,0,1,0"),
        (R, S, 1, "JMPCT 2,4"),
        (R, S, 4, "JMPLI"),
        (R, S, 5, "JOIN 0,4"),
        (R, S, 6, "NOP"),
        (T, S, 0, "CMP 0,0,0,1,0"),
        (T, S, 1, "JMPCT 2,4"),
        (T, S, 2, "JOIN 63,3"),
        (T, S, 3, "JMP 6"),
        (T, S, 6, "NOP"),
    ]


def test_jmpli_goes_to_the_last_instruction_when_nothing_holds() -> None:
    tables = one_area(
        isa.Cmp(0, R, 0, Condition.EQ, 15),
        isa.Jmpli(),
        isa.Emit(63, 3),
        isa.Nop(),
        isa.Nop(),
    )
    rows = [(S, 0, (1,)), (S, 0, (2,)), (R, 1, (3,)), (R, 1, (2,))]
    addresses = [step[2] for step in executed(tables, rows)]
    assert addresses == [0, 1, 4, 0, 1, 2, 3, 4]
    device = IssDevice(TINY)
    device.load(encode(tables, TINY))
    assert rows_of(run(device, arrivals(rows))) == [(0, 1, 0, (1, 1, -1, -1))]


def test_a_probe_of_an_empty_window_executes_nothing() -> None:
    assert executed(one_area(isa.Nop()), [(R, 0, ())]) == []


def test_the_columns_move_to_the_front_without_losing_a_tuple() -> None:
    """More tuples come than twice the depth, so that the slice slides and starts anew."""
    even = (Selection(True, (Comparison(1, Condition.EQ, 0),)),)
    tables = one_area(
        isa.Cmp(0, R, 0, Condition.LE, 0), isa.AndRegisters(0, 32, 16), isa.Emit(16, 3), isa.Nop()
    )
    tables = dataclasses.replace(tables, selections=((), even, ()))
    for n in range(TINY.capacity, 5 * TINY.capacity):
        device = IssDevice(TINY)
        device.load(encode(tables, TINY))
        rows = [(S, t, (t, t % 2)) for t in range(n)] + [(R, n, (n - 9,))]
        results = run(device, arrivals(rows))
        want = [(0, n, t, (0, t)) for t in range(n - 9, n) if t % 2 == 0]
        assert sorted((*row[:3], row[3][:2]) for row in rows_of(results)) == want
