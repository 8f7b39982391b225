"""Conditions on many bindings at once, by the evaluator of columns.

A part of a condition that depends on one event alone is *hoisted*: it is evaluated once per event
of its list instead of once per binding, where that is less work. If the part has a fault in some
event, the condition is evaluated in place, so that faults count only in bindings.

    before  a.price > b.price * 1.1      the product for every pair of a and b
    after   a.price > Once(b, b.price * 1.1)      the product for every b, then taken
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seustream.compiler.language import expressions as x
from seustream.compiler.language.faults import Faults
from seustream.compiler.language.types import Type
from seustream.compiler.pattern import ir
from seustream.compiler.pattern.ir import Pick
from seustream.engine.stream import evaluate as columns
from seustream.engine.stream.taken import taken as columns_taken

Array = npt.NDArray[Any]
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
T = TypeVar("T")


def taken(column: pa.Array, rows: Array | slice) -> pa.Array:
    """Returns some rows of a column, chosen by number, by mask, or as a slice."""
    if isinstance(rows, slice):
        return column[rows]
    if rows.dtype == np.bool_:
        return column.filter(pa.array(rows))
    return columns_taken(column, rows)


@dataclass(frozen=True, slots=True)
class Once(x.Leaf):
    """A part of a condition about the event of one element, or with EACH about one member."""

    element: int
    pick: Pick
    part: x.Expression
    type: Type

    def show(self) -> str:
        return x.show(self.part)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A condition in its original form, and with its parts hoisted."""

    whole: x.Expression
    hoisted: x.Expression = field(init=False)
    parts: tuple[Once, ...] = field(init=False)

    def __post_init__(self) -> None:
        hoisted = _hoist(self.whole)
        object.__setattr__(self, "hoisted", hoisted)
        parts = tuple(leaf for leaf in x.leaves(hoisted) if isinstance(leaf, Once))
        object.__setattr__(self, "parts", parts)


def _hoist(e: x.Expression) -> x.Expression:
    if not x.children(e):
        return e
    leaves = set()
    for leaf in x.leaves(e):
        known = isinstance(leaf, ir.Value) and leaf.pick in (Pick.ONE, Pick.EACH)
        leaves.add((leaf.element, leaf.pick) if known and isinstance(leaf, ir.Value) else None)
    if len(leaves) == 1 and (only := leaves.pop()) is not None:
        return Once(*only, e, e.type)
    return x.rebuild(e, _hoist)


class Binding(Protocol):
    """The columns an expression reads: per row, the event of an element or a value of its group."""

    size: int
    faults: Faults | None  # collects faults within aggregates

    def leaf(self, e: x.Leaf) -> pa.Array:
        """Returns the column of a leaf."""

    def hoists(self, part: Once) -> bool:
        """Returns whether the part is known for its whole list."""

    def arrival(self, row: int) -> int:
        """Returns the arrival number of the newest event in a row."""


def holds(prepared: Prepared, binding: Binding, faults: Faults | None = None) -> Bools:
    """Returns where a condition is TRUE."""
    e = prepared.hoisted
    if prepared.parts and not all(map(binding.hoists, prepared.parts)):
        e = prepared.whole
    return _of_columns(columns.holds, e, binding, faults)


def values_of(e: x.Expression, binding: Binding, faults: Faults | None = None) -> pa.Array:
    """Returns the value for each binding."""
    return _of_columns(columns.evaluate, e, binding, faults)


def _of_columns(
    evaluate: Callable[..., T], e: x.Expression, binding: Binding, faults: Faults | None
) -> T:
    binding.faults = faults
    found = None if faults is None else Faults()
    value = evaluate(e, binding.leaf, binding.size, found)
    if faults is not None and found is not None and found.count:
        count(found, binding, faults)
    return value


def count(found: Faults, binding: Binding, faults: Faults) -> None:
    """Counts faults under the number of the event at which each first occurred."""
    for place, rows in found.count.items():
        faults.add(place, rows, binding.arrival(found.first[place]))
