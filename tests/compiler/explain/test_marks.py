from __future__ import annotations

import pytest

from seustream.compiler.explain.marks import (
    WIDTH,
    bar,
    branches,
    circled,
    printable,
    sigma,
    table,
    wrap,
)


def test_factor_marks() -> None:
    assert [circled(n) for n in (1, 2, 20, 21)] == ["①", "②", "⑳", "(21)"]


def test_selection_marks() -> None:
    assert [sigma(n) for n in (1, 10, 64)] == ["σ₁", "σ₁₀", "σ₆₄"]


@pytest.mark.parametrize(
    ("share", "drawn"),
    [
        (0, "····"),
        (0.001, "▏···"),
        (0.5, "██··"),
        (0.55, "██▎·"),
        (1, "████"),
    ],
)
def test_bar(share: float, drawn: str) -> None:
    assert bar(share, width=4) == drawn


def test_branches() -> None:
    assert branches([0, 1, 2, 2, 1, 2]) == ["", "├─ ", "│  ├─ ", "│  └─ ", "└─ ", "   └─ "]


def test_wrap_keeps_a_comparison_on_one_line() -> None:
    assert wrap("R.a = S.d AND R.b > S.e", 16) == ["R.a = S.d AND", "R.b > S.e"]


def test_wrap_cuts_what_cannot_be_kept() -> None:
    assert wrap("x" * 25, 10) == ["x" * 10, "x" * 10, "x" * 5]


def test_what_a_terminal_would_obey_is_shown_instead() -> None:
    assert printable("a\x1b[31m\x00") == "a␛[31m␀"


def test_table() -> None:
    assert table(("n", "name", "", "empty"), [(7, "a", "x", ""), (12, "b", "", "")]) == [
        "   n   name",
        "  ──   ────",
        "   7   a      x",
        "  12   b",
    ]


def test_a_table_without_rows() -> None:
    assert table(("n",), []) == ["  none"]


def test_a_wide_table_is_wrapped_between_words() -> None:
    lines = table(("a", "b"), [("word " * 30, "other " * 30)])
    assert max(map(len, lines)) <= WIDTH
    assert all(part in ("word", "other") for line in lines[2:] for part in line.split())
