"""APAS's leaves over whole columns, for the evaluator of all languages
(`seustream.engine.stream.evaluate`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from seustream.compiler.apas import expressions as a
from seustream.compiler.apas import network as n
from seustream.compiler.apas.functions import Scalar
from seustream.compiler.language.expressions import Expression, Leaf
from seustream.compiler.language.faults import Faults, Place
from seustream.compiler.language.types import Type
from seustream.engine.stream.evaluate import Leaves, evaluate, survivors
from seustream.engine.stream.schema import arrow_type
from seustream.engine.stream.taken import taken as of_column
from seustream.engine.temporal import library
from seustream.engine.temporal.elements import LATEST_MOMENT, LEAST_MOMENT

Ints = npt.NDArray[np.int64]
Array = Sequence[Any]
"""ts and te as NumPy columns, then Arrow arrays."""


class Evaluator:
    """Evaluates over the incoming columns; results are written to `out` by place."""

    def __init__(self, frame: n.Places, columns: Array, count: int, faults: Faults) -> None:
        self.frame, self.columns, self.count, self.faults = frame, columns, count, faults
        self.out: dict[int, pa.Array] = {}

    def value(self, e: Expression) -> pa.Array:
        return evaluate(e, self.leaf, self.count, self.faults)

    def leaf(self, leaf: Leaf) -> pa.Array:
        if isinstance(leaf, a.Invoke):
            self.steps(leaf.before)
            function = leaf.bound.function
            return self._call(leaf.name, function, leaf.arguments, [leaf.type])[0]
        assert isinstance(leaf, a.LeafRead)
        at = self.frame.reads.get(leaf.place)
        if at is None:
            return self.out[self.frame.writes[leaf.place]]
        return moments(self.columns[at]) if at < 2 else self.columns[at]

    def steps(self, steps: Sequence[a.Step]) -> None:
        for step in steps:
            if isinstance(step, a.Assign):
                self.out[self.frame.writes[step.place]] = self.value(step.value)
                continue
            self.steps(step.before)
            types = step.bound.result.types
            found = self._call(step.name, step.bound.function, step.arguments, types)
            for path, column in zip(step.paths, found, strict=True):
                self.out[self.frame.writes[step.structure, path]] = column

    def _call(
        self, name: str, function: object, arguments: Sequence[Expression], types: Sequence[Type]
    ) -> list[pa.Array]:
        """Calls a library's function, row by row. It is NULL for a NULL argument, and where it
        raises, which is a fault."""
        assert isinstance(function, Scalar)
        values = [self.value(argument).to_pylist() for argument in arguments]
        nothing = (None,) * len(types)
        rows = []
        for number, row in enumerate(zip(*values, strict=True) if values else [()] * self.count):
            try:
                rows.append(nothing if None in row else function.call(row))
            except BaseException as error:
                if not library.is_theirs(error):
                    raise
                self.faults.add(Place(None, name, library.reason(error)), 1, number)
                rows.append(nothing)
        with library.calling(name):
            return [
                pa.array([row[i] for row in rows], arrow_type(of)) for i, of in enumerate(types)
            ]


def moments(times: Ints) -> pa.Array:
    """Converts times of tuples to DATETIMEs. Times outside the years 1 to 9999, such as never,
    become NULL."""
    far = (times < LEAST_MOMENT) | (times > LATEST_MOMENT)
    some = bool(far.any())
    return pa.array(
        (np.where(far, 0, times) if some else times) * 1000, mask=far if some else None
    ).cast(pa.timestamp("us"))


def holds(filter: n.Filter, columns: Array, count: int, faults: Faults) -> Ints:
    """Returns the rows for which all conditions hold."""

    def leaves(condition: Expression, left: Ints) -> Leaves:
        if len(left) == count:
            return Evaluator(filter.frame, columns, count, faults).leaf
        return Evaluator(filter.frame, Taken(columns, left), len(left), faults).leaf

    with faults.naming(interval_of(columns)):
        return survivors(filter.conditions, leaves, count, faults)


def interval_of(columns: Sequence[Any]) -> Callable[[int], str]:
    """Returns a function that names a row by its lifetime."""
    return lambda row: f"[{columns[0][row]},{columns[1][row]})"


class Taken(Sequence[Any]):
    """Some rows of columns, each column taken when it is asked for."""

    def __init__(self, columns: Array, rows: Ints) -> None:
        self.columns, self.rows = columns, rows

    def __len__(self) -> int:
        return len(self.columns)

    def __getitem__(self, at: Any) -> Any:
        return taken(self.columns[at], self.rows)


def only(column: Any, rising: Ints) -> Any:
    """Returns the values at these places, which are strictly increasing."""
    return column if len(rising) == len(column) else taken(column, rising)


def taken(column: Any, rows: Ints | slice) -> Any:
    """Returns some rows of a column."""
    if isinstance(column, np.ndarray):
        return column[rows]
    if isinstance(rows, slice):
        start, stop, _ = rows.indices(len(column))
        return column.slice(start, max(stop - start, 0))
    return of_column(column, rows)


def mapped(map: n.Map, columns: Array, count: int, faults: Faults) -> list[pa.Array]:
    """Returns the result's columns, without ts and te."""
    evaluator = Evaluator(map.frame, columns, count, faults)
    with faults.naming(interval_of(columns)):
        evaluator.steps(map.steps)
    return [evaluator.out[at] for at in range(2, map.width)]


def for_library(shown: str, columns: Sequence[pa.Array]) -> list[npt.NDArray[Any]]:
    """Returns columns in the form that libraries expect; raises `LibraryFailed` if one has a
    NULL."""
    if any(column.null_count for column in columns):
        raise library.LibraryFailed(f"{shown}: an argument is NULL")
    return [as_numpy(column) for column in columns]


def as_numpy(column: pa.Array) -> npt.NDArray[Any]:
    """Returns a column without NULL as a NumPy array."""
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        return np.asarray(column)
    if pa.types.is_timestamp(kind):
        return np.asarray(pc.cast(column, pa.int64())).astype("datetime64[us]")
    found = np.empty(len(column), np.object_)
    found[:] = column.to_pylist()
    return found
