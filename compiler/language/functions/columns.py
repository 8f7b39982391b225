"""Helpers that implementations by column share. `pc` is the module `pyarrow.compute`, handed in.

A `ValueError` says that the columns cannot be computed this way; the evaluator then asks the row
reference.
"""

from __future__ import annotations

import datetime
from typing import Any

from seustream.compiler.language.exact import EPOCH, MICROSECOND, MILLISECOND

_FIRST = (datetime.datetime.min - EPOCH) // MICROSECOND
_LAST = (datetime.datetime.max - EPOCH) // MICROSECOND
_SHORTEST = datetime.timedelta.min // MILLISECOND + 1
_LONGEST = datetime.timedelta.max // MILLISECOND


def is_constant(argument: Any) -> bool:
    """Returns whether an argument is an Arrow scalar."""
    return hasattr(argument, "as_py")


def constant(argument: Any) -> Any:
    """The value of an argument that is the same in all rows."""
    if not is_constant(argument):
        raise ValueError("differs by row")
    return argument.as_py()


def all_ascii(pc: Any, text: Any) -> Any:
    """The texts, whose letters have one lower and one upper case in every table of Unicode."""
    if pc.all(pc.string_is_ascii(text)).as_py() is False:
        raise ValueError("not only ASCII")
    return text


def nonzero(pc: Any, value: Any) -> Any:
    """The divisor, NULL where it is 0."""
    if is_constant(value):
        if not value.as_py():
            raise ValueError("a constant 0")
        return value
    return pc.if_else(pc.equal(value, 0), None, value)


def check_moments(pc: Any, value: Any) -> Any:
    """The timestamps, all within the years 1 to 9999."""
    ends = pc.min_max(value)
    first, last = ends["min"].value, ends["max"].value
    if first is not None and not _FIRST <= first <= last <= _LAST:
        raise ValueError("timestamp overflow")
    return value


def check_durations(pc: Any, value: Any) -> Any:
    """The intervals, all within what a `timedelta` holds."""
    ends = pc.min_max(pc.cast(value, "int64"))
    first, last = ends["min"].as_py(), ends["max"].as_py()
    if first is not None and not _SHORTEST <= first <= last <= _LONGEST:
        raise ValueError("interval overflow")
    return value
