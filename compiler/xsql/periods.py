"""Windows of groups: TUMBLE, HOP, CUMULATE and SESSION, in the spellings of X-SQL, Flink and Spark.

before  GROUP BY TUMBLE(ts, 1 minute)     FROM HOP(TABLE R, DESCRIPTOR(ts), INTERVAL '5' MINUTE, …)
after   Periodic(60000, 60000, 0)
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from seustream.compiler.catalogue import Stream
from seustream.compiler.errors import Problems
from seustream.compiler.language import expressions as x
from seustream.compiler.language import syntax
from seustream.compiler.language.bind import Binder
from seustream.compiler.language.types import Kind, read_interval
from seustream.compiler.logical import program as logical
from seustream.compiler.logical.joins import CHANGE, JoinTree
from seustream.compiler.xsql import tree

Every = logical.Periodic | logical.Sessions

_HINTS = {
    "tumble": "TUMBLE(ts, size) or TUMBLE(ts, size, offset)",
    "hop": "HOP(ts, slide, size) or HOP(ts, slide, size, offset)",
    "cumulate": "CUMULATE(ts, step, size) or CUMULATE(ts, step, size, offset), size being whole steps",
    "session": "SESSION(ts, gap)",
    "window": "window(ts, size), window(ts, size, slide) or window(ts, size, slide, offset)",
    "session_window": "session_window(ts, gap)",
}
"""By function, its written forms."""

_LENGTHS = {"tumble": (1, 2), "hop": (2, 3), "cumulate": (2, 3), "session": (1, 1), "window": (1, 3),
            "session_window": (1, 1)}  # fmt: skip
"""The least and the greatest number of lengths of time after the first argument."""

_LARGEST = 1 << 60
"""The greatest length in milliseconds, so that every time of a window fits 64 bits."""


def is_window(e: syntax.Expression) -> bool:
    """Returns whether an expression of GROUP BY is a window."""
    return isinstance(e, syntax.FunctionCall) and e.name.lower() in _HINTS


def edge(call: syntax.FunctionCall) -> tuple[syntax.FunctionCall, x.ColumnReference] | None:
    """Returns the window and the leaf that `TUMBLE_START(ts, size)` and similar calls mean."""
    name, _, side = call.name.lower().rpartition("_")
    if name not in ("tumble", "hop", "cumulate", "session") or side not in _EDGES:
        return None
    return replace(call, function=(replace(call.function[-1], text=name),)), _EDGES[side]


_EDGES = {"start": logical.WINDOW_START, "end": logical.WINDOW_END}


def read(
    call: syntax.FunctionCall,
    sources: Sequence[logical.Source],
    binder: Binder,
    problems: Problems,
) -> Every | None:
    """Returns the windows that a call defines; None if a problem was reported."""
    return _Reader(sources, binder, problems).read(call)


def every(
    select: tree.Select, sources: Sequence[logical.Source], binder: Binder, problems: Problems
) -> Every | None:
    """Returns the windows by which a SELECT groups, None if it does not."""
    written = [e for e in select.group_by if isinstance(e, syntax.FunctionCall) and is_window(e)]
    written += [
        item.windows for item in tree.from_items(select.sources) if item.windows is not None
    ]
    if not written:
        return None
    first, *more = written
    if more:
        problems.add(
            "group-window",
            "a query groups by one kind of window",
            more[0].span,
            "derive a stream from the first, and group that by the second",
        )
    if not is_window(first):
        problems.add(
            "group-window",
            f"{first.name} makes no windows",
            first.at,
            "TUMBLE, HOP, CUMULATE and SESSION do",
        )
        return _FAILED
    return read(first, sources, binder, problems) or _FAILED


def of_windows(
    select: tree.Select,
    sources: Sequence[logical.Source],
    lacking: AbstractSet[int],
    tied: int,
    problems: Problems,
) -> Every | None:
    """Returns the windows by which a SELECT groups rows that already have the end of one: those of
    TUMBLE in FROM, and the one instant of a window's groups. Some rows lack a tuple of the sources
    `lacking`. `tied` sources have an end equal to another source's."""
    streams = [(at, source) for at, source in enumerate(sources) if not source.stream.table]
    if select.windows or tied + 1 < len(streams):
        return None
    for e in select.group_by:
        if not isinstance(e, syntax.Reference) or e.everything:
            continue
        *qualifier, name = (part.text.lower() for part in e.parts)
        named = {
            at: column.ends
            for at, source in streams
            if (column := source.stream.column(name)) is not None
            and column.ends is not None
            and qualifier in ([], [source.alias.lower()])
        }
        if not named:
            continue
        if len(named) == 1 and lacking & named.keys():
            problems.add(
                "group-window",
                f"{name} is NULL in rows without a match, which are in no window",
                e.span,
                "group by the end of a side that no row lacks, or join USING it",
            )
            return _FAILED
        # Several have the name in USING: the value is that of one that the row has.
        sure = [end for at, end in named.items() if at not in lacking]
        by_width = sorted(sure or named.values(), key=lambda end: end.before)
        end = by_width[0] if sure else by_width[-1]
        if end.before == 1:
            return INSTANT
        if end.offset is not None:
            return logical.Periodic(end.before, end.before, end.offset)
        problems.add(
            "group-window",
            "windows that overlap are those of groups where they are made",
            e.span,
            "GROUP BY window_start, window_end beside HOP in FROM, and group these rows by them again",
        )
        return _FAILED
    return None


INSTANT = logical.Periodic(1, 1, 0)
"""Windows of the rows of one instant."""

_FAILED = INSTANT
"""Replaces windows that were reported, and suppresses further errors."""


class _Reader:
    """Reads one call that defines windows."""

    def __init__(
        self, sources: Sequence[logical.Source], binder: Binder, problems: Problems
    ) -> None:
        self.sources, self.binder, self.problems = sources, binder, problems

    def read(self, call: syntax.FunctionCall) -> Every | None:
        name = call.name.lower()
        hint = f"write {_HINTS[name]}"
        fewest, most = _LENGTHS[name]
        if not fewest <= len(call.arguments) - 1 <= most:
            self._problem(f"{call.name} wants a time and {_counted(fewest, most)}", call, hint)
            return None
        if not self._is_time(call.arguments[0]):
            return None
        lengths = [self._length(e, hint) for e in call.arguments[1:]]
        known = [length for length in lengths if length is not None]
        if len(known) < len(lengths):
            return None
        offset = 0
        if name in ("session", "session_window"):
            size = slide = known[0]
        elif name == "tumble":
            size = slide = known[0]
            offset = sum(known[1:])
        elif name in ("hop", "cumulate"):
            slide, size, *rest = known
            offset = sum(rest)
        else:
            size, slide, *rest = known if len(known) > 1 else known * 2
            offset = sum(rest)
        for length, e in ((size, call.arguments[1]), (slide, call.arguments[-1])):
            if length <= 0:
                self._problem("a window that lasts no time holds no rows", e, hint)
                return None
        if name in ("session", "session_window"):
            return logical.Sessions(size)
        if name == "cumulate":
            if size % slide:
                self._problem("the size of these windows is not a number of steps", call, hint)
                return None
            return logical.Periodic(size, slide, offset % size, cumulates=True)
        return logical.Periodic(size, slide, offset % slide)

    def _is_time(self, e: syntax.Expression) -> bool:
        """Checks that windows use the time to which the watermark belongs."""
        said = goes_by(e, self.sources)
        if said is not None:
            self._problem(f"windows go by {said[0]}", e, said[1])
        return said is None

    def _length(self, e: syntax.Expression, hint: str) -> int | None:
        """Returns a constant length in milliseconds."""
        if isinstance(e, syntax.OperatorCall) and e.operator == "-" and len(e.operands) == 1:
            length = self._length(e.operands[0], hint)
            return None if length is None else -length
        found = len(self.problems.found)
        bound = self.binder.value(e)
        if len(self.problems.found) > found:
            return None
        value = bound.value if isinstance(bound, x.Literal) else None
        if isinstance(value, str):
            value = read_interval(value)
        if isinstance(value, datetime.timedelta):
            value = value // datetime.timedelta(milliseconds=1)
        if isinstance(value, int) and bound.type.kind is not Kind.BOOLEAN:
            if abs(value) < _LARGEST:
                return value
            self._problem(f"a window lasts at most {_LARGEST - 1:,} ms", e, hint)
            return None
        self._problem("a length of time is wanted here, such as 5 minutes", e, hint)
        return None

    def _problem(self, message: str, e: syntax.Expression, hint: str) -> None:
        self.problems.add("group-window", message, e.span, hint)


def _counted(fewest: int, most: int) -> str:
    number = str(fewest) if fewest == most else f"{fewest} to {most}"
    return f"{number} length{'s' * (most > 1)} of time"


def goes_by(e: syntax.Expression, sources: Sequence[logical.Source]) -> tuple[str, str] | None:
    """Returns None if `e` is the time of a query's rows, which is that of the newest of these
    sources; otherwise, the name of the expected time and how to write it."""
    first, *others = sources
    if isinstance(e, syntax.Reference) and not e.everything:
        *qualifier, name = (part.text.lower() for part in e.parts)
        if not qualifier and name in ("ts", logical.RESULT_TIMES[1]):
            return None
        if not others and first.stream.is_time(name) and qualifier in ([], [first.alias.lower()]):
            return None
    if others:
        return "the time of a join's newest component", "write ts_newest"
    return "the stream's time", f"write {first.stream.called_time}"


@dataclass(frozen=True, slots=True)
class BoundSelect:
    """A SELECT: a query over its sources, and the clauses beyond one."""

    query: logical.Query | JoinTree
    every: Every | None
    order_by: tuple[logical.OrderKey, ...]
    limit: int | None
    qualify: x.Expression | None
    changes: bool = False
    signed: x.ColumnReference | None = None
    """The column that marks whether a row of the source comes or goes."""


def grouped(
    select: BoundSelect, every: Every, hide: Callable[[logical.Relation], Stream]
) -> logical.PeriodGroups:
    """Builds the groups of each window; the query becomes a stream of the columns that they read."""
    query, order_by = select.query, select.order_by
    parts = [*query.group_by, *(item.expression for item in query.items)]
    parts += [key.expression for key in order_by]
    parts += [] if query.having is None else [query.having]
    numbered = isinstance(every, logical.Periodic) and every.by_rows
    where = query.where if numbered else x.TRUE
    parts.append(where)
    read = {leaf for part in parts for leaf in x.columns(part) if leaf.source >= 0}
    columns = tuple(sorted(read, key=lambda leaf: (leaf.source, leaf.name)))
    items = tuple(logical.Item(f"c{n}", leaf) for n, leaf in enumerate(columns, start=1))
    whole = replace(query, items=items, group_by=(), having=None, aggregated=False)
    stream = hide(replace(whole, where=x.TRUE) if numbered else whole)
    return logical.PeriodGroups(
        name=query.name,
        inputs=(stream,),
        items=(logical.Item(CHANGE.name, CHANGE), *query.items) if select.changes else query.items,
        text=query.text,
        span=query.span,
        strict=query.strict,
        columns=columns,
        every=every,
        group_by=query.group_by,
        having=query.having,
        order_by=order_by,
        limit=select.limit,
        where=where,
        changes=select.changes,
    )
