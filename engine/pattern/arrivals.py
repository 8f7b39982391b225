"""Rows waiting for the watermark, as columns in any order; late rows are dropped or refused."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from seustream.compiler.pattern import ir
from seustream.engine.kernels import native
from seustream.engine.pattern.batch import EventBatch, TableReader, concat
from seustream.engine.pattern.errors import LateEvent

FARTHEST = 1 << 61
"""Times beyond this, in either direction, are invalid: adding a window to them could overflow."""


@dataclass(slots=True)
class Stats:
    """Counts rows: `bad_events` had no valid time, `late_dropped` arrived too late."""

    taken: int = 0
    bad_events: int = 0
    late_dropped: int = 0
    matches: int = 0
    peak_held: int = 0


class WaitingRows:
    """Holds the rows above the watermark. `arrived` numbers the rows by arrival. Late rows are
    dropped, or refused if `late` is error."""

    def __init__(self, query: ir.MatchQuery, columns: set[str], late: str) -> None:
        self.stats = Stats()
        self.arrived = 0
        self.tables: EventBatch | None = None
        self._query, self._late = query, late
        kinds = query.type_column if isinstance(query, ir.PatternQuery) else None
        self._reader = TableReader(query.stream, kinds, columns)
        self._ordered = True  # whether the waiting rows are in order

    @property
    def held(self) -> int:
        return 0 if self.tables is None else len(self.tables)

    @property
    def earliest(self) -> int:
        """Returns the earliest time among the waiting rows."""
        assert self.tables is not None
        return int(self.tables.ts.min())

    def push(self, rows: pa.Table, watermark: int) -> None:
        """Takes rows of the stream, with a column ts (int64)."""
        first = self.arrived
        self.arrived += rows.num_rows
        times = rows.column("ts")
        if times.null_count:
            self.stats.bad_events += times.null_count
            rows = rows.filter(times.is_valid())
            times = rows.column("ts")
        if not rows.num_rows:
            return
        batch = self._reader.read(rows, first)
        least, most, ordered = native.times(times.__arrow_c_stream__())
        if not ordered:
            least, most = int(batch.ts.min()), int(batch.ts.max())
        if least <= -FARTHEST or most >= FARTHEST:
            sane = (batch.ts > -FARTHEST) & (batch.ts < FARTHEST)
            self.stats.bad_events += int((~sane).sum())
            batch = batch.take(sane)
        if least <= watermark and len(batch):
            late = batch.ts <= watermark
            if late.any():
                self.refuse(int(late.sum()), int(batch.ts[late][0]), watermark)
                batch = batch.take(~late)
        self.stats.taken += len(batch)
        if self.tables is None or not len(self.tables):
            self.tables, self._ordered = batch, ordered
        elif len(batch):
            self._ordered = self._ordered and ordered and bool(batch.ts[0] >= self.tables.ts[-1])
            self.tables = concat(self.tables, batch)

    def resume(self, tables: EventBatch | None) -> None:
        """Restores the rows that were waiting."""
        self.tables = tables
        self._ordered = tables is None or not (tables.ts[1:] < tables.ts[:-1]).any()

    def refuse(self, count: int, ts: int, watermark: int) -> None:
        """Drops or refuses late rows, the first of them at `ts`."""
        if self._late == "error":
            raise LateEvent(
                f"query {self._query.name}: an event at {ts}, the watermark is {watermark}",
                "let the watermark trail further behind, or drop late events",
            )
        self.stats.late_dropped += count

    def mark(self, watermark: int, rows: int) -> int:
        """Returns the time that about so many waiting rows reach, or the watermark."""
        if self.tables is None or len(self.tables) <= rows or not self._ordered:
            return watermark
        return min(watermark, int(self.tables.ts[rows - 1]))

    def released(self, watermark: int) -> EventBatch | None:
        """Returns the rows up to the watermark, in order, or None if there are none."""
        waiting = self.tables
        if waiting is None or not len(waiting):
            return None
        if not self._ordered:
            waiting = waiting.take(np.argsort(waiting.ts, kind="stable"))
            self._ordered = True
        cut = int(np.searchsorted(waiting.ts, watermark, "right"))
        rest = slice(cut, None)
        self.tables = waiting.take(rest) if cut < len(waiting) else None
        return waiting if cut == len(waiting) else waiting.take(slice(0, cut)) if cut else None
