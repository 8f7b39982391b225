"""A pattern with several ways through its sequence: one operator per way, matches merged into one
result."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from itertools import starmap
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from seustream.compiler.language.faults import Faults
from seustream.compiler.pattern import ir
from seustream.compiler.pattern.ir import Skip
from seustream.engine.pattern import output, state
from seustream.engine.pattern.arrivals import Stats
from seustream.engine.pattern.columns import Ints
from seustream.engine.pattern.event import Match
from seustream.engine.pattern.operator import PatternOperator
from seustream.engine.pattern.output import Rows
from seustream.engine.pattern.skip import Skipping


class VariantsOperator:
    """Gives the matches of all variants in order of the time they are certain, then of the
    variants; columns that a variant lacks are NULL. AFTER MATCH chooses among the matches of all
    variants. For this, matches have the elements of the whole pattern, without events where an
    element is missing."""

    def __init__(
        self, query: ir.PatternQuery, engine: str, late: str, faults: Faults | None
    ) -> None:
        self.query = query
        self.schema = output.schema(query)
        self.operators = [
            PatternOperator(
                dataclasses.replace(variant, skip=Skip.NONE), engine, late=late, faults=faults
            )
            for variant in query.variants
        ]
        self._skipping = Skipping(query)
        self._counted = 0

    @property
    def engine(self) -> str:
        return ", ".join(dict.fromkeys(one.engine for one in self.operators))

    @property
    def stats(self) -> Stats:
        """Statistics: events are counted once, as all variants get the same; matches and held items
        are summed."""
        every = [one.stats for one in self.operators]
        matches = self._counted if self._skips else sum(one.matches for one in every)
        held = sum(one.peak_held for one in every)
        return dataclasses.replace(every[0], matches=matches, peak_held=held)

    @property
    def watermark(self) -> int:
        return self.operators[0].watermark

    @property
    def output_watermark(self) -> int:
        found = min(one.output_watermark for one in self.operators)
        return self._skipping.output_watermark(found) if self._skips else found

    @property
    def held(self) -> int:
        return self._skipping.held + sum(one.held for one in self.operators)

    @property
    def next_due(self) -> int | None:
        """The next watermark at which some variant has something to do; None if nothing is held."""
        times = [due for one in self.operators if (due := one.next_due) is not None]
        return min([*times, *self._skipping.due], default=None)

    @property
    def _skips(self) -> bool:
        return self.query.skip is not Skip.NONE

    def push_table(self, rows: pa.Table) -> None:
        for one in self.operators:
            one.push_table(rows)

    def mark(self, watermark: int, events: int) -> int:
        """Returns the watermark to move to: see `PatternOperator.mark`."""
        return self.operators[0].mark(watermark, events)

    def advance_table(self, watermark: int) -> Rows:
        """Moves the watermark; returns rows of RETURN, with their times."""
        nothing = self.schema.empty_table(), np.zeros(0, np.int64)
        return output.together([*self.parts(watermark)] or [nothing])

    def parts(self, watermark: int) -> Iterator[Rows]:
        """Acts like `advance_table`; yields the rows in parts. Must be iterated to its end."""
        if not self._skips:
            yield from self._merged([one.parts(watermark) for one in self.operators])
            return
        found = [
            dataclasses.replace(match, groups=self._placed(variant, match))
            for variant, one in zip(self.query.variants, self.operators, strict=True)
            for match in one.firsts(watermark)
        ]
        counted = self._skipping.counted(found, watermark)
        self._counted += len(counted)
        if counted:
            yield self._together(
                [
                    one.rows_of(one.dated(self._own(variant, counted)))
                    for variant, one in zip(self.query.variants, self.operators, strict=True)
                ]
            )

    def _merged(self, variants: Sequence[Iterator[Rows]]) -> Iterator[Rows]:
        """Merges the parts of all variants: by time, then by variant."""
        parts = [_next(one) for one in variants]
        while any(parts):
            # Of the parts that end first, that of the first variant goes whole. A later variant may
            # have to wait with rows of the same time.
            end, first = min(
                (int(part[1][-1]), number) for number, part in enumerate(parts) if part is not None
            )
            given = []
            for number, part in enumerate(parts):
                if part is None:
                    continue
                rows, at = part
                side: Literal["left", "right"] = "right" if number <= first else "left"
                count = int(np.searchsorted(at, end, side))
                given.append((rows.slice(0, count), at[:count]))
                parts[number] = rows.slice(count), at[count:]
            yield self._together(given)
            for number, part in enumerate(parts):
                if part is not None and not len(part[1]):
                    parts[number] = _next(variants[number])

    def _placed(self, variant: ir.PatternQuery, match: Match) -> tuple[Any, ...]:
        by_place = dict(zip(variant.places, match.groups, strict=True))
        return tuple(by_place.get(place, ()) for place in range(len(self.query.elements)))

    def _own(self, variant: ir.PatternQuery, matches: Sequence[Match]) -> list[Match]:
        """Returns the matches of a variant: no other variant has events for the same elements."""
        events = {
            place
            for place, element in zip(variant.places, variant.elements, strict=True)
            if not element.negated
        }
        return [
            dataclasses.replace(
                match, groups=tuple(match.groups[place] for place in variant.places)
            )
            for match in matches
            if events == {place for place, group in enumerate(match.groups) if group}
        ]

    def _together(self, found: Sequence[Rows]) -> Rows:
        times = [at for _, at in found]
        rows, at = pa.concat_tables(starmap(self._whole, found)), np.concatenate(times)
        order = np.argsort(at, kind="stable")
        return rows.take(pa.array(order)), at[order]

    def _whole(self, rows: pa.Table, at: Ints) -> pa.Table:
        # A variant may lack all columns, and a table without columns has no rows.
        there = set(rows.column_names)
        columns = [
            rows.column(one.name) if one.name in there else pa.nulls(len(at), one.type)
            for one in self.schema
        ]
        return pa.Table.from_arrays(columns, schema=self.schema)

    def snapshot(self) -> dict[str, Any]:
        return {
            "variants": [one.snapshot() for one in self.operators],
            "skipping": state.skipping(self._skipping),
            "counted": self._counted,
        }

    def restore(self, stored: dict[str, Any]) -> None:
        for one, plain in zip(self.operators, stored["variants"], strict=True):
            one.restore(plain)
        self._skipping = state.skipping_of(self.query, stored["skipping"])
        self._counted = stored["counted"]


def _next(parts: Iterator[Rows]) -> Rows | None:
    """Returns the next part that has rows: a match of groups may have none."""
    return next((part for part in parts if len(part[1])), None)
