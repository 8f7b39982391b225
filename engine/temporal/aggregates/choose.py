"""Which index for which aggregates and window: section 10 of StreamAPAS."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.apas.functions import Aggregate, Average, Count, Greatest, Least, Sum
from engine.temporal.aggregates.index import Index, ListIndex, Values
from engine.temporal.aggregates.live import Live, MergeHeap, RunningTotal, Staircase, TwoStacks
from engine.temporal.aggregates.suffix import SuffixIndex


def choose(
    functions: Sequence[Aggregate],
    deletes: bool,
    in_order: bool,
    gap: Values | None = None,
) -> Index:
    """The list for keyed streams, for aggregates that cannot merge and where gaps are told; else a
    structure for each aggregate. `in_order` says that te never falls."""
    if deletes or gap is not None or not all(f.merges for f in functions):
        return ListIndex(functions, gap)
    return SuffixIndex([_live(function, in_order) for function in functions])


def _live(function: Aggregate, in_order: bool) -> Live:
    if isinstance(function, Count | Sum | Average):
        return RunningTotal(function)
    if isinstance(function, Least | Greatest):
        return Staircase(function)
    return TwoStacks(function) if in_order else MergeHeap(function)
