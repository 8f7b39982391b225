"""Chooses the index for aggregates and a window: section 10 of StreamAPAS."""

from __future__ import annotations

from collections.abc import Sequence

from seustream.compiler.apas.functions import Aggregate, Registered
from seustream.engine.temporal.aggregates.index import Index, ListIndex
from seustream.engine.temporal.aggregates.live import (
    Live,
    LiveRows,
    MergeHeap,
    RunningTotal,
    Staircase,
    TwoStacks,
)
from seustream.engine.temporal.aggregates.suffix import SuffixIndex


def choose(
    functions: Sequence[Aggregate],
    deletes: bool,
    in_order: bool,
    leaves: Sequence[int] | None = None,
) -> Index:
    """Returns the list for keyed streams and for aggregates of users that cannot merge. Otherwise
    returns one structure per aggregate, its own if a library gives one. `in_order` says that te never
    decreases."""
    own = [function.index() for function in functions]
    able = all(
        f.merges or index is not None or isinstance(f, Registered)
        for f, index in zip(functions, own, strict=True)
    )
    if deletes or not able:
        return ListIndex(functions, leaves)
    parts = [index or _live(f, in_order) for f, index in zip(functions, own, strict=True)]
    return SuffixIndex(functions, parts, leaves)


def _live(function: Aggregate, in_order: bool) -> Live:
    if isinstance(function, Registered):
        entry = function.entry
        if entry.ordered:
            return _ordered(function, in_order)
        if not function.distinct and entry.remove is not None:
            return RunningTotal(function)
        if not function.distinct and entry.name in ("min", "max"):
            return Staircase(entry.name == "max")
    return TwoStacks(function) if in_order else MergeHeap(function)


def _ordered(function: Registered, in_order: bool) -> Live:
    """Returns a structure for an aggregate that needs the order of rows. With DISTINCT the last row is the
    one of which no equal came before; to the first of the best rows it makes no difference."""
    entry = function.entry
    last_of_distinct = function.distinct and entry.name == "last"
    if in_order and not entry.collects and not last_of_distinct:
        return TwoStacks(Registered(entry, function.of))
    return LiveRows(function)
