"""Functions of numbers: integers stay integers, decimals stay decimals, everything else is real."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal
from typing import Any

from seustream.compiler.language.exact import (
    WIDE,
    bounded,
    fitted,
    interval,
    milliseconds,
    number,
)
from seustream.compiler.language.functions.arithmetic import DECIMAL, OVERFLOW
from seustream.compiler.language.functions.columns import constant
from seustream.compiler.language.registry import (
    ANYTHING,
    INTEGER,
    REAL_NUMBER,
    SPAN,
    ScalarFunction,
    Signature,
)
from seustream.compiler.language.types import (
    BIGINT,
    DOUBLE,
    EPOCH,
    INT,
    INTERVAL,
    MAX_PRECISION,
    MICROSECOND,
    Type,
    decimal,
)

DOMAIN = "outside its domain"

_ROUNDING = Context(prec=800, rounding=ROUND_HALF_UP, Emax=999_999, Emin=-999_999, traps=[])
"""Holds every digit of a double."""

# --- result types -------------------------------------------------------------


def _same(types: Sequence[Type]) -> Type:
    return types[0]


def _whole(types: Sequence[Type]) -> Type:
    """Returns a decimal type of scale 0; rounding may need one more digit before the point."""
    of = types[0]
    if of.is_unknown:
        return decimal(MAX_PRECISION, 0)
    assert of.length is not None
    assert of.scale is not None
    return decimal(min(of.length - of.scale + 1, MAX_PRECISION), 0)


def _carried(types: Sequence[Type]) -> Type:
    """Returns a decimal type of the same scale with one more digit before the point."""
    of = types[0]
    if of.is_unknown:
        return decimal(MAX_PRECISION, 0)
    assert of.length is not None
    return decimal(min(of.length + 1, MAX_PRECISION), of.scale or 0)


# --- rounding -----------------------------------------------------------------


def _real_to_whole(whole: Callable[[float], int]) -> Callable[[float], float]:
    """Rounds a real; infinities stay unchanged, and a zero keeps its sign."""

    def row(value: float) -> float:
        return math.copysign(whole(value), value) if math.isfinite(value) else value

    return row


def _half_up(value: float) -> int:
    """Rounds to the nearest integer; ties go away from zero."""
    whole = math.floor(abs(value))
    whole += abs(value) - whole >= 0.5
    return whole if value > 0 else -whole


def _decimal_to_whole(rounding: str) -> Callable[[Type, Decimal], Decimal | None]:
    def row(to: Type, value: Decimal) -> Decimal | None:
        return fitted(value.to_integral_value(rounding, WIDE), to)

    return row


def _round_integer(value: int, places: int) -> int | None:
    if places >= 0:
        return value
    if places < -20:
        return 0
    unit = 10**-places
    whole = (abs(value) + unit // 2) // unit * unit
    return bounded(whole if value >= 0 else -whole)


def _round_decimal(to: Type, value: Decimal, places: int) -> Decimal | None:
    if places <= -MAX_PRECISION:
        return fitted(0, to)
    if places < (to.scale or 0):
        value = WIDE.quantize(value, Decimal((0, (1,), -places)))
    return fitted(value, to)


def _round_real(value: float, places: int) -> float:
    """Rounds the shortest decimal that stands for the real, so that 2.675 gives 2.68."""
    if not math.isfinite(value) or places > 400:
        return value
    if not value:
        return 0.0
    if places < -310:
        return math.copysign(0.0, value)
    exact = Decimal(repr(value))
    rounded = _ROUNDING.quantize(exact, Decimal((0, (1,), -places)))
    return math.copysign(float(rounded), value)


_FEW = 64
_MOST_PLACES = 15
_MOST_SCALED = 1e14


def _rounded_to_places(pc: Any, value: Any, places: Any) -> Any:
    """Rounds by comparing with the double that lies halfway.

    That double is the quotient of two exact ones, so it is the nearest to the halfway number. This
    number has at most 15 digits and is therefore the decimal form of its double: a real as written
    is rounded up exactly if it is not below that double. The quotient at the end is the nearest
    double to the rounded number for the same reason.
    """
    count = constant(places)
    if len(value) < _FEW or not 0 <= count <= _MOST_PLACES:
        raise ValueError("by rows")
    unit, size = 10.0**count, pc.abs(value)
    most = pc.max(size).as_py()
    if most is None or most * unit >= _MOST_SCALED:
        raise ValueError("too many digits")
    below = pc.floor(pc.multiply(size, unit))
    halfway = pc.divide(pc.add(below, 0.5), unit)
    whole = pc.if_else(pc.greater_equal(size, halfway), pc.add(below, 1.0), below)
    rounded = pc.divide(whole, unit)
    return pc.if_else(pc.less(value, 0.0), pc.negate(rounded), rounded)


def _rounded(pc: Any, value: Any) -> Any:
    return pc.round(value, ndigits=0, round_mode="half_towards_infinity")


def _widened(pc: Any, value: Any) -> Any:
    """Adds a digit to decimals, without which Arrow rounds 9.5 to 0."""
    return pc.add(value, Decimal(0))


# --- real functions -----------------------------------------------------------


def _real(compute: Callable[..., float]) -> Callable[..., float | None]:
    """Wraps a function of `math` and returns C's values where Python raises: an overflow is
    infinite."""

    def row(*values: float) -> float | None:
        try:
            return number(compute(*values))
        except ValueError:
            return None
        except OverflowError:
            return math.inf

    return row


def _power(base: float, exponent: float) -> float | None:
    try:
        return number(math.pow(base, exponent))
    except OverflowError:
        odd = exponent % 2 == 1
        return -math.inf if base < 0 and odd else math.inf
    except ValueError:
        if base:
            return None
        odd = exponent % 2 == 1 and math.copysign(1, base) < 0
        return -math.inf if odd else math.inf


def _sign(value: float) -> float:
    return math.copysign(1.0, value) if value else 0.0


def _kernel(name: str) -> Callable[..., Any]:
    return lambda pc, *arguments: getattr(pc, name)(*arguments)


def _positive(name: str) -> Callable[..., Any]:
    """Returns a logarithm, which has no value at 0 and below."""

    def columns(pc: Any, value: Any) -> Any:
        try:
            return getattr(pc, f"{name}_checked")(value)
        except ValueError:
            return getattr(pc, name)(pc.if_else(pc.greater(value, 0.0), value, None))

    return columns


def _in_product(factor: float) -> Callable[..., Any]:
    return lambda pc, value: pc.multiply(value, factor)


def _bucket(value: float, low: float, high: float, buckets: int) -> int | None:
    if buckets <= 0 or low == high or not math.isfinite(low) or not math.isfinite(high):
        return None
    if not math.isfinite(value):
        return 0 if (value < low) == (low < high) else bounded(buckets + 1)
    least, most = min(low, high), max(low, high)
    along = value - least if low < high else most - value
    if (value < low) if low < high else (value > low):
        return 0
    if (value >= high) if low < high else (value <= high):
        return bounded(buckets + 1)
    share = buckets * along / (most - least)
    return bounded(int(share) + 1) if math.isfinite(share) else None


# --- hash ---------------------------------------------------------------------

_MASK = 0xFFFFFFFF
_SHORT_DIGITS = 18
"""Decimals of up to this many digits are hashed as bigints."""


def _mixed(state: int, word: int) -> int:
    """Mixes one word into a Murmur3 state."""
    word = word * 0xCC9E2D51 & _MASK
    word = (word << 15 | word >> 17) & _MASK
    state ^= word * 0x1B873593 & _MASK
    state = (state << 13 | state >> 19) & _MASK
    return (state * 5 + 0xE6546B64) & _MASK


def _finished(state: int, length: int) -> int:
    state ^= length
    state ^= state >> 16
    state = state * 0x85EBCA6B & _MASK
    state ^= state >> 13
    state = state * 0xC2B2AE35 & _MASK
    return state ^ state >> 16


def _byte_words(raw: bytes) -> tuple[list[int], int]:
    """Returns words of four bytes, and the remaining bytes one at a time, as Spark does."""
    whole = len(raw) // 4 * 4
    words = [word for (word,) in struct.iter_unpack("<i", raw[:whole])]
    return [*words, *struct.unpack(f"{len(raw) - whole}b", raw[whole:])], len(raw)


def _words(value: Any) -> tuple[list[int], int]:
    """Returns what is hashed of a value, as words, and its number of bytes."""
    match value:
        case bool():
            return [int(value)], 4
        case str():
            return _byte_words(value.encode())
        case Decimal():
            long = int(value.scaleb(-int(value.as_tuple().exponent), WIDE))
            if abs(long) >= 10**_SHORT_DIGITS:
                return _byte_words(
                    long.to_bytes((long + (long < 0)).bit_length() // 8 + 1, "big", signed=True)
                )
        case int():
            long = value
        case float():
            (long,) = struct.unpack("<q", struct.pack("<d", value or 0.0))
        case datetime():
            long = (value - EPOCH) // MICROSECOND
        case date():
            return [(value - EPOCH.date()).days], 4
        case time():
            long = (datetime.combine(EPOCH, value) - EPOCH) // MICROSECOND
        case timedelta():
            long = value // MICROSECOND
    return [long & _MASK, long >> 32 & _MASK], 8


def _hash(*values: Any) -> int:
    """Computes Murmur3 with Spark's seed, value by value; skips NULLs."""
    state = 42
    for value in values:
        if value is not None:
            words, length = _words(value)
            for word in words:
                state = _mixed(state, word & _MASK)
            state = _finished(state, length)
    return state - (1 << 32) if state >> 31 else state


# --- entries ------------------------------------------------------------------


def _of_one(
    name: str,
    row: Callable[[float], float],
    doc: str,
    example: str,
    columns: Callable[..., Any] | None = None,
) -> ScalarFunction:
    """Defines a real function of one real."""
    return ScalarFunction(
        name, (REAL_NUMBER,), DOUBLE, _real(row), doc, example, columns, fault=DOMAIN,
    )  # fmt: skip


NUMBERS: tuple[ScalarFunction, ...] = (
    ScalarFunction(
        "abs", (INTEGER,), BIGINT, row=lambda a: bounded(abs(a)), columns=_kernel("abs_checked"),
        doc="The number or interval without its sign.", example="abs(-3)", fault=OVERFLOW,
        overloads=(
            Signature((DECIMAL,), _same, lambda a: a.copy_abs(), _kernel("abs")),
            Signature((REAL_NUMBER,), DOUBLE, abs, _kernel("abs")),
            Signature((SPAN,), INTERVAL, lambda a: interval(milliseconds(abs(a))),
                     fault="interval overflow"),
        ),
    ),
    ScalarFunction(
        "ceil", (INTEGER,), BIGINT, row=lambda a: a, columns=lambda pc, a: a,
        doc="The least whole number that is not less.", example="ceil(2.1)", aliases=("ceiling",),
        overloads=(
            Signature((DECIMAL,), _whole, _decimal_to_whole(ROUND_CEILING),
                     lambda pc, to, a: pc.ceil(_widened(pc, a)), typed=True),
            Signature((REAL_NUMBER,), DOUBLE, _real_to_whole(math.ceil), _kernel("ceil")),
        ),
    ),
    ScalarFunction(
        "floor", (INTEGER,), BIGINT, row=lambda a: a, columns=lambda pc, a: a,
        doc="The greatest whole number that is not greater.", example="floor(2.9)",
        overloads=(
            Signature((DECIMAL,), _whole, _decimal_to_whole(ROUND_FLOOR),
                     lambda pc, to, a: pc.floor(_widened(pc, a)), typed=True),
            Signature((REAL_NUMBER,), DOUBLE, _real_to_whole(math.floor), _kernel("floor")),
        ),
    ),
    ScalarFunction(
        "trunc", (INTEGER,), BIGINT, row=lambda a: a, columns=lambda pc, a: a,
        doc="The number without what stands after the point.", example="trunc(-2.9)",
        overloads=(
            Signature((DECIMAL,), _whole, _decimal_to_whole(ROUND_DOWN),
                     lambda pc, to, a: pc.trunc(a), typed=True),
            Signature((REAL_NUMBER,), DOUBLE, _real_to_whole(math.trunc), _kernel("trunc")),
        ),
    ),
    ScalarFunction(
        "round", (INTEGER,), BIGINT, row=lambda a: a, columns=lambda pc, a: a,
        doc="The nearest number with so many digits after the point, none if not said; of two, "
        "the one further from zero. A negative number of digits rounds before the point.",
        example="round(2.675, 2)", fault=OVERFLOW,
        overloads=(
            Signature((INTEGER, INTEGER), BIGINT, _round_integer),
            Signature((DECIMAL,), _whole, _decimal_to_whole(ROUND_HALF_UP),
                     lambda pc, to, a: _rounded(pc, _widened(pc, a)), typed=True, fault="decimal overflow"),
            Signature((DECIMAL, INTEGER), _carried, _round_decimal, typed=True,
                     fault="decimal overflow"),
            Signature((REAL_NUMBER,), DOUBLE, _real_to_whole(_half_up), _rounded),
            Signature((REAL_NUMBER, INTEGER), DOUBLE, _round_real, _rounded_to_places),
        ),
    ),
    ScalarFunction(
        "sign", (REAL_NUMBER,), DOUBLE, row=_sign, columns=_kernel("sign"),
        doc="-1, 0 or 1, as the number is below, at or above 0.", example="sign(-3)",
        aliases=("signum",),
    ),
    _of_one("sqrt", math.sqrt, "The square root.", "sqrt(2)", _kernel("sqrt")),
    _of_one("cbrt", math.cbrt, "The cube root.", "cbrt(27)"),
    _of_one("exp", math.exp, "e to the power of the number.", "exp(1)", _kernel("exp")),
    _of_one("ln", math.log, "The natural logarithm.", "ln(10)", _positive("ln")),
    _of_one("log10", math.log10, "The logarithm to base 10.", "log10(1000)", _positive("log10")),
    _of_one("log2", math.log2, "The logarithm to base 2.", "log2(8)", _positive("log2")),
    ScalarFunction(
        "power", (REAL_NUMBER, REAL_NUMBER), DOUBLE, row=_power, columns=_kernel("power"),
        doc="The first number to the power of the second.", example="power(2, 10)",
        aliases=("pow",), fault=DOMAIN,
    ),
    ScalarFunction(
        "pi", (), DOUBLE, row=lambda: math.pi, doc="The number pi.", example="pi()",
    ),
    _of_one("sin", math.sin, "The sine of an angle in radians.", "sin(1)", _kernel("sin")),
    _of_one("cos", math.cos, "The cosine of an angle in radians.", "cos(1)", _kernel("cos")),
    _of_one("tan", math.tan, "The tangent of an angle in radians.", "tan(1)", _kernel("tan")),
    _of_one("asin", math.asin, "The angle with this sine.", "asin(1)", _kernel("asin")),
    _of_one("acos", math.acos, "The angle with this cosine.", "acos(1)", _kernel("acos")),
    _of_one("atan", math.atan, "The angle with this tangent.", "atan(1)", _kernel("atan")),
    ScalarFunction(
        "atan2", (REAL_NUMBER, REAL_NUMBER), DOUBLE, row=math.atan2, columns=_kernel("atan2"),
        doc="The angle of the point (x, y), given y and x.", example="atan2(1, 1)",
    ),
    _of_one("degrees", math.degrees, "The angle in degrees.", "degrees(pi())",
            _in_product(180 / math.pi)),
    _of_one("radians", math.radians, "The angle in radians.", "radians(180)",
            _in_product(math.pi / 180)),
    ScalarFunction(
        "width_bucket", (REAL_NUMBER, REAL_NUMBER, REAL_NUMBER, INTEGER), BIGINT, row=_bucket,
        doc="The bucket of a number, from 1, when the range from a low to a high bound is cut "
        "into so many of one width; 0 below the range, one more than the buckets above it.",
        example="width_bucket(5.3, 0, 10, 5)", fault=DOMAIN,
    ),
    ScalarFunction(
        "bit_count", (INTEGER,), BIGINT, row=lambda a: (a & (1 << 64) - 1).bit_count(),
        doc="How many of the 64 bits of an integer are set.", example="bit_count(6)",
    ),
    ScalarFunction(
        "hash", (ANYTHING,), INT, row=_hash, variadic=True, strict=False, quiet=True,
        doc="A hash of the values, spread over all 32-bit integers; NULL is a value, too, as in `hash(NULL)`.",
        example="hash('a', 1)",
    ),
)  # fmt: skip
