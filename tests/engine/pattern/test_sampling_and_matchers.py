"""Samples of a stream for a query, by definition; and the operator that runs a query."""

from __future__ import annotations

import random

import pytest

from seustream.compiler.pattern.statements import compile_pattern
from seustream.engine.pattern.batch import needed, of_events
from seustream.engine.pattern.event import Event
from seustream.engine.pattern.lists import Lists
from seustream.engine.pattern.matchers import operator_of
from seustream.engine.pattern.operator import PatternOperator
from seustream.engine.pattern.recognize.operator import RowOperator
from seustream.engine.pattern.sampling import SAMPLE, constants, fitting, sample_step, share
from seustream.engine.pattern.variants import VariantsOperator
from tests.engine.pattern.stock import STOCK, query


def test_every_so_many_th_of_a_long_list() -> None:
    assert [sample_step(n) for n in (0, 1, SAMPLE, 2 * SAMPLE - 1, 10 * SAMPLE)] == [1, 1, 1, 1, 10]


EVENTS = [
    Event(
        n,
        n,
        random.Random(n).choice(["A", "B", "C", None]),
        {"price": float(n % 7), "volume": n % 5},
    )
    for n in range(120)
]


@pytest.mark.parametrize(
    ("element", "kinds", "least"),
    [("A x", {"A"}, 3), ("(A | C) x", {"A", "C"}, 3), ("ANY x", None, 3), ("Z x", set(), 3)],
)
def test_rows_that_fit_have_the_type_and_pass_the_constants(
    element: str, kinds: set[str] | None, least: int
) -> None:
    pattern = query(
        f"PATTERN {element}; B y WHERE x.price > {least} AND y.price > x.price WITHIN 9 ms RETURN *"
    )
    rows = fitting(pattern, of_events(EVENTS, needed(pattern)), constants(pattern))[0]
    assert rows.tolist() == [
        n for n, e in enumerate(EVENTS)
        if (kinds is None or e.type in kinds) and e.attrs["price"] > least
    ]  # fmt: skip


@pytest.mark.parametrize("limit", [1, 1000])
def test_the_share_of_pairs_that_pass_is_counted_within_the_window(limit: int) -> None:
    pattern = query("PATTERN A; B WHERE b.price > a.price WITHIN 9 ms RETURN *")
    batch = of_events(EVENTS, needed(pattern))
    lists = Lists(pattern, batch, fitting(pattern, batch, constants(pattern))[:2])
    pairs = [
        (a, b) for a in EVENTS for b in EVENTS
        if a.type == "A" and b.type == "B" and a.ts < b.ts <= a.ts + 9
    ]  # fmt: skip
    passed = sum(b.attrs["price"] > a.attrs["price"] for a, b in pairs)
    assert share(lists, pattern.conjuncts[0], (0, 1), limit) == (len(pairs), passed)


def test_each_language_has_its_operator() -> None:
    row = "SELECT * FROM stock MATCH_RECOGNIZE (ORDER BY ts MEASURES count(*) AS n PATTERN (A B) DEFINE A AS TRUE)"
    assert isinstance(operator_of(compile_pattern(row, STOCK, bounded=True)), RowOperator)
    plain, either = "PATTERN A; B WITHIN 1 s RETURN *", "PATTERN A; B?; C WITHIN 1 s RETURN *"
    assert isinstance(operator_of(query(plain)), PatternOperator)
    assert isinstance(operator_of(query(either)), VariantsOperator)
