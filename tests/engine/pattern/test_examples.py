"""The worked examples of the specification, cell by cell, with every matcher that supports them.
The number in a test's name is that of the acceptance statement."""

from __future__ import annotations

import pytest

from tests.engine.pattern.oracle import Oracle
from tests.engine.pattern.running import events_of, named
from tests.engine.pattern.stock import S_TEXT, S, agree, query

# --- 11: example M ------------------------------------------------------------

M = "a1@1 b1@2 b2@3 n1@4 c1@5 b3@6 c2@7"
FOUR = ("ANY GROUP", "ANY SUBSETS", "NEXT", "STRICT")
CELLS: dict[str, tuple[set[str] | int, ...]] = {
    "A;B+;C": ({"a1 b1 b2 c1", "a1 b1 b2 b3 c2"}, 10, {"a1 b1 b2 c1"}, 0),
    "A;B{2};C": ({"a1 b1 b2 c1", "a1 b1 b2 b3 c2"}, 5, {"a1 b1 b2 c1"}, 0),
    "A;B{3};C": ({"a1 b1 b2 b3 c2"}, 1, {"a1 b1 b2 b3 c2"}, 0),
    "A;B{2,2};C": ({"a1 b1 b2 c1"}, 4, {"a1 b1 b2 c1"}, 0),
    "A;B;C": (5, 5, {"a1 b1 c1"}, 0),
}


@pytest.mark.parametrize("sequence", CELLS)
@pytest.mark.parametrize("column", range(4))
def test_11_example_m(sequence: str, column: int) -> None:
    text = f"PATTERN {sequence} WITHIN 10 ms USING {FOUR[column]} RETURN *"
    want = CELLS[sequence][column]
    found = named(M, Oracle(query(text)).matches(events_of(M)))
    assert found == want if isinstance(want, set) else len(found) == want
    agree(text, M, found)


def test_11_three_for_c1_seven_for_c2() -> None:
    text = "PATTERN A;B+;C WITHIN 10 ms USING ANY SUBSETS RETURN *"
    found = named(M, Oracle(query(text)).matches(events_of(M)))
    assert [sum(match.endswith(c) for match in found) for c in ("c1", "c2")] == [3, 7]


def test_11_strict_without_n1() -> None:
    agree(
        "PATTERN A;B+;C WITHIN 10 ms USING STRICT RETURN *",
        M.replace(" n1@4", ""),
        {"a1 b1 b2 c1"},
    )


def test_11_groups_at_an_end() -> None:
    (match,) = agree("PATTERN A;B+ WITHIN 5 ms RETURN *", M, {"a1 b1 b2 b3"})
    assert match.D == 6
    agree("PATTERN B+;C WITHIN 3 ms RETURN *", M, {"b1 b2 c1", "b3 c2"})


# --- 12: example N ------------------------------------------------------------

N = "n0@0 a1@2 c1@4 n1@4 c2@5 a2@12 c3@13 n2@22"


@pytest.mark.parametrize(
    ("sequence", "window", "want"),
    [
        ("A;!N;C", 5, {"a1 c1", "a2 c3"}),
        ("!N;A;C", 5, {"a2 c3"}),
        ("A;C;!N", 5, {"a1 c1", "a1 c2", "a2 c3"}),
        ("A;!N;C", 10, {"a1 c1", "a2 c3"}),
        ("!N;A;C", 10, set()),
        ("A;C;!N", 10, {"a1 c1", "a1 c2"}),
    ],
)
def test_12_example_n(sequence: str, window: int, want: set[str]) -> None:
    found = agree(f"PATTERN {sequence} WITHIN {window} ms RETURN *", N, want)
    if sequence == "A;C;!N" and window == 5:
        assert next((m.ids, m.D) for m in found) == (((1,), (2,), ()), 7)
        assert found[-1].D == 17


# --- 13: example S ------------------------------------------------------------
S_MATCHES = {"a1 b1 c2 d1", "a3 b1 c2 d1", "a3 b1 c2 d2"}


def test_13_example_s() -> None:
    found = agree(S_TEXT, S, S_MATCHES)
    assert [match.D for match in found] == [9, 9, 12]
