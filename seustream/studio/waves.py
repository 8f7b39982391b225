"""Extracts signals of the RTL over a run: changes of those that a reader can follow, by clock
cycle."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from seustream.errors import UserError

_TOP = "TOP.wjasip."
_WIDEST = 40
"""The most bits of a shown signal; wider ones are records, whose members have signals of their own."""
_MOST_SIGNALS = 120
_MOST_CHANGES = 4000
_FIRST = ("raw__", "selected__", "request", "pairs__", "staged__", "results__", "handed_over__")
"""Prefixes of the last part of names, in the order in which a tuple passes through the processor."""


def signals(path: Path, start: int, end: int) -> list[dict[str, Any]]:
    """Returns the signals of an FST file that change between two clock cycles, those on a tuple's
    path first."""
    try:
        import pywellen  # type: ignore[import-untyped]
    except ImportError:
        raise UserError(
            ["signals are read by pywellen, which is not installed"],
            hint="pip install 'seustream[studio]'",
        ) from None
    named = {v.full_name.removeprefix(_TOP): v for v in pywellen.Waveform(str(path)).all_vars()}
    found: list[dict[str, Any]] = []
    for name in sorted(filter(_readable, named), key=_rank):
        variable = named[name]
        width = variable.bitwidth or 0
        if 0 < width <= _WIDEST and len(changes := _within(variable.tv, start, end)) > 1:
            found.append({"name": name, "width": width, "changes": changes[:_MOST_CHANGES]})
        if len(found) == _MOST_SIGNALS:
            break
    return found


def _readable(name: str) -> bool:
    """Returns whether a signal belongs to the processor or to a part of it that was given a name of
    its own."""
    return not name.startswith("TOP.") and name.count(".") < 2 and not re.search(r"[$\[]", name)


def _within(changes: Any, start: int, end: int) -> list[tuple[int, str]]:
    """Returns values by the cycle from which they hold, the first being that of the start. Cycle n
    of a run ends at times 2n and 2n + 1 of its file."""
    found: list[tuple[int, str]] = []
    for time, value in changes:
        cycle = (time + 1) // 2
        if cycle > end:
            break
        if found and found[-1][0] >= max(cycle, start):
            found.pop()
        found.append((max(cycle, start), f"{value:x}" if isinstance(value, int) else str(value)))
    return found


def _rank(name: str) -> tuple[int, int, str]:
    *_, last = name.split(".")
    places = [n for n, begin in enumerate(_FIRST) if last.startswith(begin)]
    return (name.count("."), min(places, default=len(_FIRST)), name)
