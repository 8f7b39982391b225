"""Chooses the index for aggregates and a window: section 10 of StreamAPAS."""

from __future__ import annotations

from collections.abc import Sequence

from seustream.compiler.apas.functions import Aggregate, Registered
from seustream.engine.temporal.aggregates.index import Index, ListIndex
from seustream.engine.temporal.aggregates.live import (
    Live,
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
    """Returns the list for keyed streams and for aggregates that cannot merge. Otherwise returns
    one structure per aggregate, its own if a library gives one. `in_order` says that te never
    decreases."""
    own = [function.index() for function in functions]
    able = all(f.merges or index is not None for f, index in zip(functions, own, strict=True))
    if deletes or not able:
        return ListIndex(functions, leaves)
    parts = [index or _live(f, in_order) for f, index in zip(functions, own, strict=True)]
    return SuffixIndex(functions, parts, leaves)


def _live(function: Aggregate, in_order: bool) -> Live:
    if isinstance(function, Registered) and not function.distinct:
        if function.entry.remove is not None:
            return RunningTotal(function)
        if function.entry.name in ("min", "max"):
            return Staircase(function.entry.name == "max")
    return TwoStacks(function) if in_order else MergeHeap(function)
