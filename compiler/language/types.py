"""The types of all three languages, and how they combine.

They form one lattice: `boolean`; `smallint < int < bigint`; `real < double precision`;
`decimal(p,s)`, which integers join; `char` and `varchar`; `date < timestamp`; `time`; `interval`,
in milliseconds, which counts as that many beside an integer. An inexact operand makes the result
inexact.
"""

from __future__ import annotations

import datetime
import enum
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

MAX_PRECISION = 38
"""The most digits of a decimal: as many as 128 bits hold."""


class Kind(enum.Enum):
    __hash__ = object.__hash__  # Enum's own runs in Python, and types are looked up for every query

    SMALLINT = "smallint"
    INT = "int"
    BIGINT = "bigint"
    REAL = "real"
    DOUBLE = "double precision"
    DECIMAL = "decimal"
    CHAR = "char"
    VARCHAR = "varchar"
    DATE = "date"
    TIME = "time"
    TIMESTAMP = "timestamp"
    INTERVAL = "interval"
    BOOLEAN = "boolean"
    LIST = "list"  # a column of results only: no expression takes one
    NULL = "null"  # the type of a bare NULL, which fits every other
    ERROR = "error"  # of an expression already reported; suppresses further errors


@dataclass(frozen=True, slots=True)
class Type:
    """The type of a column or expression. `length` is that of char(n) and varchar(n), and the
    precision of decimal(p,s); `scale` is the s; `element` is the type of a list's elements."""

    kind: Kind
    length: int | None = None
    scale: int | None = None
    element: Type | None = None

    def __str__(self) -> str:
        if self.kind is Kind.DECIMAL:
            return f"decimal({self.length},{self.scale})"
        if self.element is not None:
            return f"list({self.element})"
        length = f"({self.length})" if self.length is not None else ""
        return f"{self.kind.value}{length}"

    @property
    def is_integer(self) -> bool:
        return self.kind in (Kind.SMALLINT, Kind.INT, Kind.BIGINT)

    @property
    def is_inexact(self) -> bool:
        return self.kind in (Kind.REAL, Kind.DOUBLE)

    @property
    def is_decimal(self) -> bool:
        return self.kind is Kind.DECIMAL

    @property
    def is_numeric(self) -> bool:
        return self.is_integer or self.is_inexact or self.is_decimal

    @property
    def is_text(self) -> bool:
        return self.kind in (Kind.CHAR, Kind.VARCHAR)

    @property
    def is_time(self) -> bool:
        """Returns whether an adjacent text constant is read as a value of this type."""
        return self.kind in (Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.INTERVAL)

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
INTERVAL = Type(Kind.INTERVAL)
BOOLEAN = Type(Kind.BOOLEAN)
NULL = Type(Kind.NULL)
ERROR = Type(Kind.ERROR)

_INTEGERS = (Kind.SMALLINT, Kind.INT, Kind.BIGINT)
_INTEGER_RANGE = {Kind.SMALLINT: 15, Kind.INT: 31, Kind.BIGINT: 63}
_DIGITS = {Kind.SMALLINT: 5, Kind.INT: 10, Kind.BIGINT: 19}


def decimal(precision: int, scale: int) -> Type:
    return Type(Kind.DECIMAL, precision, scale)


def list_of(element: Type) -> Type:
    return Type(Kind.LIST, element=element)


def integer_range(kind: Kind) -> tuple[int, int]:
    bits = _INTEGER_RANGE[kind]
    return -(1 << bits), (1 << bits) - 1


MILLISECOND = datetime.timedelta(milliseconds=1)
MICROSECOND = datetime.timedelta(microseconds=1)
EPOCH = datetime.datetime(1970, 1, 1)
_FIRST, _LAST = datetime.datetime.min - EPOCH, datetime.datetime.max - EPOCH

TIME_RANGES = {
    Kind.DATE: (_FIRST.days, _LAST.days),
    Kind.TIME: (0, 86_399_999),
    Kind.TIMESTAMP: (_FIRST // MICROSECOND, _LAST // MICROSECOND),
    Kind.INTERVAL: (
        datetime.timedelta.min // MILLISECOND + 1,
        datetime.timedelta.max // MILLISECOND,
    ),
}
"""The least and the greatest value of each type of times, in the units of its columns: dates and
timestamps are in the years 1 to 9999."""


def digits(of: Type) -> tuple[int, int]:
    """Returns the precision and scale of a decimal, or of the decimal that holds every such
    integer."""
    if of.is_decimal:
        assert of.length is not None
        assert of.scale is not None
        return of.length, of.scale
    return _DIGITS[of.kind], 0


def decimal_of(value: Decimal) -> Type | None:
    """Returns the narrowest decimal type that holds a value, None if 38 digits do not suffice."""
    _, figures, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(-exponent, 0)
    precision = max(len(figures) + max(exponent, 0), scale, 1)
    return decimal(precision, scale) if precision <= MAX_PRECISION else None


def common(a: Type, b: Type) -> Type | None:
    """Returns the common type of two operands, or None if there is none."""
    if Kind.ERROR in (a.kind, b.kind):
        return ERROR
    if a.kind is Kind.NULL:
        return b
    if b.kind is Kind.NULL:
        return a
    if a.is_integer and b.is_integer:
        return Type(max(a.kind, b.kind, key=_INTEGERS.index))
    if a.is_numeric and b.is_numeric:
        if a.is_inexact or b.is_inexact:
            return a if a.kind is b.kind is Kind.REAL else DOUBLE
        (p, s), (q, r) = digits(a), digits(b)
        scale = max(s, r)
        return decimal(min(max(p - s, q - r) + scale, MAX_PRECISION), scale)
    if a.is_text and b.is_text:
        return VARCHAR
    if {a.kind, b.kind} == {Kind.DATE, Kind.TIMESTAMP}:
        return TIMESTAMP
    if Kind.INTERVAL in (a.kind, b.kind) and (a.is_integer or b.is_integer):
        return BIGINT
    if a.kind is Kind.LIST:
        return a if a == b else None
    return a if a.kind is b.kind else None


def meet(types: Iterable[Type]) -> Type | None:
    """Returns the common type of all operands, or None. Each pair must have one: an interval beside
    an integer is a number of milliseconds, but a decimal between them does not make it one."""
    some = list(dict.fromkeys(types))
    met: Type | None = NULL
    for each in some:
        met = None if met is None else common(met, each)
    if met is None or any(common(each, other) is None for each in some for other in some):
        return None
    return met


def castable(of: Type, to: Type) -> bool:
    """Returns whether CAST takes one type to the other; individual values may still fail."""
    if Kind.LIST in (of.kind, to.kind):
        return of == to
    if of.is_unknown or of.kind is to.kind or to.is_text or of.is_text:
        return True
    if of.is_numeric and to.is_numeric:
        return True
    if Kind.BOOLEAN in (of.kind, to.kind):
        return of.is_numeric or to.is_numeric
    if Kind.INTERVAL in (of.kind, to.kind):
        return of.is_integer or to.is_integer
    return {of.kind, to.kind} in ({Kind.DATE, Kind.TIMESTAMP}, {Kind.TIMESTAMP, Kind.TIME})


# --- names --------------------------------------------------------------------

NAMES: dict[str, Type] = {
    "boolean": BOOLEAN,
    "bool": BOOLEAN,
    "smallint": SMALLINT,
    "int2": SMALLINT,
    "int": INT,
    "integer": INT,
    "int4": INT,
    "bigint": BIGINT,
    "long": BIGINT,
    "int8": BIGINT,
    "real": REAL,
    "float": REAL,
    "float4": REAL,
    "float8": DOUBLE,
    "double precision": DOUBLE,
    "double": DOUBLE,
    "decimal": decimal(10, 0),
    "numeric": decimal(10, 0),
    "char": Type(Kind.CHAR, 1),
    "varchar": VARCHAR,
    "string": VARCHAR,
    "text": VARCHAR,
    "date": DATE,
    "time": TIME,
    "timestamp": TIMESTAMP,
    "timestamp_ntz": TIMESTAMP,
    "timestamp_ltz": TIMESTAMP,
    "datetime": TIMESTAMP,
    "interval": INTERVAL,
}

MILLISECONDS: dict[str, int] = {
    name: size
    for size, names in {
        1: "ms millisecond milliseconds",
        1_000: "s sec secs second seconds",
        60_000: "m min mins minute minutes",
        3_600_000: "h hour hours",
        86_400_000: "d day days",
        604_800_000: "w week weeks",
    }.items()
    for name in names.split()
}
"""Units of time in all three languages."""

# --- constants ----------------------------------------------------------------

Time = datetime.date | datetime.time | datetime.datetime | datetime.timedelta

_QUANTITY = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*([a-zA-Z]+)\s*", re.ASCII)
_DATE = r"(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})"
_CLOCK = r"(?P<hour>\d{1,2}):(?P<minute>\d{1,2})(?::(?P<second>\d{1,2})(?:\.(?P<fraction>\d*))?)?"
_OFFSET = r"(?P<sign>[+-])(?P<hours>\d\d)(?::?(?P<minutes>[0-5]\d)(?::?(?P<seconds>[0-5]\d))?)?"
_SPELLED = {
    Kind.DATE: re.compile(_DATE, re.ASCII),
    Kind.TIME: re.compile(_CLOCK, re.ASCII),
    Kind.TIMESTAMP: re.compile(f"{_DATE}(?:[Tt ]{_CLOCK}(?: ?(?:[Zz]|UTC|{_OFFSET}))?)?", re.ASCII),
}
"""The spellings that Spark and DuckDB both take: one digit or two, and seconds may be left out."""


def read_interval(text: str) -> datetime.timedelta | None:
    """Parses an interval such as `1 hour 30 min`; returns None if the text is not one or is not in
    whole milliseconds."""
    total, at = Decimal(0), 0
    while at < len(text):
        found = _QUANTITY.match(text, at)
        if found is None or found[2].lower() not in MILLISECONDS:
            return None
        total += Decimal(found[1]) * MILLISECONDS[found[2].lower()]
        at = found.end()
    if not text.strip() or total != int(total) or abs(total) >= 1 << 63:
        return None
    try:
        return datetime.timedelta(milliseconds=int(total))
    except OverflowError:
        return None


def _numbers(part: Mapping[str, str], *names: str) -> Iterator[int]:
    return (int(part[name]) for name in names)


def read_time(text: str, kind: Kind) -> Time | None:
    """Parses a date, time, timestamp or interval; returns None if the text is not one."""
    if kind is Kind.INTERVAL:
        return read_interval(text)
    found = _SPELLED[kind].fullmatch(text.strip())
    if found is None:
        return None
    part = found.groupdict("0")
    try:
        if kind is Kind.DATE:
            return datetime.date(*_numbers(part, "year", "month", "day"))
        micros = int(part["fraction"][:6].ljust(6, "0"))
        hour, minute, second = _numbers(part, "hour", "minute", "second")
        clock = datetime.time(hour, minute, second, micros)
        if kind is Kind.TIME:
            return clock.replace(microsecond=micros // 1000 * 1000)
        day = datetime.date(*_numbers(part, "year", "month", "day"))
        hours, minutes, seconds = _numbers(part, "hours", "minutes", "seconds")
        ahead = datetime.timedelta(hours=hours, minutes=minutes, seconds=seconds)
        moment = datetime.datetime.combine(day, clock)
        if ahead >= datetime.timedelta(days=1):
            return None
        return moment + ahead if part["sign"] == "-" else moment - ahead
    except (ValueError, OverflowError):
        return None
