"""Windows derived from bounds on differences of times."""

from __future__ import annotations

import random

import pytest

from seustream.compiler.errors import CompileError
from seustream.compiler.logical.joins import JoinTree
from seustream.compiler.pipeline import compile_text
from seustream.compiler.xsql.bounds import bounds
from seustream.hdl.device import Window, WindowKind
from tests.compiler.xsql.relations import STREAMS


def windows(select: str) -> list[Window]:
    program = compile_text(STREAMS + select).program
    (relation,) = program.relations
    query = relation.query if isinstance(relation, JoinTree) else relation
    return [source.window for source in query.sources]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("condition", "sizes"),
    [
        ("S.ts BETWEEN R.ts - INTERVAL '5' SECOND AND R.ts + INTERVAL '10' SECOND", (10_000, 5_000)),
        ("abs(R.ts - S.ts) <= 5 s", (5_000, 5_000)),
        ("abs(R.ts - S.ts) < 5 s AND R.ts <= S.ts", (4_999, 0)),
        ("S.ts BETWEEN R.ts + 5 AND R.ts + 9", (9, 0)),
        ("R.ts = S.ts", (0, 0)),
        ("R.ts - S.ts <= 2.0 AND S.ts - R.ts < 1.5", (1, 2)),
    ],
)  # fmt: skip
def test_a_window_is_the_least_that_loses_nothing(condition: str, sizes: tuple[int, ...]) -> None:
    want = [Window(WindowKind.RANGE, size) for size in sizes]
    assert windows(f"SELECT * FROM R, S WHERE {condition}") == want
    assert windows(f"SELECT * FROM R LEFT JOIN S ON {condition}") == want


def test_bounds_go_through_a_third_stream() -> None:
    found = windows("SELECT * FROM R, S, T WHERE abs(R.ts - S.ts) <= 3 AND abs(S.ts - T.ts) <= 4")
    assert [window.size for window in found] == [7, 4, 7]


@pytest.mark.parametrize(
    ("select", "said"),
    [
        ("SELECT * FROM R, S WHERE R.a = S.a", "joins streams"),
        ("SELECT * FROM R, S WHERE R.ts <= S.ts", "joins what may come any time after R"),
        ("SELECT * FROM R, S WHERE S.ts <= R.ts + 5 s", "joins what may come any time after S"),
        ("SELECT * FROM R, S WHERE abs(R.ts - S.ts) > 5", "joins streams"),
        ("SELECT * FROM R, S WHERE R.ts = S.ts OR R.a = S.a", "joins streams"),
        ("SELECT * FROM R, S WHERE abs(R.ts - S.ts) <= 1e19", "joins streams"),
        ("SELECT * FROM R, S WHERE R.ts <= S.ts + 5.0 AND S.ts <= R.ts + 5.0", "joins streams"),
    ],
)
def test_a_join_without_either_says_both_ways(select: str, said: str) -> None:
    with pytest.raises(CompileError) as error:
        compile_text(STREAMS + select)
    (problem,) = error.value.problems
    assert said in problem.message
    assert problem.hint is not None
    assert "WINDOW RANGE 5 minutes" in problem.hint
    assert ".ts) <= 5 minutes" in problem.hint


def test_bounds_are_those_of_whole_milliseconds() -> None:
    """By brute force: the window is the least distance beyond which no times fulfil the
    condition."""
    chance = random.Random(4)
    for _ in range(60):
        n, m = chance.randint(-5, 5), chance.randint(0, 6) / chance.choice([1, 2])
        late = chance.choice([n, n + 0.5, float(n)])
        op = chance.choice(["<", "<=", "=", ">", ">="])
        text = chance.choice([f"S.ts {op} R.ts + {n}", f"abs(S.ts - R.ts + {n}) {op} {m}",
                              f"R.ts - S.ts {op} {late}", f"{late} {op} S.ts - R.ts"])  # fmt: skip
        c = compile_text(
            f"{STREAMS}SELECT R.a FROM R, S WHERE {text} WINDOW RANGE 99", stop_after="tree"
        )
        where = c.program.queries[0].where
        found = {(i, j): d for i, j, d in sorted(bounds(where), reverse=True)}
        holds = [d for d in range(-30, 31) if _true(text, d)]
        if not holds:
            continue
        for (i, j), most in (((0, 1), max(holds)), ((1, 0), -min(holds))):
            if most < 30:
                assert found.get((i, j), most) == most, (text, found)
                assert (i, j) in found, text
            else:
                assert (i, j) not in found, (text, found)


def _true(text: str, later: int) -> bool:
    """Returns whether a condition holds if S is this much later than R."""
    python = text.replace("S.ts", str(later)).replace("R.ts", "0").replace(" = ", " == ")
    return bool(eval(python))
