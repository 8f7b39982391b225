"""Converts values between the JSON of channels and the engine's form.

A DATETIME travels as milliseconds since the epoch, with a fraction if it has microseconds, or as
text; an INTERVAL as milliseconds or text; a DATE and a TIME as text; a DECIMAL as text or a number;
NULL as null. NaN is NULL.
"""

from __future__ import annotations

import datetime
import math
import struct
from decimal import Decimal, InvalidOperation
from typing import Any

from seustream.compiler.language.exact import fitted
from seustream.compiler.language.types import EPOCH, Kind, Type, integer_range, read_time
from seustream.engine.temporal.elements import milliseconds

_NO = object()


class Spelled(float):
    """A number that keeps how it was written: a decimal may have more digits than a float."""

    __slots__ = ("text",)

    def __new__(cls, text: str) -> Spelled:
        made = super().__new__(cls, text)
        made.text = text
        return made

    text: str


class NoSuchValue(ValueError):
    """The type has no such value."""


def taken(value: Any, of: Type) -> Any:
    """Converts an incoming value to a type; raises `NoSuchValue` if the type has no such value."""
    if value is None or value != value:
        return None
    found = _taken(value, of)
    if found is _NO:
        raise NoSuchValue(f"{value!r:.40} is no {of}")
    return found


def _taken(value: Any, of: Type) -> Any:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    match of.kind:
        case Kind.BOOLEAN:
            return value if isinstance(value, bool) else _NO
        case Kind.BIGINT | Kind.INT | Kind.SMALLINT:
            low, high = integer_range(of.kind)
            return value if number and isinstance(value, int) and low <= value <= high else _NO
        case Kind.DOUBLE:
            return _float(value) if number else _NO
        case Kind.REAL:
            return _single(_float(value)) if number else _NO
        case Kind.VARCHAR | Kind.CHAR:
            return _text(value, of) if isinstance(value, str) else _NO
        case Kind.TIMESTAMP:
            if isinstance(value, datetime.datetime):
                return value
            if isinstance(value, str):
                return _read(value, of.kind)
            return _after(EPOCH, value) if number else _NO
        case Kind.INTERVAL:
            if isinstance(value, datetime.timedelta):
                return value
            if isinstance(value, str):
                return _read(value, of.kind)
            return _span(value) if number and isinstance(value, int) else _NO
        case Kind.DECIMAL:
            return _decimal(value, of)
        case Kind.DATE | Kind.TIME:
            if isinstance(value, str):
                return _read(value, of.kind)
            wanted = datetime.date if of.kind is Kind.DATE else datetime.time
            return value if isinstance(value, wanted) else _NO
        case _:
            return _NO


def _text(value: str, of: Type) -> Any:
    try:
        value.encode()  # JSON can spell half of a character, which no column holds
    except UnicodeEncodeError:
        return _NO
    return value if of.length is None or len(value) <= of.length else _NO


def _read(text: str, kind: Kind) -> Any:
    found = read_time(text, kind)
    return _NO if found is None else found


def _float(value: float) -> Any:
    """A number that is too large has no value; only a literal infinity is one."""
    try:
        found = float(value)
    except OverflowError:
        return _NO
    return _NO if isinstance(value, Spelled) and math.isinf(found) else found


def _single(value: Any) -> Any:
    """Returns the nearest 32-bit real."""
    try:
        return value if value is _NO else struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return _NO


def _span(value: float) -> Any:
    try:
        return datetime.timedelta(microseconds=round(value * 1000))
    except (OverflowError, ValueError):
        return _NO


def _after(begin: datetime.datetime, value: float) -> Any:
    span = _span(value)
    try:
        return _NO if span is _NO else begin + span
    except OverflowError:
        return _NO


def _decimal(value: Any, of: Type) -> Any:
    if isinstance(value, Spelled):
        value = value.text
    if isinstance(value, bool) or not isinstance(value, int | str | Decimal):
        return _NO
    try:
        exact = Decimal(value)
    except InvalidOperation:
        return _NO
    if not exact.is_finite():
        return _NO
    found = fitted(exact, of)
    return found if found is not None and found == exact else _NO


def shown_value(value: Any) -> Any:
    """Returns a value in the form that JSON takes."""
    match value:
        case datetime.datetime():
            return milliseconds(value)
        case datetime.timedelta():
            return value // datetime.timedelta(milliseconds=1)
        case Decimal() | datetime.date() | datetime.time():
            return str(value)
        case _:
            return value
