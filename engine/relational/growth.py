"""EMIT CHANGES after GROUP BY TUMBLE, HOP, CUMULATE and SESSION: how groups grow in their windows.

At each time at which rows come to a group of a window, its old row goes and its new one comes. The
last row stays: the rows that came and did not go are the query's result without EMIT CHANGES.
"""

from __future__ import annotations

from collections.abc import Iterator
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
from seustream.engine.stream.answers import answer
from seustream.engine.stream.evaluate import evaluate, holds
from seustream.engine.stream.faults import QueryFaults
from seustream.engine.stream.merge import timestamps
from seustream.engine.stream.schema import arrow_type
from seustream.engine.stream.spans import extremes

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


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

    def rows(asked: Bools, counting: Faults) -> Iterator[tuple[bool, tuple[object, ...]]]:
        """Yields, for the points asked for, whether HAVING keeps the row, and the row."""
        some = np.flatnonzero(asked)
        points: Ints = np.cumsum(asked) - asked
        lows = np.append(points, len(some))[lo]
        turns = spanned(lows, np.full(len(lows), len(some)), unit[at[some]])
        named = [f"the group of the window that begins at ts {of.start[at[one]]}" for one in some]
        with counting.naming(named.__getitem__):
            found = measures.of_points(values[2:], at[some], unit, turns, counting)
            found[-1, logical.WINDOW_START.name] = pa.array(of.start[at[some]])
            found[-1, logical.WINDOW_END.name] = pa.array(of.end[at[some]])
            there = np.ones(len(some), np.bool_)
            if node.having is not None:
                there[:] = False
                over = measures.over(node.having)
                there[np.flatnonzero(holds(over, leaves(found), len(some), counting))] = True
            items = [measures.over(item.expression) for item in node.items[1:]]
            columns = [evaluate(e, leaves(found), len(some), counting).to_pylist() for e in items]
        cells = zip(*columns, strict=True) if columns else [()] * len(some)
        yield from zip(there.tolist(), cells, strict=True)

    scratch = Faults()
    shown = list(rows(np.ones(len(at), np.bool_), scratch))
    if scratch.total:  # old rows' faults were counted when they were new
        list(rows(fresh[at], faults))
    first = np.searchsorted(unit, unit[at])
    order = np.lexsort((of.rows[first], of.end[at], of.start[at], time[at]))
    places, signs = list[int](), list[str]()
    for place in order[fresh[at][order]].tolist():
        old = place - 1 if place and unit[at[place - 1]] == unit[at[place]] else None
        gone, come = old is not None and shown[old][0], shown[place][0]
        if gone and come and old is not None and shown[old][1] == shown[place][1]:
            continue
        places += [place - 1] * gone + [place] * come
        signs += ["-"] * gone + ["+"] * come
    found = [shown[place][1] for place in places]
    types = [arrow_type(item.expression.type) for item in node.items[1:]]
    columns = [pa.array([row[n] for row in found], kind) for n, kind in enumerate(types)]
    when = np.array(places, np.int64) + (np.array(signs, object) == "-")
    times = [pa.array(since[places]), pa.array(time[at][when.astype(np.int64)])]
    return answer(node, [pa.array(signs, pa.string()), *columns, *times])


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
    order = np.lexsort((rows, window, group[rows]))
    rows, window = rows[order], window[order]
    begins = np.ones(len(rows), np.bool_)
    begins[1:] = (np.diff(group[rows]) != 0) | (np.diff(window) != 0)
    start, end = edges(every, window)
    return _WindowRows(rows, np.cumsum(begins) - 1, start, end)
