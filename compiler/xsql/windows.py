"""The windows of a SELECT's streams, in milliseconds and rows: those of its WINDOW clauses, or
those that the conditions of its joins imply."""

from __future__ import annotations

import datetime
from collections.abc import Container, Sequence
from dataclasses import replace
from fractions import Fraction

from seustream.compiler.errors import Problems, Span, suggest
from seustream.compiler.language import expressions as x
from seustream.compiler.language.types import MILLISECONDS, Kind, read_time
from seustream.compiler.logical import program as logical
from seustream.compiler.logical.joins import AsofJoin, JoinSide, joins, visible
from seustream.compiler.logical.program import Query, Source
from seustream.compiler.logical.windows import LandmarkWindow, PartitionWindow
from seustream.compiler.xsql import tree
from seustream.compiler.xsql.bounds import implied
from seustream.compiler.xsql.joins import subqueries
from seustream.compiler.xsql.windowed import bounded_by_windows, differences
from seustream.hdl.device import UNUSED, Window, WindowKind

_LARGEST = (1 << 63) - 1

Extent = tuple[Window, Span, Span]
"""A stream's window, the place of the stream, and that of the window."""


def extents(
    select: tree.Select, lasting: Container[tree.FromItem], problems: Problems
) -> list[Extent]:
    """Returns the windows in order of appearance, UNUSED if the conditions of a join are to supply
    one. A `lasting` item has no window and never leaves."""
    found = _given(select, lasting, problems)
    streams = sum(of != UNUSED for of, _, _ in found)
    unsaid = UNUSED if streams > 1 else Window(WindowKind.RANGE, 0)
    forever = Window(WindowKind.UNBOUNDED)
    return [
        (unsaid if of is None else forever if of == UNUSED else of, span, at)
        for of, span, at in found
    ]


def _given(
    select: tree.Select, lasting: Container[tree.FromItem], problems: Problems
) -> list[tuple[Window | None, Span, Span]]:
    """Returns the written windows: None if there is none, UNUSED for a lasting item. A subquery may
    have windows of its own."""
    found: list[tuple[Window | None, Span, Span]] = [
        (UNUSED if item in lasting else None, item.span, select.span)
        for item in tree.from_items(select.sources)
    ]
    for inner in subqueries(select.where):
        found += _given(inner, lasting, problems)
    if not select.windows:
        return found
    waiting = [place for place, (of, _, _) in enumerate(found) if of is None]
    said = [(window(clause, problems), clause.span) for clause in select.windows]
    for place, (of, at) in zip(waiting, _shared(said, len(waiting), problems), strict=True):
        found[place] = (of, found[place][1], at)
    return found


def _shared(
    said: list[tuple[Window, Span]], streams: int, problems: Problems
) -> list[tuple[Window, Span]]:
    """Returns a window for each stream."""
    if len(said) not in (1, streams):
        problems.add(
            "window-count",
            f"{len(said)} windows for {streams} stream{'s' if streams > 1 else ''}",
            Span(said[0][1].start, said[-1][1].end),
            "give one window for all streams, or one for each in FROM order",
        )
    return said if len(said) == streams else (said * streams)[:streams]


def bounded(
    select: tree.Select,
    query: Query,
    side: JoinSide,
    conditions: list[x.Expression],
    lasting: frozenset[int],
    problems: Problems,
) -> tuple[Source, ...]:
    """Returns the sources of a query; windows that are not written come from the conditions."""
    # The looked-up row may be the later one: until it arrives, the other must stay in its window.
    later = {join.at: join.later for join in joins(side) if isinstance(join, AsofJoin)}
    sources = tuple(
        replace(of, window=Window(WindowKind.RANGE, max(of.window.size, later.get(at, 0))))
        if at in later and of.window.kind is WindowKind.RANGE
        else of
        for at, of in enumerate(query.sources)
    )
    if all(source.window != UNUSED for source in sources):
        return sources
    known = bounded_by_windows(side, sources)
    conditions = [*conditions, *differences(tuple(conditions), sources)]
    # A row that is looked up and comes later is the newest: all the others must stay until then.
    awaited = {
        at
        for join in joins(side)
        if isinstance(join, AsofJoin) and join.later
        for at in visible(join.right)
    }
    sizes = implied(known, conditions, len(sources), lasting - awaited)
    unbounded = [
        at
        for at, of in enumerate(sources)
        if of.window == UNUSED and sizes[at] is None and at not in lasting
    ]
    if unbounded:
        late = sources[unbounded[0]]
        other = next(
            of for at, of in enumerate(sources) if at != unbounded[0] and at not in lasting
        )
        some = len(unbounded) + len(lasting) < len(sources)
        why = f"joins what may come any time after {late.alias}" if some else "joins streams"
        times = (f"{of.alias}.{of.stream.called_time}" for of in (late, other))
        way = f", or bound their times: abs({' - '.join(times)}) <= 5 minutes"
        if late.alias == other.alias:
            way += f", with another name for the inner {late.alias}"
        missing_window(select, why, problems, way)
    return tuple(
        replace(of, window=Window(WindowKind.RANGE, size or 0)) if of.window == UNUSED else of
        for of, size in zip(sources, sizes, strict=True)
    )


def missing_window(select: tree.Select, why: str, problems: Problems, otherwise: str = "") -> None:
    problems.add(
        "missing-window",
        f"a query that {why} needs a window",
        Span(select.span.end - 1, select.span.end),
        f"end it with its windows, such as WINDOW RANGE 5 minutes{otherwise}",
    )


def window(clause: tree.WindowClause, problems: Problems) -> Window:
    """Returns the window that a clause asks for; reports its problems."""
    if clause.kind == "now":
        return Window(WindowKind.RANGE, 0)
    if clause.kind == "unbounded":
        return Window(WindowKind.UNBOUNDED)
    if clause.kind == "since":
        since = clause.since
        if isinstance(since, str):
            at = read_time(since, Kind.TIMESTAMP)
            if not isinstance(at, datetime.datetime):
                problems.add(
                    "constant-range",
                    f"{since!r} is no timestamp",
                    clause.span,
                    "write SINCE TIMESTAMP '2026-03-01 12:00:00', or milliseconds",
                )
                return Window(WindowKind.UNBOUNDED)
            since = (at - datetime.datetime(1970, 1, 1)) // datetime.timedelta(milliseconds=1)
        return LandmarkWindow(WindowKind.UNBOUNDED, since=since)
    if clause.kind == "every":
        every = window(replace(clause, kind="range"), problems).size
        if every == 0:
            problems.add(
                "range-size", "a landmark comes after some time", clause.span, "SINCE EVERY day"
            )
        return LandmarkWindow(WindowKind.UNBOUNDED, every=max(every, 1))
    size = clause.size if clause.size is not None else 0
    if clause.kind == "partition":
        rows = window(replace(clause, kind="rows"), problems).size
        keys = tuple(key.text for key in clause.keys)
        return PartitionWindow(WindowKind.UNBOUNDED, rows, keys)
    if clause.kind == "rows":
        if size < 1 or not isinstance(size, int) or size > _LARGEST:
            problems.add(
                "row-count",
                f"a window holds a whole number of rows, 1 or more, not {size}",
                clause.span,
                "for a time, name a unit: RANGE 5 seconds",
            )
            return Window(WindowKind.ROWS, 1)
        return Window(WindowKind.ROWS, size)
    factor = 1
    if clause.unit is not None:
        factor = MILLISECONDS.get(clause.unit.text.lower(), 0)
        if factor == 0:
            problems.add(
                "unknown-unit",
                f"{clause.unit.text} is no unit of time",
                clause.unit.span,
                suggest(clause.unit.text, MILLISECONDS, "units"),
            )
            return Window(WindowKind.RANGE, 0)
    if size < 0:
        problems.add(
            "negative-range",
            f"a range of {size} reaches into the future",
            clause.span,
            "ranges reach back from now, 0 is NOW",
        )
        return Window(WindowKind.RANGE, 0)
    if size * factor > _LARGEST:
        problems.add(
            "range-size",
            "a range is at most 2^63 - 1 milliseconds",
            clause.span,
            "write UNBOUNDED",
        )
        return Window(WindowKind.RANGE, 0)
    ticks = Fraction(repr(size)) * factor  # exactly: 1.001 minutes are 60060 ms
    if ticks.denominator > 1:
        problems.add(
            "range-size",
            f"a range is a whole number of milliseconds, not {float(ticks):g}",
            clause.span,
            "use a smaller unit",
        )
        return Window(WindowKind.RANGE, 0)
    return Window(WindowKind.RANGE, int(ticks))


def steps(
    select: tree.Select,
    sources: Sequence[Source],
    every: logical.Periodic | logical.Sessions | None,
    problems: Problems,
) -> logical.Periodic:
    """Returns the steps of WINDOW RANGE t SLIDE s and ROWS n SLIDE m, which give the groups of the
    current window at each whole multiple of s, and at each m-th row."""
    clause = select.windows[0]
    size, slide = sources[0].window, clause.slide
    if every is not None or len(sources) > 1 or slide is None:
        problems.add(
            "group-window",
            "SLIDE is for windows of one stream, without a window in GROUP BY",
            clause.span,
            "derive a stream from the join first, or write HOP(ts, slide, size)",
        )
        return logical.Periodic(1, 1, 0)
    if size.kind is WindowKind.UNBOUNDED:
        problems.add(
            "group-window",
            "all rows so far have no steps",
            clause.span,
            "RANGE 1 hour SLIDE 1 minute; for sums from each midnight on, GROUP BY CUMULATE(ts, 1 minute, 1 day)",
        )
        return logical.Periodic(1, 1, 0)
    if size.kind is WindowKind.ROWS and slide.unit is not None:
        problems.add(
            "group-window",
            "a window of rows has steps of rows",
            slide.unit.span,
            f"ROWS {size.size} SLIDE {slide.size}, or RANGE 5 minutes SLIDE 1 minute",
        )
        return logical.Periodic(1, 1, 0)
    length = window(slide, problems)
    if length.size < 1:
        problems.add("group-window", "a step takes some time", slide.span, "SLIDE 1 minute")
        return logical.Periodic(1, 1, 0)
    if size.kind is WindowKind.ROWS:
        return logical.Periodic(size.size, length.size, -size.size % length.size, by_rows=True)
    # A RANGE includes both its ends.
    return logical.Periodic(size.size + 1, length.size, -size.size % length.size)
