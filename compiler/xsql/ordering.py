"""ORDER BY and LIMIT after DISTINCT and UNION, which apply to the whole result.

before  SELECT a FROM R UNION ALL SELECT k FROM S ORDER BY a LIMIT 3
after   SELECT * FROM (SELECT a FROM R UNION ALL SELECT k FROM S) ORDER BY a LIMIT 3
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from seustream.compiler.errors import Problems, Span
from seustream.compiler.language.exact import HIGH
from seustream.compiler.language.syntax import Constant, Expression, Name, Reference
from seustream.compiler.xsql import periods, tree
from seustream.compiler.xsql.naming import name_of


def around(
    query: tree.Select | tree.UnionClause, text: Callable[[Span], str]
) -> tree.Select | None:
    """Returns the query that orders this one's result, if it has an order. In a union of windows'
    groups, each branch orders its own, window by window. `text` returns the source text at a place."""
    union = isinstance(query, tree.UnionClause)
    last = query.second if isinstance(query, tree.UnionClause) else query
    first = query
    while isinstance(first, tree.UnionClause):
        first = first.first
    ordered = bool(last.order_by) or last.limit is not None
    if not ordered or not (union or last.distinct) or (union and _of_windows(first)):
        return None
    bare = replace(last, order_by=(), limit=None)
    inner = replace(query, second=bare) if isinstance(query, tree.UnionClause) else bare
    at = query.span
    names = [name_of(item, text) for item in first.items]
    keys = tuple(
        replace(k, expression=_named(k.expression, first.items, names)) for k in last.order_by
    )
    whole = tree.SelectItem(Reference((), at, everything=True), None, at)
    source = tree.FromItem(Name("(ORDER BY)", at), Name("subquery", at), at, query=inner)
    return tree.Select(
        (whole,), (source,), None, (), None, (), (), at, order_by=keys, limit=last.limit
    )


def limit_of(select: tree.Select, problems: Problems) -> int | None:
    """Returns the number of rows that LIMIT asks for; reports one that no row number reaches."""
    if select.limit is None:
        return None
    number, at = select.limit
    if number > HIGH:
        hint = "leave LIMIT out to have all rows"
        problems.add("constant-range", "a LIMIT is at most 2^63 - 1 rows", at, hint)
    return min(number, HIGH)


def _of_windows(select: tree.Select) -> bool:
    items = tree.from_items(select.sources)
    return any(map(periods.is_window, select.group_by)) or any(i.windows is not None for i in items)


def _named(e: Expression, items: Sequence[tree.SelectItem], names: Sequence[Name]) -> Expression:
    """Returns a key of the order by its name in the result, if it is the name, the column or the
    number of a SELECT item; the name takes precedence."""
    if isinstance(e, Reference) and any(
        _alike(e.parts, [name]) for name in names if len(e.parts) == 1
    ):
        return e
    for number, (item, name) in enumerate(zip(items, names, strict=True), start=1):
        of = item.expression
        same = isinstance(e, Reference) and isinstance(of, Reference) and _alike(e.parts, of.parts)
        counted = isinstance(e, Constant) and type(e.value) is int and e.value == number
        if not tree.is_star(of) and (same or counted):
            return Reference((replace(name, span=e.span),), e.span)
    return e


def _alike(one: Sequence[Name], other: Sequence[Name]) -> bool:
    """Returns whether two names mean the same column; one of them may omit its stream."""
    both = zip(reversed(one), reversed(other), strict=False)
    return all(a.text.lower() == b.text.lower() for a, b in both)
