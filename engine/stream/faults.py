"""Faults of the queries of an operator, as a report and a snapshot keep them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from seustream.compiler.errors import SourceText
from seustream.compiler.language.faults import Faults, Place

Lines = dict[str, tuple[int, str]]
"""By place, in words: the number of faults, and the first row."""


@dataclass
class QueryFaults(Faults):
    """The faults of one query. `lines` describes them in words, including those of an earlier
    run."""

    source: SourceText = field(default_factory=lambda: SourceText(""))
    lines: Lines = field(default_factory=dict)

    def add(self, place: Place, rows: int, first: int) -> None:
        super().add(place, rows, first)
        text = located(place, self.source)
        count, row = self.lines.get(text, (0, self.named.get(place, f"row {first}")))
        self.lines[text] = (count + rows, row)


def located(place: Place, source: SourceText) -> str:
    """Describes a place: `division by zero in R.a / R.b at 3:14`. Who reads it has the text of the
    query, of several texts that were joined."""
    if place.at is None:
        return str(place)
    line, column = source.position_in_part(place.at.start)
    return f"{place} at {line}:{column}"


def fault_report(faults: Mapping[str, QueryFaults]) -> dict[str, Lines]:
    """Returns the faults to report, by query; a snapshot keeps them too."""
    return {name: dict(one.lines) for name, one in faults.items() if one.lines}


def restore(faults: Mapping[str, QueryFaults], lines: Mapping[str, Mapping[str, Any]]) -> None:
    """Continues the counts of a snapshot; drops those of queries that are gone."""
    for name, before in lines.items():
        if name in faults:
            for place, (count, row) in before.items():
                faults[name].lines[place] = (count, row)
