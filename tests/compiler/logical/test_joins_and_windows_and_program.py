"""Trees of joins, windows that no device supports, and the parts of a program, compared with their
definitions."""

from __future__ import annotations

import random

import pytest

from seustream.compiler.language.expressions import TRUE
from seustream.compiler.logical.joins import (
    JoinKind,
    JoinSide,
    TreeJoin,
    joins,
    members,
    optional,
    visible,
)
from seustream.compiler.logical.program import RankedRows
from seustream.compiler.logical.windows import LandmarkWindow, PartitionWindow, has_end, is_plain
from seustream.compiler.pipeline import compile_text
from seustream.hdl.device import Window, WindowKind


def tree(chance: random.Random, sources: list[int]) -> JoinSide:
    if len(sources) == 1:
        return sources[0]
    cut = chance.randrange(1, len(sources))
    sides = tree(chance, sources[:cut]), tree(chance, sources[cut:])
    return TreeJoin(chance.choice(list(JoinKind)), *sides, TRUE)


def lacking(side: JoinSide) -> set[frozenset[int]]:
    """By definition: returns the sets of sources that a combination of this side may hold."""
    if isinstance(side, int):
        return {frozenset({side})}
    left, right = lacking(side.left), lacking(side.right)
    both = {one | other for one in left for other in right}
    match side.kind:
        case JoinKind.SEMI | JoinKind.ANTI:
            return left
        case JoinKind.LEFT | JoinKind.LEFT_ASOF:
            return both | left
        case JoinKind.RIGHT:
            return both | right
        case JoinKind.FULL:
            return both | left | right
    return both


def test_sources_of_a_tree_by_what_its_combinations_may_have() -> None:
    chance = random.Random(5)
    for _ in range(300):
        side = tree(chance, list(range(chance.randint(1, 5))))
        combinations = lacking(side)
        every = frozenset().union(*combinations)
        assert frozenset(visible(side)) == every
        assert optional(side) & every == every - frozenset.intersection(*combinations)
        found = list(joins(side))
        assert len(found) == len(members(side)) - 1
        for number, join in enumerate(found):
            assert all(below in found[:number] for below in joins(join) if below is not join)


@pytest.mark.parametrize("kind", JoinKind)
def test_kinds_say_what_they_keep(kind: JoinKind) -> None:
    side = TreeJoin(kind, 0, 1, TRUE)
    alone = lacking(side)
    assert kind.pairs == (frozenset({0, 1}) in alone)
    if kind.pairs and not kind.looks_up:
        assert kind.keeps_left == (frozenset({0}) in alone)
        assert kind.keeps_right == (frozenset({1}) in alone)


def test_windows_that_no_device_has() -> None:
    unbounded = WindowKind.UNBOUNDED
    windows = {
        "PARTITION BY a, b ROWS 3": PartitionWindow(unbounded, 3, ("a", "b")),
        "SINCE 7": LandmarkWindow(unbounded, since=7),
        "SINCE EVERY 60 ms": LandmarkWindow(unbounded, every=60),
        "UNBOUNDED": Window(unbounded),
        "ROWS 3": Window(WindowKind.ROWS, 3),
    }
    assert [str(window) for window in windows.values()] == list(windows)
    assert [has_end(window) for window in windows.values()] == [True, False, True, False, True]
    assert [is_plain(window) for window in windows.values()] == [False, False, False, True, True]


TEXT = """
CREATE STREAM R (a int, b int);
CREATE STREAM J AS SELECT a FROM R WHERE b > 1 WINDOW NOW;
CREATE STREAM P AS PATTERN ANY x FROM J WITHIN 9 ms RETURN x.a AS a;
REGISTER QUERY one AS SELECT a FROM J WINDOW NOW;
REGISTER QUERY both AS SELECT a FROM R UNION ALL SELECT a FROM P;
REGISTER QUERY pat AS PATTERN ANY x FROM R WITHIN 9 ms RETURN x.a;
REGISTER QUERY forest AS APAS $$ select [x = $J.a] $$;
"""


def test_a_program_says_what_is_asked_for_and_what_comes_from_outside() -> None:
    program = compile_text(TEXT, stop_after="tree").program
    assert sorted(program.names) == ["both", "forest", "one", "pat"]
    assert [q.name for q in program.asked] == ["one"]
    assert {r.name for r in program.asked_relations} == {"one", "both"}
    assert [p.name for p in program.asked_patterns] == ["pat"]
    assert [stream.name for stream in program.base] == ["R"]
    assert set(program.relations) >= set(program.asked_relations)
    assert any(q.defines == "J" for q in program.queries)


def test_details_for_people() -> None:
    text = (
        "CREATE STREAM R (a int); SELECT DISTINCT a FROM R WINDOW ROWS 5;"
        "SELECT a, rank() OVER (PARTITION BY a ORDER BY a) AS r FROM R;"
    )
    distinct, ranked = compile_text(text, stop_after="tree").program.operations
    assert distinct.detail == "within ROWS 5"
    assert isinstance(ranked, RankedRows)
    assert ranked.detail == "at the end of the stream"
