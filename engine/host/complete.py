"""Turns component sequence numbers into result rows.

Drops repeats, applies residual conditions, puts rows in order, projects columns.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seustream.compiler.language import expressions as x
from seustream.compiler.language.faults import Faults
from seustream.compiler.logical.program import Query
from seustream.engine.host.join import Side, combination
from seustream.engine.host.rows import Rows, leaves
from seustream.engine.stream.answers import Names, columns_read, result_schema
from seustream.engine.stream.evaluate import Leaves, evaluate, survivors
from seustream.engine.stream.numbers import as_column
from seustream.engine.stream.sorting import lexsort

Ints = npt.NDArray[np.int64]


def without_repeats(sequences: Ints) -> Ints:
    """Returns each combination once. A query whose terms overlap sees a result once for each term
    that holds, always for the same raw tuple."""
    return np.unique(sequences, axis=0) if len(sequences) else sequences


def rows_of(read: Names, sides: list[Side], sequences: Ints) -> Rows:
    """Returns some columns of combinations given by sequence numbers."""
    rows: dict[tuple[int, str], pa.Array] = {}
    for source, names in read.items():
        store = sides[source].store
        for name, values in store.columns(names, store.index(sequences[:, source])).items():
            rows[source, name] = values
    return rows


def residual(
    conditions: tuple[x.Expression, ...], sides: list[Side], sequences: Ints, faults: Faults
) -> Ints:
    """Returns the combinations for which the conditions hold that the device could not decide."""
    if not len(sequences):
        return sequences

    def columns(condition: x.Expression, index: Ints) -> Leaves:
        return leaves(rows_of(x.columns_by_source([condition]), sides, sequences[index]))

    with faults.naming(lambda row: combination(sides, sequences[row])):
        return sequences[survivors(conditions, columns, len(sequences), faults)]


def project(query: Query, sides: list[Side], sequences: Ints, faults: Faults) -> pa.Table:
    """Returns result rows, in the order in which they came into being."""
    positions = [
        side.position[side.store.index(sequences[:, source])] for source, side in enumerate(sides)
    ]
    order = arrival_order(functools.reduce(np.maximum, positions), positions)
    return in_order(query, sides, sequences if order is None else sequences[order], faults)


def in_order(query: Query, sides: list[Side], sequences: Ints, faults: Faults) -> pa.Table:
    """Returns result rows, in the order of the combinations."""
    times = [
        side.store.timestamp[side.store.index(sequences[:, source])]
        for source, side in enumerate(sides)
    ]
    timed = [ts for ts, of in zip(times, query.sources, strict=True) if not of.stream.table]
    rows = rows_of(columns_read(query), sides, sequences)
    with faults.naming(lambda row: combination(sides, sequences[row])):
        return selected(
            query,
            rows,
            as_column(functools.reduce(np.minimum, timed)),
            as_column(functools.reduce(np.maximum, times)),
            faults,
        )


def arrival_order(newest: Ints, positions: Sequence[Ints]) -> Ints | None:
    """Returns the order of results by the newest component's arrival, and within one arrival by the
    components, in FROM order; None where they are already in it."""
    if len(newest) < 2:
        return None
    keys = [newest, *positions]
    # `stays`: all keys so far are equal, so that the next key decides.
    stays = np.ones(len(newest) - 1, np.bool_)
    for key in keys:
        if np.any(stays & (key[1:] < key[:-1])):
            order: Ints = lexsort(keys[::-1])
            return order
        stays &= key[1:] == key[:-1]
    return None


def selected(
    query: Query, rows: Rows, oldest: pa.Array, newest: pa.Array, faults: Faults
) -> pa.Table:
    """Returns the SELECT list over rows, with their two times."""
    leaf = leaves(rows)
    columns = [evaluate(item.expression, leaf, len(newest), faults) for item in query.items]
    return pa.Table.from_arrays([*columns, oldest, newest], schema=result_schema(query))
