"""The patterns of a query set on streams that go on, in step with a host driver.

    patterns = LivePatterns(program, slack)
    patterns.push("trade", rows)                      # as they arrive; a column ts
    patterns.feed("stream j", results)                # of a query whose results a pattern reads
    for name, rows in patterns.advance(complete): ... # what is certain by now

A pattern's watermark is what its own stream has promised; of a derived stream, up to when all
results are known. What comes out depends on what went in and its order alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from compiler.catalogue import Stream
from compiler.plan.logical import Program
from engine.host.stores import stream_schema
from engine.pattern.event import BEGIN_OF_TIME, END_OF_STREAM
from engine.pattern.operator import PatternOperator
from engine.temporal.merge import Merger

Answer = tuple[str, pa.Table]
_ROWS_AT_ONCE = 1 << 16


@dataclass(frozen=True, slots=True)
class WaitingState:
    """Of a base stream: rows that wait, its promise, and whether it has ended."""

    waiting: pa.Table
    promise: int | None
    ended: bool


@dataclass(frozen=True, slots=True)
class PatternState:
    """A pattern's text and its operator's snapshot, plain values for JSON."""

    text: str
    operator: dict[str, Any]


@dataclass(frozen=True, slots=True)
class PatternsState:
    """Base streams and patterns by name."""

    streams: dict[str, WaitingState]
    patterns: dict[str, PatternState]


class LivePatterns:
    """`slack` as for the host driver: late is what it calls late."""

    def __init__(self, program: Program, slack: int = 0) -> None:
        self.queries = program.patterns
        self.operators = {query.name: PatternOperator(query) for query in program.patterns}
        self.feeds = {name: stream for stream, name in program.feeds.items()}
        self.known: dict[str, Stream] = {stream.name: stream for stream in program.streams}
        read = {query.stream.name for query in program.patterns}
        # Each stream by itself: a pattern need not wait for streams it does not read.
        self.mergers = {
            name: Merger([name], slack) for name in read if self.known[name].defined_by is None
        }

    # --- input ----------------------------------------------------------------

    def push(self, stream: str, rows: pa.Table) -> None:
        """Rows of a base stream, with its columns and types."""
        if stream in self.mergers:
            self.mergers[stream].push(stream, rows)

    def promise(self, stream: str, timestamp: int) -> None:
        if stream in self.mergers:
            self.mergers[stream].boundary(stream, timestamp)

    def end(self, stream: str) -> None:
        if stream in self.mergers:
            self.mergers[stream].stop(stream)

    def feed(self, query: str, results: pa.Table) -> None:
        """Results of a query that are tuples of a derived stream, at the time of their newest
        component."""
        *columns, _, newest = results.columns
        self._give(self.feeds[query], _rows(self.known[self.feeds[query]], newest, columns))

    # --- output ---------------------------------------------------------------

    def advance(self, complete: int) -> Iterator[Answer]:
        """What is certain once every result of a query up to the time `complete` has been fed."""
        marks = {name: self._released(name) for name in self.mergers}
        for query in self.queries:
            operator = self.operators[query.name]
            mark = marks.get(query.stream.name, complete)
            rows, times = operator.advance_table(max(mark, operator.watermark))
            stream = self.feeds.get(query.name)
            if stream is not None:
                at = pa.array(times, pa.int64())
                self._give(stream, _rows(self.known[stream], at, rows.columns))
                marks[stream] = operator.output_watermark
            elif rows.num_rows:
                yield query.name, rows

    def _released(self, name: str) -> int:
        """Hands a stream's rows to the patterns that read it, as far as their order is known; the
        time nothing at or before which comes any more."""
        merger = self.mergers[name]
        for part in merger.release(_ROWS_AT_ONCE):
            self._give(name, part.rows[0])
        queue = merger.by_name[name]
        if queue.stopped:
            return END_OF_STREAM
        return BEGIN_OF_TIME if queue.promise is None else max(queue.promise - 1, BEGIN_OF_TIME)

    def _give(self, stream: str, rows: pa.Table) -> None:
        for query in self.queries:
            if query.stream.name == stream and rows.num_rows:
                self.operators[query.name].push_table(rows)

    # --- state ----------------------------------------------------------------

    def state(self) -> PatternsState:
        streams = {}
        for name, merger in self.mergers.items():
            queue = merger.by_name[name]
            waiting = merger.waiting_rows(name, stream_schema(self.known[name]))
            streams[name] = WaitingState(waiting, queue.promise, queue.stopped)
        patterns = {
            query.name: PatternState(query.text, self.operators[query.name].snapshot())
            for query in self.queries
        }
        return PatternsState(streams, patterns)

    def resume(self, state: PatternsState) -> None:
        """Brings new patterns to the state; one whose text is another begins anew, after what
        its stream has promised."""
        for name, stream in state.streams.items():
            self.push(name, stream.waiting)
            if stream.promise is not None:
                self.promise(name, stream.promise)
            if stream.ended:
                self.end(name)
        for query in self.queries:
            before = state.patterns.get(query.name)
            if before is not None and before.text == query.text:
                self.operators[query.name].restore(before.operator)


def _rows(stream: Stream, at: pa.Array | pa.ChunkedArray, columns: list[Any]) -> pa.Table:
    """Results as rows of the stream they define."""
    schema = stream_schema(stream)
    return pa.Table.from_arrays([at, *columns[: len(stream.columns)]], names=schema.names).cast(
        schema
    )
