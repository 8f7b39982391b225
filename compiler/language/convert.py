"""Converts values between types: the meaning of CAST, and the implicit conversion of operands.

`converter(of, to)` returns a function of one non-NULL value; it gives None for a value that the
target type does not have. As in Spark, a real or a decimal is truncated when it becomes an integer,
and rounded half up to the digits of a decimal. A text is read without surrounding spaces. A real
becomes the shortest text that stands for it.
"""

from __future__ import annotations

import datetime
import math
import re
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from seustream.compiler.language.exact import WIDE, fitted, interval, milliseconds
from seustream.compiler.language.types import (
    BIGINT,
    EPOCH,
    Kind,
    Type,
    digits,
    integer_range,
    read_time,
)

Converter = Callable[[Any], Any]

_INTEGER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)", re.ASCII)
_REAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_INFINITE = {"inf": math.inf, "infinity": math.inf}
_BOOLEANS = {
    **dict.fromkeys(("t", "true", "y", "yes", "1"), True),
    **dict.fromkeys(("f", "false", "n", "no", "0"), False),
}
_MOST_DIGITS = 400


def converter(of: Type, to: Type) -> Converter | None:
    """Returns the conversion from one type to another, None if it changes nothing."""
    if of == to or of.is_unknown or to.is_unknown or to.kind is Kind.LIST:
        return None
    if to.is_text:
        return _to_text(of, to)
    if of.is_text:
        return _from_text(to)
    match to.kind:
        case Kind.BOOLEAN:
            return bool if of.kind is not Kind.BOOLEAN else None
        case Kind.SMALLINT | Kind.INT | Kind.BIGINT:
            return _to_integer(of, to.kind)
        case Kind.DECIMAL:
            return _to_decimal(of, to)
        case Kind.DOUBLE:
            return None if of.is_inexact else _to_double(of)
        case Kind.REAL:
            return to_real if of.is_inexact else _after(_to_double(of), to_real)
        case Kind.DATE:
            return datetime.datetime.date if of.kind is Kind.TIMESTAMP else None
        case Kind.TIME:
            return _clock if of.kind is Kind.TIMESTAMP else None
        case Kind.TIMESTAMP if of.kind is Kind.DATE:
            return _midnight
        case Kind.TIMESTAMP if of.kind is Kind.TIME:
            return _first_day
        case Kind.INTERVAL if of.is_integer:
            return interval
    return None


def _after(first: Converter, second: Converter) -> Converter:
    return lambda value: second(first(value))


def may_lack_value(of: Type, to: Type) -> bool:
    """Returns whether implicit conversion of an operand may fail: only decimals of 38 digits may be
    too narrow."""
    if not to.is_decimal or of.is_unknown or of == to:
        return False
    (p, s), (q, r) = digits(BIGINT if of.kind is Kind.INTERVAL else of), digits(to)
    return p - s > q - r


# --- numbers ------------------------------------------------------------------


def _to_integer(of: Type, kind: Kind) -> Converter | None:
    low, high = integer_range(kind)
    if of.is_integer and integer_range(of.kind)[1] <= high:
        return None

    def within(value: int) -> int | None:
        return value if low <= value <= high else None

    if of.kind is Kind.INTERVAL:
        return lambda value: within(milliseconds(value))
    if of.is_inexact:
        return lambda value: within(math.trunc(value)) if math.isfinite(value) else None
    return lambda value: within(int(value))


def _to_decimal(of: Type, to: Type) -> Converter:
    if of.is_inexact:
        return lambda value: fitted(Decimal(repr(value)), to) if math.isfinite(value) else None
    if of.kind is Kind.INTERVAL:
        return lambda value: fitted(Decimal(milliseconds(value)), to)
    return lambda value: fitted(Decimal(value), to)


def _to_double(of: Type) -> Converter:
    return (lambda value: float(milliseconds(value))) if of.kind is Kind.INTERVAL else float


def to_real(value: float) -> float:
    """Returns the nearest 32-bit real; infinity beyond the largest."""
    try:
        (narrow,) = struct.unpack("f", struct.pack("f", value))
    except OverflowError:
        return math.copysign(math.inf, value)
    return float(narrow)


# --- texts --------------------------------------------------------------------


def _to_text(of: Type, to: Type) -> Converter | None:
    show = _shown(of)
    length = to.length
    if length is None or (of.is_text and of.length is not None and of.length <= length):
        return show
    if show is None:
        return lambda value: value[:length]
    shown = show
    return lambda value: shown(value)[:length]


def _shown(of: Type) -> Converter | None:
    match of.kind:
        case Kind.CHAR | Kind.VARCHAR:
            return None
        case Kind.BOOLEAN:
            return lambda value: "true" if value else "false"
        case Kind.DECIMAL:
            return lambda value: f"{value:f}"
        case Kind.DOUBLE:
            return _shortest
        case Kind.REAL:
            return lambda value: _shortest(_shortest_real(value))
        case Kind.INTERVAL:
            return lambda value: f"{milliseconds(value)} ms"
        case Kind.TIMESTAMP:
            return lambda value: _fraction_cut(value.isoformat(" "))
        case Kind.TIME:
            return lambda value: _fraction_cut(value.isoformat())
        case Kind.DATE:
            return datetime.date.isoformat
    return str


def _shortest(value: float) -> str:
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(value)


def _shortest_real(value: float) -> float:
    """Returns the double with the fewest digits that is nearest to a 32-bit real."""
    for places in range(6, 9):
        short = float(f"{value:.{places}g}")
        if to_real(short) == value:
            return short
    return float(f"{value:.9g}")


def _fraction_cut(text: str) -> str:
    """Drops trailing zeros from a fraction of a second."""
    return text.rstrip("0") if "." in text else text


def _from_text(to: Type) -> Converter | None:
    match to.kind:
        case Kind.BOOLEAN:
            return lambda text: _BOOLEANS.get(text.strip().lower())
        case Kind.SMALLINT | Kind.INT | Kind.BIGINT:
            return _read_integer(to.kind)
        case Kind.DECIMAL:
            return _read_decimal(to)
        case Kind.DOUBLE:
            return read_double
        case Kind.REAL:
            return _read_real
        case Kind.DATE:
            return _read_date
        case Kind.TIME | Kind.TIMESTAMP | Kind.INTERVAL:
            return lambda text: read_time(text, to.kind)
    return None


def _read_integer(kind: Kind) -> Converter:
    low, high = integer_range(kind)

    def read(text: str) -> int | None:
        text = text.strip()
        if len(text) > _MOST_DIGITS or not _INTEGER.fullmatch(text):
            return None
        whole = text.partition(".")[0]
        value = int(whole) if whole.strip("+-") else 0
        return value if low <= value <= high else None

    return read


def _read_decimal(to: Type) -> Converter:
    def read(text: str) -> Decimal | None:
        text = text.strip()
        if len(text) > _MOST_DIGITS or not _REAL.fullmatch(text):
            return None
        value = WIDE.create_decimal(text) if "e" in text.lower() else Decimal(text)
        return None if value and value.adjusted() > _MOST_DIGITS else fitted(value, to)

    return read


def read_double(text: str) -> float | None:
    """Parses a real."""
    text = text.strip()
    if _REAL.fullmatch(text):
        return float(text)
    sign = -1.0 if text.startswith("-") else 1.0
    found = _INFINITE.get(text.lstrip("+-").lower()) if text[1:2] not in "+-" else None
    return None if found is None else sign * found


def _read_real(text: str) -> float | None:
    value = read_double(text)
    return None if value is None else to_real(value)


def _read_date(text: str) -> datetime.date | None:
    """Parses a date, or takes the date of a timestamp."""
    value = read_time(text, Kind.TIMESTAMP)
    return value.date() if isinstance(value, datetime.datetime) else None


# --- times --------------------------------------------------------------------


def _midnight(value: datetime.date) -> datetime.datetime:
    return datetime.datetime(value.year, value.month, value.day)


def _first_day(value: datetime.time) -> datetime.datetime:
    return datetime.datetime.combine(EPOCH, value)


def _clock(value: datetime.datetime) -> datetime.time:
    return value.time().replace(microsecond=value.microsecond // 1000 * 1000)
