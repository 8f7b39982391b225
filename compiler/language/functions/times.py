"""Functions of dates, times, timestamps and intervals."""

from __future__ import annotations

import datetime
import functools
import re
from collections.abc import Callable, Iterable
from typing import Any

from seustream.compiler.language.exact import truncated
from seustream.compiler.language.functions.columns import constant
from seustream.compiler.language.registry import (
    INTEGER,
    MOMENT,
    SPAN,
    TEXT,
    ArgumentKind,
    ScalarFunction,
    Signature,
)
from seustream.compiler.language.types import (
    BIGINT,
    EPOCH,
    MICROSECOND,
    MILLISECOND,
    TIME,
    TIMESTAMP,
    Kind,
    read_time,
)

Moment = datetime.datetime

CLOCK = ArgumentKind("a time", lambda of: of.kind is Kind.TIME, TIME)

# --- fields -------------------------------------------------------------------


def _microsecond(t: Moment | datetime.time) -> int:
    """Returns the microseconds within the minute."""
    return t.second * 1_000_000 + t.microsecond


_OF_DAY: dict[str, Callable[[Any], int]] = {
    "hour": lambda t: t.hour,
    "minute": lambda t: t.minute,
    "second": lambda t: t.second,
    "millisecond": lambda t: _microsecond(t) // 1000,
    "microsecond": _microsecond,
}
_OF_TIME: dict[str, Callable[[Any], int]] = {
    **_OF_DAY,
    "epoch": lambda t: t.hour * 3600 + t.minute * 60 + t.second,
}
_OF_MOMENT: dict[str, Callable[[Moment], int]] = {
    "year": lambda t: t.year,
    "quarter": lambda t: (t.month + 2) // 3,
    "month": lambda t: t.month,
    "week": lambda t: t.isocalendar().week,
    "isoyear": lambda t: t.isocalendar().year,
    "day": lambda t: t.day,
    "dow": lambda t: t.isoweekday() % 7 + 1,
    "isodow": lambda t: t.isoweekday(),
    "doy": lambda t: t.timetuple().tm_yday,
    "epoch": lambda t: (t - EPOCH) // datetime.timedelta(seconds=1),
    **_OF_DAY,
}
_ALIASES = {
    "y": "year", "years": "year", "yr": "year", "quarters": "quarter", "qtr": "quarter",
    "mon": "month", "months": "month", "weeks": "week", "w": "week", "yearofweek": "isoyear",
    "d": "day", "days": "day", "dayofweek": "dow", "dayofweek_iso": "isodow",
    "dow_iso": "isodow", "dayofyear": "doy", "h": "hour", "hours": "hour", "m": "minute",
    "min": "minute", "mins": "minute", "minutes": "minute", "s": "second", "sec": "second",
    "seconds": "second", "ms": "millisecond", "msec": "millisecond",
    "milliseconds": "millisecond", "us": "microsecond", "usec": "microsecond",
    "microseconds": "microsecond",
}  # fmt: skip
FIELDS = tuple(_OF_MOMENT)
"""The fields that `extract` takes from a timestamp; from a time, the hour and smaller ones; from an
interval, the day and smaller ones."""


def _named(name: str) -> str:
    name = name.strip().lower()
    return _ALIASES.get(name, name)


def _field(name: str, t: Moment) -> int | None:
    take = _OF_MOMENT.get(_named(name))
    return None if take is None else take(t)


def _field_of_time(name: str, t: datetime.time) -> int | None:
    take = _OF_TIME.get(_named(name))
    return None if take is None else take(t)


_WITHIN_SPAN = {
    "day": (86_400_000_000, None),
    "hour": (3_600_000_000, 24),
    "minute": (60_000_000, 60),
    "second": (1_000_000, 60),
    "millisecond": (1_000, 60_000),
    "microsecond": (1, 60_000_000),
    "epoch": (1_000_000, None),
}


def _field_of_span(name: str, span: datetime.timedelta) -> int | None:
    """Extracts a field of an interval: 25 hours have day 1 and hour 1. All fields have the sign of
    the interval."""
    size, within = _WITHIN_SPAN.get(_named(name), (0, None))
    if not size:
        return None
    whole = truncated(span // MICROSECOND, size)
    return whole if within is None else whole - truncated(whole, within) * within


def _check(known: Iterable[str]) -> Callable[..., str | None]:
    """Refuses a field or unit that is not one of these."""
    names = ", ".join(known)

    def check(name: Any, t: Any) -> str | None:
        if not isinstance(name, str) or _named(name) in names.split(", "):
            return None
        return f"there is no {name} here, but {names}"

    return check


_FIELD_KERNELS: dict[str, Callable[[Any, Any], Any]] = {
    "year": lambda pc, t: pc.year(t),
    "quarter": lambda pc, t: pc.quarter(t),
    "month": lambda pc, t: pc.month(t),
    "day": lambda pc, t: pc.day(t),
    "hour": lambda pc, t: pc.hour(t),
    "minute": lambda pc, t: pc.minute(t),
    "second": lambda pc, t: pc.second(t),
    "week": lambda pc, t: pc.iso_week(t),
    "isoyear": lambda pc, t: pc.iso_year(t),
    "dow": lambda pc, t: pc.day_of_week(t, count_from_zero=False, week_start=7),
    "isodow": lambda pc, t: pc.day_of_week(t, count_from_zero=False, week_start=1),
    "doy": lambda pc, t: pc.day_of_year(t),
    "epoch": lambda pc, t: _since_epoch(pc, t, "second", 1_000_000),
}


def _field_columns(pc: Any, name: Any, t: Any) -> Any:
    kernel = _FIELD_KERNELS.get(_named(constant(name)))
    if kernel is None:
        raise ValueError("no kernel")
    return kernel(pc, t)


def _since_epoch(pc: Any, t: Any, unit: str, size: int) -> Any:
    return pc.divide(pc.cast(pc.floor_temporal(t, unit=unit), "int64"), size)


# --- units --------------------------------------------------------------------

_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond")


def _start(unit: str, t: Moment) -> Moment | None:
    """Truncates a moment to the start of its unit of time; a week starts on Monday."""
    unit = _named(unit)
    midnight = t.replace(hour=0, minute=0, second=0, microsecond=0)
    match unit:
        case "year":
            return midnight.replace(month=1, day=1)
        case "quarter":
            return midnight.replace(month=(t.month - 1) // 3 * 3 + 1, day=1)
        case "month":
            return midnight.replace(day=1)
        case "week":
            return midnight - datetime.timedelta(t.weekday())
        case "day":
            return midnight
        case "hour":
            return t.replace(minute=0, second=0, microsecond=0)
        case "minute":
            return t.replace(second=0, microsecond=0)
        case "second":
            return t.replace(microsecond=0)
        case "millisecond":
            return t.replace(microsecond=t.microsecond // 1000 * 1000)
        case "microsecond":
            return t
    return None


def _start_columns(pc: Any, unit: Any, t: Any) -> Any:
    named = _named(constant(unit))
    if named not in _UNITS:
        raise ValueError("no such unit")
    return pc.floor_temporal(t, unit=named, week_starts_monday=True)


# --- reading ------------------------------------------------------------------

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_LETTERS = {
    "yyyy": ("year", r"\d{4}"), "yy": ("short_year", r"\d{2}"), "y": ("year", r"\d{1,4}"),
    "MMM": ("name", "[A-Za-z]{3}"), "MM": ("month", r"\d{2}"), "M": ("month", r"\d{1,2}"),
    "dd": ("day", r"\d{2}"), "d": ("day", r"\d{1,2}"),
    "HH": ("hour", r"\d{2}"), "H": ("hour", r"\d{1,2}"),
    "hh": ("half", r"\d{2}"), "h": ("half", r"\d{1,2}"), "a": ("noon", "[AaPp][Mm]"),
    "mm": ("minute", r"\d{2}"), "m": ("minute", r"\d{1,2}"),
    "ss": ("second", r"\d{2}"), "s": ("second", r"\d{1,2}"),
}  # fmt: skip
_FORMAT = re.compile(r"([A-Za-z])\1*|'(?:[^']|'')*'|[^A-Za-z']")


@functools.lru_cache(maxsize=64)
def _reader(form: str) -> re.Pattern[str] | None:
    """Turns a format of pattern letters, `yyyy-MM-dd HH:mm:ss.SSS`, into a regular expression."""
    parts: list[str] = []
    seen: set[str] = set()
    at = 0
    while at < len(form):
        found = _FORMAT.match(form, at)
        if found is None:
            return None
        part, at = found[0], found.end()
        if part[0] == "'":
            parts.append(re.escape(part[1:-1].replace("''", "'") or "'"))
            continue
        field, regex = _LETTERS.get(part, ("", ""))
        if part[0] == "S" and len(part) <= 6:
            field, regex = "fraction", rf"\d{{{len(part)}}}"
        if not found[1]:
            parts.append(re.escape(part))
        elif not field or field in seen:
            return None
        else:
            seen.add(field)
            parts.append(f"(?P<{field}>{regex})")
    return re.compile("".join(parts), re.ASCII)


def _timestamp(text: str, form: str | None = None) -> Moment | None:
    if form is None:
        moment = read_time(text, Kind.TIMESTAMP)
        return moment if isinstance(moment, Moment) else None
    reader = _reader(form)
    found = None if reader is None else reader.fullmatch(text.strip())
    if found is None:
        return None
    part = found.groupdict()
    month = part.get("month", "1")
    if "name" in part:
        if part["name"].lower() not in _MONTHS:
            return None
        month = str(_MONTHS.index(part["name"].lower()) + 1)
    year = int(part["short_year"]) + 2000 if "short_year" in part else int(part.get("year", 1970))
    hour = int(part.get("hour", 0))
    if "half" in part:
        if not 1 <= int(part["half"]) <= 12:
            return None
        hour = int(part["half"]) % 12 + 12 * (part.get("noon", "am").lower() == "pm")
    fraction = int(part.get("fraction", "0").ljust(6, "0"))
    minute, second = int(part.get("minute", 0)), int(part.get("second", 0))
    try:
        return Moment(year, int(month), int(part.get("day", 1)), hour, minute, second, fraction)
    except ValueError:
        return None


def _epoch_ms(t: Moment) -> int:
    return (t - EPOCH) // MILLISECOND


def _moment(count: int) -> Moment | None:
    try:
        return EPOCH + count * MILLISECOND
    except OverflowError:
        return None


_SPAN = tuple((t - EPOCH) // MILLISECOND for t in (Moment.min, Moment.max))


def _moment_columns(pc: Any, count: Any) -> Any:
    if any(
        pc.any(beyond).as_py() for beyond in (pc.less(count, _SPAN[0]), pc.greater(count, _SPAN[1]))
    ):
        raise ValueError("no timestamp")
    return pc.cast(pc.cast(count, "timestamp[ms]"), "timestamp[us]")


# --- entries ------------------------------------------------------------------

_NO_FIELD = "no such field"


def _part(field: str, *aliases: str) -> ScalarFunction:
    """Defines a field of a moment as a function of its own."""
    of_time = _OF_TIME.get(field)
    return ScalarFunction(
        field, (MOMENT,), BIGINT, row=_OF_MOMENT[field], columns=_FIELD_KERNELS[field],
        doc=f"The {field} of a moment; as `extract({field} FROM t)`.", aliases=aliases,
        example=f"{field}(TIMESTAMP '2024-02-29 12:30:00')",
        overloads=() if of_time is None else (Signature((CLOCK,), BIGINT, of_time),),
    )  # fmt: skip


TIMES: tuple[ScalarFunction, ...] = (
    ScalarFunction(
        "extract", (TEXT, MOMENT), BIGINT, row=_field, columns=_field_columns,
        doc=f"A field of a moment as an integer: {', '.join(FIELDS)}. dow counts from Sunday, "
        "which is 1, isodow from Monday; milliseconds and microseconds are those of the minute.",
        example="extract(year FROM TIMESTAMP '2024-02-29 12:30:00')",
        aliases=("date_part", "datepart"), fault=_NO_FIELD, check=_check(FIELDS),
        overloads=(
            Signature((TEXT, CLOCK), BIGINT, _field_of_time, check=_check(_OF_TIME)),
            Signature((TEXT, SPAN), BIGINT, _field_of_span, check=_check(_WITHIN_SPAN)),
        ),
    ),
    _part("year"), _part("quarter"), _part("month"), _part("week", "weekofyear"),
    _part("day", "dayofmonth"), _part("dow", "dayofweek"), _part("isodow"), _part("doy", "dayofyear"),
    _part("hour"), _part("minute"), _part("second"),
    ScalarFunction(
        "date_trunc", (TEXT, MOMENT), TIMESTAMP, row=_start, columns=_start_columns,
        doc="The start of the year, quarter, month, week, day, hour, minute, second, millisecond "
        "or microsecond of a moment; a week starts on Monday.",
        example="date_trunc('hour', TIMESTAMP '2024-02-29 12:30:00')", fault="no such unit", check=_check((*_UNITS, "microsecond")),
    ),
    ScalarFunction(
        "to_timestamp", (TEXT, TEXT), TIMESTAMP, row=_timestamp, optional=1,
        doc="A timestamp from its text; the format is of pattern letters, yyyy MM dd HH mm ss SSS, "
        "and of texts in quotes.",
        example="to_timestamp('29.02.2024 12:30', 'dd.MM.yyyy HH:mm')", fault="no timestamp",
    ),
    ScalarFunction(
        "timestamp_millis", (INTEGER,), TIMESTAMP, row=_moment, columns=_moment_columns,
        doc="The moment so many milliseconds after the first of January 1970, as `ts` counts them.",
        example="timestamp_millis(1709210000000)", aliases=("make_timestamp_ms",), fault="no timestamp",
    ),
    ScalarFunction(
        "epoch_ms", (MOMENT,), BIGINT, row=_epoch_ms,
        columns=lambda pc, t: _since_epoch(pc, t, "millisecond", 1000),
        doc="Milliseconds since the first of January 1970.",
        example="epoch_ms(TIMESTAMP '2024-02-29 12:30:00')",
    ),
)  # fmt: skip
