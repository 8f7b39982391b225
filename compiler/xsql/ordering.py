"""ORDER BY and LIMIT after DISTINCT and UNION, which apply to the whole result.

before  SELECT a FROM R UNION ALL SELECT k FROM S ORDER BY a LIMIT 3
after   SELECT a FROM (SELECT a FROM R UNION ALL SELECT k FROM S) ORDER BY a LIMIT 3
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from seustream.compiler.errors import Problems
from seustream.compiler.language.exact import HIGH
from seustream.compiler.language.syntax import Constant, Expression, Name, Reference
from seustream.compiler.xsql import periods, tree
from seustream.compiler.xsql.places import no_item


def apart(
    query: tree.Select | tree.UnionClause,
) -> tuple[tree.Select | tree.UnionClause, tree.Select] | None:
    """Returns a query without its order, and the SELECT around it, still without what it selects; None
    if it has no order. In a union of windows' groups, each branch orders its own, window by window.
    EMIT CHANGES of a UNION ALL is that of the order."""
    union = isinstance(query, tree.UnionClause)
    last = query.second if isinstance(query, tree.UnionClause) else query
    ordered = bool(last.order_by) or last.limit is not None
    if not ordered or not (union or last.distinct) or (union and _of_windows(first_of(query))):
        return None
    bare, changes = replace(last, order_by=(), limit=None), None
    inner: tree.Select | tree.UnionClause = bare
    if isinstance(query, tree.UnionClause):
        inner = replace(query, second=bare)
        if not query.distinct:
            parts = [of for of in branches_of(inner) if isinstance(of, tree.Select)]
            changes = next((of.changes for of in parts if of.changes is not None), None)
            inner = _unchanging(inner)
    outer = tree.Select(
        (), (), None, (), None, (), (), query.span, limit=last.limit, changes=changes
    )
    return inner, outer


def first_of(query: tree.Select | tree.UnionClause) -> tree.Select:
    """Returns the first SELECT of a union."""
    while isinstance(query, tree.UnionClause):
        query = query.first
    return query


def branches_of(
    query: tree.Select | tree.UnionClause,
) -> Iterator[tree.Select | tree.UnionClause]:
    """Yields the parts of a union. A UNION before UNION ALL is a part by itself."""
    if isinstance(query, tree.UnionClause):
        first = query.first
        alone = isinstance(first, tree.UnionClause) and first.distinct and not query.distinct
        yield from (first,) if alone else branches_of(first)
        yield query.second
    else:
        yield query


def _unchanging(query: tree.UnionClause) -> tree.UnionClause:
    """Returns a union without EMIT CHANGES in any part."""
    first = query.first
    if isinstance(first, tree.UnionClause):
        first = _unchanging(first)
    else:
        first = replace(first, changes=None)
    return replace(query, first=first, second=replace(query.second, changes=None))


def keys(
    query: tree.Select | tree.UnionClause,
    columns: Sequence[Name],
    results: Sequence[str],
    problems: Problems,
) -> tuple[tree.OrderItem, ...]:
    """Returns the keys of a query's order over the columns of its result, which has these names."""
    last = query.second if isinstance(query, tree.UnionClause) else query
    first = first_of(query)
    return tuple(
        replace(key, expression=_named(key.expression, first, columns, results, problems))
        for key in last.order_by
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


def _named(
    e: Expression,
    first: tree.Select,
    columns: Sequence[Name],
    results: Sequence[str],
    problems: Problems,
) -> Expression:
    """Returns a key of the order by its column, if it is the name, the column or the number of a SELECT
    item; the name takes precedence."""

    def column(place: int) -> Expression:
        return Reference((replace(columns[place], span=e.span),), e.span)

    if isinstance(e, Constant) and type(e.value) is int:
        if first.stars or not 1 <= e.value <= len(columns):
            no_item(e.value, first, e.span, "ORDER BY", problems)
            return e
        return column(e.value - 1)
    if not isinstance(e, Reference) or not e.parts:
        return e
    if len(e.parts) == 1:
        for place, result in enumerate(results):
            if result.lower() == e.parts[0].text.lower():
                return column(place)
    if first.stars or len(first.items) != len(columns):
        return e
    written = [item.expression for item in first.items]
    same = [isinstance(of, Reference) and _alike(e.parts, of.parts, first) for of in written]
    return column(same.index(True)) if sum(same) == 1 else e


def _alike(key: Sequence[Name], item: Sequence[Name], select: tree.Select) -> bool:
    """Returns whether two names mean the same column of a SELECT; one of them may omit its stream. The
    stream that a key names, and an item does not, is the only one."""
    if len(key) > len(item):
        sources = tree.from_items(select.sources)
        names = [(of.alias or of.stream).text.lower() for of in sources]
        if len(key) != 2 or names != [key[0].text.lower()]:
            return False
    both = zip(reversed(key), reversed(item), strict=False)
    return all(a.text.lower() == b.text.lower() for a, b in both)
