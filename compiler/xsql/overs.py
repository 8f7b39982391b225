"""Functions OVER frames: binds them to leaves, and builds the operation that computes them.

before  SELECT a, sum(b) OVER (PARTITION BY a ORDER BY ts ROWS 9 PRECEDING) AS s FROM R      as q
after   q#1: SELECT a, b FROM R, q: OverRows(q#1)
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from seustream.compiler.catalogue import Stream
from seustream.compiler.errors import suggest
from seustream.compiler.language import expressions as x
from seustream.compiler.language import syntax
from seustream.compiler.language.aggregates import AGGREGATES
from seustream.compiler.language.bind import FAILED, Binder
from seustream.compiler.language.elsewhere import INSTEAD
from seustream.compiler.language.overloads import LISTS
from seustream.compiler.language.types import BIGINT, DOUBLE, Kind, read_interval
from seustream.compiler.logical import program as logical
from seustream.compiler.logical.joins import CHANGE
from seustream.compiler.xsql import tree
from seustream.compiler.xsql.periods import BoundSelect, goes_by
from seustream.hdl.isa import Condition

RANKS = ("row_number", "rank", "dense_rank")
_SHARES = ("ntile", "percent_rank", "cume_dist")
_SHIFTS = ("lag", "lead")
PLACES = {
    **dict.fromkeys(RANKS, (0, 0)),
    "ntile": (1, 1),
    "percent_rank": (0, 0),
    "cume_dist": (0, 0),
    **dict.fromkeys(_SHIFTS, (1, 3)),
    "first_value": (1, 1),
    "last_value": (1, 1),
}
"""Functions of a row's place, with the least and the greatest number of arguments."""

_AGGREGATES = {name: e for e in AGGREGATES.values() for name in (e.name, *e.aliases)}
_AS_THEY_COME = (logical.OrderKey(x.Literal(0, BIGINT), False, False),)
_ENDLESS = 1 << 60
"""Refused as a number of rows or milliseconds, since places and times are added to it."""
_FORM = "write f(...) OVER (PARTITION BY k ORDER BY ts ROWS 9 PRECEDING)"


def over(
    e: tree.OverCall,
    binder: Binder,
    sources: Sequence[logical.Source],
    within: str | None,
    named: Mapping[str, tree.OverWindow],
) -> x.Expression:
    """Returns the leaf that a call OVER a frame means; `within` is a place that allows none."""
    name, called = e.call.name.lower(), e.window
    if within is not None or binder.aggregating is not None:
        place = f"the argument of {binder.aggregating}" if binder.aggregating else within
        hint = "aggregates do not nest" if within is None else "QUALIFY filters rows by it"
        return binder.fail("over", f"{name} OVER (...) cannot stand in {place}", e.span, hint)
    window = called if isinstance(called, tree.OverWindow) else named.get(called.text.lower())
    if window is None:
        assert isinstance(called, syntax.Name)
        hint = suggest(called.text, named, "windows") or "WINDOW name AS (...)"
        return binder.fail("over", f"there is no window {called.text}", called.span, hint)
    timely = by_time(window.order_by, sources)
    # The rows ahead of a row, and their number, are known only when the partition is over.
    whole = name in ("lead", *_SHARES) or (name in (*RANKS, "lag") and not timely)
    whole = whole and bool(window.order_by)
    # The same holds for an aggregate without an order.
    of_all = name in _AGGREGATES and name not in PLACES
    of_all = of_all and not window.order_by and window.frame is None
    either = whole or of_all
    frame = logical.Frame(False, None) if either else _frame(e, window, binder, sources)
    binder.aggregating = f"OVER of {name}"  # aggregates do not nest here either
    partition = tuple(binder.key(key, "PARTITION BY") for key in window.partition)
    # Rows come by time, and rows equal in an order keep that sequence.
    order = order_keys(window.order_by, binder) if whole and not (name == "lead" and timely) else ()
    if of_all or (name == "lead" and timely):
        order = _AS_THEY_COME
    binder.aggregating = None
    if whole and window.frame is not None:
        hint = f"write {name}(...) OVER (PARTITION BY k ORDER BY x DESC)"
        return binder.fail("over", f"{name} takes no frame", e.span, hint)
    if frame is None or FAILED in (*partition, *(key.expression for key in order)):
        return FAILED
    if name in PLACES:
        return _place(
            e, name, binder, logical.Over(name, None, (), 1, partition, frame, BIGINT, order)
        )
    if name not in _AGGREGATES:
        hint = INSTEAD.get(name, f"functions OVER frames are aggregates, {', '.join(PLACES)}")
        return binder.fail("over", f"there is no {name} OVER frames", e.call.at, hint)
    bound = binder.aggregate(e.call, _AGGREGATES[name])
    if bound is FAILED or not isinstance(bound, x.AggregateCall):
        return FAILED
    return logical.Over(name, bound, bound.arguments, 0, partition, frame, bound.type, order)


def _place(e: tree.OverCall, name: str, binder: Binder, of: logical.Over) -> x.Expression:
    """Binds a function of a row's place; `of` lacks its arguments."""
    fewest, most = PLACES[name]
    given = e.call.arguments
    if not fewest <= len(given) <= most or e.call.star or e.call.distinct or e.call.where:
        form = f"{name}()" if most == 0 else "ntile(4)" if name == "ntile" else f"{name}(x)"
        form = f"{name}(x), {name}(x, 2) or {name}(x, 2, 0)" if name in _SHIFTS else form
        return binder.fail("over", f"{name} takes other arguments", e.call.at, f"write {form}")
    number = given[0] if name == "ntile" else given[1] if len(given) > 1 else None
    offset = 1
    if number is not None:
        least = 1 if name == "ntile" else 0
        value = number.value if isinstance(number, syntax.Constant) else None
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole or not isinstance(value, int) or not least <= value < _ENDLESS:
            below = ", below 2^60" if isinstance(value, int) and value >= _ENDLESS else ""
            said = f"{name} wants a whole number, {least} or more{below}"
            return binder.fail("over", said, number.span, f"{name}{'(4)' * least or '(x, 2)'}")
        offset = value
    binder.aggregating = name
    arguments = () if name == "ntile" else tuple(binder.value(argument) for argument in given[:1])
    binder.aggregating = None
    if FAILED in arguments:
        return FAILED
    if arguments and arguments[0].type.kind is Kind.LIST and not of.order:
        return binder.fail("over", f"{name} in the order of time takes no list", e.span, LISTS)
    frame = of.frame
    if name in (*RANKS, "lag"):  # regardless of the frame
        frame = logical.Frame(False, offset if name == "lag" else None)
    result = arguments[0].type if arguments else BIGINT
    result = DOUBLE if name in ("percent_rank", "cume_dist") else result
    found = replace(of, arguments=arguments, offset=offset, frame=frame, type=result)
    if len(given) < 3:
        return found
    # The third argument applies if there is no row that far away, as shown by a constant, which is
    # never NULL.
    one = replace(found, arguments=(x.Literal(1, BIGINT),), type=BIGINT)
    other = binder.value(given[2])
    return binder.case([x.IsNull(one, True)], [found, other], e.span)


def order_keys(written: Sequence[tree.OrderItem], binder: Binder) -> tuple[logical.OrderKey, ...]:
    """Binds the expressions of ORDER BY; NULL comes last unless NULLS FIRST is written."""
    return tuple(
        logical.OrderKey(binder.key(e.expression, "ORDER BY"), e.descending, bool(e.nulls_first))
        for e in written
    )


def by_time(written: Sequence[tree.OrderItem], sources: Sequence[logical.Source]) -> bool:
    """Returns whether an ORDER BY is the order in which rows become certain."""
    one = len(written) == 1 and not written[0].descending
    return one and goes_by(written[0].expression, sources) is None


def _frame(
    e: tree.OverCall,
    window: tree.OverWindow,
    binder: Binder,
    sources: Sequence[logical.Source],
) -> logical.Frame | None:
    """Returns the frame; without one, all rows up to those of the same time."""
    if len(window.order_by) != 1 or window.order_by[0].descending:
        at = e.span if not window.order_by else window.order_by[-1].expression.span
        hint = "ORDER BY ts; ranks take any order, an aggregate of all rows takes none"
        name, unordered = e.call.name.lower(), not window.order_by
        needs = f"{name} OVER (...) needs an order" if unordered and name in PLACES else None
        binder.fail("over", needs or "frames look back in time, and nowhere else", at, hint)
        return None
    if (said := goes_by(window.order_by[0].expression, sources)) is not None:
        binder.fail("over", f"frames go by {said[0]}", window.order_by[0].expression.span, said[1])
        return None
    written = window.frame
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
    if not whole or not isinstance(value, int) or not 0 <= value < _ENDLESS:
        what = "a length of time" if written.kind == "range" else "a number of rows"
        if whole:
            what += f" from 0 to {_ENDLESS - 1:,}" + " ms" * (written.kind == "range")
        binder.fail("over", f"{what} is wanted here", written.size.span, _FORM)
        return None
    return logical.Frame(written.kind == "range", value)


def overs(e: x.Expression) -> list[logical.Over]:
    """Returns the functions OVER frames in an expression."""
    return [part for part in x.walk(e) if isinstance(part, logical.Over)]


def over_rows(
    select: BoundSelect,
    hide: Callable[[logical.Relation], Stream],
    is_end: Callable[[x.Expression], bool],
) -> logical.OverRows:
    """Builds the rows of a SELECT with functions over frames or in an order; the query becomes a
    stream of the columns that all of it reads. `is_end` recognises the columns that hold the end of
    a window."""
    if not _is_one(select):
        return _ordered(select, hide, is_end)
    leaves = [leaf for part in _parts(select) for leaf in overs(part)]
    if len({bool(leaf.order) for leaf in leaves}) > 1:
        return _both(select, hide, is_end)
    parts = [*_parts(select), *(key.expression for key in select.order_by)]
    parts += [] if select.signed is None else [select.signed]
    columns = _read(parts)
    items = tuple(logical.Item(f"c{n}", leaf) for n, leaf in enumerate(columns, start=1))
    return _rows(select, hide(replace(select.query, items=items)), columns, is_end)


def _read(parts: Iterable[x.Expression]) -> tuple[x.ColumnReference, ...]:
    """Returns the columns that expressions read, also within functions OVER frames."""
    found = []
    for part in parts:
        found.append(part)
        for leaf in overs(part):
            found += [*leaf.arguments, *leaf.partition, *(key.expression for key in leaf.order)]
            found += [] if leaf.aggregate is None else [leaf.aggregate]
    read = {leaf for part in found for leaf in x.columns(part)}
    return tuple(sorted(read, key=lambda leaf: (leaf.source, leaf.name)))


def _both(
    select: BoundSelect,
    hide: Callable[[logical.Relation], Stream],
    is_end: Callable[[x.Expression], bool],
) -> logical.OverRows:
    """Builds the rows of a SELECT with functions of both kinds: those that look back first.

    before  SELECT a, lag(b) OVER (ORDER BY ts) AS l, lead(b) OVER (ORDER BY ts) AS n FROM R
    after   SELECT a, l, lead(b) OVER (ORDER BY ts) AS n
            FROM (SELECT a, b, lag(b) OVER (ORDER BY ts) AS l FROM R)
    """
    leaves = dict.fromkeys(leaf for part in _parts(select) for leaf in overs(part))
    backward = [leaf for leaf in leaves if not leaf.order]
    values = {
        leaf: x.ColumnReference(0, f"#{n}", leaf.type, True, "over")
        for n, leaf in enumerate(backward, start=1)
    }

    def found(e: x.Expression) -> x.Expression:
        if isinstance(e, logical.Over):
            return values.get(e, e)
        return x.rebuild(e, found)

    query, qualify = select.query, select.qualify
    of_rows = tuple(replace(i, expression=found(i.expression)) for i in query.items)
    outer = replace(
        select,
        query=replace(query, items=of_rows),
        qualify=None if qualify is None else found(qualify),
    )
    own = {*values.values()}
    columns = tuple(leaf for leaf in _read(_parts(outer)) if leaf not in own)
    given = enumerate((*columns, *backward), start=1)
    items = tuple(logical.Item(f"c{n}", e) for n, e in given)
    inner = replace(select, query=replace(query, items=items), qualify=None)
    stream = hide(over_rows(inner, hide, is_end))
    return _rows(outer, stream, (*columns, *values.values()), is_end)


def _is_one(select: BoundSelect) -> bool:
    """Returns whether one operation computes the functions and the order: functions of whole
    partitions before an ORDER BY, and before a LIMIT only those in its own order."""
    keys, leaves = select.order_by, [leaf for part in _parts(select) for leaf in overs(part)]
    if any(overs(key.expression) for key in keys):
        return False
    if select.limit is None:
        return not keys or all(leaf.order for leaf in leaves)
    alike = all((leaf.partition, leaf.order) == ((), keys) for leaf in leaves)
    return alike and select.qualify is None


def _ordered(
    select: BoundSelect,
    hide: Callable[[logical.Relation], Stream],
    is_end: Callable[[x.Expression], bool],
) -> logical.OverRows:
    """Builds the rows of a SELECT as a stream, and orders that.

    before  SELECT a, sum(b) OVER (ORDER BY ts) AS s FROM R QUALIFY s > 3 ORDER BY b DESC LIMIT 2
    after   SELECT a, s FROM (SELECT a, sum(b) OVER (ORDER BY ts) AS s, b FROM R QUALIFY s > 3)
            ORDER BY b DESC LIMIT 2
    """
    query, keys = select.query, select.order_by
    ranks = any(leaf.order for part in _parts(select) for leaf in overs(part))
    if select.changes and ranks:
        # A row whose rank changes is added again, and keeps its place among rows of equal keys.
        keys = (*keys, logical.OrderKey(_row_number(_AS_THEY_COME), False, False))
    # No name of a result may meet another name of the stream, such as that of its time.
    values = [*(item.expression for item in query.items), *(key.expression for key in keys)]
    items = tuple(logical.Item(f"c{n}", e) for n, e in enumerate(values, start=1))
    whole = replace(query, items=items)
    inner = over_rows(replace(select, query=whole, order_by=(), limit=None), hide, is_end)
    stream = hide(inner)
    columns = tuple(
        x.ColumnReference(0, column.name, column.type, column.nullable, stream.name)
        for column in stream.columns[: len(whole.items)]
    )
    named = zip(query.items, columns, strict=False)
    by = zip(keys, columns[len(query.items) :], strict=True)
    outer = replace(
        select,
        query=replace(query, items=tuple(replace(i, expression=column) for i, column in named)),
        order_by=tuple(replace(key, expression=column) for key, column in by),
        qualify=None,
        signed=columns[0] if isinstance(inner, logical.RankChanges) else None,
    )
    return _rows(outer, stream, columns, lambda _: False)


def _rows(
    select: BoundSelect,
    stream: Stream,
    columns: tuple[x.ColumnReference, ...],
    is_end: Callable[[x.Expression], bool],
) -> logical.OverRows:
    """Builds the operation over a stream of the columns that a SELECT reads."""
    query, qualify, order_by = select.query, select.qualify, select.order_by
    if select.limit is not None:
        # LIMIT counts all rows, in their ORDER BY or by time.
        number = _row_number(order_by)
        few = x.Compare(Condition.LE, number, x.Literal(select.limit, BIGINT), BIGINT)
        qualify = few if qualify is None else x.conjunction((qualify, few))
    found = [leaf for part in _parts(replace(select, qualify=qualify)) for leaf in overs(part)]
    made = logical.OverRows(
        name=query.name,
        inputs=(stream,),
        items=query.items,
        text=query.text,
        span=query.span,
        strict=query.strict,
        columns=columns,
        qualify=qualify,
    )
    ranked = [leaf for leaf in found if leaf.order]
    if not ranked and not order_by:
        return made  # with EMIT CHANGES rows only come
    fields = {name: getattr(made, name) for name in logical.OverRows.__dataclass_fields__}
    whole = logical.RankedRows(**fields, order_by=order_by)
    ends = {key for key in found[0].partition if is_end(key)} if found else set()
    for leaf in found[1:]:
        ends &= {*leaf.partition}
    end = next((e for e in ends if isinstance(e, x.ColumnReference)), None)
    whole = replace(whole, end=None if order_by else end)
    same = len({(leaf.partition, leaf.order) for leaf in ranked}) == 1
    if select.changes:
        best = same and qualify is not None and select.signed is None
        return changing(best_of(whole, qualify) if best and qualify else whole, select.signed)
    ahead = all(leaf.function == "lead" for leaf in ranked)
    if same and ahead and ranked[0].order == _AS_THEY_COME and not order_by:
        return replace(whole, ahead=max(leaf.offset for leaf in ranked))
    return best_of(whole, qualify) if same and qualify is not None else whole


def _parts(select: BoundSelect) -> list[x.Expression]:
    """Returns the expressions that may hold functions OVER frames, apart from the order."""
    items = [item.expression for item in select.query.items]
    return items if select.qualify is None else [*items, select.qualify]


def _row_number(order: tuple[logical.OrderKey, ...]) -> logical.Over:
    """Returns the number of a row among all rows, in an order or by time."""
    return logical.Over("row_number", None, (), 1, (), logical.Frame(False, None), BIGINT, order)


def changing(of: logical.RankedRows, signed: x.ColumnReference | None) -> logical.RankChanges:
    """Returns the changes of ranks; replaces the first item, which until then is `+` for every row."""
    known = {name: getattr(of, name) for name in logical.RankedRows.__dataclass_fields__}
    known["items"] = (logical.Item(CHANGE.name, CHANGE), *of.items[1:])
    return logical.RankChanges(**known | {"order_by": (), "ahead": None}, signed=signed)


Ranked = TypeVar("Ranked", bound=logical.RankedRows)


def best_of(of: Ranked, condition: x.Expression) -> Ranked:
    """Excludes rows that a bound on their rank leaves out anyway."""
    parts = [condition, *(item.expression for item in of.items)]
    if any(leaf.function not in RANKS for part in parts for leaf in overs(part)):
        return of
    for e in x.conjuncts(condition):
        if not isinstance(e, x.Compare) or not isinstance(e.right, x.Literal):
            continue
        most, rank = e.right.value, e.left
        if e.condition not in (Condition.LE, Condition.LT, Condition.EQ) or type(most) is not int:
            continue
        if isinstance(rank, logical.Over) and rank.order and of.best is None:
            of = replace(of, best=(rank, most - (e.condition is Condition.LT)))
    return of
