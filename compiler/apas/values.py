"""What casts and operators compute, one value at a time.

INTEGER is signed 64-bit: overflow and division by zero raise `NoValue`, a node's exception.
DOUBLE is IEEE. DATETIME is milliseconds since the epoch.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from compiler.apas.types import BOOLEAN, DATETIME, DOUBLE, INTEGER, ORDERINGS, STRING, Type

LOWEST, HIGHEST = -(2**63), 2**63 - 1
_DAY = 86_400_000


class NoValue(ArithmeticError):
    """An operation has no value: an INTEGER overflow or a division by zero."""


def checked(value: int) -> int:
    if not LOWEST <= value <= HIGHEST:
        raise NoValue(f"{value} is no INTEGER of 64 bits")
    return value


def _divided(a: int, b: int) -> int:
    """Toward zero."""
    if b == 0:
        raise NoValue(f"{a} / 0")
    quotient = abs(a) // abs(b)
    return checked(quotient if (a < 0) == (b < 0) else -quotient)


def _ieee_divided(a: float, b: float) -> float:
    if b:
        return a / b
    if a == 0 or math.isnan(a):
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def iso8601(milliseconds: int) -> str:
    """UTC with milliseconds and Z; years of more than four digits with a sign, as the standard
    has it."""
    days, rest = divmod(milliseconds, _DAY)
    year, month, day = _civil(days)
    seconds, ms = divmod(rest, 1000)
    years = f"{year:04d}" if 0 <= year <= 9999 else f"{year:+05d}"
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{years}-{month:02d}-{day:02d}T{clock}.{ms:03d}Z"


def _civil(days: int) -> tuple[int, int, int]:
    """The Gregorian date so many days after 1970-01-01. A year here starts in March, so that the
    leap day is its last, and 400 years are 146,097 days."""
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (
        day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month + 2) // 5 + 1
    year = year_of_era + 400 * era + (1 if month >= 10 else 0)
    return year, month + 3 if month < 10 else month - 9, day


_CASTS: dict[tuple[Type, Type], Callable[[Any], Any]] = {
    (BOOLEAN, STRING): lambda v: "True" if v else "False",
    (BOOLEAN, DOUBLE): float,
    (BOOLEAN, INTEGER): int,
    (INTEGER, DOUBLE): float,
    (INTEGER, STRING): str,
    (DATETIME, DOUBLE): float,
    (DATETIME, STRING): iso8601,
    (DOUBLE, STRING): repr,
}

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

_OPERATORS: dict[tuple[str, Type], Callable[..., Any]] = {
    ("+", INTEGER): lambda a, b: checked(a + b),
    ("-", INTEGER): lambda a, b: checked(a - b),
    ("*", INTEGER): lambda a, b: checked(a * b),
    ("/", INTEGER): _divided,
    ("negate", INTEGER): lambda a: checked(-a),
    ("AND", INTEGER): operator.and_,
    ("OR", INTEGER): operator.or_,
    ("XOR", INTEGER): operator.xor,
    ("NOT", INTEGER): operator.invert,
    ("+", DOUBLE): operator.add,
    ("-", DOUBLE): operator.sub,
    ("*", DOUBLE): operator.mul,
    ("/", DOUBLE): _ieee_divided,
    ("negate", DOUBLE): operator.neg,
    ("+", STRING): operator.add,
    # AND and OR of BOOLEANs are evaluated by whoever can leave out the second argument.
    ("AND", BOOLEAN): lambda a, b: a and b,
    ("OR", BOOLEAN): lambda a, b: a or b,
    ("XOR", BOOLEAN): operator.ne,
    ("NOT", BOOLEAN): operator.not_,
}


def cast(source: Type, target: Type) -> Callable[[Any], Any]:
    return _CASTS[source, target]


def operation(name: str, ct: Type) -> Callable[..., Any]:
    """The function of an operator at a computation type."""
    return _COMPARE[name] if name in ("==", *ORDERINGS) else _OPERATORS[name, ct]


def fits(value: object, type: Type) -> bool:
    """Whether this is a value of the type."""
    if type is BOOLEAN:
        return isinstance(value, bool)
    if isinstance(value, bool):
        return False
    if type is DOUBLE:
        return isinstance(value, float)
    if type is STRING:
        return isinstance(value, str)
    return isinstance(value, int) and LOWEST <= value <= HIGHEST
