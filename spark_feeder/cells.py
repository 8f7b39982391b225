"""Columns of frames as values of a stream's types.

A time with an offset is converted to UTC; one without is in UTC, whatever the session's zone is. A value
that does not fit stops the job.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql import types as t

from seustream.compiler.language import spellings

_MOMENT = rf"^[ \t]*({spellings.DATE})(?:[Tt ]({spellings.CLOCK})(?:{spellings.ZONE})?)?[ \t]*\z"
_DATE, _CLOCK, _SIGN, _HOURS, _MINUTES = 1, 5, 10, 11, 12
"""Groups of a moment."""
_WHOLE = rf"^[ \t]*(?:{spellings.INTEGER})[ \t]*\z"  # Java's $ is before a line break, too


def value(column: Column, have: t.DataType, want: t.DataType, what: str) -> Column:
    """Converts a column to a related type; `what` names the column in an error."""
    if isinstance(have, t.NullType):
        return column.cast(want)
    if have == want or isinstance(want, t.TimestampNTZType | t.TimeType):
        return column  # an instant is in UTC for the bridge
    if isinstance(want, t.DayTimeIntervalType) and isinstance(have, t.IntegralType):
        return column.cast("bigint") * f.expr("INTERVAL '0.001' SECOND").cast(want)
    found = column.try_cast(want)
    match want:
        case t.FloatType() | t.DoubleType():
            infinite = f.lit(float("inf"))
            found = f.when((f.abs(found) != infinite) | (f.abs(column) == infinite), found)
        case t.DecimalType():  # Spark would round it
            found = f.when(found.try_cast(have) == column, found)
        case t.IntegralType():
            pass
        case _:
            return found
    wrong = f"{what}: no {want.simpleString()}: "
    return _checked(found, column.cast("string"), column.isNull(), wrong)


def milliseconds(text: Column, what: str) -> Column:
    """Returns the milliseconds since 1970 of a text: a whole number of them, or a timestamp."""
    whole = f.when(text.rlike(_WHOLE), text.try_cast("bigint"))
    found = f.coalesce(whole, ntz_millis(_utc(text)))
    return _checked(found, text, f.btrim(text, f.lit(" \t")) == "", f"{what}: no time: ")


def ntz_millis(time: Column) -> Column:
    """Returns the milliseconds of a time without a zone, whatever the session's zone is."""
    return f.unix_millis(f.concat(time.cast("string"), f.lit("Z")).cast("timestamp"))


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
