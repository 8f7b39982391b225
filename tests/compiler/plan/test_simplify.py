"""Simplification keeps the meaning, terminates, and leaves no NOT.

Four kinds of evidence: a fixture for each rule; every small formula, judged by a three-valued
evaluation that shares no line with the pass; random larger ones; and DuckDB on rows with NULLs.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import pytest

from seustream.compiler.language import expressions as x
from seustream.compiler.language.types import BOOLEAN, INT
from seustream.compiler.plan.simplify import simplify
from seustream.hdl.isa import Condition
from tests.compiler.plan.cases import Case, cases, compiled
from tests.compiler.plan.judge import Judge
from tests.compiler.plan.random_formulas import A, B, N, equals, random_formula
from tests.compiler.plan.three_valued import Table

CASES = cases("simplify")


def bound(condition: str) -> x.Expression:
    return compiled(condition, stop_after="tree").written.queries[0].where


# --- rules --------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=str)
def test_rule(case: Case) -> None:
    (before,), (after,) = case.before, case.after
    simplified = simplify(bound(before))
    assert x.show(simplified) == after
    assert simplify(simplified) == simplified
    assert compiled(before, stop_after="predicate").program.queries[0].where == simplified


def test_rules_select_the_same_rows_in_duckdb() -> None:
    judge = Judge(random.Random(1))
    differing = judge.differing([(case.before[0], case.after[0]) for case in CASES])
    assert [CASES[position].title for position in differing] == []


def test_faults_of_constants_stay_and_count_where_they_are_evaluated() -> None:
    for condition in ("R.a = mod(5, 0)", "R.a = CAST('x' AS int)", "R.a = abs(mod(5, 0))"):
        assert x.show(simplify(bound(condition))) == condition


def test_the_judge_can_tell_conditions_apart() -> None:
    judge = Judge(random.Random(1))
    assert judge.differing([("R.a = 1", "R.a <> 1"), ("TRUE", "TRUE"), ("R.a = 1", "R.b = 1")]) == [
        0,
        2,
    ]


def test_excluded_middle_is_not_true_where_null_may_stand() -> None:
    """The textbook rule A OR NOT A = TRUE would select rows that no comparison selects."""
    judge = Judge(random.Random(2))
    for condition in ("R.a = 1 OR NOT R.a = 1", "R.a < S.d OR NOT R.a < S.d"):
        simplified = x.show(simplify(bound(condition)))
        everything = judge.selected("TRUE")
        assert 0 < judge.selected(condition) < everything
        assert judge.selected(simplified) == judge.selected(condition)
    assert judge.selected("R.n = 1 OR NOT R.n = 1") == judge.selected("TRUE")
    assert simplify(bound("R.n = 1 OR NOT R.n = 1")) == x.TRUE


# --- every small formula ------------------------------------------------------


LEAVES: tuple[x.Expression, ...] = (equals(A, 1), equals(B, 1), equals(N, 1), x.TRUE, x.FALSE)
MAYBE = (None, 0, 1)
ROWS = [{(0, "a"): a, (0, "b"): b, (0, "n"): n} for a in MAYBE for b in MAYBE for n in (0, 1)]


def formulas(leaves: int) -> Iterator[x.Expression]:
    """Yields every formula with so many leaves, with and without NOT at every node."""
    if leaves == 1:
        plain = iter(LEAVES)
    else:
        plain = (
            connective((left, right))
            for split in range(1, leaves)
            for left in formulas(split)
            for right in formulas(leaves - split)
            for connective in (x.And, x.Or)
        )
    for formula in plain:
        yield formula
        yield x.Not(formula)


def check(formula: x.Expression, table: Table) -> x.Expression:
    simplified = simplify(formula)
    assert table.selected(simplified) == table.selected(formula), x.show(formula)
    assert simplify(simplified) == simplified, x.show(formula)
    assert not any(isinstance(part, x.Not) for part in x.walk(simplified)), x.show(formula)
    return simplified


@pytest.mark.parametrize("leaves", [1, 2, 3])
def test_every_small_formula(leaves: int) -> None:
    table = Table(ROWS)
    count = sum(1 for formula in formulas(leaves) if check(formula, table))
    assert count == {1: 10, 2: 400, 3: 32_000}[leaves]


def test_every_condition_and_its_opposite() -> None:
    """Combines all six comparisons of two columns, on all values around equality and NULL."""
    rows = [{(0, "a"): a, (0, "b"): b} for a in (None, 0, 1, 2) for b in (None, 0, 1, 2)]
    table = Table(rows)
    conditions = [condition for condition in Condition if condition <= Condition.NE]
    assert len(conditions) == 6
    leaves = [x.Compare(c, p, q, INT) for c in conditions for p, q in ((A, B), (B, A))]
    for leaf in leaves:
        check(x.Not(leaf), table)
    for left, right in itertools.product(leaves, leaves):
        for formula in (x.And((left, right)), x.Or((left, right)), x.And((left, x.Not(right)))):
            check(formula, table)


def test_push_not_is_the_opposite() -> None:
    table = Table(ROWS)
    for formula in formulas(2):
        true, false = table.sets(formula)
        assert table.sets(x.push_not(formula)) == (true, false)
        assert table.sets(x.push_not(formula, negated=True)) == (false, true)


# --- random formulas ----------------------------------------------------------


def test_random_formulas() -> None:
    chance = random.Random(20060301)
    values = {"a": (None, 0, 1, 2), "b": (None, 1, 2), "s": (None, "ab", "b"), "n": (1, 2)}
    rows = [
        {
            **{(0, name): chance.choice(of) for name, of in values.items()},
            (1, "k"): chance.choice((0, 1, 2)),
            (1, "d"): chance.choice((None, 1, 2)),
        }
        for _ in range(60)
    ]
    table = Table(rows)
    smaller = 0
    for _ in range(1500):
        before = random_formula(chance, 4)
        after = check(before, table)
        smaller += sum(1 for _ in x.walk(after)) < sum(1 for _ in x.walk(before))
    assert smaller > 1000


def test_random_formulas_in_duckdb() -> None:
    chance = random.Random(42)
    judge = Judge(chance)
    pairs = []
    for _ in range(300):
        before = random_formula(chance, 3)
        pairs.append((x.show(before), x.show(simplify(before))))
    differing = [pairs[i] for start in range(0, 300, 60)
                 for i in (start + d for d in judge.differing(pairs[start : start + 60]))]  # fmt: skip
    assert differing == []


# --- size ---------------------------------------------------------------------


@pytest.mark.parametrize("connective", [x.And, x.Or])
def test_many_terms_stay_as_they_are(connective: type[x.And] | type[x.Or]) -> None:
    terms = tuple(equals(A, number) for number in range(5_000))
    simplified = simplify(connective(terms))
    assert isinstance(simplified, connective)
    assert simplified.terms == terms


def test_a_boolean_operand_of_a_comparison_is_left_alone() -> None:
    """NOT stays where it is a value rather than a condition."""
    inner = x.Not(x.And((equals(A, 1), equals(B, 1))))
    outer = x.Compare(Condition.EQ, inner, x.FALSE, BOOLEAN)
    assert simplify(outer) == outer
    assert simplify(x.Not(outer)) == x.Compare(Condition.NE, inner, x.FALSE, BOOLEAN)


def test_a_condition_that_is_compared_with_true_is_that_condition() -> None:
    inner = x.Not(x.And((equals(A, 1), equals(B, 1))))
    outer = x.Compare(Condition.EQ, inner, x.TRUE, BOOLEAN)
    assert x.show(simplify(outer)) == "R.a <> 1 OR R.b <> 1"
    assert simplify(x.Not(outer)) == x.Compare(Condition.NE, inner, x.TRUE, BOOLEAN)
