"""Forms of conditions for indexes. tests/compiler/plan/test_simplify.py judges them by rows and has one of
each, tests/engine/relational/test_joins.py has them in random trees of joins."""

from __future__ import annotations

import pytest

from seustream.compiler.language import expressions as x
from seustream.compiler.language.indexable import indexable
from seustream.compiler.language.types import BOOLEAN, INT, Kind, Type
from seustream.compiler.logical.joins import JoinTree, TreeJoin
from seustream.compiler.pattern.ir import PatternQuery
from seustream.compiler.pipeline import Options, compile_text
from seustream.hdl.isa import Condition
from tests.compiler.plan.random_formulas import A, D, K, N, is_distinct
from tests.compiler.plan.three_valued import Table

ROWS = [{(0, "a"): a, (1, "d"): d} for a in (None, 0, 1) for d in (None, 0, 1)]


def test_it_is_true_for_the_same_rows() -> None:
    written = is_distinct(A, D, negated=True)
    equalities = indexable(written)
    assert len(x.conjuncts(equalities)) == 2
    table = Table(ROWS)
    assert table.selected(equalities) == table.selected(written)


def test_a_column_that_is_never_null_is_compared_as_it_is() -> None:
    written = is_distinct(N, K, negated=True)
    assert x.show(indexable(written)) == "R.n = S.k"
    assert x.show(indexable(is_distinct(N, D, negated=True))) == "R.n = S.d"
    assert x.show(indexable(written, frozenset({0}))) == "R.n = S.k"
    both = frozenset({0, 1})  # rows of both may be missing
    assert x.show(indexable(written, both)).startswith("(R.n IS NULL) = (S.k IS NULL) AND ")


def test_what_may_fault_is_left() -> None:
    """It would be computed twice, and its fault counted twice."""
    moved = x.Call("+", (A, x.Literal(1, INT)), (INT, INT), INT)
    for written in (is_distinct(moved, D, True), is_distinct(A, D, False)):
        assert indexable(written) == x.push_not(written)


@pytest.mark.parametrize(
    "of",
    [
        *(Type(kind) for kind in Kind if kind not in (Kind.LIST, Kind.NULL, Kind.ERROR)),
        Type(Kind.DECIMAL, 5, 2),
    ],
    ids=str,
)
def test_every_type_has_a_value_in_the_place_of_null(of: Type) -> None:
    left, right = (x.ColumnReference(place, "v", of, True, "RS"[place]) for place in (0, 1))
    call = x.Call("is_distinct", (left, right), (of, of), BOOLEAN)
    written = x.Not(x.condition(call))
    assert len(x.conjuncts(indexable(written))) == 2


def test_an_outer_join_has_equalities() -> None:
    """L.k is NULL where the row of L is missing, though the column is never NULL."""
    text = """CREATE STREAM L (k int NOT NULL); CREATE STREAM R (k int); CREATE STREAM T (k int);
        REGISTER QUERY q AS SELECT R.k FROM L RIGHT JOIN R ON L.k IS NOT DISTINCT FROM R.k
        LEFT JOIN T ON L.k IS NOT DISTINCT FROM T.k WINDOW RANGE 10 s;"""
    (tree,) = compile_text(text, options=Options(devices=0)).program.operations
    assert isinstance(tree, JoinTree)
    assert isinstance(tree.tree, TreeJoin)
    assert isinstance(tree.tree.left, TreeJoin)
    assert x.show(tree.tree.left.condition) == "L.k = R.k"
    assert len(x.conjuncts(tree.tree.condition)) == 2


def show(condition: str, join: str = "L, R WHERE") -> str:
    text = f"""CREATE STREAM L (a int, b bigint, x double); CREATE STREAM R (a int, b smallint, x double);
        REGISTER QUERY q AS SELECT L.a FROM {join} {condition} WINDOW RANGE 10 s;"""
    program = compile_text(text, options=Options(devices=0)).program
    if program.queries:
        return x.show(program.queries[0].where)
    (tree,) = program.operations
    assert isinstance(tree, JoinTree)
    assert isinstance(tree.tree, TreeJoin)
    return x.show(tree.tree.condition)


@pytest.mark.parametrize("join", ["L, R WHERE", "L LEFT JOIN R ON"])
def test_a_distance_of_times(join: str) -> None:
    found = show("abs(L.ts - R.ts) < INTERVAL '2' SECOND", join)
    assert found == "L.TimeStamp < R.TimeStamp + 2000 AND L.TimeStamp > R.TimeStamp - 2000"


@pytest.mark.parametrize("join", ["L, R WHERE", "L LEFT JOIN R ON"])
@pytest.mark.parametrize(
    "condition",
    [
        "L.b - R.b < 5",  # overflows for other rows than the same without the difference
        "L.x - R.x < 5",
        "L.a - R.a < 5.5",
        "abs(L.a - R.a) <> 5",
        "abs(L.a) - R.a < 5",
        "L.a - R.a < 1152921504606846977",
        "L.a * 2 - R.a < 5",
    ],
)
def test_other_comparisons_stay(condition: str, join: str) -> None:
    assert show(condition, join) == condition


@pytest.mark.parametrize("condition", ["NOT L.a <> R.a", "(NOT L.a <> R.a) IS TRUE"])
def test_not_is_moved_in_an_outer_join(condition: str) -> None:
    assert show(condition, "L LEFT JOIN R ON") == "L.a = R.a"


def test_a_pattern_has_each_event_on_its_side() -> None:
    text = """CREATE STREAM E (type varchar, v int, k int);
        PATTERN A a; B+ b; C c FROM E
        WHERE b[i].v - b[i-1].v > 2 AND abs(c.v - a.v) <= 5 AND a.k IS NOT DISTINCT FROM c.k
        AND count(b) - a.v > 1 WITHIN 10 s USING NEXT RETURN a.v;"""
    (pattern,) = compile_text(text, options=Options(devices=0)).program.patterns
    assert isinstance(pattern, PatternQuery)
    assert [conjunct.text for conjunct in pattern.conjuncts] == [
        "b[i].v > b[i-1].v + 2",
        "c.v <= a.v + 5",
        "c.v >= a.v - 5",
        "(a.k IS NULL) = (c.k IS NULL)",
        "coalesce(a.k, 0) = coalesce(c.k, 0)",
        "count(b) - a.v > 1",
    ]


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("L.a = R.a AND L.b = 1 OR L.a = R.a AND R.b = 2", "L.a = R.a AND (L.b = 1 OR R.b = 2)"),
        ("L.b = 1 AND L.a = R.a OR L.a = R.a", "L.a = R.a"),
        (
            "NOT (L.a <> R.a OR L.b = 1) OR L.a = R.a AND R.b = 2",
            "L.a = R.a AND (L.b <> 1 OR R.b = 2)",
        ),
        # A fault of it would count once for each alternative.
        ("L.a = 6 / R.a AND L.b = 1 OR L.a = 6 / R.a AND R.b = 2",) * 2,
        ("L.a = R.a AND L.b = 1 OR R.b = 2",) * 2,
    ],
)
def test_what_all_alternatives_have_stands_in_front(written: str, found: str) -> None:
    assert show(written, "L LEFT JOIN R ON") == found


def test_with_it_in_front_the_condition_is_true_for_the_same_rows() -> None:
    equal, one = (x.Compare(Condition.EQ, A, other, INT) for other in (D, x.Literal(1, INT)))
    null, less = x.IsNull(D, False), x.Compare(Condition.LT, A, D, INT)
    table = Table(ROWS)
    for first in (one, null, less, x.TRUE):
        for second in (x.conjunction((equal, null)), equal, x.conjunction((one, equal))):
            written = x.disjunction((x.conjunction((equal, first)), second))
            assert indexable(written) != written
            assert table.selected(indexable(written)) == table.selected(written)
