"""Finds a stream's columns in a file, and reports errors in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seustream.compiler.catalogue import Stream
from seustream.compiler.errors import nearest
from seustream.engine.times import UNKNOWN
from seustream.errors import InputError
from seustream.tables import FAULTS_LISTED, BadCells, Field, fold

Warn = Callable[[str], None]
Columns = list["pa.ChunkedArray[Any]"]


@dataclass(slots=True)
class InputFile:
    """A file of a stream's tuples while it is read."""

    path: Path
    said: str
    stream: Stream
    fields: tuple[Field, ...]
    warn: Warn
    time: pa.DataType = UNKNOWN

    def no_faults(self) -> list[BadCells]:
        return [BadCells() for _ in self.fields]

    def report(
        self,
        rows: BadCells,
        cells: Sequence[BadCells],
        lines: Sequence[int] | npt.NDArray[np.int64],
        where: str = "",
    ) -> None:
        """Raises if there are errors: lists the first ones by line, and counts all. `rows` counts
        in lines; `cells`, one per column, in rows whose lines are in `lines`."""
        total = rows.total + sum(faults.total for faults in cells)
        if not total:
            return
        found = [(line, -1, reason) for line, reason in rows.listed]
        for place, (of, faults) in enumerate(zip(self.fields, cells, strict=True)):
            for row, reason in faults.listed:
                found.append((int(lines[row]), place, f"column {of.name}: {reason}"))
        messages = [
            f"{self.said}:{where}{line}: {reason}"
            for line, _, reason in sorted(found)[:FAULTS_LISTED]
        ]
        if total > len(messages):
            messages.append(
                f"{self.said}: {total} errors in all, the first {len(messages)} are listed"
            )
        raise InputError(messages, total=total)


def places_of(source: InputFile, names: Sequence[str]) -> list[int]:
    """Returns the position in the file of each column of the stream."""
    folded = [fold(name) for name in names]
    known = {name for of in source.fields for name in of.names}
    messages, places = [], []
    for of in source.fields:
        at = [place for place, name in enumerate(folded) if name in of.names]
        if len(at) > 1:
            given = ", ".join(repr(names[place]) for place in at)
            messages.append(f"{source.said}: column {of.name} is there {len(at)} times: {given}")
        elif not at:
            others = [name for name, low in zip(names, folded, strict=True) if low not in known]
            messages.append(missing_column(source, of, others))
        places.extend(at[:1])
    if messages:
        raise InputError(messages, separator_hint(names))
    warn_of_others(source, [name for place, name in enumerate(names) if place not in places])
    return places


def missing_column(source: InputFile, of: Field, others: Sequence[str]) -> str:
    """Reports a missing column. `others` are the file's columns that belong to no stream, one of
    which may be the misspelt one."""
    names = [name.strip() for name in others]
    near = next((found for name in of.names if (found := nearest(name, names))), None)
    if of.is_time:
        what = f"no time column, expected one named {' or '.join(_time_names(of))}"
    else:
        whose = "the select list reads" if of.is_json else f"stream {source.stream.name} has"
        what = f"no column {of.name}, which {whose}"
    return f"{source.said}: {what}" + (f"; the nearest is {near!r}" if near else "")


def _time_names(of: Field) -> list[str]:
    return [name for name in ("ts", "TimeStamp") if name.lower() in of.names]


def separator_hint(names: Sequence[str]) -> str | None:
    """Returns a hint for a header of one column that has another mark between its cells."""
    for mark, what in ((";", "semicolons"), ("\t", "tabs")):
        if len(names) == 1 and mark in names[0]:
            return f"the header has {what}; cells are separated by commas"
    return None


def warn_of_others(source: InputFile, names: Sequence[str]) -> None:
    if names:
        given = ", ".join(repr(name) for name in names)
        one = len(names) == 1
        source.warn(
            f"{source.said}: {'column' if one else 'columns'} {given} "
            f"{'is' if one else 'are'} not in stream {source.stream.name} and ignored"
        )
