"""From component sequence numbers to result rows.

Repeats dropped, residual conditions applied, rows put in order, columns projected.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from compiler.language import expressions as x
from compiler.plan.logical import RESULT_TIMES, Query
from engine.host.evaluate import Rows, evaluate, survivors
from engine.host.software import Side
from engine.stream.schema import arrow_type

Ints = npt.NDArray[np.int64]


def result_schema(query: Query) -> pa.Schema:
    """The columns of a query's results: its SELECT list, then the two times."""
    fields = [pa.field(item.name, arrow_type(item.expression.type)) for item in query.items]
    times = [pa.field(name, pa.int64(), nullable=False) for name in RESULT_TIMES]
    return pa.schema([*fields, *times])


def without_repeats(sequences: Ints) -> Ints:
    """Each combination once. A query whose terms overlap sees a result once for each term
    that holds, always for the same raw tuple."""
    return np.unique(sequences, axis=0) if len(sequences) else sequences


def rows_of(expressions: Sequence[x.Expression], sides: list[Side], sequences: Ints) -> Rows:
    """The columns the expressions read, for combinations given by sequence numbers."""
    wanted: dict[int, set[str]] = {}
    for e in expressions:
        for column in x.columns(e):
            wanted.setdefault(column.source, set()).add(column.name)
    rows: dict[tuple[int, str], pa.Array] = {}
    for source, names in wanted.items():
        store = sides[source].store
        for name, values in store.columns(names, store.index(sequences[:, source])).items():
            rows[source, name] = values
    return rows


def residual(conditions: tuple[x.Expression, ...], sides: list[Side], sequences: Ints) -> Ints:
    """The combinations for which what the device could not decide holds."""
    if not len(sequences):
        return sequences

    def rows(condition: x.Expression, index: Ints) -> Rows:
        return rows_of([condition], sides, sequences[index])

    return sequences[survivors(conditions, rows, len(sequences))]


def project(query: Query, sides: list[Side], sequences: Ints) -> pa.Table:
    """Result rows, in the order in which they came into being."""
    places = [side.store.index(sequences[:, source]) for source, side in enumerate(sides)]
    position = np.stack(
        [side.position[place] for side, place in zip(sides, places, strict=True)], axis=1
    )
    # By the newest component's arrival; within one arrival by the components, in FROM order.
    keys = [position[:, source] for source in reversed(range(len(sides)))]
    order = np.lexsort((*keys, position.max(axis=1)))
    sequences = sequences[order]
    times = np.stack(
        [side.store.timestamp[place] for side, place in zip(sides, places, strict=True)], axis=1
    )[order]
    rows = rows_of([item.expression for item in query.items], sides, sequences)
    return selected(query, rows, times.min(axis=1), times.max(axis=1))


def selected(query: Query, rows: Rows, oldest: Ints, newest: Ints) -> pa.Table:
    """The SELECT list over rows, and their two times."""
    columns = [evaluate(item.expression, rows, len(newest)) for item in query.items]
    return pa.table([*columns, oldest, newest], schema=result_schema(query))
