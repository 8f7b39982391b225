"""Expressions by themselves, bound over typed columns: the smallest language on the shared core."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from lark import Token
from lark.tree import Meta
from lark.visitors import v_args

from seustream.compiler.errors import Problems
from seustream.compiler.language import expressions as x
from seustream.compiler.language import syntax as s
from seustream.compiler.language.bind import FAILED, Binder, ParameterValue
from seustream.compiler.language.parse import ExpressionBuilder, parser, span_of, token_name
from seustream.compiler.language.types import NAMES, Type, decimal


@v_args(meta=True)
class _Builder(ExpressionBuilder):
    def start(self, meta: Meta, c: list[Any]) -> s.Expression:
        return c[0]

    def reference(self, meta: Meta, c: list[Token]) -> s.Reference:
        return s.Reference((token_name(c[0]),), span_of(meta))


class PlainScope:
    """Resolves columns by name."""

    codes: Mapping[str, str] = {}
    within = "an expression"
    functions: Iterable[str] = ()

    def __init__(
        self,
        columns: Mapping[str, Type],
        parameters: Mapping[str, ParameterValue] | None = None,
        aggregates: bool | str = False,
    ) -> None:
        self.columns, self.parameters, self.aggregates = columns, parameters or {}, aggregates

    def reference(self, e: s.Reference, binder: Binder) -> x.Expression:
        name = e.parts[0].text
        if name not in self.columns:
            return binder.fail("unknown-column", f"there is no column {name}", e.span, None)
        return x.ColumnReference(0, name, self.columns[name], True, "R")

    def call(self, e: s.FunctionCall, binder: Binder) -> x.Expression | None:
        return None

    def special(self, e: s.Expression, binder: Binder) -> x.Expression:
        raise AssertionError(e)


def type_named(text: str) -> Type:
    """Returns a type by its name: `decimal(10,2)`, `char(3)`."""
    name, _, numbers = text.removesuffix(")").partition("(")
    of = NAMES[name]
    if not numbers:
        return of
    length, *scale = map(int, numbers.split(","))
    return decimal(length, *scale) if of.is_decimal else Type(of.kind, length)


def parse(text: str) -> s.Expression:
    """Returns the syntax tree of an expression."""
    tree = parser(Path(__file__).with_name("plain.lark")).parse(text)
    return _Builder().transform(tree)


def bind(
    text: str,
    columns: Mapping[str, Type] | None = None,
    parameters: Mapping[str, ParameterValue] | None = None,
    aggregates: bool | str = False,
) -> x.Expression | Problems:
    """Returns the bound expression, or the problems in it."""
    problems = Problems()
    bound = Binder(PlainScope(columns or {}, parameters, aggregates), problems).value(parse(text))
    return problems if problems.found or bound is FAILED else bound
