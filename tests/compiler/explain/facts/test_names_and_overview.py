"""The figures of a compilation in words, and the record that sums up a compilation."""

from __future__ import annotations

import re

import pytest

from seustream.compiler.explain.facts.names import (
    View,
    WindowOf,
    marks,
    retention_text,
    span_text,
    window_of,
    windows_text,
)
from seustream.compiler.explain.facts.overview import overview
from seustream.compiler.explain.marks import GLUE
from seustream.hdl.device import Retention, Window, WindowKind
from tests.compiler.explain.programs import compiled


@pytest.mark.parametrize(
    ("ticks", "text"),
    [(0, "0"), (7, "7"), (1_000, "1 s"), (1_500, "1500"), (90_000, "90 s"), (60_000, "1 min"),
     (86_400_000, "1 d"), (90_000_000, "25 h")],
)  # fmt: skip
def test_ticks_are_in_the_largest_unit_that_divides_them(ticks: int, text: str) -> None:
    assert span_text(ticks) == text


def test_windows_are_named_once_if_they_are_the_same() -> None:
    some = [window_of(name, Window(WindowKind.RANGE, 5_000)) for name in "RS"]
    assert windows_text(some) == "RANGE 5 s"
    other = window_of("T", Window(WindowKind.ROWS, 3))
    assert windows_text([some[0], other]) == "R: RANGE 5 s, T: ROWS 3"
    assert window_of("R", Window(WindowKind.RANGE, 0)) == WindowOf("R", "range", 0, "NOW")


@pytest.mark.parametrize(
    ("kept", "text"),
    [
        (Retention(None, 0), "for ever"), (Retention(5_000, 0), "5 s"),
        (Retention(1_500, 2_000), "1,500 ticks or the last 2,000"), (Retention(0, 0), "this instant"),
        (Retention(-1, 3), "the last 3"), (Retention(-1, 0), "not at all"),
    ],
)  # fmt: skip
def test_how_long_rows_are_kept(kept: Retention, text: str) -> None:
    assert retention_text(kept) == text


def test_a_view_of_one_query_has_what_is_its_own() -> None:
    c = compiled("eight")
    whole, one = View(c), View(c, "Q0")
    assert (whole.name, one.name) == (None, "q0")
    assert [query.name for query in one.queries] == ["q0"]
    assert one.numbers < whole.numbers
    assert one.subqueries < whole.subqueries
    assert one.tags < whole.tags
    assert set(one.subqueries) == {s.number for s in c.subqueries if one.numbers & set(s.parents)}
    assert all(step in whole.steps for step in one.steps)
    with pytest.raises(ValueError, match=r"no query 'none'; queries: q0, "):
        View(c, "none")


def test_parts_of_an_operation_are_its_own() -> None:
    c = compiled("host alone")
    assert View(c, "derived").wants(c.program.queries[0]) == (
        c.program.queries[0].name == "derived"
    )


def test_factors_have_their_marks() -> None:
    assert marks([1, 2, 4]) == "① ② ④"
    assert marks([]) == ""


@pytest.mark.parametrize("query", [None, "q1"])
def test_the_overview_counts_what_there_is(query: str | None) -> None:
    c = compiled("eight")
    found = overview(View(c, query))
    assert found.query == query
    assert found.counts.queries == len(c.program.queries)
    assert found.counts.image_bytes == len(c.image)
    assert found.counts.shared == sum(len(s.parents) > 1 for s in c.subqueries)
    assert re.match(rf"{found.counts.queries}.queries → {found.counts.subqueries}.subqueries",
                    found.counts.chain.replace(GLUE, " "))  # fmt: skip
    assert len(found.asked.rows) == len(found.subqueries) == len(found.requests.rows)
    assert "eight" in found.title
    assert ("query q1" in found.title) == (query == "q1")
    assert all(getattr(found, section[1], None) is not None for section in found.SECTIONS)
    assert found.endless == ()


def test_state_without_bound_is_warned_of() -> None:
    found = overview(View(compiled("grouped")))
    assert found.endless
