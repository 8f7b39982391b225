"""Builds the syntax trees of the windows in a WINDOW clause."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lark import Token
from lark.tree import Meta
from lark.visitors import v_args

from seustream.compiler.language.parse import (
    ExpressionBuilder,
    span_of,
    token_name,
    whole_number,
)
from seustream.compiler.xsql import tree


@v_args(meta=True)
class WindowBuilder(ExpressionBuilder):
    """Builds the nodes of windows, one method per grammar rule."""

    def window_size(self, meta: Meta, c: list[Any]) -> int | float:
        sign, number = c
        value = whole_number(number) if number.type == "INTEGER" else float(number)
        return -value if sign == "-" else value

    def range_window(self, meta: Meta, c: list[Any]) -> tree.WindowClause:
        unit = None if c[1] is None else token_name(c[1])
        return tree.WindowClause("range", c[0], unit, span_of(meta))

    def rows_window(self, meta: Meta, c: list[Any]) -> tree.WindowClause:
        return tree.WindowClause("rows", c[0], None, span_of(meta))

    def slide_window(self, meta: Meta, c: list[Any]) -> tree.WindowClause:
        window: tree.WindowClause = c[0]
        _, size, unit = c
        of = None if unit is None else token_name(unit)
        kind = "rows" if window.kind == "rows" else "range"
        slide = tree.WindowClause(kind, size, of, span_of(meta))
        return replace(window, slide=slide, span=span_of(meta))

    def partition_window(self, meta: Meta, c: list[Any]) -> tree.WindowClause:
        return tree.WindowClause("partition", c[-1], None, span_of(meta), keys=tuple(c[:-1]))

    def since_window(self, meta: Meta, c: list[Token]) -> tree.WindowClause:
        text = str(c[0])
        since = whole_number(c[0]) if c[0].type == "INTEGER" else text[1:-1]
        return tree.WindowClause("since", None, None, span_of(meta), since=since)

    def every_window(self, meta: Meta, c: list[Any]) -> tree.WindowClause:
        number, unit = c
        size = 1 if number is None else whole_number(number)
        return tree.WindowClause("every", size, token_name(unit), span_of(meta))

    def now_window(self, meta: Meta, c: list[Any]) -> tree.WindowClause:
        return tree.WindowClause("now", None, None, span_of(meta))

    def unbounded_window(self, meta: Meta, c: list[Any]) -> tree.WindowClause:
        return tree.WindowClause("unbounded", None, None, span_of(meta))
