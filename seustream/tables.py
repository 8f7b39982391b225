"""A stream's columns in files: their order, and the spelling of values of each type.

Text cells (CSV, JSON) become Arrow columns of the stream's types; `columns` does the same for typed
ones (Parquet). Each chunk first takes a vectorised path that only accepts the common spellings. A
chunk with anything else is processed cell by cell, which also accepts the rare spellings and
reports the fault of every bad cell.

A blank cell is NULL if the column is not text; blanks around a value do not matter there. NaN is
NULL: a comparison with NaN would be true for `<>`, and NOT would not negate a comparison.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from decimal import Decimal, localcontext
from typing import Any, TypeAlias, cast

import pyarrow as pa
import pyarrow.compute as pc

from seustream.compiler.catalogue import TIMESTAMP_NAMES, Column, Stream
from seustream.compiler.language.spellings import (
    CLOCK,
    DATE,
    FALSE,
    INTEGER,
    NOT_FINITE,
    REAL,
    TRUE,
    ZONE,
)
from seustream.compiler.language.types import (
    BIGINT,
    INTERVAL,
    MAX_PRECISION,
    TIME_RANGES,
    Kind,
    Type,
    digits,
    integer_range,
    read_interval,
)
from seustream.engine.stream.ranges import IN_WORDS, out_of_range
from seustream.engine.stream.schema import arrow_type, in_milliseconds

TIME_NAME = "ts"
FAULTS_LISTED = 20
"""Bad cells listed for one file; the others are only counted."""


@dataclass(frozen=True, slots=True)
class Field:
    """A column that a file must have. `names` are its accepted names, folded. A text that `is_json`
    takes any JSON value as it is written; the select list of a feed reads it, and no stream has it."""

    name: str
    names: tuple[str, ...]
    type: Type
    nullable: bool
    is_time: bool = False
    is_json: bool = False

    @property
    def expected_type(self) -> str:
        """Describes the type that a column must have where columns have types."""
        return _TIME_TYPE if self.is_time else self.expected

    @property
    def expected(self) -> str:
        return _TIME_EXPECTED if self.is_time else _EXPECTED.get(self.type.kind, f"a {self.type}")


def fields(stream: Stream) -> tuple[Field, ...]:
    """Returns the time column, then the stream's columns. A table has no time, and a stream may
    name another column for it. A column that is itself called `ts` or `TimeStamp` leaves the other
    name to the time column; `names` is empty if columns take both."""
    taken = {fold(column.name) for column in stream.columns}
    names = tuple(name for name in TIMESTAMP_NAMES if name not in taken)
    time = Field(TIME_NAME, names, BIGINT, nullable=False, is_time=True)
    own = tuple(_field(column) for column in stream.columns)
    return own if stream.table or stream.time is not None else (time, *own)


def _field(column: Column) -> Field:
    return Field(column.name, (fold(column.name),), column.type, column.nullable)


def fold(name: str) -> str:
    """Folds a column's name for comparison: without case, and without surrounding blanks."""
    return name.strip().lower()


@dataclass(slots=True)
class BadCells:
    """The bad cells of one column: the first ones by row, counted from 0, and their number."""

    listed: list[tuple[int, str]] = field(default_factory=list)
    total: int = 0

    def add(self, row: int, reason: str) -> None:
        self.total += 1
        if len(self.listed) < FAULTS_LISTED:
            self.listed.append((row, reason))


def shown(text: str) -> str:
    """Quotes a cell's text, shortened so that a message stays on one line."""
    return repr(text) if len(text) <= 60 else repr(text[:57]) + "…"


def time_type(kind: pa.DataType, first: str | None = None) -> pa.DataType:
    """Returns the type of a stream's times outside: timestamps, or integers. For text, the first
    cell decides; the type has a zone if one is written there. That of a column of NULLs is unknown."""
    if pa.types.is_timestamp(kind) or pa.types.is_null(kind):
        return kind
    found = None if first is None else _CELL_TIMESTAMP.fullmatch(first.strip(" \t"))
    if found is None:
        return pa.int64()
    return pa.timestamp("ms", "UTC" if re.search("[Zz+-]", found[0][10:]) else None)


# Text cells


@dataclass(frozen=True, slots=True)
class Wrong:
    """Stands for a cell that cannot even be text."""

    reason: str


Cells: TypeAlias = "pa.Array[Any] | Sequence[str | Wrong | None]"
"""The cells of a column: an array of text, or a list."""


def from_text(text: pa.ChunkedArray[Any], of: Field, faults: BadCells) -> pa.ChunkedArray[Any]:
    """Converts a column of text cells to the field's type; bad cells become NULL and are added to
    `faults`."""
    chunks, row = [], 0
    for chunk in text.chunks:
        chunks.append(from_cells(chunk, of, row, faults))
        row += len(chunk)
    return pa.chunked_array(chunks, type=arrow_type(of.type))


def from_cells(cells: Cells, of: Field, row: int, faults: BadCells) -> pa.Array[Any]:
    """Does the same for cells, the first of which is in row `row`."""
    if isinstance(cells, pa.Array):
        values = _fast(cells, of)
    elif Wrong not in set(map(type, cells)):
        values = _fast(pa.array(cast("Sequence[str | None]", cells), pa.string()), of)
    else:
        values = None
    if values is not None and (of.nullable or not values.null_count):
        return values
    return _slow(cells.to_pylist() if isinstance(cells, pa.Array) else cells, of, row, faults)


_CELL_INTEGER = re.compile(INTEGER)
_CELL_REAL = re.compile(f"(?:{REAL}|({NOT_FINITE}))")
_LONGEST_EXPONENT = 12
_CELL_DATE = re.compile(DATE)
_CELL_CLOCK = re.compile(CLOCK)
_CELL_TIMESTAMP = re.compile(f"{DATE}(?:[Tt ]{CLOCK}(?:{ZONE})?)?")

# The spellings that the vectorised path takes: each pattern accepts a subset of the one above, and
# of what Arrow casts.
_FAST_INTEGER = "^-?[0-9]+$"
_FAST_REAL = f"^(?:{REAL}|{NOT_FINITE})$"
_FAST_DATE = f"^{DATE}$"
_FAST_CLOCK = "^" + CLOCK.replace("[0-9]+", "[0-9]{1,3}") + "$"
_FAST_NAIVE = f"^{DATE}(?:[T ]" + CLOCK.replace("[0-9]+", "[0-9]{1,6}") + ")?$"
_FAST_ZONED = f"^{DATE}[T ]" + CLOCK.replace("[0-9]+", "[0-9]{1,6}") + "(?:Z|[+-][0-9:]+)$"

_BOOLEANS = pa.array([*TRUE, *FALSE])

_EXPECTED = {
    Kind.INT: "an int",
    Kind.DOUBLE: "a double precision number",
    Kind.REAL: "a real number",
    Kind.DATE: "a date (YYYY-MM-DD)",
    Kind.TIME: "a time (HH:MM:SS)",
    Kind.TIMESTAMP: "a timestamp (YYYY-MM-DD HH:MM:SS)",
    Kind.INTERVAL: "an interval (1 hour 30 min, or milliseconds)",
    Kind.BOOLEAN: "a boolean (true or false)",
}
_TIME_EXPECTED = "a time (integer milliseconds or an ISO timestamp)"
_TIME_TYPE = "integers, in milliseconds, or a type for timestamps"


def _fast(text: pa.Array[Any], of: Field) -> pa.Array[Any] | None:
    """Returns the values, or None if the chunk holds anything uncommon."""
    try:
        if of.is_time:
            values = _fast_integer(text, pa.int64())
            if values is not None:
                return values
            times = _fast_timestamp(text)
            return None if times is None else in_milliseconds(times)
        match of.type.kind:
            case Kind.SMALLINT | Kind.INT | Kind.BIGINT:
                return _fast_integer(text, arrow_type(of.type))
            case Kind.REAL | Kind.DOUBLE:
                return _fast_real(text, arrow_type(of.type))
            case Kind.DECIMAL:
                return _fast_decimal(text, cast("pa.Decimal128Type[Any, Any]", arrow_type(of.type)))
            case Kind.INTERVAL:
                values = _only_in_range(_fast_integer(text, pa.int64()), of)
                return None if values is None else spans(values)
            case Kind.CHAR | Kind.VARCHAR:
                length = of.type.length
                longest = pc.max(pc.utf8_length(text)).as_py()
                return text if length is None or (longest or 0) <= length else None
            case Kind.BOOLEAN:
                index = pc.index_in(pc.utf8_lower(text), value_set=_BOOLEANS)
                known = index.null_count == text.null_count
                return arrow(pc.less(index, len(TRUE))) if known else None
            case Kind.DATE:
                days = arrow(pc.cast(text, pa.date32())) if _all(text, _FAST_DATE) else None
                return _only_in_range(days, of)
            case Kind.TIME:
                return _fast_clock(text)
            case Kind.TIMESTAMP:
                return _only_in_range(_fast_timestamp(text), of)
            case _:
                return None
    except pa.ArrowInvalid:
        return None


def _only_in_range(values: pa.Array[Any] | None, of: Field) -> pa.Array[Any] | None:
    return None if values is None or out_of_range(values, of.type.kind) else values


def _fast_integer(text: pa.Array[Any], to: pa.DataType) -> pa.Array[Any] | None:
    return arrow(pc.cast(text, to)) if _all(text, _FAST_INTEGER) else None


def _fast_real(text: pa.Array[Any], to: pa.DataType) -> pa.Array[Any] | None:
    if not _all(text, _FAST_REAL):
        return None
    values = arrow(pc.cast(text, to))
    if pc.any(pc.is_inf(values)).as_py():  # written as such, or too large to be held
        return None
    return without_nan(values)


def spans(milliseconds: pa.Array[Any]) -> pa.Array[Any]:
    return arrow(pc.cast(milliseconds, arrow_type(INTERVAL)))


def _fast_decimal(text: pa.Array[Any], to: pa.Decimal128Type[Any, Any]) -> pa.Array[Any] | None:
    """Casts decimals that have at most 38 digits with all places of the type. Of these, Arrow refuses
    what the type does not hold; beyond, it overflows without a word."""
    before = MAX_PRECISION - to.scale
    places = f"(?:\\.[0-9]{{1,{to.scale}}})?" if to.scale else ""
    pattern = f"^-?[0-9]{{1,{before}}}{places}$"
    return arrow(pc.cast(text, to)) if before and _all(text, pattern) else None


def _fast_clock(text: pa.Array[Any]) -> pa.Array[Any] | None:
    if not _all(text, _FAST_CLOCK):
        return None
    # Arrow casts no text to a time of day, only to a timestamp.
    whole = pc.binary_join_element_wise("1970-01-01T", text, "")
    return arrow(pc.cast(pc.cast(whole, pa.timestamp("ms")), pa.time32("ms")))


def _fast_timestamp(text: pa.Array[Any]) -> pa.Array[Any] | None:
    if _all(text, _FAST_NAIVE):
        return arrow(pc.cast(text, pa.timestamp("us")))
    if _all(text, _FAST_ZONED):
        return arrow(pc.cast(pc.cast(text, pa.timestamp("us", "UTC")), pa.timestamp("us")))
    return None


def without_nan(values: pa.Array[Any]) -> pa.Array[Any]:
    nan = pc.is_nan(values)
    if not pc.any(nan).as_py():
        return values
    return arrow(pc.if_else(nan, pa.scalar(None, values.type), values))


def _all(text: pa.Array[Any], pattern: str) -> bool:
    return pc.all(pc.match_substring_regex(text, pattern=pattern)).as_py() is not False


def arrow(value: object) -> pa.Array[Any]:
    return cast("pa.Array[Any]", value)


class BadCell(Exception):
    """A cell that is not a value, and the reason."""


def _slow(
    cells: Sequence[str | Wrong | None], of: Field, row: int, faults: BadCells
) -> pa.Array[Any]:
    """Converts the same column cell by cell, which finds each bad one."""
    parse, storage = _parser(of)
    values: list[object] = []
    for number, cell in enumerate(cells, row):
        try:
            if isinstance(cell, Wrong):
                raise BadCell(cell.reason)
            value = None if cell is None else parse(cell)
            if value is None and not of.nullable:
                raise BadCell(null_reason(of, cell))
        except BadCell as bad:
            faults.add(number, str(bad))
            value = None
        values.append(value)
    return arrow(pc.cast(pa.array(values, storage), arrow_type(of.type)))


def null_reason(of: Field, cell: str | None) -> str:
    what = "NULL" if cell is None else f"{shown(cell)} reads as NULL"
    return f"{what}, {'every tuple needs a time' if of.is_time else 'the column is NOT NULL'}"


def _parser(of: Field) -> tuple[Callable[[str], object], pa.DataType]:
    """Returns the function that parses one cell (None is NULL), and the Arrow type of its result."""

    def blank_is_null(parse: Callable[[str], object]) -> Callable[[str], object]:
        def read(cell: str) -> object:
            text = cell.strip(" \t")
            return parse(text) if text else None

        return read

    if of.is_time:
        return blank_is_null(lambda text: _time(text, of)), pa.int64()
    match of.type.kind:
        case Kind.SMALLINT | Kind.INT | Kind.BIGINT:
            return blank_is_null(lambda text: _integer(text, of)), pa.int64()
        case Kind.REAL | Kind.DOUBLE:
            # Left as text, so that Arrow rounds it once, directly to the column's type.
            return blank_is_null(lambda text: _real(text, of)), pa.string()
        case Kind.DECIMAL:
            return blank_is_null(lambda text: _decimal(text, of)), arrow_type(of.type)
        case Kind.INTERVAL:
            return blank_is_null(lambda text: _interval(text, of)), pa.int64()
        case Kind.BOOLEAN:
            return blank_is_null(lambda text: _boolean(text, of)), pa.bool_()
        case Kind.DATE:
            return blank_is_null(lambda text: _in_range(_date(text, of), text, of)), pa.int32()
        case Kind.TIME:
            return blank_is_null(lambda text: _time_of_day(text, of)), pa.int32()
        case Kind.TIMESTAMP:
            return blank_is_null(lambda text: _in_range(_timestamp(text, of), text, of)), pa.int64()
        case _:
            return lambda cell: _text(cell, of), pa.string()


def _not(text: str, of: Field) -> BadCell:
    return BadCell(f"{shown(text)} is not {of.expected}")


def _integer(text: str, of: Field) -> int:
    if not _CELL_INTEGER.fullmatch(text):
        raise _not(text, of)
    low, high = integer_range(of.type.kind)
    digits = text.lstrip("+-").lstrip("0") or "0"
    value = int(digits[:20])  # longer is too large anyway, and Python limits the length
    if text[0] == "-":
        value = -value
    if not low <= value <= high:
        raise BadCell(f"{shown(text)} {range_reason(of)}")
    return value


def range_reason(of: Field) -> str:
    if (times := IN_WORDS.get(of.type.kind)) is not None:
        return f"is out of range, {times}"
    low, high = integer_range(of.type.kind)
    if of.is_time:
        return f"is out of range, a time is {low} to {high} milliseconds"
    return f"is out of range, {of.type} is {low} to {high}"


def _real(text: str, of: Field) -> str | None:
    found = _CELL_REAL.fullmatch(text)
    if found is None:
        raise _not(text, of)
    if found[1]:
        return None if found[1].lower()[-1] == "n" else text  # nan, not inf or infinity
    # Most texts are far from the limit; Arrow itself decides the others.
    if abs(float(text)) > 3e38 and math.isinf(pc.cast(text, arrow_type(of.type)).as_py()):
        raise BadCell(f"{shown(text)} is too large for {of.type}")
    return text


def _decimal(text: str, of: Field) -> Decimal | None:
    found = _CELL_REAL.fullmatch(text)
    if found is None:
        raise _not(text, of)
    if found[1]:
        if found[1].lower()[-1] == "n":
            return None
        raise BadCell(f"{shown(text)} is too large for {of.type}")
    precision, scale = digits(of.type)
    mantissa, _, exponent = text.lower().partition("e")
    extreme = len(exponent.lstrip("+-0")) > _LONGEST_EXPONENT  # no decimal of Python has it
    if extreme and Decimal(mantissa):
        if exponent.startswith("-"):
            raise BadCell(_too_fine(text, of))
        raise BadCell(f"{shown(text)} is too large for {of.type}")
    value = Decimal(mantissa if extreme else text)
    if value and value.adjusted() >= precision - scale:
        raise BadCell(f"{shown(text)} is too large for {of.type}")
    if value and value.adjusted() < -scale:
        raise BadCell(_too_fine(text, of))
    with localcontext(prec=2 * MAX_PRECISION):
        rounded = value.quantize(Decimal(1).scaleb(-scale))
    if rounded != value:
        raise BadCell(_too_fine(text, of))
    return rounded


def _too_fine(text: str, of: Field) -> str:
    _, scale = digits(of.type)
    return f"{shown(text)} has more digits after the point than {of.type}, which has {scale}"


def _interval(text: str, of: Field) -> int:
    if _CELL_INTEGER.fullmatch(text):
        found = _integer(text, replace(of, type=BIGINT))
        return _in_range(found, text, of)
    read = read_interval(text)
    if read is None:
        raise _not(text, of)
    return read // _MILLISECOND


_MILLISECOND = timedelta(milliseconds=1)


def _in_range(value: int, text: str, of: Field) -> int:
    low, high = TIME_RANGES[of.type.kind]
    if not low <= value <= high:
        raise BadCell(f"{shown(text)} {range_reason(of)}")
    return value


def _text(text: str, of: Field) -> str:
    if of.type.length is not None and len(text) > of.type.length:
        raise BadCell(length_reason(text, of))
    return text


def length_reason(text: str, of: Field) -> str:
    return f"{shown(text)} has {len(text)} characters, {of.type} holds {of.type.length}"


def _boolean(text: str, of: Field) -> bool:
    folded = text.lower()
    if folded not in TRUE and folded not in FALSE:
        raise _not(text, of)
    return folded in TRUE


def _date(text: str, of: Field) -> int:
    found = _CELL_DATE.fullmatch(text)
    if found is None:
        raise _not(text, of)
    return _days(text, found, of)


def _days(text: str, found: re.Match[str], of: Field) -> int:
    """Returns days since 1970. Python's dates begin with year 1; year 0 is like 2000, 5 cycles of
    400 years earlier."""
    year = int(found[1])
    try:
        day = date(year or 2000, int(found[2]), int(found[3]))
    except ValueError:
        raise BadCell(f"{shown(text)} is not {of.expected}: no such day") from None
    return day.toordinal() - _EPOCH - (0 if year else 5 * _DAYS_IN_400_YEARS)


_EPOCH = date(1970, 1, 1).toordinal()
_DAYS_IN_400_YEARS = 146_097


def _microseconds(hour: str, minute: str, second: str | None, fraction: str | None) -> int:
    """Returns microseconds. Digits past the sixth are dropped, which rounds down."""
    seconds = (int(hour) * 60 + int(minute)) * 60 + int(second or 0)
    return seconds * 1_000_000 + int((fraction or "")[:6].ljust(6, "0"))


def _time_of_day(text: str, of: Field) -> int:
    found = _CELL_CLOCK.fullmatch(text)
    if found is None:
        raise _not(text, of)
    return _microseconds(found[1], found[2], found[3], found[4]) // 1000


def _timestamp(text: str, of: Field) -> int:
    found = _CELL_TIMESTAMP.fullmatch(text)
    if found is None:
        raise _not(text, of)
    time = _days(text, found, of) * 86_400_000_000
    if found[4]:
        time += _microseconds(found[4], found[5], found[6], found[7])
    if found[8]:
        offset = (int(found[9]) * 60 + int(found[10] or 0)) * 60_000_000
        time -= offset if found[8] == "+" else -offset
    return time


def _time(text: str, of: Field) -> int:
    return _integer(text, of) if _CELL_INTEGER.fullmatch(text) else _timestamp(text, of) // 1000
