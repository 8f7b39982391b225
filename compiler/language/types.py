"""X-SQL types and how they combine."""

from __future__ import annotations

import datetime
import enum
from dataclasses import dataclass


class Kind(enum.Enum):
    SMALLINT = "smallint"
    INT = "int"
    BIGINT = "bigint"
    REAL = "real"
    DOUBLE = "double precision"
    CHAR = "char"
    VARCHAR = "varchar"
    DATE = "date"
    TIME = "time"
    TIMESTAMP = "timestamp"
    BOOLEAN = "boolean"
    NULL = "null"  # the type of a bare NULL, which fits every other
    ERROR = "error"  # of an expression already reported; silences what follows from it


@dataclass(frozen=True, slots=True)
class Type:
    """A column's or expression's type; `length` only for char(n) and varchar(n)."""

    kind: Kind
    length: int | None = None

    def __str__(self) -> str:
        return self.kind.value + (f"({self.length})" if self.length is not None else "")

    @property
    def is_integer(self) -> bool:
        return self.kind in (Kind.SMALLINT, Kind.INT, Kind.BIGINT)

    @property
    def is_numeric(self) -> bool:
        return self.is_integer or self.kind in (Kind.REAL, Kind.DOUBLE)

    @property
    def is_text(self) -> bool:
        return self.kind in (Kind.CHAR, Kind.VARCHAR)

    @property
    def is_unknown(self) -> bool:
        return self.kind in (Kind.NULL, Kind.ERROR)


SMALLINT = Type(Kind.SMALLINT)
INT = Type(Kind.INT)
BIGINT = Type(Kind.BIGINT)
REAL = Type(Kind.REAL)
DOUBLE = Type(Kind.DOUBLE)
VARCHAR = Type(Kind.VARCHAR)
DATE = Type(Kind.DATE)
TIME = Type(Kind.TIME)
TIMESTAMP = Type(Kind.TIMESTAMP)
BOOLEAN = Type(Kind.BOOLEAN)
NULL = Type(Kind.NULL)
ERROR = Type(Kind.ERROR)

_INTEGERS = (Kind.SMALLINT, Kind.INT, Kind.BIGINT)
_INTEGER_RANGE = {Kind.SMALLINT: 15, Kind.INT: 31, Kind.BIGINT: 63}


def integer_range(kind: Kind) -> tuple[int, int]:
    bits = _INTEGER_RANGE[kind]
    return -(1 << bits), (1 << bits) - 1


def common(a: Type, b: Type) -> Type | None:
    """The type two operands meet in, or None where they do not: integers in the wider one,
    anything real in double precision, texts in varchar, all else only with itself."""
    if Kind.ERROR in (a.kind, b.kind):
        return ERROR
    if a.kind is Kind.NULL:
        return b
    if b.kind is Kind.NULL:
        return a
    if a.is_integer and b.is_integer:
        return Type(max(a.kind, b.kind, key=_INTEGERS.index))
    if a.is_numeric and b.is_numeric:
        return a if a.kind is b.kind is Kind.REAL else DOUBLE
    if a.is_text and b.is_text:
        return VARCHAR
    return a if a.kind is b.kind else None


def read_time(text: str, kind: Kind) -> datetime.date | datetime.time | datetime.datetime | None:
    """A date, time or timestamp from its ISO text, None if it is none."""
    try:
        if kind is Kind.DATE:
            return datetime.date.fromisoformat(text)
        if kind is Kind.TIME:
            value = datetime.time.fromisoformat(text)
            return (
                None
                if value.tzinfo
                else value.replace(microsecond=value.microsecond // 1000 * 1000)
            )
        moment = datetime.datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            moment = moment.astimezone(datetime.UTC).replace(tzinfo=None)
        return moment
    except (ValueError, OverflowError):
        return None
