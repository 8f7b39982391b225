"""The ranges of dates, times of day, timestamps and intervals.

Every value of a stream is one that Python can represent, since parts of the engine compute with
Python's values. Rows with others are refused before they come in.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from seustream.compiler.language.types import TIME_RANGES, Kind

_SHORTEST, _LONGEST = TIME_RANGES[Kind.INTERVAL]

IN_WORDS = {
    Kind.DATE: "a date is 0001-01-01 to 9999-12-31",
    Kind.TIME: "a time of day is 00:00:00 to 23:59:59.999",
    Kind.TIMESTAMP: "a timestamp is in the years 1 to 9999",
    Kind.INTERVAL: f"an interval is {_SHORTEST} to {_LONGEST} milliseconds",
}


def out_of_range(column: pa.Array[Any], kind: Kind) -> bool:
    """Returns whether a column of a type of times, or of its numbers, has a value out of range."""
    if kind not in TIME_RANGES:
        return False
    ends = pc.min_max(_numbers(column))
    low, high = TIME_RANGES[kind]
    least, most = ends["min"].as_py(), ends["max"].as_py()
    return least is not None and not low <= least <= most <= high


def first_out_of_range(column: pa.Array[Any], kind: Kind) -> int:
    """Returns the place of the first value out of range; there must be one."""
    low, high = TIME_RANGES[kind]
    numbers = _numbers(column)
    found: int = pc.index(pc.or_(pc.less(numbers, low), pc.greater(numbers, high)), True).as_py()
    return found


def _numbers(column: pa.Array[Any]) -> pa.Array[Any]:
    return column.view(pa.int32() if column.type.bit_width == 32 else pa.int64())
