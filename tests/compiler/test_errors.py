"""Problems: places, carets, hints, order; and that a test covers every kind of problem."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from seustream import compiler
from seustream.compiler.errors import (
    CompileError,
    Problem,
    Problems,
    SourceText,
    Span,
    nearest,
    suggest,
)
from tests.compiler.xsql.problems import FIXTURES, mistakes

# --- places -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "offset", "place"),
    [
        ("", 0, (1, 1)),
        ("abc", 0, (1, 1)),
        ("abc", 2, (1, 3)),
        ("abc", 3, (1, 4)),
        ("a\nb", 1, (1, 2)),
        ("a\nb", 2, (2, 1)),
        ("a\n\n\nb", 4, (4, 1)),
        ("a\r\nbc", 4, (2, 2)),
        ("\ta", 1, (1, 2)),
        ("é€😀x", 3, (1, 4)),
        ("a\n", 2, (2, 1)),
    ],
)
def test_position(text: str, offset: int, place: tuple[int, int]) -> None:
    assert SourceText(text).position(offset) == place


@pytest.mark.parametrize(
    ("offset", "place"), [(0, (1, 1)), (3, (2, 2)), (5, (1, 1)), (6, (1, 2)), (8, (2, 1))]
)
def test_position_in_the_text_of_those_joined_that_has_it(
    offset: int, place: tuple[int, int]
) -> None:
    assert SourceText("a\nb;\nc", parts=(0,)).position_in_part(2) == (2, 1)
    assert SourceText("a\nb; cd\ne", parts=(0, 5)).position_in_part(offset) == place


def test_lines() -> None:
    source = SourceText("one\ntwo\r\n\nfour")
    assert [source.line(number) for number in range(1, 5)] == ["one", "two", "", "four"]


# --- rendering ----------------------------------------------------------------


def rendered(marked: str, hint: str | None = None) -> list[str]:
    """Returns the lines shown for a problem at the part in «»."""
    start, end = marked.index("«"), marked.index("»") - 1
    text = marked.replace("«", "").replace("»", "")
    return (
        SourceText(text, "f.xsql").render(Problem("k", "bad", Span(start, end), hint)).split("\n")
    )


def test_the_caret_stands_under_the_text() -> None:
    assert rendered("SELECT «oops» FROM R", "try it") == [
        "f.xsql:1:8: bad",
        "  SELECT oops FROM R",
        "         ^^^^",
        "  hint: try it",
    ]


def test_without_a_hint() -> None:
    assert rendered("«x»") == ["f.xsql:1:1: bad", "  x", "  ^"]


def test_only_its_line_is_shown() -> None:
    assert rendered("SELECT a\r\nFROM «R»\r\nWINDOW 1")[1:] == ["  FROM R", "       ^"]


def test_tabs_stay_tabs_so_that_the_caret_stands_right() -> None:
    assert rendered("\tWHERE\ta = «'x'» AND\tb")[0] == "f.xsql:1:12: bad"
    assert rendered("\tWHERE\ta = «'x'» AND\tb")[1:] == [
        "  \tWHERE\ta = 'x' AND\tb",
        "  \t     \t    ^^^",
    ]


def test_what_goes_on_is_marked_to_the_end_of_its_line() -> None:
    assert rendered("SELECT «a,\n  b» FROM R")[1:] == ["  SELECT a,", "         ^^"]


def test_nothing_at_all_has_a_caret_too() -> None:
    assert rendered("SELECT «»")[1:] == ["  SELECT ", "         ^"]
    assert rendered("«»")[1:] == ["  ", "  ^"]
    assert rendered("a\n«»")[0] == "f.xsql:2:1: bad"


# --- collections --------------------------------------------------------------


def test_problems_are_in_the_order_of_their_places() -> None:
    source = SourceText("one\ntwo", "f")
    spans = [Span(4, 7), Span(0, 3), Span(0, 1), Span(4, 5)]
    problems = [Problem("k", f"at {span.start}", span) for span in spans]
    error = CompileError(source, problems)
    assert [p.span for p in error.problems] == [Span(0, 1), Span(0, 3), Span(4, 5), Span(4, 7)]
    assert str(error).split("\n")[::3] == [
        "f:1:1: at 0",
        "f:1:1: at 0",
        "f:2:1: at 4",
        "f:2:1: at 4",
    ]


def test_problems_of_one_place_are_in_a_fixed_order() -> None:
    problems = [Problem("k", message, Span(0, 1)) for message in ("b", "a")]
    assert [p.message for p in CompileError(SourceText("x"), problems).problems] == ["a", "b"]


def test_as_json() -> None:
    error = CompileError(
        SourceText("SELECT\n oops", "f.xsql"), [Problem("k", "bad", Span(8, 12), "h")]
    )
    assert error.to_json() == [
        {
            "file": "f.xsql",
            "line": 2,
            "column": 2,
            "kind": "k",
            "message": "bad",
            "text": "oops",
            "hint": "h",
        }
    ]


def test_no_problem_is_no_error() -> None:
    problems = Problems()
    problems.raise_any(SourceText(""))
    problems.add("k", "bad", Span(0, 0))
    with pytest.raises(CompileError, match="bad"):
        problems.raise_any(SourceText(""))


# --- hints --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "known", "best"),
    [
        ("vehicleid", ["speed", "vehicleId"], "vehicleId"),
        ("VEHICLE_ID", ["speed", "vehicleId"], "vehicleId"),
        ("sped", ["speed", "xPos"], "speed"),
        ("xyz", ["speed"], None),
        ("a", [], None),
    ],
)
def test_nearest(name: str, known: list[str], best: str | None) -> None:
    assert nearest(name, known) == best


def test_suggestions() -> None:
    assert suggest("sped", ["speed", "xPos"], "columns") == "did you mean speed?"
    assert suggest("zzz", ["speed", "xPos"], "columns") == "known columns: speed, xPos"
    assert suggest("zzz", [], "streams") == "there are no streams yet"


# --- completeness -------------------------------------------------------------

TESTED_ELSEWHERE = {
    "limit": "plan/test_limits.py",
    "too-deep": "xsql/test_scope.py",
    "not-text": "xsql/test_parse.py",
    "P001": "pattern/test_mistakes.py",
    "P011": "pattern/test_mistakes.py",
    "P012": "pattern/test_mistakes.py",
    "P014": "pattern/test_mistakes.py",
    "P015": "pattern/test_mistakes.py",
}


def kinds_reported() -> Iterator[str]:
    """Yields the first argument of every call that reports a problem. Leaves out APAS: another test
    checks that its reference page has a case for each kind."""
    for path in Path(compiler.__file__).parent.rglob("*.py"):
        if "apas" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and node.args):
                continue
            called = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            called = node.func.id if isinstance(node.func, ast.Name) else called
            first = node.args[0]
            if called in ("add", "fail", "_fail", "Problem") and isinstance(first, ast.Constant):
                yield str(first.value)


def test_every_kind_of_problem_has_a_case() -> None:
    cases = {mistake.kind for fixture in FIXTURES for mistake in mistakes(fixture)}
    reported = set(kinds_reported())
    assert len(reported) > 20
    assert reported == cases | set(TESTED_ELSEWHERE)


def test_every_problem_has_a_hint() -> None:
    """Every case names a hint; the reader of cases requires one, and no call leaves it out."""
    for fixture in FIXTURES:
        assert all(mistake.hint not in ("", "None") for mistake in mistakes(fixture))
