"""Resolves items of SELECT that GROUP BY and ORDER BY refer to by number or by new name.

before  SELECT k + 1 AS n, count(*) FROM R GROUP BY n      SELECT a, count(*) FROM R GROUP BY 1
after   … GROUP BY k + 1                                   … GROUP BY a
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from seustream.compiler.errors import Problems, Span
from seustream.compiler.language import syntax
from seustream.compiler.logical.program import Source
from seustream.compiler.xsql import tree


def spelt_out(select: tree.Select, sources: Sequence[Source], problems: Problems) -> tree.Select:
    """Replaces references in GROUP BY and ORDER BY by the items themselves. In GROUP BY a column of
    a stream takes precedence over an item of its name, as in PostgreSQL."""

    def meant(e: syntax.Expression, clause: str) -> syntax.Expression:
        if isinstance(e, syntax.Constant) and type(e.value) is int:
            return _numbered(e, e.value, select, clause, problems)
        if clause != "GROUP BY" or not isinstance(e, syntax.Reference) or len(e.parts) != 1:
            return e  # an ORDER BY sees the names of the result anyway
        name = e.path[0].lower()
        if any(source.stream.column(name) or source.stream.unknown for source in sources):
            return e
        named = (i for i in select.items if i.alias is not None and i.alias.text.lower() == name)
        item = next(named, None)
        return e if item is None else item.expression

    return replace(
        select,
        group_by=tuple(meant(e, "GROUP BY") for e in select.group_by),
        order_by=tuple(
            replace(key, expression=meant(key.expression, "ORDER BY")) for key in select.order_by
        ),
    )


def _numbered(
    e: syntax.Constant, number: int, select: tree.Select, clause: str, problems: Problems
) -> syntax.Expression:
    if not select.stars and 1 <= number <= len(select.items):
        return select.items[number - 1].expression
    no_item(number, select, e.span, clause, problems)
    return e


def no_item(number: int, select: tree.Select, at: Span, clause: str, problems: Problems) -> None:
    """Reports a number that names no item of a SELECT."""
    said = f"SELECT has no item {number}"
    if select.stars:
        said = "a number names an item of SELECT, and * is several columns"
    problems.add("no-such-item", said, at, f"write the columns in {clause} by their names")
