"""The columns of a pattern's result, and the stream they form."""

from __future__ import annotations

import pytest

from seustream.compiler.errors import Problems
from seustream.compiler.language import expressions as x
from seustream.compiler.pattern.fields import fields, stream_of
from tests.compiler.pattern.queries import query


def test_names_of_columns() -> None:
    text = (
        "PATTERN A x; B+ k; A y WITHIN 1 s"
        " RETURN x, k.price, x.price, last(k).price, count(k), y.volume AS v, y.ts"
    )
    names = [output.name for output in query(text).outputs]
    assert names == ["x", "price", "price_2", "price_3", "c5", "v", "ts"]
    each = [output.each for output in query(text).outputs]
    assert each == [None, 1, None, None, None, None, None]


def columns(text: str) -> list[tuple[str, str, int | None]]:
    return [(name, x.show(e), each) for name, e, each in fields(query(text))]


def test_a_whole_event_is_its_time_and_its_attributes() -> None:
    assert columns("PATTERN A; B+ k WITHIN 1 s RETURN A, k, first(k) AS f") == [
        ("a_ts", "a.ts", None), ("a_type", "a.type", None), ("a_price", "a.price", None),
        ("a_volume", "a.volume", None),
        ("k_ts", "k[i].ts", 1), ("k_type", "k[i].type", 1), ("k_price", "k[i].price", 1),
        ("k_volume", "k[i].volume", 1),
        ("f_ts", "k[1].ts", None), ("f_type", "k[1].type", None), ("f_price", "k[1].price", None),
        ("f_volume", "k[1].volume", None),
    ]  # fmt: skip


def test_names_of_columns_are_free_in_any_case() -> None:
    names = [
        name
        for name, *_ in columns(
            "PATTERN A; B WITHIN 1 s RETURN A.price, B.price AS Price, B.price AS x"
        )
    ]
    assert names == ["price", "Price_2", "x"]


@pytest.mark.parametrize(
    ("returned", "kind", "hint"),
    [
        ("k.price", "P015", "return count, first or last of the group"),
        ("a.ts", "duplicate-name", "name it with AS"),
        ("a.price", None, ""),
        ("count(k) AS n", None, ""),
    ],
)
def test_a_stream_of_matches_has_one_value_a_column(
    returned: str, kind: str | None, hint: str
) -> None:
    problems = Problems()
    found = stream_of("D", query(f"PATTERN A; B+ k WITHIN 1 s RETURN {returned}"), problems)
    assert found.name == "D"
    assert [problem.kind for problem in problems.found] == ([kind] if kind else [])
    assert all(hint in (problem.hint or "") for problem in problems.found)
