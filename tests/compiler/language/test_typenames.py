"""Type names with their lengths and digits."""

from __future__ import annotations

import pytest

from seustream.compiler.errors import Problems, Span
from seustream.compiler.language import syntax as s
from seustream.compiler.language import types as t
from seustream.compiler.language.typenames import bind_type


def bound(text: str, *numbers: int, codes: dict[str, str] | None = None) -> tuple[t.Type, Problems]:
    problems = Problems()
    return bind_type(s.TypeName(text, numbers, Span(3, 7)), problems, codes), problems


@pytest.mark.parametrize(
    ("text", "numbers", "want"),
    [
        ("int", (), t.INT), ("varchar", (9,), t.Type(t.Kind.VARCHAR, 9)),
        ("decimal", (10, 2), t.decimal(10, 2)), ("decimal", (5,), t.decimal(5, 0)),
        ("decimal", (38, 38), t.decimal(38, 38)),
    ],
)  # fmt: skip
def test_types_by_name(text: str, numbers: tuple[int, ...], want: t.Type) -> None:
    found, problems = bound(text, *numbers)
    assert (found, problems.found) == (want, [])


@pytest.mark.parametrize(
    ("text", "numbers", "code", "hint"),
    [
        ("itn", (), "unknown-type", "int"), ("int", (4,), "type-length", "write int"),
        ("varchar", (0,), "type-length", "1"), ("varchar", (1, 2), "type-length", "varchar"),
        ("decimal", (39,), "type-length", "38"), ("decimal", (0,), "type-length", "38"),
        ("decimal", (3, 4), "type-length", "after the point"),
        ("decimal", (3, 1, 1), "type-length", "after the point"),
    ],
)  # fmt: skip
def test_types_that_are_none(text: str, numbers: tuple[int, ...], code: str, hint: str) -> None:
    found, problems = bound(text, *numbers)
    assert found == t.ERROR
    (problem,) = problems.found
    assert (problem.kind, problem.span) == (code, Span(3, 7))
    assert hint in str(problem.hint)


def test_a_numbered_code_of_a_language_begins_the_message() -> None:
    _, problems = bound("itn", codes={"unknown-type": "P030"})
    assert problems.found[0].kind == "P030"
    assert problems.found[0].message.startswith("P030 there is no type")
