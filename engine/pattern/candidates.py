"""A pattern that looks at its events only between those that a join has found.

before  candidates (3, 9), (5, 12)    events at 1, 4, 8, 10, 14
after   the matcher looks for matches that end after the last step among 4, 8 and 10

Every match lies between the first and the last event of a candidate that ends with it (`seustream.compiler.plan.
candidates`). So each step with candidates runs a matcher of its own over what lies between theirs, from the
beginning; what it finds that ends in earlier steps is known. Rows whose key is NULL, which no join finds, are
always looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from seustream.compiler.pattern import ir
from seustream.engine.pattern import state
from seustream.engine.pattern.event import BEGIN_OF_TIME, END_OF_STREAM, Event
from seustream.engine.pattern.matchers import operator_of
from seustream.engine.pattern.operator import PatternOperator
from seustream.engine.pattern.stream import PatternNode, as_answer
from seustream.engine.stream.faults import QueryFaults, fault_report, restore
from seustream.engine.stream.merge import timestamps
from seustream.engine.stream.operator import Answer
from seustream.engine.stream.schema import stream_schema
from seustream.engine.stream.snapshot import Snapshot, unpack

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class CandidatesNode(PatternNode):
    """A pattern over a stream, and the candidates for its matches."""

    def __init__(
        self, query: ir.PatternQuery, engine: str = "auto", faults: QueryFaults | None = None
    ) -> None:
        super().__init__(query, engine, faults)
        assert query.candidates is not None
        assert query.window is not None
        self._engine, self._own = engine, self.faults[query.name]
        self._stream, self._candidates = query.stream.name, query.candidates.name
        self.inputs = (self._stream, self._candidates)
        self._size = query.window
        self._reaches = dict.fromkeys(self.inputs, BEGIN_OF_TIME)
        self._rows = stream_schema(query.stream).empty_table()  # by time, of one window
        self._more: list[pa.Table] = []
        self._found: list[tuple[Ints, Ints]] = []  # first and last times of candidates
        self._blind = BEGIN_OF_TIME  # up to here candidates may be missing

    @property
    def watermark(self) -> int:
        return self._given

    def push(self, input: str, rows: pa.Table) -> None:
        if input == self._stream:
            self._more.append(rows)
            return
        last = timestamps(rows)
        first = np.asarray(rows.column("ts_oldest"))
        # What comes before the first single event of a match is in its window.
        self._found.append((first if self._begins_single else last - self._size, last))

    @property
    def _begins_single(self) -> bool:
        assert isinstance(self.query, ir.PatternQuery)
        return self.query.elements[0].single

    def advance(self, input: str, watermark: int) -> None:
        self._reaches[input] = max(self._reaches[input], watermark)
        self._reached = min(self._reaches.values())

    def outputs(self) -> Iterator[Answer]:
        if self._reached <= self._given:
            return
        given, self._given = self._given, self._reached
        rows = self._between(given)
        if rows is not None:
            yield from as_answer(self.query, *self._matches(rows, given))
        self._forget()

    def _between(self, given: int) -> pa.Table | None:
        """The rows in which a match may end after `given`; None if there is no such match."""
        self._gather()
        times = timestamps(self._rows)
        end = int(np.searchsorted(times, self._given, side="right"))
        begin = int(np.searchsorted(times, given, side="right"))
        if begin == end:
            return None
        if given < self._blind:
            return self._rows.slice(0, end)
        wanted = self._keyless(end)
        if not wanted[begin:].any():
            wanted[:] = False
        wanted |= _within(times[:end], self._spans())
        return self._rows.slice(0, end).filter(pa.array(wanted)) if wanted.any() else None

    def _spans(self) -> tuple[Ints, Ints]:
        """The times between which candidates lie that end by now, apart from each other."""
        firsts, lasts = (np.concatenate([np.empty(0, np.int64), *some]) for some in zip(*self._found, strict=True)) if self._found else (np.empty(0, np.int64),) * 2  # fmt: skip
        later = lasts > self._given
        self._found = [(firsts[later], lasts[later])] if later.any() else []
        firsts, lasts = firsts[~later], lasts[~later]
        order = np.argsort(firsts, kind="stable")
        firsts, reach = firsts[order], np.maximum.accumulate(lasts[order])
        if not len(firsts):
            return firsts, reach
        begins = np.concatenate([[True], firsts[1:] > reach[:-1]])
        return firsts[begins], reach[np.concatenate([begins[1:], [True]])]

    def _keyless(self, end: int) -> Bools:
        """Returns which of the first rows lack a part of their key."""
        found = np.zeros(end, np.bool_)
        for column in self.query.stream.columns:
            if column.name.lower() in self.query.partition:
                nulls = pc.is_null(self._rows.column(column.name).slice(0, end), nan_is_null=True)
                found |= np.asarray(nulls)
        return found

    def _matches(self, rows: pa.Table, given: int) -> tuple[pa.Table, Ints]:
        operator = self._fresh()
        operator.push_table(rows)
        if given > BEGIN_OF_TIME:
            operator.pass_over(given)
        found = operator.advance_table(self._given)
        stats = self.operator.stats
        stats.matches += len(found[1])
        stats.taken += rows.num_rows
        operator.stats.matches, operator.stats.taken = stats.matches, stats.taken
        self.operator = operator
        return found

    def _fresh(self) -> PatternOperator:
        operator = operator_of(self.query, self._engine, late="error", faults=self._own)
        assert isinstance(operator, PatternOperator)
        return operator

    def _gather(self) -> None:
        if self._more:
            self._rows = pa.concat_tables([self._rows, *self._more]).combine_chunks()
            self._more = []

    def _forget(self) -> None:
        """Drops rows that no later match can have, once they are many."""
        if self._given == END_OF_STREAM:
            self._rows, self._more = self._rows.slice(0, 0), []
            return
        times = timestamps(self._rows)
        old = int(np.searchsorted(times, self._given - self._size, side="left"))
        if 2 * old > len(times):
            self._rows = self._rows.slice(old).take(pa.array(np.arange(len(times) - old)))

    # --- state ------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """As a pattern without candidates has it, so that each goes on from the other's."""
        self._gather()
        operator = self._fresh()
        operator.push_table(self._rows)
        plain = operator.snapshot()
        every = plain["waiting"]
        plain |= {
            "watermark": self._given,
            "retained": [event for event in every if event[0] <= self._given],
            "waiting": [event for event in every if event[0] > self._given],
        }
        found = [[*map(int, pair)] for some in self._found for pair in zip(*some, strict=True)]
        known = {
            "text": self.query.text,
            "reached": self._reached,
            "operator": plain,
            "candidates": found,
            "blind": self._blind,
            "faults": fault_report(self.faults),
        }
        return Snapshot("pattern", known).pack()

    def restore(self, snapshot: bytes) -> None:
        """Of another text it begins anew."""
        plain = unpack(snapshot, "pattern").plain
        if plain["text"] != self.query.text:
            return
        restore(self.faults, plain["faults"])
        kept: dict[str, Any] = plain["operator"]
        self._given = kept["watermark"]
        self._reached = plain.get("reached", self._given)
        self._reaches = dict.fromkeys(self.inputs, self._reached)
        events = state.events_of([*kept["retained"], *kept["waiting"]])
        events.sort(key=lambda event: event.order)
        self._rows = self._as_rows(events)
        if "candidates" in plain:
            pairs = np.array(plain["candidates"], np.int64).reshape(-1, 2)
            self._found, self._blind = [(pairs[:, 0], pairs[:, 1])], plain["blind"]
        else:
            # The join has not seen these events.
            seen = max(self._given, events[-1].ts if events else BEGIN_OF_TIME)
            self._blind = min(seen, END_OF_STREAM - self._size) + self._size

    def _as_rows(self, events: list[Event]) -> pa.Table:
        """Events as rows of the stream, with the columns that the pattern reads."""
        assert isinstance(self.query, ir.PatternQuery)
        schema = stream_schema(self.query.stream)
        columns = []
        for field in schema:
            name = field.name.lower()
            values: list[Any] = [event.attrs.get(name) for event in events]
            if field.name == "ts":
                values = [event.ts for event in events]
            elif name == self.query.type_column:
                values = [event.type for event in events]
            columns.append(pa.array(values, field.type))
        return pa.Table.from_arrays(columns, schema=schema)


def _within(times: Ints, spans: tuple[Ints, Ints]) -> Bools:
    """Returns which times are in one of some spans, which are in order and apart."""
    firsts, lasts = spans
    if not len(firsts):
        return np.zeros(len(times), np.bool_)
    at = np.searchsorted(firsts, times, side="right") - 1
    found: Bools = (at >= 0) & (times <= lasts[at])
    return found
