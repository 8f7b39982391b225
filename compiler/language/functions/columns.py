"""Helpers shared by column implementations. `pc` is the module `pyarrow.compute`, passed in.

A `ValueError` means that the columns cannot be computed this way; the evaluator then uses the row
reference.
"""

from __future__ import annotations

from typing import Any

from seustream.compiler.language.types import TIME_RANGES, Kind

_FIRST, _LAST = TIME_RANGES[Kind.TIMESTAMP]
_SHORTEST, _LONGEST = TIME_RANGES[Kind.INTERVAL]


def is_constant(argument: Any) -> bool:
    """Returns whether an argument is an Arrow scalar."""
    return hasattr(argument, "as_py")


def constant(argument: Any) -> Any:
    """Returns the value of an argument that is the same in all rows."""
    if not is_constant(argument):
        raise ValueError("differs by row")
    return argument.as_py()


def all_ascii(pc: Any, text: Any) -> Any:
    """Returns the texts if all are ASCII, whose case mapping is the same in every version of
    Unicode."""
    if pc.all(pc.string_is_ascii(text)).as_py() is False:
        raise ValueError("not only ASCII")
    return text


def nonzero(pc: Any, value: Any) -> Any:
    """Returns the divisor, NULL where it is 0."""
    if is_constant(value):
        if not value.as_py():
            raise ValueError("a constant 0")
        return value
    return pc.if_else(pc.equal(value, 0), None, value)


def check_moments(pc: Any, value: Any) -> Any:
    """Returns the timestamps if all are within the years 1 to 9999."""
    ends = pc.min_max(value)
    first, last = ends["min"].value, ends["max"].value
    if first is not None and not _FIRST <= first <= last <= _LAST:
        raise ValueError("timestamp overflow")
    return value


def check_durations(pc: Any, value: Any) -> Any:
    """Returns the intervals if a `timedelta` holds all of them."""
    ends = pc.min_max(pc.cast(value, "int64"))
    first, last = ends["min"].as_py(), ends["max"].as_py()
    if first is not None and not _SHORTEST <= first <= last <= _LONGEST:
        raise ValueError("interval overflow")
    return value
