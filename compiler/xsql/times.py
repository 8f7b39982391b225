"""Results that are times: that of their own row, and the end of the window that contains it.

before  SELECT at, window_end FROM TUMBLE(TABLE R, DESCRIPTOR(at), 1 minute)
after   `at` is the time of the stream of these rows, and each is at most a minute before its `window_end`
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from seustream.compiler.catalogue import Column, WindowEnd
from seustream.compiler.language import expressions as x
from seustream.compiler.logical import program as logical
from seustream.compiler.logical.joins import ChangeLog, JoinTree, timing
from seustream.compiler.xsql.periods import INSTANT


def ends(of: logical.Relation) -> list[WindowEnd | None]:
    """Returns for each result column the end of the row's window, if the column holds it."""
    found: list[WindowEnd | None] = []
    for e in (item.expression for item in of.items):
        column = None
        if isinstance(of, logical.OverRows | logical.PeriodGroups) and e in of.columns:
            # A rank changes with later rows; of a window, until it is over.
            later = isinstance(of, logical.RankChanges) and of.end is None
            at_once = (isinstance(of, logical.OverRows) or of.every == INSTANT) and not later
            column = of.inputs[0].columns[of.columns.index(e)] if at_once else None
        elif isinstance(of, logical.UnionAll | logical.Distinct) and isinstance(
            e, x.ColumnReference
        ):
            column = _of_every(part.column(e.name) for part in of.inputs)
        elif isinstance(of, logical.Query) and len(of.sources) == 1:
            column = of.sources[0].stream.column(getattr(e, "name", ""))
        last = None if column is None else column.ends
        if isinstance(of, logical.PeriodGroups) and e == logical.WINDOW_END:
            # The row of a group has the last instant of its window, or an earlier one in it while
            # the group grows.
            last = WindowEnd(1)
            if of.changes:
                periods = isinstance(of.every, logical.Periodic)
                last = WindowEnd(of.every.size) if periods else None  # type: ignore[union-attr]  # they have
        found.append(last)
    return found


def with_ends(columns: Sequence[Column], of: logical.Relation) -> tuple[Column, ...]:
    """Returns the columns of a relation's results, as those of a stream."""
    both = zip(columns, ends(of), strict=True)
    return tuple(replace(column, ends=last) for column, last in both)


def timed(of: logical.Relation, columns: Sequence[Column]) -> str | None:
    """Returns the column of a relation's results that has the time of the rows, if there is one."""
    found = (is_time(of, place) for place in range(len(of.items)))
    return next((column.name for column, here in zip(columns, found, strict=False) if here), None)


def is_time(of: logical.Relation, place: int) -> bool:
    """Returns whether a result is merely the time of its row."""
    e = of.items[place].expression
    if isinstance(of, logical.RankChanges | ChangeLog) or not isinstance(e, x.ColumnReference):
        return False  # a row that leaves does so later
    match of:
        case logical.Query() | JoinTree() if not of.aggregated:
            newest = [at for at, one in enumerate(of.sources) if not one.stream.table]
            newest = [*timing(of.tree, of.sources)] if isinstance(of, JoinTree) else newest
            return e.timed and newest == [e.source]
        case logical.UnionAll():
            return all(part.is_time(part.columns[place].name) for part in of.inputs)
        case logical.Distinct():
            return of.inputs[0].is_time(e.name)
        case logical.OverRows() if e in of.columns:
            (stream,) = of.inputs
            return stream.is_time(stream.columns[of.columns.index(e)].name)
    return False


def _of_every(columns: Iterable[Column | None]) -> Column | None:
    """Returns the column of a union. It holds the end of a window only if that of each part does;
    its rows lie before the end by as much as in any part."""
    parts = [column for column in columns if column is not None]
    last = [part.ends for part in parts if part.ends is not None]
    if not last or len(last) < len(parts):
        return None
    alike = len(set(last)) == 1
    return replace(parts[0], ends=last[0] if alike else WindowEnd(max(e.before for e in last)))
