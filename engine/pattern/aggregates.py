"""Aggregates over groups in columns: the groups of many matches are laid out one after the other.

The values are those of the registry's states. Counts, sums, means, minima and maxima of numbers are
computed for all groups together. Sums are computed exactly, in integers, and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from seustream.compiler.language.faults import Faults
from seustream.compiler.language.registry import FAULT
from seustream.compiler.pattern import ir
from seustream.compiler.pattern.rows import RowAggregate
from seustream.engine.pattern.batch import values
from seustream.engine.pattern.columns import Array, Binding, Bools, Ints, Prepared, holds, values_of
from seustream.engine.pattern.found import GroupMembers
from seustream.engine.pattern.leaves import Fold
from seustream.engine.stream.schema import arrow_type

_HALF = 31
"""Bits in the lower half of a number: numbers are summed half by half so that 64 bits do not
overflow."""
_EXACT, _SAFE = 1 << 53, 1 << 62
"""Integers below these are doubles, and do not overflow."""
_FEW = 1 << 21
"""Up to so many numbers, the sums of their halves are doubles."""


class Rows(Binding, Protocol):
    """The members of groups, as bindings."""

    def kept(self, rows: Bools) -> Rows: ...


def over_groups(
    e: ir.GroupAggregate | RowAggregate, rows: Rows, members: GroupMembers, faults: Faults | None
) -> pa.Array:
    """Returns the aggregate of each group; `rows` are the groups' members."""
    size, owner, ends = len(members.counts), members.owner, members.ends
    every = rows
    if e.aggregate.where is not None:
        true = holds(Prepared(e.aggregate.where), rows, faults)
        rows, owner = rows.kept(true), owner[true]
    fold = Fold(e)
    columns = [values_of(argument, rows, faults) for argument in fold.arguments]
    some = np.ones(len(owner), bool)
    for column in columns:
        if column.null_count:
            some &= column.is_valid().to_numpy(zero_copy_only=False)
    if not some.all():
        owner, columns = owner[some], [column.filter(pa.array(some)) for column in columns]
    counts = np.bincount(owner, minlength=size).astype(np.int64)
    found = _together(e, columns, counts)
    if isinstance(found, np.ndarray):
        no_rows = counts == 0 if e.aggregate.function != "count" else None
        return pa.array(found, mask=no_rows).cast(arrow_type(e.type))
    if found is None:
        found = []
        lists, at = [values(column) for column in columns], 0
        for number in counts.tolist():
            found.append(fold(zip(*(one[at : at + number] for one in lists), strict=True)))
            at += number
    for group, value in enumerate(found):
        if value is FAULT:
            if faults is not None:
                faults.add(fold.place, 1, every.arrival(int(ends[group]) - 1))
            found[group] = None
    return pa.array(found, arrow_type(e.type))


def _together(
    e: ir.GroupAggregate | RowAggregate, columns: Sequence[pa.Array], counts: Ints
) -> Array | list[Any] | None:
    """Returns the values of all groups, or None where each group has to be computed by itself. In an
    array, that of a group without rows means nothing, unless it is their count."""
    function = e.aggregate.function
    if e.aggregate.distinct:
        return None
    if function == "count":
        return counts
    kind = columns[0].type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return None
    numbers = columns[0].to_numpy()
    if function in ("min", "max") and len(numbers):
        return _ends(function, numbers, counts)
    if function in ("sum", "avg"):
        return _sums(function, numbers, counts)
    return None


def _ends(function: str, numbers: Array, counts: Ints) -> Array:
    of = np.minimum if function == "min" else np.maximum
    some = counts > 0
    found = np.zeros(len(counts), numbers.dtype)
    found[some] = of.reduceat(numbers, (np.cumsum(counts) - counts)[some])
    return found


def _sums(function: str, numbers: Array, counts: Ints) -> Array | list[Any] | None:
    """Returns sums or means computed in integers of one unit, or None where no unit suits all
    numbers."""
    unit, real = 0, numbers.dtype.kind == "f"
    whole = numbers
    if real:
        numbers = numbers.astype(np.float64)
        if not np.isfinite(numbers).all():
            return None
        exponents = np.frexp(numbers)[1][numbers != 0]
        if len(exponents):
            unit = int(exponents.min()) - 53
            if int(exponents.max()) - unit > 62 or unit < -1_000:
                return None
        whole = np.ldexp(numbers, -unit)
    whole = whole.astype(np.int64)
    high, low = (_added(part, counts) for part in (whole >> _HALF, whole & ((1 << _HALF) - 1)))
    if counts.max(initial=0) < _FEW:
        sums = np.ldexp(high.astype(np.float64), _HALF) + low  # of two exact numbers
        greatest = np.abs(sums).max(initial=0)
        if function == "avg" and greatest < _EXACT:
            return np.ldexp(sums / np.maximum(counts, 1), unit)
        if function == "sum" and real:
            with np.errstate(over="ignore"):  # infinite beyond the doubles, as other sums are
                return np.ldexp(sums, unit)
        if function == "sum" and greatest < _SAFE:
            return (high << _HALF) + low
    found: list[Any] = []
    for above, below, count in zip(high.tolist(), low.tolist(), counts.tolist(), strict=True):
        total = (above << _HALF) + below
        if not count:
            found.append(None)
        elif not real and not -(1 << 63) <= total < 1 << 63:
            found.append(FAULT)
        elif function == "avg":
            found.append(_scaled(total / count, unit))
        else:
            found.append(_scaled(total, unit) if real else total)
    return found


def _scaled(number: float, unit: int) -> float:
    """Returns number · 2^unit, which is infinite beyond the doubles, as other sums are."""
    try:
        return math.ldexp(number, unit)
    except OverflowError:
        return math.copysign(math.inf, number)


def _added(numbers: Ints, counts: Ints) -> Ints:
    """Returns the sum of each group."""
    sums = np.concatenate([[0], np.cumsum(numbers)])
    ends = np.cumsum(counts)
    found: Ints = sums[ends] - sums[ends - counts]
    return found
