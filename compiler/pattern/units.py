"""Units of time in PATTERN and MATCH_RECOGNIZE."""

from __future__ import annotations

MILLISECONDS = {
    name: size
    for size, names in {
        1: ("ms", "millisecond", "milliseconds"),
        1_000: ("s", "sec", "second", "seconds"),
        60_000: ("min", "minute", "minutes"),
        3_600_000: ("h", "hour", "hours"),
        86_400_000: ("d", "day", "days"),
    }.items()
    for name in names
}
