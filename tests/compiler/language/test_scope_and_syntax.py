"""Names as written, and the meaning that the scope of a language gives them."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from seustream.compiler.errors import Problems, Span
from seustream.compiler.language import expressions as x
from seustream.compiler.language import syntax as s
from seustream.compiler.language import types as t
from seustream.compiler.language.bind import Binder
from seustream.compiler.language.scope import FAILED
from tests.compiler.language.plain import PlainScope, parse

AT = Span(0, 1)


def name(*parts: str) -> tuple[s.Name, ...]:
    return tuple(s.Name(part, Span(2 * n, 2 * n + 1)) for n, part in enumerate(parts))


@pytest.mark.parametrize(
    ("e", "shown"),
    [
        (s.Reference(name("a"), AT), "a"),
        (s.Reference(name("R", "a"), AT), "R.a"),
        (s.Reference(name("cs", "x"), AT, index="i-1"), "cs[i-1].x"),
        (s.Reference(name("S", "a", "b"), AT, rooted=True), "$S.a.b"),
        (s.Reference(name("R"), AT, everything=True), "R.*"),
        (s.Reference((), AT, everything=True), "*"),
    ],
)
def test_a_reference_is_shown_as_it_is_written(e: s.Reference, shown: str) -> None:
    assert str(e) == shown
    assert e.path == tuple(part.text for part in e.parts)


def test_a_call_knows_where_its_name_stands() -> None:
    e = s.FunctionCall(name("agg", "sum"), (), Span(0, 9))
    assert (e.name, e.at) == ("agg.sum", Span(0, 3))


def test_types_are_equal_wherever_written() -> None:
    assert s.TypeName("int", (), Span(1, 2)) == s.TypeName("int", (), Span(5, 6))


class Greek(PlainScope):
    """A language with a name, a function and an error code of its own."""

    codes: ClassVar = {"unknown-column": "G007"}
    functions = ("alpha",)

    def reference(self, e: s.Reference, binder: Binder) -> x.Expression:
        if str(e) == "pi":
            return x.Literal(3, t.INT)
        return super().reference(e, binder)

    def call(self, e: s.FunctionCall, binder: Binder) -> x.Expression | None:
        if e.name == "alpha":
            return x.Cast(binder.value(e.arguments[0]), t.DOUBLE)
        return None


def bound(text: str) -> tuple[x.Expression, list[Any]]:
    problems = Problems()
    return Binder(Greek({"a": t.INT}), problems).value(parse(text)), problems.found


def test_a_scope_gives_names_and_calls_their_meaning() -> None:
    assert bound("pi + 1")[0] == bound("pi + 1")[0]
    assert x.show(bound("alpha(pi)")[0]) == "CAST(3 AS double precision)"
    assert x.show(bound("abs(a)")[0]) == "abs(R.a)", "what it does not know means the same in all"
    e, (problem) = bound("b + pi")
    assert e is FAILED
    assert problem[0].kind == "G007"
    assert bound("alfa(a)")[1][0].hint == "did you mean alpha?"
