"""EMIT CHANGES after GROUP BY TUMBLE, HOP, CUMULATE and SESSION: how groups grow in their windows.

At each time at which rows come to a group of a window, its old row goes and its new one comes. The
last row stays: the rows that came and did not go are the query's result without EMIT CHANGES.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seustream.compiler.language.faults import Faults
from seustream.compiler.logical import program as logical
from seustream.engine.host.aggregates import spanned, values_of
from seustream.engine.host.rows import leaves
from seustream.engine.relational.held import ReadRows
from seustream.engine.relational.measures import Measures, Rows
from seustream.engine.relational.open_groups import PaneGroups, SessionGroups
from seustream.engine.relational.times import edges, numbers, sessions, spread
from seustream.engine.relational.told import (
    NOWHERE,
    Bools,
    Columns,
    RowNumbers,
    item_types,
    one_zero,
    signed,
)
from seustream.engine.stream.evaluate import evaluate, holds
from seustream.engine.stream.faults import QueryFaults
from seustream.engine.stream.merge import timestamps
from seustream.engine.stream.numbers import order_of
from seustream.engine.stream.sorting import lexsort
from seustream.engine.stream.spans import extremes
from seustream.engine.stream.taken import taken

Ints = npt.NDArray[np.int64]


@dataclass(slots=True)
class _WindowRows:
    """Groups of windows: `rows` side by side by group and window, and by time. `unit` numbers each
    pair of group and window; `start` and `end` are the window's, the end as far as it is known with
    this row."""

    rows: Ints
    unit: Ints
    start: Ints
    end: Ints

    def where(self, some: Bools) -> _WindowRows:
        """Returns the rows selected by a mask."""
        return _WindowRows(self.rows[some], self.unit[some], self.start[some], self.end[some])


class _Asked(NamedTuple):
    """Moments at which groups of windows are asked for their rows: side by side by group (`unit`, from 0 up), and by
    time. `rank` orders groups by their first rows. All but the `fresh` ones show what a group gave before."""

    unit: Ints
    rank: Ints
    time: Ints
    start: Ints
    end: Ints
    since: Ints
    fresh: Bools


def changes_of_groups(
    node: logical.PeriodGroups,
    held: PaneGroups | SessionGroups,
    rows: ReadRows,
    after: int,
    faults: QueryFaults,
) -> pa.Table:
    """Adds rows to their groups, by time; returns the changes by those that came after a time."""
    measures = held.measures
    ts, oldest, values = rows.times, np.asarray(rows.oldest), rows.values
    mark = ts
    if isinstance(held, PaneGroups):
        of, mark = spread(*numbers(held.every, ts))
        ts, oldest = ts[of], oldest[of]
        values = [taken(column, of) for column in values]
    keys, own = held.parted(values)
    known = len(held)
    group = held.numbers(mark, None, keys, ts, oldest)
    order = order_of(group)
    group, time, oldest = group[order], ts[order], oldest[order]
    begins = np.append(True, group[1:] != group[:-1])[: len(group)]
    last = np.append(begins[1:] | (time[1:] != time[:-1]), True)[: len(group)]
    # Groups that were there are asked before their first rows, all after those of each time.
    old, new = np.flatnonzero(begins & (group < known)), np.flatnonzero(last)
    until, at = np.concatenate((old, new + 1)), np.concatenate((old, new))
    by = lexsort((until, group[at]))
    until, at, is_old = until[by], at[by], by < len(old)
    asked, place = group[at], np.cumsum(begins) - 1
    unit = place[at]
    # The oldest time is that of the rows so far, and of those before them.
    lo = np.append(np.searchsorted(until, np.arange(len(group)), "right"), np.flatnonzero(is_old))
    hi = np.searchsorted(unit, np.append(place, unit[is_old]), side="right")
    since = np.append(oldest, held.since(group[old]))
    since = extremes(since, lo, hi, len(at), greatest=False)
    held.age(group, oldest)
    found = held.enter([taken(column, order) for column in own], group, until, asked)
    if isinstance(held, PaneGroups):
        start, end = edges(held.every, held.marks(asked))
    else:
        start = held.began(asked)
        end = np.where(is_old, held.sessions.previous[order][at], time[at]) + held.gap

    def rows_of(some: Bools, counting: Faults) -> Rows:
        places = np.flatnonzero(some)
        here = [one.some(places) for one in found]
        rows: Rows = {(0, f"g{n}"): key for n, key in enumerate(held.keys(asked[places]))}
        aggregates = values_of(measures.aggregates, here, counting)
        return rows | {(0, f"a{n}"): one for n, one in enumerate(aggregates)}

    fresh = ~is_old & (time[at] > after)
    return _changes(
        node, measures, _Asked(unit, asked, time[at], start, end, since, fresh), rows_of, faults
    )


def changes_of_rows(
    node: logical.PeriodGroups,
    measures: Measures,
    kept: pa.Table,
    group: Ints,
    span: tuple[int, int],
    faults: QueryFaults,
) -> pa.Table:
    """Returns the changes after the first time of `span` and up to the second. `kept` has the rows
    of all windows that are not over at the first, by time; `group` has their groups."""
    told, now = span
    ts = timestamps(kept)
    count = int(np.searchsorted(ts, now, side="right"))
    of = _grouped(node.every, group[:count], ts[:count])
    # Keeps only groups with a new row; the last old row of each shows what it gave before.
    fresh = ts[of.rows] > told
    grows = np.zeros(int(of.unit[-1]) + 1 if len(of.unit) else 0, np.bool_)
    grows[of.unit[fresh]] = True
    of = of.where(grows[of.unit])
    time, fresh = ts[of.rows], ts[of.rows] > told
    _, unit = np.unique(of.unit, return_inverse=True)
    last = np.ones(len(time), np.bool_)
    last[:-1] = (unit[1:] != unit[:-1]) | (time[1:] != time[:-1])
    before = np.zeros(len(time), np.bool_)
    before[:-1] = last[:-1] & ~fresh[:-1] & fresh[1:] & (unit[1:] == unit[:-1])
    point = (last & fresh) | before
    at = np.flatnonzero(point)
    lo: Ints = np.cumsum(point) - point
    hi = np.searchsorted(unit[at], unit, side="right")
    values = [column.combine_chunks() for column in kept.take(pa.array(of.rows)).columns]
    since = extremes(np.asarray(values[1]), lo, hi, len(at), greatest=False)

    def rows_of(asked: Bools, counting: Faults) -> Rows:
        some = np.flatnonzero(asked)
        points: Ints = np.cumsum(asked) - asked
        lows = np.append(points, len(some))[lo]
        turns = spanned(lows, np.full(len(lows), len(some)), unit[at[some]])
        return measures.of_points(values[2:], at[some], unit, turns, counting)

    first = np.searchsorted(unit, unit[at])
    moments = _Asked(unit[at], of.rows[first], time[at], of.start[at], of.end[at], since, fresh[at])
    return _changes(node, measures, moments, rows_of, faults)


def _changes(
    node: logical.PeriodGroups,
    measures: Measures,
    asked: _Asked,
    rows_of: Callable[[Bools, Faults], Rows],
    faults: QueryFaults,
) -> pa.Table:
    """Returns the changes at some moments. `rows_of` returns the keys and aggregates at those selected."""
    unit, time, fresh = asked.unit, asked.time, asked.fresh

    def rows(some: Bools, counting: Faults) -> tuple[Bools, Columns]:
        """Returns, for the moments selected, whether HAVING keeps the row, and the rows."""
        start, count = asked.start[some], int(some.sum())
        with counting.naming(
            lambda point: f"the group of the window that begins at ts {start[point]}"
        ):
            found = rows_of(some, counting)
            found[-1, logical.WINDOW_START.name] = pa.array(start)
            found[-1, logical.WINDOW_END.name] = pa.array(asked.end[some])
            there = np.ones(count, np.bool_)
            if node.having is not None:
                there[:] = False
                over = measures.over(node.having)
                there[np.flatnonzero(holds(over, leaves(found), count, counting))] = True
            items = [measures.over(item.expression) for item in node.items[1:]]
            shown = [evaluate(e, leaves(found), count, counting) for e in items]
            return there, [one_zero(column) for column in shown]

    scratch = Faults()
    there, shown = rows(np.ones(len(time), np.bool_), scratch)
    if scratch.total:  # old rows' faults were counted when they were new
        rows(fresh, faults)
    order = lexsort((asked.rank, asked.end, asked.start, time))
    order = order[fresh[order]]
    old = np.where((order > 0) & (unit[order - 1] == unit[order]), order - 1, NOWHERE)
    row: Ints = np.append(np.where(there, np.arange(len(time)), NOWHERE), NOWHERE)
    number = np.append(RowNumbers(item_types(node)).of(shown, len(time)), NOWHERE)
    goes, comes = row[old], row[order]
    some = number[goes] != number[comes]
    when, columns = time[order[some]], [*shown, pa.array(asked.since)]
    changes = signed(
        goes[some], comes[some], when, lambda at: [taken(column, at) for column in columns]
    )
    return changes.answer(node, changes.moment)


def _grouped(every: logical.Periodic | logical.Sessions, group: Ints, ts: Ints) -> _WindowRows:
    """Returns the rows by group and window; a row occurs once for each window that contains it."""
    if isinstance(every, logical.Sessions):
        rows, _, begins = sessions(every.gap, group, ts)
        session = np.cumsum(begins) - 1
        start = ts[rows[np.flatnonzero(begins)]][session]
        return _WindowRows(rows, session, start, ts[rows] + every.gap)
    first, last = numbers(every, ts)
    rows, window = spread(first, last)
    order = lexsort((rows, window, group[rows]))
    rows, window = rows[order], window[order]
    begins = np.ones(len(rows), np.bool_)
    begins[1:] = (np.diff(group[rows]) != 0) | (np.diff(window) != 0)
    start, end = edges(every, window)
    return _WindowRows(rows, np.cumsum(begins) - 1, start, end)
