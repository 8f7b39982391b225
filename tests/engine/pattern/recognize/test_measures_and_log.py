"""The rows that a match gives, and rows in no match: examples that Trino publishes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine.pattern.recognize.ticker import run

FALLING = (
    "MEASURES MATCH_NUMBER() AS match, RUNNING LAST(price) AS val, CLASSIFIER() AS label"
    " {} AFTER MATCH SKIP PAST LAST ROW PATTERN ({}) DEFINE B AS B.price < PREV(B.price)"
)


def brief(found: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(row["ts"], row["match"], row["val"], row["label"]) for row in found]


def test_trino_all_rows() -> None:
    found = run(FALLING.format("ALL ROWS PER MATCH", "A B+"), [90, 80, 70, 70])
    assert brief(found) == [(0, 1, 90, "A"), (1, 1, 80, "B"), (2, 1, 70, "B")]
    assert list(found[0]) == ["ts", "match", "val", "label", "price"]


def test_trino_unmatched_rows() -> None:
    found = run(FALLING.format("ALL ROWS PER MATCH WITH UNMATCHED ROWS", "A B+"), [90, 80, 70, 70])
    assert brief(found)[3:] == [(3, None, None, None)]


@pytest.mark.parametrize(
    ("rows", "want"),
    [
        (
            "ALL ROWS PER MATCH",
            [(0, 1, None, None), (1, 2, 80, "B"), (2, 2, 70, "B"), (3, 3, None, None)],
        ),
        ("ALL ROWS PER MATCH OMIT EMPTY MATCHES", [(1, 2, 80, "B"), (2, 2, 70, "B")]),
    ],
)
def test_trino_empty_matches(rows: str, want: list[tuple[Any, ...]]) -> None:
    assert brief(run(FALLING.format(rows, "B*"), [90, 80, 70, 70])) == want


def test_trino_exclusion() -> None:
    found = run(FALLING.format("ALL ROWS PER MATCH", "A {- B+ -} C"), [90, 80, 70, 70])
    assert brief(found) == [(0, 1, 90, "A"), (3, 1, 70, "C")]
