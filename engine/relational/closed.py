"""Groups of windows of time that are over, and the rows they give.

When the watermark passes ends of windows, their groups are asked for their aggregates (`OpenGroups`). Where rows are
kept instead, groups become points of `Aggregates`, and each row counts at a run of them: the windows of its group that
contain it are consecutive, since none of them is empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from seustream.compiler.language.faults import Faults
from seustream.compiler.logical import program as logical
from seustream.engine.host.aggregates import spanned, values_of
from seustream.engine.host.rows import leaves
from seustream.engine.relational.measures import SINCE, Measures, Rows
from seustream.engine.relational.open_groups import MergedGroups, PaneGroups, SessionGroups
from seustream.engine.relational.times import edges, numbers, spread
from seustream.engine.stream.evaluate import evaluate, holds
from seustream.engine.stream.numbers import as_column, order_of
from seustream.engine.stream.sorting import lexsort
from seustream.engine.stream.taken import taken

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
_AT_ONCE = 1 << 16
"""Groups whose rows are made at once."""


@dataclass(slots=True)
class Closed:
    """Groups of windows that are over. `rows` are the places of their rows, side by side by group;
    each counts at the points lo <= p < hi. Each point has its group (`of_point`), its window's
    start and end, and the place among `rows` of its first row."""

    rows: Ints
    group: Ints
    lo: Ints
    hi: Ints
    of_point: Ints
    start: Ints
    end: Ints
    first: Ints


class Ended(NamedTuple):
    """Windows of some rows, or panes, that are over at a watermark: the first and the last of each, as far as there are
    any (`some`); which have later ones (`stays`); the number of the last that is over (`done`); and the watermark before
    which no other one is (`quiet`)."""

    first: Ints
    last: Ints
    some: Ints
    stays: Bools
    done: int
    quiet: int


def ended(
    every: logical.Periodic, windows: tuple[Ints, Ints], done: Ints | int | None, now: int
) -> Ended:
    """Finds the windows that are over out of the first to the last of each row. Those up to `done` were given
    before."""
    first, last = windows
    if done is not None:
        first = np.maximum(first, done + 1)
    # The first window that is not over is the first that ends after the next instant.
    end = min(int(numbers(every, now + 1)[0]) - 1, int(last.max()))
    quiet = int(edges(every, max(end + 1, int(first.min())))[1]) - 1
    some = np.flatnonzero((first <= last) & (first <= end))
    return Ended(first, np.minimum(last, end), some, last > end, end, quiet)


def closed_periods(every: logical.Periodic, past: Ended, group: Ints) -> Closed:
    """Closes windows over rows, those in `past.some`, in order within each group."""
    order = order_of(group)
    rows, group = past.some[order], group[order]
    low, high = past.first[rows], past.last[rows]
    # `low` and `high` only rise within a group: a row adds the windows after its predecessor's.
    begin = low.copy()
    begin[1:] = np.where(group[1:] == group[:-1], np.maximum(low[1:], high[:-1] + 1), low[1:])
    of, window = spread(begin, high)
    start, end = edges(every, window)
    # The last window of a row is the last one so far, and none of its windows is empty.
    hi = np.searchsorted(of, np.arange(len(rows)), side="right")
    return Closed(rows, group, hi - (high - low + 1), hi, group[of], start, end, of)


def closed_sessions(gap: int, ts: Ints, session: Ints) -> Closed:
    """Closes sessions, which are over and have these rows at times `ts`, in order within each."""
    rows = order_of(session)
    session = session[rows]
    begins = np.append(True, session[1:] != session[:-1])
    first, point = np.flatnonzero(begins), np.cumsum(begins) - 1
    end = ts[rows[np.append(first[1:], len(rows)) - 1]] + gap
    return Closed(rows, session, point, point + 1, session[first], ts[rows[first]], end, first)


@dataclass(slots=True)
class WindowGroups:
    """Groups of windows that are over: their windows' `start` and `end`, the times of their first rows (`began`) and
    the oldest (`since`), their queries and their keys. `aggregates` returns those of some groups."""

    start: Ints
    end: Ints
    began: Ints
    since: Ints
    whose: Ints | None
    keys: list[pa.Array]
    aggregates: Callable[[Ints, Faults], list[pa.Array]]


def groups_of_rows(
    measures: Measures,
    closed: Closed,
    values: Sequence[pa.Array],
    times: Ints,
    oldest: pa.Array,
    whose: Ints | None,
    faults: Faults,
) -> WindowGroups:
    """Returns groups of rows. `values` are those of `measures.read`. They, `times`, `oldest` and `whose` are those of
    the rows of `closed`, in its order."""
    turns = spanned(closed.lo, closed.hi, closed.of_point)
    with faults.naming(_named(closed.end)):
        rows = measures.of_points(values, closed.first, closed.group, turns, faults, oldest)
    since = np.asarray(rows.pop(SINCE))
    keys = [rows[0, f"g{number}"] for number in range(len(measures.keys))]
    found = [rows[0, f"a{number}"] for number in range(len(measures.aggregates))]
    return WindowGroups(
        closed.start,
        closed.end,
        times[closed.first],
        since,
        None if whose is None else whose[closed.first],
        keys,
        lambda some, _: [taken(one, some) for one in found],
    )


def groups_of_sessions(held: SessionGroups, measures: Measures, sessions: Ints) -> WindowGroups:
    """Returns the groups of sessions that are over."""
    began, end = held.began(sessions), held.sessions.latest(sessions) + held.gap

    def aggregates(some: Ints, faults: Faults) -> list[pa.Array]:
        return values_of(measures.aggregates, held.aggregates.now(sessions[some]), faults)

    keys, since = held.keys(sessions), held.since(sessions)
    return WindowGroups(began, end, began, since, held.whose(sessions), keys, aggregates)


def groups_of_panes(
    held: PaneGroups, measures: Measures, panes: Ints, first: Ints, last: Ints
) -> WindowGroups:
    """Returns the groups of the windows from the first to the last of each group of a pane."""
    if held.is_whole:
        found = MergedGroups(panes, first, held.began(panes), held.since(panes), held.aggregates)
        asked = panes
    else:
        found = held.merged(panes, first, last)
        asked = np.arange(len(found.one))
    start, end = edges(held.every, found.window)

    def aggregates(some: Ints, faults: Faults) -> list[pa.Array]:
        return values_of(measures.aggregates, found.aggregates.now(asked[some]), faults)

    keys, whose = held.keys(found.one), held.whose(found.one)
    return WindowGroups(start, end, found.began, found.since, whose, keys, aggregates)


class GroupRows(NamedTuple):
    """Rows of groups: columns, the oldest time in each group, the end of its window, and its
    query."""

    columns: list[pa.Array]
    since: Ints
    end: Ints
    whose: Ints | None


def rows_of_groups(
    node: logical.PeriodGroups, measures: Measures, groups: WindowGroups, faults: Faults
) -> Iterator[GroupRows]:
    """Yields the rows of groups by query, by the ends of their windows, then by ORDER BY; equal
    ones by the times at which they began, and their keys. Many come in parts, unless an order of the rows of a window is
    asked for."""
    order, keys = _in_order(groups), groups.keys
    most = len(order) if node.order_by or node.limit is not None else _AT_ONCE
    for begin in range(0, len(order), max(most, 1)):
        part = order[begin : begin + most]
        end = groups.end[part]
        with faults.naming(_named(end)):
            found = groups.aggregates(part, faults)
            rows: Rows = {(0, f"g{n}"): taken(key, part) for n, key in enumerate(keys)}
            rows |= {(0, f"a{n}"): one for n, one in enumerate(found)}
            rows[-1, logical.WINDOW_START.name] = as_column(groups.start[part])
            rows[-1, logical.WINDOW_END.name] = as_column(end)
            whose = None if groups.whose is None else groups.whose[part]
            given = _Found(rows, end, groups.since[part], whose)
            if node.having is not None:
                having = measures.over(node.having)
                given = given.some(np.flatnonzero(holds(having, leaves(rows), len(part), faults)))
        with faults.naming(_named(given.end)):
            if node.order_by or node.limit is not None:
                given = given.some(_first(node, measures, given))
            leaf = leaves(given.rows)
            over = [measures.over(item.expression) for item in node.items]
            columns = [evaluate(e, leaf, len(given.end), faults) for e in over]
        yield GroupRows(columns, given.since, given.end, given.whose)


def _named(end: Ints) -> Callable[[int], str]:
    return lambda row: f"the group of the window that ends at ts {end[row]}"


class _Found(NamedTuple):
    """Groups with their keys and aggregates, in order."""

    rows: Rows
    end: Ints
    since: Ints
    whose: Ints | None = None

    def some(self, places: Ints) -> _Found:
        """Returns some of the groups, in another order."""
        rows = {key: taken(column, places) for key, column in self.rows.items()}
        whose = None if self.whose is None else self.whose[places]
        return _Found(rows, self.end[places], self.since[places], whose)


def _in_order(groups: WindowGroups) -> Ints:
    """Returns the order of groups by their windows and first times, then by their keys."""
    owners = () if groups.whose is None else (groups.whose,)
    numbers = (groups.began, groups.start, groups.end, *owners)
    order = lexsort(numbers)
    if len(order) < 2 or any((np.diff(one[order]) != 0).all() for one in numbers):
        return order
    by_key = [ranks(key, False, False) for key in reversed(groups.keys)]
    return lexsort((*by_key, *numbers))


def _first(node: logical.PeriodGroups, measures: Measures, found: _Found) -> Ints:
    """Returns the places of the first rows of each window of a query, in order."""
    start, end = np.asarray(found.rows[-1, logical.WINDOW_START.name]), found.end
    windows = (start, end) if found.whose is None else (start, end, found.whose)
    keys: list[Ints] = []
    for key in node.order_by:
        value = evaluate(measures.over(key.expression), leaves(found.rows), len(end))
        keys.append(ranks(value, key.descending, key.nulls_first))
    order = lexsort((*reversed(keys), *windows))
    if node.limit is None:
        return order
    begins = np.ones(len(order), np.bool_)
    begins[1:] = np.logical_or.reduce([np.diff(one[order]) != 0 for one in windows])
    places = np.arange(len(order))
    since = np.maximum.accumulate(np.where(begins, places, 0))
    first: Ints = order[places - since < node.limit]
    return first


def ranks(value: pa.Array, descending: bool, nulls_first: bool) -> Ints:
    """Returns numbers in the order of the values, equal where the values are."""
    if pa.types.is_floating(value.type):
        value = pc.add(value, pa.scalar(0.0, value.type))  # -0.0 is 0.0
    encoded = value.dictionary_encode()
    distinct = encoded.dictionary
    if pa.types.is_boolean(distinct.type):
        distinct = distinct.cast(pa.int8())
    order = np.asarray(pc.sort_indices(distinct))
    rank = np.empty(len(order) + 1, np.int64)
    rank[order] = np.arange(len(order))[:: -1 if descending else 1]
    rank[-1] = -1 if nulls_first else len(order)  # of NULL
    places = np.asarray(pc.fill_null(encoded.indices, len(order)), dtype=np.int64)
    return rank[places]
