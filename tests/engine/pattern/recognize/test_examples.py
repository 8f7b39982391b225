"""Examples that the documentation of Flink SQL and Trino publishes, and cases worked by hand."""

from __future__ import annotations

import pytest

from seustream.engine.pattern.errors import SkipStuck
from tests.engine.pattern.recognize.ticker import run


def test_flink_a_price_falls_and_rises() -> None:
    found = run(
        "MEASURES START_ROW.ts AS start, LAST(PRICE_DOWN.ts) AS bottom, LAST(PRICE_UP.ts) AS stop"
        " ONE ROW PER MATCH AFTER MATCH SKIP TO LAST PRICE_UP"
        " PATTERN (START_ROW PRICE_DOWN+ PRICE_UP) DEFINE PRICE_DOWN AS"
        " (LAST(PRICE_DOWN.price, 1) IS NULL AND PRICE_DOWN.price < START_ROW.price)"
        " OR PRICE_DOWN.price < LAST(PRICE_DOWN.price, 1),"
        " PRICE_UP AS PRICE_UP.price > LAST(PRICE_DOWN.price, 1)",
        [12, 17, 19, 21, 25, 18, 15, 14, 24, 25, 19],
    )
    assert found == [{"start": 4, "bottom": 7, "stop": 8}]


def test_flink_as_long_as_the_mean_is_below() -> None:
    found = run(
        "MEASURES FIRST(A.ts) AS start, LAST(A.ts) AS stop, AVG(A.price) AS mean"
        " ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW PATTERN (A+ B)"
        " DEFINE A AS AVG(A.price) < 15",
        [12, 17, 13, 16, 25, 2, 4, 10, 15, 25, 25, 30],
    )
    assert found == [
        {"start": 0, "stop": 3, "mean": 14.5},
        {"start": 5, "stop": 10, "mean": 13.5},
    ]


@pytest.mark.parametrize(("sign", "want"), [("*", [16]), ("*?", [13, 16])])
def test_flink_greedy_and_reluctant(sign: str, want: list[int]) -> None:
    found = run(
        f"MEASURES C.price AS last_price PATTERN (A B{sign} C)"
        " DEFINE A AS A.price > 10, B AS B.price < 15, C AS C.price > 12",
        [10, 11, 12, 13, 14, 16],
    )
    assert [row["last_price"] for row in found] == want


def test_trino_permute_prefers_the_order_written() -> None:
    inside = "ALL ROWS PER MATCH PATTERN (PERMUTE(B, A, C)) DEFINE A AS price = 1"
    found = run("MEASURES CLASSIFIER() AS label " + inside, [5, 5, 1])
    assert [row["label"] for row in found] == ["B", "C", "A"]


PRICES = [10, 8, 7, 9, 11, 6, 5, 9]
V = (
    "MEASURES FIRST(S.ts) AS a, LAST(U.ts) AS b AFTER MATCH SKIP {} PATTERN (S D+ U+)"
    " DEFINE D AS D.price < PREV(D.price), U AS U.price > PREV(U.price)"
)


@pytest.mark.parametrize(
    ("skip", "want"),
    [
        ("PAST LAST ROW", [(0, 4), (5, 7)]),
        ("TO NEXT ROW", [(0, 4), (1, 4), (4, 7), (5, 7)]),
        ("TO FIRST U", [(0, 4), (4, 7)]),
        ("TO LAST D", [(0, 4), (4, 7)]),
    ],
)
@pytest.mark.parametrize("cuts", [(), (1, 3, 4), tuple(range(9))])
def test_skipping(skip: str, want: list[tuple[int, int]], cuts: tuple[int, ...]) -> None:
    assert [(row["a"], row["b"]) for row in run(V.format(skip), list(PRICES), cuts)] == want


@pytest.mark.parametrize("skip", ["TO FIRST S", "TO LAST Q"])
def test_skipping_nowhere_is_an_error(skip: str) -> None:
    with pytest.raises(SkipStuck, match=r"SKIP TO (FIRST S|LAST Q)"):
        run(V.format(skip).replace("U+)", "U+ Q?)"), list(PRICES))


def test_long_dead_ends_are_tried_once() -> None:
    """Every way to divide the rows between A and B fails; without a memory there are 2^200."""
    found = run("MEASURES 1 AS one PATTERN ((A | B)* C) DEFINE C AS price > 5", [1] * 200)
    assert found == []
