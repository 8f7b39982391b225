"""A pattern as an operator of the graph.

Where only events of some types can end a match, all others wait until one of these has arrived, so
that a step without one costs next to nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from seustream.compiler.pattern import ir
from seustream.engine.kernels import native
from seustream.engine.pattern import output
from seustream.engine.pattern.columns import Ints
from seustream.engine.pattern.event import BEGIN_OF_TIME, END_OF_STREAM
from seustream.engine.pattern.matchers import operator_of
from seustream.engine.pattern.operator import PatternOperator
from seustream.engine.pattern.recognize.operator import RowOperator
from seustream.engine.pattern.release import Release
from seustream.engine.stream.faults import QueryFaults, fault_report, restore
from seustream.engine.stream.numbers import numbers
from seustream.engine.stream.operator import Answer
from seustream.engine.stream.snapshot import Snapshot, unpack

_MOST_WAIT = 4096
"""The most rows that may wait for one that ends a match."""
_FIRST, _MOST_AT_ONCE = 1 << 12, 1 << 20
_MATCHES = 1 << 16
"""The matches for which an operator takes so many events at once, as far as that can be foreseen: each
event may end many, which need not be in memory together."""
_RELEASE = "release"
"""The name, in a snapshot, of the table of rows that wait for the watermark."""


class PatternNode:
    """A pattern over one stream. Its matches are results or, at the time of their last event, rows
    of the stream it defines. Faults are counted in `faults`, or raised there."""

    def __init__(
        self, query: ir.MatchQuery, engine: str = "auto", faults: QueryFaults | None = None
    ) -> None:
        self.query = query
        own = QueryFaults() if faults is None else faults
        self.faults = {query.name: own}
        # The runner puts rows in order before they get here.
        self.operator = operator_of(query, engine, late="error", faults=own)
        self.inputs: tuple[str, ...] = (query.stream.name,)
        self._reached = self._given = BEGIN_OF_TIME
        self._ending = None if own.strict else ending(query)
        self._waiting: list[pa.Table] = []
        self._waits = 0  # rows that wait
        self._at_once = _FIRST  # events that the operator takes at once
        self._release = None if query.defines is None else Release(output.schema(query))
        self._begins, self._ends = END_OF_STREAM, BEGIN_OF_TIME
        """The span of times with events that end matches and have not been looked at."""

    @property
    def watermark(self) -> int:
        return self.operator.output_watermark if self._ending is None else self._given

    def push(self, input: str, rows: pa.Table) -> None:
        if self._ending is None:
            self.operator.push_table(rows)
            return
        if not rows.num_rows:
            return
        self._waiting.append(rows)
        self._waits += rows.num_rows
        column, types = self._ending
        if types.among(rows.column(column).__arrow_c_stream__()):
            first, last, _ = native.times(rows.column("ts").__arrow_c_stream__())
            if self._ends <= self.operator.watermark:
                self._begins = first
            self._ends = last

    def advance(self, input: str, watermark: int) -> None:
        self._reached = max(self._reached, watermark)

    def outputs(self) -> Iterator[Answer]:
        if self._reached <= self._given:
            return
        if not self._due():
            self._given = self._reached
            return
        self._bring()
        while self._given < self._reached:
            self._given = self.operator.mark(self._reached, self._at_once)
            matches = 0
            for found, times in self.operator.parts(self._given):
                matches += found.num_rows
                places = self.operator.places if isinstance(self.operator, RowOperator) else None
                yield from self._answers(found, times, places)
            yield from self._released()
            cut = self._given < self._reached
            self._at_once = _events_at_once(self._at_once, matches, cut)

    def _answers(
        self, found: pa.Table, times: Ints, places: Ints | None = None
    ) -> Iterator[Answer]:
        """Yields matches as results as soon as they are certain; keeps those that are rows of the
        stream that the query defines."""
        if self._release is not None:
            self._release.add(
                found, times, np.zeros(len(times), np.int64) if places is None else places
            )
        elif found.num_rows:
            yield self.query.name, found

    def _released(self) -> Iterator[Answer]:
        """Yields the rows of the stream that the query defines, once they are in order."""
        if self._release is None:
            return
        found, times = self._release.released(self.watermark)
        if found.num_rows:
            columns = [pa.array(times, pa.int64()), *found.columns]
            yield self.query.name, pa.table(columns, names=["ts", *found.column_names])

    def _due(self) -> bool:
        """Returns whether there may be matches, or too many rows wait."""
        if self._ending is None or self._reached == END_OF_STREAM:
            return True
        if self._begins <= self._reached and self.operator.watermark < self._ends:
            return True
        return len(self._waiting) > 1 and self._waits > _MOST_WAIT

    def _bring(self) -> None:
        """Gives the operator the rows that have waited for one that ends a match."""
        if self._waiting:
            some = self._waiting
            rows = some[0] if len(some) == 1 else pa.concat_tables(some).combine_chunks()
            self.operator.push_table(rows)
            self._waiting, self._waits = [], 0

    def snapshot(self) -> bytes:
        if self._waiting or self.operator.watermark < self._given:
            self._bring()
            deque(self.operator.parts(self._given), 0)  # no waiting row ends a match
        plain = {
            "text": self.query.text,
            "reached": self._reached,
            "operator": self.operator.snapshot(),
            "faults": fault_report(self.faults),
        }
        return Snapshot("pattern", plain, self._released_later()).pack()

    def _released_later(self) -> Mapping[str, pa.Table]:
        """Returns the rows of the stream that wait for the watermark, if there are any."""
        waiting = None if self._release is None else self._release.waiting
        return {_RELEASE: waiting} if waiting is not None and waiting.num_rows else {}

    def _release_later(self, tables: Mapping[str, pa.Table]) -> None:
        if self._release is not None and _RELEASE in tables:
            self._release.resume(tables[_RELEASE])

    def restore(self, snapshot: bytes) -> None:
        """Restores a snapshot; with the snapshot of another query text the node starts afresh."""
        found = unpack(snapshot, "pattern")
        plain = found.plain
        if plain["text"] == self.query.text:
            self._release_later(found.tables)
            self.operator.restore(plain["operator"])
            restore(self.faults, plain["faults"])
            # Older releases saved only after the outputs, when nothing beyond them was reached.
            self._given = self.operator.watermark
            self._reached = plain.get("reached", self._given)
            if isinstance(self.operator, PatternOperator):
                self._begins, self._ends = self._given, self.operator.latest


def _events_at_once(events: int, matches: int, cut: bool) -> int:
    """Returns how many events to take at once after so many gave so many matches. A step that was
    not cut had fewer, and does not show that more may be taken."""
    if matches > _MATCHES:
        return max(events * _MATCHES // matches, 1)
    return min(2 * events, _MOST_AT_ONCE) if cut and 2 * matches < _MATCHES else events


def ending(query: ir.MatchQuery) -> tuple[str, native.Codes] | None:
    """Returns the column of event types, with the types that end a match; None where any event
    may."""
    if not isinstance(query, ir.PatternQuery) or query.waits or query.skip is not ir.Skip.NONE:
        return None
    last = query.elements[-1]
    if query.variants or not last.single or not last.types or query.type_column is None:
        return None
    column = next(c for c in query.stream.columns if c.name.lower() == query.type_column)
    if not column.type.is_text:
        return None
    types = native.Codes()
    numbers(pa.array(last.types, pa.string()), types)
    return column.name, types
