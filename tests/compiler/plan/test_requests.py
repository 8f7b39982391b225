"""The join request table: numbers of factors, selections and attributes."""

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


def bits_and_masks(*conditions: str, more: str = "") -> tuple[list[int], tuple[int, ...], int]:
    """For queries over R with one condition each, returns the comparisons of each selection bit,
    the admission masks, and the rows of the table."""
    queries = "".join(f"SELECT a FROM R WHERE {condition} WINDOW NOW;" for condition in conditions)
    c = compiled_all(queries + more)
    bits = [len(selection.comparisons) for selection in c.tables.selections[0]]
    places = c.options.config.selectors
    return bits, c.tables.admission[0], c.tables.selection_entries(0, places) // places


def test_tests_of_one_stream_have_bits_of_their_own_while_there_are_some() -> None:
    three = "a > 1 AND b < 3 AND c = {0}"
    assert bits_and_masks(three.format(1)) == ([1, 1, 1], (1,), 1)
    # The twelve conditions share two tests.
    bits, masks, rows = bits_and_masks(*map(three.format, range(12)))
    assert (len(bits), {*bits}, masks, rows) == (14, {1}, (1,), 1)
    # Fourteen do not fit: a bit for each test would take sixteen bits.
    bits, masks, rows = bits_and_masks(*map(three.format, range(14)))
    assert (len(bits), rows) == (15, 2)
    bits, masks, rows = bits_and_masks(*map(three.format, range(15)))
    assert (bits, len(masks), rows) == ([3] * 15, 15, 3)


def test_what_a_join_stores_is_admitted_by_whole_masks() -> None:
    join = "SELECT R.a FROM R, S WHERE R.a = S.d AND R.b > 7 AND R.c > 7 WINDOW ROWS 9;"
    bits, masks, rows = bits_and_masks("a > 1 AND b < 3 AND c = 1", more=join)
    assert (sorted(bits), len(masks)) == ([2, 3], 2)
    assert rows == 3
    bits, masks, rows = bits_and_masks("b < 3 AND c = 1", more=join.replace(" AND R.c > 7", ""))
    assert (bits, masks, rows) == ([1, 2], (1, 2), 2)
