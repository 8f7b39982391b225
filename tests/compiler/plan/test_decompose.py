"""Subqueries; equal ones are shared."""

from __future__ import annotations

import pytest

from tests.compiler.plan.cases import Case, cases, compiled_all
from tests.compiler.plan.shown import Shower


@pytest.mark.parametrize("case", cases("decompose"), ids=str)
def test_case(case: Case) -> None:
    c = compiled_all("\n".join(case.before))
    assert [Shower(c.layout).subquery(s) for s in c.subqueries] == list(case.after)


def test_every_query_is_the_union_of_its_subqueries() -> None:
    text = "\n".join(
        f"SELECT * FROM R, S WHERE (R.a = S.d OR R.b {symbol} S.e) AND R.c > {number}"
        f" WINDOW RANGE {window};"
        for symbol in ("=", "<")
        for number in (1, 2)
        for window in (5, 6)
    )
    c = compiled_all(text)
    assert [s.number for s in c.subqueries] == list(range(len(c.subqueries)))
    for number, one in enumerate(c.device_queries):
        mine = [set(s.leaves) for s in c.subqueries if number in s.parents]
        assert [set(term) for term in one.terms] == mine


def test_no_two_subqueries_are_the_same() -> None:
    text = "SELECT * FROM R, S WHERE R.a = S.d OR R.b = S.e OR R.c = S.d WINDOW 5;" * 3
    c = compiled_all(text)
    assert [s.parents for s in c.subqueries] == [(0, 1, 2)] * 3
