"""A pattern that looks only at the events between those that a join has found.

before  candidates (3, 9), (5, 12)    events at 1, 4, 8, 10, 14
after   the matcher looks for matches that end after the last step among 4, 8 and 10

Every match lies between the first and the last event of a candidate that ends with it
(`seustream.compiler.plan.candidates`). So each step that has candidates runs a fresh matcher over
the events between them, from the beginning; it passes over matches that ended in earlier steps.
Rows whose key is NULL are always looked at, because no join finds them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from seustream.compiler.pattern import ir
from seustream.compiler.pattern.ir import Skip
from seustream.engine.pattern import state
from seustream.engine.pattern.event import BEGIN_OF_TIME, END_OF_STREAM, Event, Match
from seustream.engine.pattern.matchers import operator_of
from seustream.engine.pattern.operator import PatternOperator
from seustream.engine.pattern.skip import Skipping
from seustream.engine.pattern.stream import PatternNode
from seustream.engine.stream.faults import QueryFaults, fault_report, restore
from seustream.engine.stream.growing import Growing
from seustream.engine.stream.merge import timestamps
from seustream.engine.stream.operator import Answer
from seustream.engine.stream.schema import stream_schema
from seustream.engine.stream.snapshot import Snapshot, unpack

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_NO_TIMES: Ints = np.empty(0, np.int64)


class _Events:
    """The events of one window, in order: their rows, their times, their numbers by arrival, and
    whether each lacks a part of its key."""

    def __init__(self, query: ir.PatternQuery) -> None:
        self._query = query
        self._parts: list[pa.Table] = []
        self._times, self._numbers, self._keyless = Growing(), Growing(), Growing(np.bool_)
        self.arrived = 0

    def __len__(self) -> int:
        return len(self._times)

    @property
    def times(self) -> Ints:
        return self._times.view

    @property
    def numbers(self) -> Ints:
        return self._numbers.view

    @property
    def keyless(self) -> Bools:
        return self._keyless.view

    def append(self, rows: pa.Table, numbers: Ints | None = None) -> None:
        """Appends rows, given in order; without `numbers` they get the next ones."""
        if numbers is None:
            numbers = np.arange(self.arrived, self.arrived + rows.num_rows)
            self.arrived += rows.num_rows
        lacks = np.zeros(rows.num_rows, np.bool_)
        for column in self._query.stream.columns:
            if column.name.lower() in self._query.partition:
                lacks |= np.asarray(pc.is_null(rows.column(column.name), nan_is_null=True))
        self._parts.append(rows)
        self._times.append(timestamps(rows))
        self._numbers.append(numbers)
        self._keyless.append(lacks)

    def rows(self, places: Ints | None = None) -> pa.Table:
        """Returns the rows, or those at `places`."""
        whole = pa.concat_tables([stream_schema(self._query.stream).empty_table(), *self._parts])
        whole = whole.combine_chunks()
        self._parts = [whole]
        return whole if places is None else whole.take(pa.array(places))

    def forget(self, before: int) -> None:
        """Drops the events before a time, once they are the majority."""
        old = int(np.searchsorted(self.times, before, side="left"))
        if 2 * old > len(self):
            self._parts = [self.rows(np.arange(old, len(self)))]
            for each in (self._times, self._numbers, self._keyless):
                each.drop(old)


class CandidatesNode(PatternNode):
    """A pattern over a stream, with a second input of candidates for its matches."""

    def __init__(
        self, query: ir.PatternQuery, engine: str = "auto", faults: QueryFaults | None = None
    ) -> None:
        super().__init__(query, engine, faults)
        assert query.candidates is not None
        assert query.window is not None
        self._pattern, self._engine, self._own = query, engine, self.faults[query.name]
        self._stream, self._candidates = query.stream.name, query.candidates.name
        self.inputs = (self._stream, self._candidates)
        self._size = query.window
        self._reaches = dict.fromkeys(self.inputs, BEGIN_OF_TIME)
        self._events = _Events(query)
        # Matches are searched without skipping; `_skipping` is applied to them afterwards.
        self._every = dataclasses.replace(query, skip=Skip.NONE)
        self._skipping = Skipping(query)
        self._found = _NO_TIMES, _NO_TIMES  # first and last times of candidates not yet searched
        self._blind = BEGIN_OF_TIME  # candidates may be missing up to this time

    @property
    def watermark(self) -> int:
        return self._skipping.output_watermark(self._given) if self._skips else self._given

    @property
    def _skips(self) -> bool:
        return self.query.skip is not Skip.NONE

    def push(self, input: str, rows: pa.Table) -> None:
        if input == self._stream:
            self._events.append(rows)
            return
        last = timestamps(rows)
        first = np.asarray(rows.column("ts_oldest"))
        if not self._pattern.elements[0].single:
            first = last - self._size  # the first single event's window holds what precedes it
        before = self._found
        self._found = np.concatenate([before[0], first]), np.concatenate([before[1], last])

    def advance(self, input: str, watermark: int) -> None:
        self._reaches[input] = max(self._reaches[input], watermark)
        self._reached = min(self._reaches.values())

    def outputs(self) -> Iterator[Answer]:
        if self._reached <= self._given:
            return
        given, self._given = self._given, self._reached
        some = self._between(given)
        if self._skips:
            matches = self._searching(some, given).firsts(self._given) if len(some) else []
            counted = self._skipping.counted(self._numbered(matches, some), self._given)
            self.operator.stats.matches += len(counted)
            if counted:
                yield from self._answers(*self._fresh().rows_of(counted))
        elif len(some):
            for found, times in self._searching(some, given).parts(self._given):
                self.operator.stats.matches += len(times)
                yield from self._answers(found, times)
        yield from self._released()
        last = END_OF_STREAM if self._given == END_OF_STREAM else self._given - self._size
        self._events.forget(last)

    def _between(self, given: int) -> Ints:
        """Returns the places of the events among which a match may end after `given`; none if there
        is no such match."""
        times = self._events.times
        begin, end = np.searchsorted(times, [given, self._given], side="right").tolist()
        spans = self._spans()
        if begin == end:
            return _NO_TIMES
        if given < self._blind:
            return np.arange(end)
        wanted = _within(times[:end], spans)
        if self._events.keyless[begin:end].any():
            wanted |= self._events.keyless[:end]
        return np.flatnonzero(wanted)

    def _spans(self) -> tuple[Ints, Ints]:
        """Returns the time spans of candidates that have ended by now, merged so that they do not
        overlap."""
        firsts, lasts = self._found
        later = lasts > self._given
        self._found = firsts[later], lasts[later]
        firsts, lasts = firsts[~later], lasts[~later]
        if not len(firsts):
            return firsts, lasts
        order = np.argsort(firsts, kind="stable")
        firsts, reach = firsts[order], np.maximum.accumulate(lasts[order])
        begins = np.concatenate([[True], firsts[1:] > reach[:-1]])
        return firsts[begins], reach[np.concatenate([begins[1:], [True]])]

    def _searching(self, some: Ints, given: int) -> PatternOperator:
        """Returns a fresh matcher over these events that skips the matches ending by `given`."""
        operator = self._fresh()
        operator.push_table(self._events.rows(some))
        if given > BEGIN_OF_TIME:
            operator.pass_over(given)
        return operator

    def _fresh(self) -> PatternOperator:
        operator = operator_of(self._every, self._engine, late="error", faults=self._own)
        assert isinstance(operator, PatternOperator)
        return operator

    def _numbered(self, matches: list[Match], some: Ints) -> list[Match]:
        """Returns the matches with their events numbered among all events, not only among those
        searched."""
        numbers = self._events.numbers[some].tolist()

        def numbered(event: Event) -> Event:
            return dataclasses.replace(event, seq=numbers[event.seq])

        return [
            dataclasses.replace(
                match, groups=tuple(tuple(map(numbered, group)) for group in match.groups)
            )
            for match in matches
        ]

    # --- state ------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Packs the state as a pattern without candidates does, so that either can restore the
        other's."""
        operator = self._fresh()
        operator.push_table(self._events.rows())
        plain, numbers = operator.snapshot(), self._events.numbers.tolist()
        every = [[ts, numbers[seq], *rest] for ts, seq, *rest in plain["waiting"]]
        plain |= {
            "watermark": self._given,
            "arrived": self._events.arrived,
            "skipping": state.skipping(self._skipping),
            "retained": [event for event in every if event[0] <= self._given],
            "waiting": [event for event in every if event[0] > self._given],
        }
        known = {
            "text": self.query.text,
            "reached": self._reaches[self._stream],
            "joined": self._reaches[self._candidates],
            "operator": plain,
            "candidates": [times.tolist() for times in self._found],
            "blind": self._blind,
            "faults": fault_report(self.faults),
        }
        return Snapshot("pattern", known, self._released_later()).pack()

    def restore(self, snapshot: bytes) -> None:
        """Restores a snapshot; with the snapshot of another query text the node starts afresh."""
        stored = unpack(snapshot, "pattern")
        plain = stored.plain
        if plain["text"] != self.query.text:
            return
        self._release_later(stored.tables)
        restore(self.faults, plain["faults"])
        kept: dict[str, Any] = plain["operator"]
        self._given = kept["watermark"]
        reached = plain.get("reached", self._given)
        marks = (reached, plain.get("joined", reached))
        self._reaches = dict(zip(self.inputs, marks, strict=True))
        self._reached = min(marks)
        events = state.events_of([*kept["retained"], *kept["waiting"]])
        events.sort(key=lambda event: event.order)
        numbers = np.array([event.seq for event in events], np.int64)
        self._events.append(self._as_rows(events), numbers)
        self._events.arrived = kept["arrived"]
        self._skipping = state.skipping_of(self._pattern, kept["skipping"])
        if "candidates" in plain:
            first, last = (np.array(times, np.int64) for times in plain["candidates"])
            self._found, self._blind = (first, last), plain["blind"]
        else:
            # The snapshot is of a pattern without candidates: the join has not seen these events.
            seen = max(self._given, events[-1].ts if events else BEGIN_OF_TIME)
            self._blind = min(seen, END_OF_STREAM - self._size) + self._size

    def _as_rows(self, events: list[Event]) -> pa.Table:
        """Returns events as rows of the stream, with the columns that the pattern reads."""
        schema = stream_schema(self.query.stream)
        columns = []
        for field in schema:
            name = field.name.lower()
            values: list[Any] = [event.attrs.get(name) for event in events]
            if field.name == "ts":
                values = [event.ts for event in events]
            elif name == self._pattern.type_column:
                values = [event.type for event in events]
            columns.append(pa.array(values, field.type))
        return pa.Table.from_arrays(columns, schema=schema)


def _within(times: Ints, spans: tuple[Ints, Ints]) -> Bools:
    """Returns which times lie in one of the spans; the spans are ordered and do not overlap."""
    firsts, lasts = spans
    if not len(firsts):
        return np.zeros(len(times), np.bool_)
    at = np.searchsorted(firsts, times, side="right") - 1
    found: Bools = (at >= 0) & (times <= lasts[at])
    return found
