"""Arithmetic without rounding: 64-bit integers, decimals of up to 38 digits, whole milliseconds.

Every function here returns None for a value that its type does not hold; the caller turns it into a
fault.
"""

from __future__ import annotations

import datetime
import math
from decimal import ROUND_HALF_UP, Context, Decimal

from seustream.compiler.language.types import MAX_PRECISION, MICROSECOND, MILLISECOND, Type, decimal

LOW, HIGH = -(1 << 63), (1 << 63) - 1

WIDE = Context(prec=120, rounding=ROUND_HALF_UP, Emax=999_999, Emin=-999_999, traps=[])
"""Holds every product and sum of two decimals exactly."""


_KEPT_SCALE = 6
"""Digits after the point that a result of more than 38 digits keeps, as in Spark."""


def bounded(value: int) -> int | None:
    """Returns the integer if it fits 64 bits."""
    return value if LOW <= value <= HIGH else None


def number(value: float) -> float | None:
    """Returns the real unless it is NaN."""
    return None if value != value else value


def truncated(a: int, b: int) -> int:
    """Returns the quotient of two integers, rounded towards zero; `b` is not 0."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def capped(precision: int, scale: int) -> Type:
    """Returns a decimal type of at most 38 digits; digits after the point go first, down to six."""
    if precision <= MAX_PRECISION:
        return decimal(max(precision, 1), scale)
    before = precision - scale
    return decimal(MAX_PRECISION, max(MAX_PRECISION - before, min(scale, _KEPT_SCALE)))


def fitted(value: Decimal | int, to: Type) -> Decimal | None:
    """Rounds the value half up to the scale of a decimal type; None if it does not fit."""
    assert to.length is not None
    assert to.scale is not None
    rounded = WIDE.plus(WIDE.quantize(Decimal(value), Decimal((0, (1,), -to.scale))))
    if not rounded.is_finite() or (rounded.adjusted() >= to.length - to.scale and rounded):
        return None
    return rounded


def quotient(a: Decimal | int, b: Decimal | int, to: Type) -> Decimal | None:
    """Returns `a / b` rounded once, half up; None if b is 0 or the result does not fit."""
    if not b:
        return None
    assert to.scale is not None
    top, bottom = Decimal(a).as_integer_ratio(), Decimal(b).as_integer_ratio()
    n, d = top[0] * bottom[1] * 10**to.scale, top[1] * bottom[0]
    whole = (2 * abs(n) + abs(d)) // (2 * abs(d))
    if len(str(whole)) > MAX_PRECISION:
        return None
    return fitted(Decimal(whole if (n < 0) == (d < 0) else -whole).scaleb(-to.scale, WIDE), to)


def milliseconds(span: datetime.timedelta) -> int:
    """Returns the milliseconds of an interval, rounded towards zero."""
    return truncated(span // MICROSECOND, 1000)


def interval(size: int) -> datetime.timedelta | None:
    """Returns the interval of this many milliseconds, if there is one."""
    try:
        return size * MILLISECOND
    except OverflowError:
        return None


# --- sums of reals ----------------------------------------------------------------

UNIT = 1074
"""The smallest double is 2 to the power of minus this."""


def units(value: float) -> int:
    """Returns a finite real as a multiple of the smallest one."""
    top, bottom = value.as_integer_ratio()
    return top << UNIT + 1 - bottom.bit_length()


def ratio(top: int, bottom: int) -> float:
    """Returns the real nearest to a ratio; division of integers yields it without reduction."""
    try:
        return top / bottom
    except OverflowError:
        return math.inf if top > 0 else -math.inf
