"""A sorted index of the constants that conditions compare one expression with.

    v > 10, v > 20, v = 15, v BETWEEN 12 AND 30     each an interval of values of v

All intervals are looked up at once: a value is searched once among their bounds, which gives all
intervals that contain it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from seustream.compiler.language import expressions as x
from seustream.compiler.language.convert import may_lack_value
from seustream.compiler.language.types import Kind
from seustream.engine.host.links import shift
from seustream.engine.kernels import native
from seustream.engine.stream.evaluate import evaluate
from seustream.engine.stream.numbers import Flags, Key, Numbers, converted, is_ordered, numbers
from seustream.hdl.isa import Condition

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int32]
"""Rows of a step: there are never so many that they need more than 32 bits."""

_LEAST, _GREATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
_CODES = native.Codes()  # of no use to ordered numbers


@dataclass(frozen=True, slots=True)
class Interval:
    """The values of `key` that some conditions of a query allow, both bounds included: ordered
    numbers, or a text. `conditions` are the conditions it stands for."""

    key: Key
    low: int | str
    high: int | str
    conditions: tuple[x.Expression, ...]

    @property
    def rank(self) -> int:
        """0 for one value, 1 for a range, 2 for a threshold."""
        if self.low == self.high:
            return 0
        return 1 + (self.low == _LEAST or self.high == _GREATEST)


def intervals(conditions: Iterable[x.Expression]) -> dict[Key, Interval]:
    """Returns the intervals allowed by conditions that compare an expression with a constant, by
    expression."""
    found: dict[Key, Interval] = {}
    for e in conditions:
        one = _interval(e)
        if one is None:
            continue
        before = found.get(one.key)
        if before is None:
            # `_interval` may have cached an equal condition of another text, with the places of
            # that one.
            found[one.key] = Interval(one.key, one.low, one.high, (e,))
        elif isinstance(one.low, int) and isinstance(before.low, int):
            low, high = max(before.low, one.low), min(before.high, one.high)
            found[one.key] = Interval(one.key, low, high, (*before.conditions, e))
    return found


@functools.lru_cache(maxsize=1 << 14)
def _interval(e: x.Expression) -> Interval | None:
    if not isinstance(e, x.Compare):
        return None
    op, side, constant = e.condition, e.left, e.right
    if isinstance(side, x.Literal):
        op, side, constant = op.mirrored(), constant, side
    if not isinstance(constant, x.Literal) or constant.value is None or not x.columns(side):
        return None
    if may_lack_value(side.type, e.of) or may_lack_value(constant.type, e.of):
        return None
    key = (side, e.of)
    if e.of.is_text and op is Condition.EQ:
        text = str(evaluate(converted((constant, e.of)), _no_leaf, 1)[0].as_py())
        return Interval(key, text, text, (e,))
    if not is_ordered(e.of) or op not in _BOUNDS:
        return None
    value = int(numbers(evaluate(converted((constant, e.of)), _no_leaf, 1), _CODES)[0][0])
    below, above = _BOUNDS[op]
    inner, amount = shift(side, e.of)
    if amount and inner.type.kind in (Kind.SMALLINT, Kind.INT) and abs(amount) < 1 << 62:
        key, value = (inner, e.of), value - int(amount)  # a sum that always has a value
    low = _LEAST if below is None else value + below
    high = _GREATEST if above is None else value + above
    if low > _GREATEST or high < _LEAST:  # beyond the greatest number there is none
        low, high = 0, -1
    low, high = max(low, _LEAST), min(high, _GREATEST)
    return Interval(key, low, high, (e,))


_BOUNDS: dict[Condition, tuple[int | None, int | None]] = {
    Condition.EQ: (0, 0),
    Condition.GT: (1, None),
    Condition.GE: (0, None),
    Condition.LT: (None, -1),
    Condition.LE: (None, 0),
}
"""By comparison, the offsets of the least and the greatest allowed number from the constant."""


def _no_leaf(e: x.Leaf) -> pa.Array:
    raise AssertionError(e)


class ConstantIndex:
    """Intervals over one expression, by their number."""

    def __init__(self, some: Sequence[Interval]) -> None:
        self.key = some[0].key
        self._texts: pa.Array | None = None
        if self.key[1].is_text:
            texts = sorted({str(one.low) for one in some})
            self._texts = pa.array(texts, pa.string())
            place = {text: number for number, text in enumerate(texts)}
            self.low = self.high = np.array([place[str(one.low)] for one in some], np.int64)
        else:
            self.low = np.array([one.low for one in some], np.int64)
            self.high = np.array([one.high for one in some], np.int64)
        self._intervals = native.Intervals()
        self._intervals.configure(self.low, self.high)
        self._only = int(self.low[0]), int(self.high[0])
        by_low = np.argsort(self.low, kind="stable")
        self._union = _union(self.low[by_low], self.high[by_low])

    def numbers(self, column: pa.Array) -> Numbers:
        """Returns a column as numbers that compare with the intervals."""
        if self._texts is not None:
            found = pc.index_in(column, value_set=self._texts).fill_null(-1)
            values = np.asarray(found.cast(pa.int64()))
            flags = np.asarray(column.is_valid()).view(np.uint8) if column.null_count else None
            return values, flags
        return numbers(column, _CODES)

    def admits(self, column: pa.Array) -> Bools:
        """Returns which rows are in some interval."""
        values, flags = self.numbers(column)
        lows, highs = self._union
        place = np.searchsorted(lows, values, side="right") - 1
        inside: Bools = (place >= 0) & (values <= highs[np.maximum(place, 0)])
        return inside if flags is None else inside & (flags != 0)

    def matches(self, values: Ints, flags: Flags) -> list[tuple[int, Places]]:
        """Returns each interval that contains some rows, with these rows in order."""
        if len(self.low) == 1:
            fits = np.empty(len(values), np.int32)
            count = native.inside(values, flags, *self._only, fits)
            return [(0, fits[:count])] if count else []
        found, pairs = self._intervals.find(values, flags)
        those, counts = np.empty(found, np.int64), np.empty(found, np.int64)
        rows = np.empty(pairs, np.int32)
        self._intervals.take(those, counts, rows)
        everything, begin, parts = np.arange(len(values), dtype=np.int32), 0, []
        for number, count in zip(those.tolist(), counts.tolist(), strict=True):
            if count == len(everything):
                parts.append((number, everything))
            else:
                parts.append((number, rows[begin : begin + count]))
                begin += count
        return parts


def _union(lows: Ints, highs: Ints) -> tuple[Ints, Ints]:
    """Returns disjoint intervals that cover the given ones, which are sorted by lower bound."""
    some = lows <= highs
    lows, highs = lows[some], highs[some]
    if not len(lows):
        return np.array([0]), np.array([-1])
    reach = np.maximum.accumulate(highs)
    begins = np.concatenate([[True], lows[1:] > reach[:-1]])
    ends = np.concatenate([begins[1:], [True]])
    return lows[begins], reach[ends]
