"""EMIT CHANGES after GROUP BY TUMBLE, HOP, CUMULATE and SESSION: how groups grow in their windows.

At each time at which rows come to a group of a window, its old row goes and its new one comes. The
last row stays: the rows that came and did not go are the query's result without EMIT CHANGES.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seustream.compiler.language.faults import Faults
from seustream.compiler.logical import program as logical
from seustream.engine.host.aggregates import spanned
from seustream.engine.host.rows import leaves
from seustream.engine.relational.measures import Measures
from seustream.engine.relational.times import edges, numbers, sessions
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


def changes_of(
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

    def rows(asked: Bools, counting: Faults) -> tuple[Bools, Columns]:
        """Returns, for the points asked for, whether HAVING keeps the row, and the rows."""
        some = np.flatnonzero(asked)
        points: Ints = np.cumsum(asked) - asked
        lows = np.append(points, len(some))[lo]
        turns = spanned(lows, np.full(len(lows), len(some)), unit[at[some]])
        start = of.start[at[some]]
        with counting.naming(
            lambda point: f"the group of the window that begins at ts {start[point]}"
        ):
            found = measures.of_points(values[2:], at[some], unit, turns, counting)
            found[-1, logical.WINDOW_START.name] = pa.array(start)
            found[-1, logical.WINDOW_END.name] = pa.array(of.end[at[some]])
            there = np.ones(len(some), np.bool_)
            if node.having is not None:
                there[:] = False
                over = measures.over(node.having)
                there[np.flatnonzero(holds(over, leaves(found), len(some), counting))] = True
            items = [measures.over(item.expression) for item in node.items[1:]]
            shown = [evaluate(e, leaves(found), len(some), counting) for e in items]
            return there, [one_zero(column) for column in shown]

    scratch = Faults()
    there, shown = rows(np.ones(len(at), np.bool_), scratch)
    if scratch.total:  # old rows' faults were counted when they were new
        rows(fresh[at], faults)
    first = np.searchsorted(unit, unit[at])
    order = lexsort((of.rows[first], of.end[at], of.start[at], time[at]))
    order = order[fresh[at][order]]
    old = np.where((order > 0) & (unit[at[order - 1]] == unit[at[order]]), order - 1, NOWHERE)
    row: Ints = np.append(np.where(there, np.arange(len(at)), NOWHERE), NOWHERE)
    number = np.append(RowNumbers(item_types(node)).of(shown, len(at)), NOWHERE)
    goes, comes = row[old], row[order]
    some = number[goes] != number[comes]
    when, columns = time[at][order[some]], [*shown, pa.array(since)]
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
    copies = last - first + 1
    rows = np.repeat(np.arange(len(ts)), copies)
    window = first[rows] + np.arange(len(rows)) - np.repeat(np.cumsum(copies) - copies, copies)
    order = lexsort((rows, window, group[rows]))
    rows, window = rows[order], window[order]
    begins = np.ones(len(rows), np.bool_)
    begins[1:] = (np.diff(group[rows]) != 0) | (np.diff(window) != 0)
    start, end = edges(every, window)
    return _WindowRows(rows, np.cumsum(begins) - 1, start, end)
