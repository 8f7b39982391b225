"""A pattern as an operator of the graph."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from seustream.compiler.pattern import ir
from seustream.engine.pattern.event import BEGIN_OF_TIME
from seustream.engine.pattern.matchers import operator_of
from seustream.engine.stream.faults import QueryFaults, fault_report, restore
from seustream.engine.stream.operator import Answer
from seustream.engine.stream.snapshot import Snapshot, unpack


class PatternNode:
    """A pattern over one stream. Its matches are results or, at the time of their last event, rows of the
    stream it defines. Faults are counted in `faults`, or raised there."""

    def __init__(
        self, query: ir.MatchQuery, engine: str = "auto", faults: QueryFaults | None = None
    ) -> None:
        self.query = query
        own = QueryFaults() if faults is None else faults
        self.faults = {query.name: own}
        # The runner keeps the order.
        self.operator = operator_of(query, engine, late="error", faults=own)
        self.inputs = (query.stream.name,)
        self._reached = BEGIN_OF_TIME

    @property
    def watermark(self) -> int:
        return self.operator.output_watermark

    def push(self, input: str, rows: pa.Table) -> None:
        self.operator.push_table(rows)

    def advance(self, input: str, watermark: int) -> None:
        self._reached = max(self._reached, watermark)

    def outputs(self) -> Iterator[Answer]:
        if self._reached <= self.operator.watermark:
            return
        found, times = self.operator.advance_table(self._reached)
        if not found.num_rows:
            return
        if self.query.defines is None:
            yield self.query.name, found
        else:
            columns = [pa.array(times, pa.int64()), *found.columns]
            yield self.query.name, pa.table(columns, names=["ts", *found.column_names])

    def snapshot(self) -> bytes:
        plain = {
            "text": self.query.text,
            "reached": self._reached,
            "operator": self.operator.snapshot(),
            "faults": fault_report(self.faults),
        }
        return Snapshot("pattern", plain).pack()

    def restore(self, snapshot: bytes) -> None:
        """Of another text it begins anew."""
        plain = unpack(snapshot, "pattern").plain
        if plain["text"] == self.query.text:
            self.operator.restore(plain["operator"])
            restore(self.faults, plain["faults"])
            # Of releases that saved only after the outputs, nothing beyond them was reached.
            self._reached = plain.get("reached", self.operator.watermark)
