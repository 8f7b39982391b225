"""Durations as users give them: to an option of the command line, or to a function."""

from __future__ import annotations

import re
from datetime import timedelta

from seustream.compiler.language.types import read_interval
from seustream.errors import QueryError

WANTED = "want milliseconds, or a number and a unit: 500ms, 5s, 2min, 1h"


def milliseconds_of(text: str) -> int | None:
    """Reads a duration: an integer in milliseconds, or a number with a unit as in a query. Returns
    None if the text is neither."""
    if re.fullmatch(r"-?[0-9]+", text):
        return int(text)
    found = read_interval(text)
    return None if found is None else found // timedelta(milliseconds=1)


def slack_of(given: int | str | None) -> int | None:
    """Returns the milliseconds of `slack`, given as a number or as a text such as "5s"."""
    found = milliseconds_of(given) if isinstance(given, str) else given
    if found is None and given is None:
        return None
    if not isinstance(found, int) or found < 0:
        raise QueryError(f"slack = {given!r} is no duration", WANTED)
    return found
