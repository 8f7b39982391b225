"""Texts of files as values of a stream's types: CSV cells, and times in JSON.

Blanks around a value do not matter, and a blank cell is NULL unless the column is text. A time with
an offset is converted to UTC; one without is in UTC, whatever the session's zone is. A text that is
no value stops the job.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql import types as t

from seustream.compiler.language import spellings

_MOMENT = rf"^[ \t]*({spellings.DATE})(?:[Tt ]({spellings.CLOCK})(?:{spellings.ZONE})?)?[ \t]*\z"
_DATE, _CLOCK, _SIGN, _HOURS, _MINUTES = 1, 5, 10, 11, 12
"""Groups of a moment."""
_NAN = "[+-]?[nN][aA][nN]"
_SPELLED: dict[type[t.DataType], str] = {
    **dict.fromkeys((t.ShortType, t.IntegerType, t.LongType), spellings.INTEGER),
    **dict.fromkeys((t.FloatType, t.DoubleType), f"{spellings.REAL}|{spellings.NOT_FINITE}"),
    t.DecimalType: spellings.REAL,
    t.BooleanType: f"(?i:{'|'.join((*spellings.TRUE, *spellings.FALSE))})",
    t.DateType: spellings.DATE,
    t.TimeType: spellings.CLOCK,
}
"""The spellings of values. Spark knows more of them, some of which it reads by halves."""


def value(text: Column, kind: t.DataType, what: str) -> Column:
    """Returns the value of a text; `what` names the column in an error."""
    if isinstance(kind, t.StringType):
        return text
    found = _utc(text) if isinstance(kind, t.TimestampNTZType) else text.try_cast(kind)
    if isinstance(kind, t.TimestampNTZType | t.DateType):
        found = f.when(f.year(found) > 0, found)
    if (pattern := _SPELLED.get(type(kind))) is not None:
        found = f.when(_is(text, pattern), found)
    blank = f.btrim(text, f.lit(" \t")) == ""
    if isinstance(kind, t.FloatType | t.DoubleType):  # Spark has infinity for what is too large
        fits = _is(text, spellings.NOT_FINITE) | (f.abs(found) != float("inf"))
        found = f.when(fits, found)
        blank |= _is(text, _NAN)  # Spark knows no sign there
    if isinstance(kind, t.DecimalType):  # Spark would round it
        finer = text.try_cast(t.DecimalType(38, 38 - kind.precision + kind.scale))
        vanished = (found == 0) & (text.try_cast("double") != 0)
        # Of 38 digits, none is left to compare.
        written = text.rlike(rf"\.[0-9]{{{kind.scale}}}[0-9]*[1-9][0-9]*[ \t]*$")
        found = f.when((finer == found) & ~vanished & ~written, found)
        blank |= _is(text, _NAN)
    return _checked(found, text, blank, f"{what}: no {kind.simpleString()}: ")


def _is(text: Column, pattern: str) -> Column:
    return text.rlike(rf"^[ \t]*(?:{pattern})[ \t]*\z")  # Java's $ is before a line break, too


def milliseconds(text: Column, what: str) -> Column:
    """Returns the milliseconds since 1970 of a text: a whole number of them, or a timestamp."""
    whole = f.when(_is(text, spellings.INTEGER), text.try_cast("bigint"))
    found = f.coalesce(whole, ntz_millis(_utc(text)))
    return _checked(found, text, f.btrim(text, f.lit(" \t")) == "", f"{what}: no time: ")


def ntz_millis(time: Column) -> Column:
    """Returns the milliseconds of a time without a zone, whatever the session's zone is."""
    return f.unix_millis(f.concat(time.cast("string"), f.lit("Z")).cast("timestamp"))


def spelled(text: Column, names: Iterable[str]) -> Column:
    """Returns a JSON object with these names of members as they are given, whatever their case.
    Within a string, a quote has a backslash before it."""
    quoted = [json.dumps(name, ensure_ascii=False) for name in names]
    inner = [re.escape(name[1:-1]) for name in quoted]
    other = rf'(?<!\\)"(?!(?:{"|".join(inner)})"\s*:)\s*(?iu:{"|".join(inner)})\s*"\s*:'
    renamed = text
    for name, found in zip(quoted, inner, strict=True):
        to = re.sub(r"([\\$])", r"\\\1", name)
        renamed = f.regexp_replace(renamed, rf'(?iu)(?<!\\)"\s*{found}\s*"(?=\s*:)', to)
    return f.when(text.rlike(other), renamed).otherwise(text)


def _utc(text: Column) -> Column:
    """Returns the time in UTC, without a zone; NULL if the text is none, or is in no year from 0 to
    9999 there."""

    def part(group: int) -> Column:
        return f.regexp_extract(text, _MOMENT, group)

    clock = f.when(part(_CLOCK) != "", part(_CLOCK)).otherwise("00:00")
    local = f.concat(part(_DATE), f.lit("T"), clock).try_cast("timestamp_ntz")
    hours, minutes = (f.coalesce(part(n).try_cast("int"), f.lit(0)) for n in (_HOURS, _MINUTES))
    offset = f.make_dt_interval(f.lit(0), hours, minutes, f.lit(0))
    found = f.when(part(_SIGN) == "-", local + offset).otherwise(local - offset)
    years = f.year(found)
    return f.when((years >= 0) & (years <= 9999), found)


def _checked(value: Column, text: Column, blank: Column, wrong: str) -> Column:
    """Stops the job if a text that is not `blank` has no value. The error is of a kind that
    `errors.cause` finds in Spark's message, so that the job is not started again. It is in two
    pieces, since messages of other errors may show this very expression."""
    error = f.raise_error(f.concat(f.lit("Feed"), f.lit(f"Error: schema: {wrong}"), text))
    return f.coalesce(value, f.when(~blank, error))
