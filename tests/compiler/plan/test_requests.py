"""The join request table: numbers for factors, selections and attributes."""

from __future__ import annotations

import pytest

from seustream.compiler.plan.divide import Attribute
from tests.compiler.plan.cases import Case, cases, compiled_all
from tests.compiler.plan.shown import Shower


@pytest.mark.parametrize("case", cases("requests"), ids=str)
def test_case(case: Case) -> None:
    c = compiled_all("\n".join(case.before))
    assert Shower(c.layout).requests(c.requests) == list(case.after)


def test_a_row_asks_for_the_leaves_of_its_subquery() -> None:
    c = compiled_all(
        "SELECT * FROM R, S, T WHERE (R.a = S.d OR R.b = T.f) AND S.e = T.g AND R.c > 5"
        " AND T.f < 3 WINDOW 5"
    )
    for row, subquery in zip(c.requests.rows, c.subqueries, strict=True):
        assert row.subquery is subquery
        assert row.slots == subquery.slots
        leaves = {c.requests.factors[number] for number in row.factors}
        leaves |= {c.requests.selections[slot][bit] for slot, bit in row.selections}  # type: ignore[arg-type]
        assert leaves == set(subquery.leaves)


def test_an_attribute_has_its_number() -> None:
    c = compiled_all("SELECT * FROM R, S WHERE R.c = S.e AND R.a > 5 WINDOW 5")
    assert c.requests.attribute(Attribute(0, "a")) == 0
    assert c.requests.attribute(Attribute(0, "c")) == 1
    assert c.requests.attribute(Attribute(1, "e")) == 0
