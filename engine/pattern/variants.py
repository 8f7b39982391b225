"""A pattern with several ways through its sequence: an operator a way, and their matches as one result."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pyarrow as pa

from seustream.compiler.language.faults import Faults
from seustream.compiler.pattern import ir
from seustream.engine.pattern import output
from seustream.engine.pattern.arrivals import Stats
from seustream.engine.pattern.operator import PatternOperator


class VariantsOperator:
    """The matches of all variants in order of the time they are certain, then of the variants; columns
    that a variant lacks are NULL."""

    def __init__(
        self, query: ir.PatternQuery, engine: str, late: str, faults: Faults | None
    ) -> None:
        self.query = query
        self.schema = output.schema(query)
        self.operators = [
            PatternOperator(variant, engine, late=late, faults=faults) for variant in query.variants
        ]

    @property
    def engine(self) -> str:
        return ", ".join(dict.fromkeys(one.engine for one in self.operators))

    @property
    def stats(self) -> Stats:
        """Those of the events are every variant's; matches and what is held are of all."""
        every = [one.stats for one in self.operators]
        return dataclasses.replace(
            every[0],
            matches=sum(one.matches for one in every),
            peak_held=sum(one.peak_held for one in every),
        )

    @property
    def watermark(self) -> int:
        return self.operators[0].watermark

    @property
    def output_watermark(self) -> int:
        return min(one.output_watermark for one in self.operators)

    @property
    def held(self) -> int:
        return sum(one.held for one in self.operators)

    @property
    def next_due(self) -> int | None:
        """The next watermark at which some variant has something to do; None if nothing is held."""
        return min(
            (due for one in self.operators if (due := one.next_due) is not None), default=None
        )

    def push_table(self, rows: pa.Table) -> None:
        for one in self.operators:
            one.push_table(rows)

    def advance_table(self, watermark: int) -> tuple[pa.Table, np.ndarray[Any, Any]]:
        """Rows of RETURN, with the time of each."""
        tables, times = zip(*(one.advance_table(watermark) for one in self.operators), strict=True)
        rows, at = pa.concat_tables(map(self._whole, tables)), np.concatenate(times)
        order = np.argsort(at, kind="stable")
        return rows.take(pa.array(order)), at[order]

    def _whole(self, rows: pa.Table) -> pa.Table:
        there = set(rows.column_names)
        columns = [
            rows.column(one.name) if one.name in there else pa.nulls(rows.num_rows, one.type)
            for one in self.schema
        ]
        return pa.Table.from_arrays(columns, schema=self.schema)

    def snapshot(self) -> dict[str, Any]:
        return {"variants": [one.snapshot() for one in self.operators]}

    def restore(self, stored: dict[str, Any]) -> None:
        for one, plain in zip(self.operators, stored["variants"], strict=True):
            one.restore(plain)
