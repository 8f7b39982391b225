"""Bounds that a condition on a difference puts on its two sides.

    abs(L.x - R.x) <= 0.5        L.x is at most 0.5 above R.x, and at least 0.5 below

Sums of reals are rounded, differences of timestamps are cut to milliseconds, and large integers
overflow. So the bounds are wider than the condition, by as little as is safe: an index finds some
pairs more, and the condition is evaluated for these.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

import numpy as np

from seustream.compiler.language import expressions as x
from seustream.compiler.language.convert import may_lack_value
from seustream.compiler.language.types import DOUBLE, Kind, Type, common
from seustream.engine.stream.numbers import Ints, is_ordered, of_doubles
from seustream.hdl.isa import Condition

_LEAST, _GREATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
_WHOLE = 1 << 53
"""Every integer up to here is a double."""
_BOUNDS = {
    Condition.LT: (Condition.LE,),
    Condition.LE: (Condition.LE,),
    Condition.GT: (Condition.GE,),
    Condition.GE: (Condition.GE,),
    Condition.EQ: (Condition.LE, Condition.GE),
}


@dataclass(frozen=True, slots=True)
class Difference:
    """`left - right op amount`, both as numbers of type `of`; `op` is LE or GE."""

    op: Condition
    left: x.Expression
    right: x.Expression
    amount: int | float
    of: Type

    @property
    def exchanged(self) -> Difference:
        """Returns the same bound with the sides exchanged."""
        return replace(
            self, op=self.op.mirrored(), left=self.right, right=self.left, amount=-self.amount
        )

    def bounds(self, right: Ints) -> Ints:
        """Returns the bounds on the left side beside numbers of the right one."""
        return moved(right, -self.amount, self.op is Condition.LE)


def differences(e: x.Expression) -> Iterator[Difference]:
    """Yields the bounds that hold wherever a condition is true."""
    if not isinstance(e, x.Compare):
        return
    for op, one, other in (
        (e.condition, e.left, e.right),
        (e.condition.mirrored(), e.right, e.left),
    ):
        bound = _number(other)
        if bound is None:
            continue
        if isinstance(one, x.Call) and one.function == "abs":
            if op in (Condition.LT, Condition.LE, Condition.EQ):
                yield from _bounds(Condition.LE, one.arguments[0], bound)
                yield from _bounds(Condition.GE, one.arguments[0], -bound)
        else:
            yield from _bounds(op, one, bound)


def _bounds(op: Condition, e: x.Expression, bound: Fraction) -> Iterator[Difference]:
    if not isinstance(e, x.Call) or e.function != "-":
        return
    (left, right), (one, other) = e.arguments, e.takes
    of = common(one, other)
    if of is None or not is_ordered(of):
        return
    if may_lack_value(left.type, of) or may_lack_value(right.type, of):
        return
    for side in _BOUNDS.get(op, ()):
        amount = _amount(bound, of, side is Condition.LE)
        if amount is not None:
            yield Difference(side, left, right, amount, of)


def _number(e: x.Expression) -> Fraction | None:
    """Returns a constant, an interval in milliseconds."""
    match e:
        case x.Literal(value=bool()):
            return None
        case x.Literal(value=int() | Decimal() as value):
            return Fraction(value)
        case x.Literal(value=float() as value) if math.isfinite(value):
            return Fraction(value)
        case x.Literal(value=datetime.timedelta() as value):
            return Fraction(value // datetime.timedelta(microseconds=1), 1000)
        case _:
            return None


def _amount(bound: Fraction, of: Type, below: bool) -> int | float | None:
    """Returns a bound on a difference in the unit of numbers of a type, moved outwards."""
    if abs(bound) >= _WHOLE:  # the comparison may be one of doubles
        return None
    if of == DOUBLE:
        return float(bound)
    match of.kind:
        case Kind.SMALLINT | Kind.INT | Kind.BIGINT:
            unit, cut = 1, 0
        case Kind.DECIMAL:
            unit, cut = 10 ** (of.scale or 0), 0
        case Kind.TIMESTAMP:
            unit, cut = 1000, 1000
        case _:
            return None
    return math.ceil(bound * unit) + cut if below else math.floor(bound * unit) - cut


def moved(values: Ints, amount: int | float, below: bool) -> Ints:
    """Returns the bounds on `value` that follow from `value + amount` being less (`below`) or more
    than numbers. They exclude no value that fits."""
    if isinstance(amount, float):
        return _moved_reals(values, amount, below)
    if amount == 0:
        return values
    if not _LEAST <= amount <= _GREATEST:
        return np.full(len(values), _GREATEST if below else _LEAST)
    if amount > 0:
        room = _LEAST + amount
        return np.maximum(values, room) - amount
    room = _GREATEST + amount
    return np.minimum(values, room) - amount


def _moved_reals(values: Ints, amount: float, below: bool) -> Ints:
    """Moves bounds of reals. Their sums are rounded, so the bounds are rounded outwards."""
    bits = np.where(values < 0, values ^ np.int64(_GREATEST), values)
    numbers = bits.view(np.float64)
    with np.errstate(all="ignore"):
        slack = 2.0**-50 * (np.abs(numbers) + abs(amount)) + 5e-324
        found = numbers - amount + (slack if below else -slack)
    found[np.isnan(found)] = np.inf if below else -np.inf
    return of_doubles(found + 0.0)
