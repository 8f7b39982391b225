"""Equalities in the place of those where NULL equals NULL; tests/compiler/plan/test_simplify.py judges
them by rows, and tests/engine/relational/test_joins.py in random trees of joins."""

from __future__ import annotations

import pytest

from seustream.compiler.language import expressions as x
from seustream.compiler.language.null_safe import as_equalities
from seustream.compiler.language.types import BOOLEAN, INT, Kind, Type
from seustream.compiler.logical.joins import JoinTree, TreeJoin
from seustream.compiler.pipeline import Options, compile_text
from tests.compiler.plan.random_formulas import A, D, K, N, is_distinct
from tests.compiler.plan.three_valued import Table

ROWS = [{(0, "a"): a, (1, "d"): d} for a in (None, 0, 1) for d in (None, 0, 1)]


@pytest.mark.parametrize("found_by", ["NOT", "<>"])
def test_it_is_true_for_the_same_rows(found_by: str) -> None:
    written = is_distinct(A, D, negated=True)
    assert isinstance(written, x.Not)
    if found_by == "<>":
        assert isinstance(written.term, x.Compare)
        of = written.term
        written = x.Compare(of.condition.negated(), of.left, of.right, of.of)
    equalities = as_equalities(written)
    assert len(x.conjuncts(equalities)) == 2
    table = Table(ROWS)
    assert table.selected(equalities) == table.selected(written)


def test_a_column_that_is_never_null_is_compared_as_it_is() -> None:
    written = is_distinct(N, K, negated=True)
    assert x.show(as_equalities(written)) == "R.n = S.k"
    assert x.show(as_equalities(is_distinct(N, D, negated=True))) == "R.n = S.d"
    assert x.show(as_equalities(written, frozenset({0}))) == "R.n = S.k"
    both = frozenset({0, 1})  # rows of both may be missing
    assert x.show(as_equalities(written, both)).startswith("(R.n IS NULL) = (S.k IS NULL) AND ")


def test_what_may_fault_is_left() -> None:
    """It would be computed twice, and its fault counted twice."""
    moved = x.Call("+", (A, x.Literal(1, INT)), (INT, INT), INT)
    for written in (is_distinct(moved, D, True), is_distinct(A, D, False)):
        assert as_equalities(written) == written


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
    assert len(x.conjuncts(as_equalities(written))) == 2


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
