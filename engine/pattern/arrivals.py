"""Rows that wait for the watermark: in columns, in any order, and those that are refused."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from seustream.compiler.pattern import ir
from seustream.engine.pattern.batch import EventBatch, concat, of_table
from seustream.engine.pattern.errors import LateEvent

FARTHEST = 1 << 61
"""Times beyond this, in any direction, are no times: windows could not be added to them."""


@dataclass(slots=True)
class Stats:
    """`bad_events` had no time, `late_dropped` came too late."""

    taken: int = 0
    bad_events: int = 0
    late_dropped: int = 0
    matches: int = 0
    peak_held: int = 0


class WaitingRows:
    """Rows above the watermark. `arrived` numbers the rows by arrival; late ones are
    dropped, or with `late` error refused."""

    def __init__(self, query: ir.MatchQuery, columns: set[str], late: str) -> None:
        self.stats = Stats()
        self.arrived = 0
        self.tables: EventBatch | None = None
        self._query, self._columns, self._late = query, columns, late
        self._type = query.type_column if isinstance(query, ir.PatternQuery) else None

    @property
    def held(self) -> int:
        return 0 if self.tables is None else len(self.tables)

    @property
    def earliest(self) -> int:
        """The earliest time that waits."""
        assert self.tables is not None
        return int(self.tables.ts.min())

    def push(self, rows: pa.Table, watermark: int) -> None:
        """Rows of the stream, with a column ts (int64)."""
        first = self.arrived
        self.arrived += rows.num_rows
        if rows["ts"].null_count:
            self.stats.bad_events += rows["ts"].null_count
            rows = rows.filter(rows["ts"].is_valid())
        batch = of_table(rows, self._query.stream, self._type, self._columns, first)
        if not len(batch):
            return
        if batch.ts.min() <= -FARTHEST or batch.ts.max() >= FARTHEST:
            sane = (batch.ts > -FARTHEST) & (batch.ts < FARTHEST)
            self.stats.bad_events += int((~sane).sum())
            batch = batch.take(sane)
        if len(batch) and batch.ts.min() <= watermark:
            late = batch.ts <= watermark
            self.refuse(int(late.sum()), int(batch.ts[late][0]), watermark)
            batch = batch.take(~late)
        self.stats.taken += len(batch)
        self.tables = batch if self.tables is None else concat(self.tables, batch)

    def refuse(self, count: int, ts: int, watermark: int) -> None:
        """Late rows, the first of them at `ts`."""
        if self._late == "error":
            raise LateEvent(
                f"query {self._query.name}: an event at {ts}, the watermark is {watermark}",
                "let the watermark trail further behind, or drop late events",
            )
        self.stats.late_dropped += count

    def released(self, watermark: int) -> EventBatch | None:
        """The rows up to the watermark, in order; None if there are none."""
        waiting = self.tables
        if waiting is None or not len(waiting):
            return None
        if len(waiting) > 1 and (waiting.ts[1:] < waiting.ts[:-1]).any():
            waiting = waiting.take(np.argsort(waiting.ts, kind="stable"))
        cut = int(np.searchsorted(waiting.ts, watermark, "right"))
        rest = slice(cut, None)
        self.tables = waiting.take(rest) if cut < len(waiting) else None
        return waiting if cut == len(waiting) else waiting.take(slice(0, cut)) if cut else None
