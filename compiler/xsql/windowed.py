"""Rows with the windows that contain them: TUMBLE and HOP in FROM, without groups.

before  SELECT a, window_start FROM HOP(TABLE R, DESCRIPTOR(ts), 1 minute, 2 minutes)
after   q#1: SELECT *, … AS window_start, … AS window_end FROM R     for each window that a row is in
        q: SELECT a, window_start FROM (the union of these)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from seustream.compiler.errors import Problems, Span
from seustream.compiler.language import expressions as x
from seustream.compiler.language import syntax as s
from seustream.compiler.logical import program as logical
from seustream.compiler.logical.joins import JoinSide, TreeJoin
from seustream.compiler.xsql import tree
from seustream.compiler.xsql.bounds import at_most, time_of
from seustream.hdl.isa import Condition

_MOST = 64


def wanted(select: tree.Select, item: tree.FromItem) -> bool:
    """Returns whether the windows of an item of FROM are columns of its rows, not those of the
    query's groups."""
    joined = len(select.sources) > 1 or isinstance(select.sources[0], tree.JoinClause)
    return item.windows is not None and (joined or not select.group_by)


def rows_of(
    item: tree.FromItem, every: logical.Periodic, problems: Problems
) -> tree.Select | tree.UnionClause:
    """Returns the query that gives the rows of a stream, once for each window of `every` that
    contains them."""
    at, copies = item.span, -(-every.size // every.slide)
    if every.cumulates:
        said = "windows that grow are those of groups"
        problems.add("group-window", said, at, "add GROUP BY window_start, window_end")
        copies = 1
    if copies > _MOST:
        problems.add(
            "group-window",
            f"a row is in {copies} of these windows",
            at,
            f"at most {_MOST}; GROUP BY window_start, window_end has no such bound",
        )
        copies = 1
    first, *more = (_copy(item, every, number, at) for number in range(copies))
    found: tree.Select | tree.UnionClause = first
    for one in more:
        found = tree.UnionClause(found, one, at, distinct=False)
    return found


def _copy(item: tree.FromItem, every: logical.Periodic, number: int, at: Span) -> tree.Select:
    """Returns the rows with the window that began `number` slides before the latest one."""

    def sum_of(operator: str, left: s.Expression, right: int | s.Expression) -> s.Expression:
        other = s.Constant(right, at) if isinstance(right, int) else right
        return s.OperatorCall(operator, (left, other), at, at)

    def rest(e: s.Expression) -> s.Expression:
        return s.FunctionCall((s.Name("mod", at),), (e, s.Constant(every.slide, at)), at)

    time = s.Reference((item.stream, s.Name("ts", at)), at)
    # The remainder has the sign of the time; times before 1970 are negative.
    since = rest(sum_of("+", rest(sum_of("-", time, every.offset)), every.slide))
    start = sum_of("-", sum_of("-", time, since), number * every.slide)
    end = sum_of("+", start, every.size)
    where = s.ComparisonChain((">",), (end, time), at) if every.size % every.slide else None
    whole = s.Reference((), at, everything=True)
    items = (
        tree.SelectItem(whole, None, at),
        tree.SelectItem(start, s.Name("window_start", at), at),
        tree.SelectItem(end, s.Name("window_end", at), at),
    )
    source = replace(item, windows=None, partition=(), alias=None)
    return tree.Select(items, (source,), where, (), None, (), (), at)


# --- joins ----------------------------------------------------------------------


def bounded_by_windows(side: JoinSide, sources: tuple[logical.Source, ...]) -> JoinSide:
    """Adds to a tree of joins what equal windows imply about the times of their rows.

    before  L.window_end = R.window_end
    after   L.window_end = R.window_end AND L.ts - R.ts <= size AND R.ts - L.ts <= size
    """
    if isinstance(side, int):
        return side
    terms = [*x.conjuncts(side.condition), *differences(x.conjuncts(side.condition), sources)]
    made: TreeJoin = replace(
        side,
        left=bounded_by_windows(side.left, sources),
        right=bounded_by_windows(side.right, sources),
        condition=x.conjunction(tuple(terms)),
    )
    return made


def differences(
    terms: tuple[x.Expression, ...], sources: tuple[logical.Source, ...]
) -> Iterator[x.Expression]:
    """Yields the bounds on differences of times that follow from equal ends of windows."""
    for e in terms:
        if not (isinstance(e, x.Compare) and e.condition is Condition.EQ):
            continue
        one, other = _end(e.left, sources), _end(e.right, sources)
        if one is not None and other is not None:
            (i, first), (j, second) = one, other
            for late, early, most in ((i, j, second), (j, i, first)):
                yield at_most(time_of(late), time_of(early), most - 1)


def _end(e: x.Expression, sources: tuple[logical.Source, ...]) -> tuple[int, int] | None:
    """Returns the source of a column that is the end of a window, and by how much its rows precede
    it at most."""
    if not isinstance(e, x.ColumnReference) or not 0 <= e.source < len(sources):
        return None
    column = sources[e.source].stream.column(e.name)
    return None if column is None or column.ends is None else (e.source, column.ends.before)
