"""Functions OVER frames: from what was written to leaves, and the operation that computes them.

before  SELECT a, sum(b) OVER (PARTITION BY a ORDER BY ts ROWS 9 PRECEDING) AS s FROM R      as q
after   q#1: SELECT a, b FROM R, q: OverRows(q#1)
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import replace

from seustream.compiler.catalogue import Stream
from seustream.compiler.language import expressions as x
from seustream.compiler.language import syntax
from seustream.compiler.language.aggregates import AGGREGATES
from seustream.compiler.language.bind import FAILED, Binder
from seustream.compiler.language.types import BIGINT, Kind, read_interval
from seustream.compiler.logical import program as logical
from seustream.compiler.xsql import tree
from seustream.compiler.xsql.periods import BoundSelect, goes_by
from seustream.hdl.isa import Condition

PLACES = {"row_number": (0, 0), "lag": (1, 3), "first_value": (1, 1), "last_value": (1, 1)}
"""Functions of a row's place, and how many arguments they take, at least and at most."""

_AGGREGATES = {name: e for e in AGGREGATES.values() for name in (e.name, *e.aliases)}
_FORM = "write f(...) OVER (PARTITION BY k ORDER BY ts ROWS 9 PRECEDING)"


def over(
    e: tree.OverCall, binder: Binder, sources: Sequence[logical.Source], within: str | None
) -> x.Expression:
    """The leaf a call OVER a frame means; `within` is a place where none may stand."""
    name = e.call.name.lower()
    if within is not None or binder.aggregating is not None:
        place = f"the argument of {binder.aggregating}" if binder.aggregating else within
        hint = "aggregates do not nest" if within is None else "QUALIFY filters rows by it"
        return binder.fail("over", f"{name} OVER (...) cannot stand in {place}", e.span, hint)
    frame = _frame(e, binder, sources)
    binder.aggregating = f"OVER of {name}"  # aggregates do not nest here either
    partition = tuple(binder.value(key) for key in e.partition)
    binder.aggregating = None
    if name in PLACES:
        return _place(e, name, binder, partition, frame)
    if name not in _AGGREGATES:
        known = [*AGGREGATES, *PLACES]
        hint = f"functions OVER frames are {', '.join(known)}"
        return binder.fail("over", f"there is no {name} OVER frames", e.call.at, hint)
    bound = binder.aggregate(e.call, _AGGREGATES[name])
    if frame is None or FAILED in (bound, *partition) or not isinstance(bound, x.AggregateCall):
        return FAILED
    return logical.Over(name, bound, bound.arguments, 0, partition, frame, bound.type)


def _place(
    e: tree.OverCall,
    name: str,
    binder: Binder,
    partition: tuple[x.Expression, ...],
    frame: logical.Frame | None,
) -> x.Expression:
    fewest, most = PLACES[name]
    given = e.call.arguments
    if not fewest <= len(given) <= most or e.call.star or e.call.distinct or e.call.where:
        form = {"row_number": "row_number()", "lag": "lag(x), lag(x, 2) or lag(x, 2, 0)"}.get(
            name, f"{name}(x)"
        )
        return binder.fail("over", f"{name} takes other arguments", e.call.at, f"write {form}")
    offset = 1
    if len(given) > 1:
        back = given[1]
        if not isinstance(back, syntax.Constant) or type(back.value) is not int:
            return binder.fail("over", "lag looks a number of rows back", back.span, "lag(x, 2)")
        offset = back.value
    binder.aggregating = name
    arguments = tuple(binder.value(argument) for argument in given[:1])
    binder.aggregating = None
    if frame is None or FAILED in (*arguments, *partition):
        return FAILED
    if name in ("row_number", "lag"):  # whatever the frame is
        frame = logical.Frame(False, offset if name == "lag" else None)
    of = arguments[0].type if arguments else BIGINT
    found = logical.Over(name, None, arguments, offset, partition, frame, of)
    if len(given) < 3:
        return found
    # Where there is no row so far back, which the row's number tells, the third argument.
    number = logical.Over("row_number", None, (), 1, partition, logical.Frame(False, None), BIGINT)
    there = binder.compare(Condition.GT, number, x.Literal(offset, BIGINT), e.span)
    return binder.case([there], [found, binder.value(given[2])], e.span)


def _frame(
    e: tree.OverCall, binder: Binder, sources: Sequence[logical.Source]
) -> logical.Frame | None:
    """The frame; without one, all rows up to those of the same time."""
    if len(e.order_by) != 1 or e.order_by[0].descending:
        at = e.span if not e.order_by else e.order_by[-1].expression.span
        binder.fail("over", "frames look back in time, and nowhere else", at, "ORDER BY ts")
        return None
    if (said := goes_by(e.order_by[0].expression, sources)) is not None:
        binder.fail("over", f"frames go by {said[0]}", e.order_by[0].expression.span, said[1])
        return None
    written = e.frame
    if written is None or written.size is None:
        return logical.Frame(written is None or written.kind == "range", None)
    bound = binder.value(written.size)
    if bound is FAILED:
        return None
    value = bound.value if isinstance(bound, x.Literal) else None
    if written.kind == "range":
        if isinstance(value, str):
            value = read_interval(value)
        if isinstance(value, datetime.timedelta):
            value = value // datetime.timedelta(milliseconds=1)
    whole = isinstance(value, int) and bound.type.kind is not Kind.BOOLEAN
    if not whole or not isinstance(value, int) or not 0 <= value < 1 << 60:
        what = "a length of time" if written.kind == "range" else "a number of rows"
        binder.fail("over", f"{what} is wanted here", written.size.span, _FORM)
        return None
    return logical.Frame(written.kind == "range", value)


def overs(e: x.Expression) -> list[logical.Over]:
    """The functions OVER frames in an expression."""
    return [part for part in x.walk(e) if isinstance(part, logical.Over)]


def over_rows(select: BoundSelect, hide: Callable[[logical.Relation], Stream]) -> logical.OverRows:
    """The rows of a SELECT with functions over frames; the query becomes a stream of the columns that
    all of it reads."""
    query = select.query
    parts = [item.expression for item in query.items]
    parts += [] if select.qualify is None else [select.qualify]
    for leaf in [leaf for part in parts for leaf in overs(part)]:
        parts += [*leaf.arguments, *leaf.partition]
        parts += [] if leaf.aggregate is None else [leaf.aggregate]
    read = {leaf for part in parts for leaf in x.columns(part)}
    columns = tuple(sorted(read, key=lambda leaf: (leaf.source, leaf.name)))
    items = tuple(logical.Item(f"c{n}", leaf) for n, leaf in enumerate(columns, start=1))
    return logical.OverRows(
        name=query.name,
        inputs=(hide(replace(query, items=items)),),
        items=query.items,
        text=query.text,
        span=query.span,
        strict=query.strict,
        columns=columns,
        qualify=select.qualify,
    )
