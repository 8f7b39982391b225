"""Expressions as values and as text: the text reads back as the same expression."""

from __future__ import annotations

import random

import pytest

from seustream.compiler.language import expressions as x
from seustream.compiler.language.types import BOOLEAN, INT
from tests.compiler.plan.cases import compiled
from tests.compiler.plan.random_formulas import random_formula


def bound(condition: str) -> x.Expression:
    return compiled(condition, "R, S", stop_after="tree").written.queries[0].where


@pytest.mark.parametrize(
    "condition",
    [
        "R.a = S.d",
        "R.a <> -5",
        "R.a - -5 = 1",
        "R.a + R.b * R.c = 1",
        "(R.a + R.b) * R.c = 1",
        "R.a - (R.b - R.c) = 1",
        "R.a / R.b / R.c = 1",
        "R.a / (R.b * R.c) = 1",
        "R.a = 1 AND (R.b = 2 OR R.c = 3)",
        "R.a = 1 AND R.b = 2 OR R.c = 3",
        "NOT (R.a = 1 OR R.b = 2)",
        "NOT R.a = 1 AND R.b = 2",
        "NOT NOT R.a = 1",
        "(R.a = 1) = (R.b = 2)",
        "(R.a = 1 AND R.b = 2) = TRUE",
        "(R.a = 1) IS NULL",
        "R.a + 1 IS NOT NULL",
        "R.s || 'x' LIKE 'it''s%'",
        "R.s NOT LIKE '_'",
        "R.s = '' OR R.s = ''''",
        "R.x > 1.5e-07 AND R.y < 1e+22",
        "R.x = 100000000000000000000.0",
        "R.day = DATE '2006-03-01' AND R.hour < TIME '12:30:15.250000'",
        "R.moment >= TIMESTAMP '2006-03-01 12:30:00'",
        "R.ok = TRUE OR R.ok = FALSE OR NULL = R.a",
        "abs(R.a) = coalesce(R.b, 5, R.c)",
        "CAST(R.a + 1 AS varchar(5)) = CAST(S.d AS varchar)",
        "R.TimeStamp > S.TimeStamp",
        "R.g = 9223372036854775807 AND R.g > -9223372036854775808",
    ],
)
def test_what_is_shown_reads_back(condition: str) -> None:
    e = bound(condition)
    assert bound(x.show(e)) == e


def test_random_formulas_read_back() -> None:
    chance = random.Random(7)
    for _ in range(150):
        text = x.show(random_formula(chance, 3))
        assert x.show(bound(text)) == text


def test_equal_wherever_written() -> None:
    assert bound("R.a = 1  AND s.D = 2") == bound("r.A=1 AND\nS.d = 2")
    assert bound("R.a = 1") != bound("R.b = 1")


A, B = bound("R.a = 1"), bound("R.b = 2")


def test_conjuncts() -> None:
    assert x.conjuncts(x.TRUE) == ()
    assert x.conjuncts(A) == (A,)
    assert x.conjuncts(x.And((A, B))) == (A, B)
    assert x.conjuncts(x.Or((A, B))) == (x.Or((A, B)),)


def test_connectives_of_none_and_one() -> None:
    assert x.conjunction(()) == x.TRUE
    assert x.disjunction(()) == x.FALSE
    assert x.conjunction((A,)) == x.disjunction((A,)) == A
    assert x.conjunction((A, B)) == x.And((A, B))
    assert x.disjunction((A, B)) == x.Or((A, B))


def test_walk_is_from_the_left_and_without_recursion() -> None:
    e = bound("abs(R.a) + R.b = R.c AND NOT R.s LIKE 'x'")
    assert [c.name for c in x.walk(e) if isinstance(c, x.ColumnReference)] == ["a", "b", "c", "s"]
    deep = A
    for _ in range(50_000):
        deep = x.Not(deep)
    assert sum(1 for _ in x.walk(deep)) == 50_003


def test_columns_and_sources() -> None:
    e = bound("R.a + S.d = R.b")
    assert {c.name for c in x.columns(e)} == {"a", "b", "d"}
    assert x.sources(e) == {0, 1}
    assert x.sources(x.TRUE) == frozenset()


def test_map_predicate_keeps_the_structure() -> None:
    e = bound("R.a = 1 AND (R.b = 2 OR NOT R.c = 3)")
    mapped = x.map_predicate(e, lambda leaf: x.Literal(len(x.show(leaf)), INT))
    numbers = [x.Literal(n, INT) for n in (7, 7, 11)]
    assert mapped == x.And((numbers[0], x.Or((numbers[1], numbers[2]))))
    assert x.TRUE.type == BOOLEAN


def test_what_can_be_null() -> None:
    column, never = (x.ColumnReference(0, "a", INT, nullable, "R") for nullable in (True, False))
    assert x.can_be_null(column, frozenset())
    assert not x.can_be_null(never, frozenset())
    assert x.can_be_null(never, frozenset({0})), "of a source that may be lacking"
    assert not x.can_be_null(x.Literal(1, INT), frozenset())
    assert x.can_be_null(x.Literal(None, INT), frozenset())
    assert not x.can_be_null(column, frozenset(), frozenset({column}))
    first = x.Call("coalesce", (column, never), (INT, INT), INT)
    assert not x.can_be_null(first, frozenset())
    assert x.can_be_null(first, frozenset({0})), "both of a source that may be lacking"
