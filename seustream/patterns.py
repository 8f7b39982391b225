"""Patterns of a `run`: rows of files, or results of other queries, through pattern operators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from compiler.catalogue import Stream
from compiler.errors import suggest
from compiler.pattern import ir
from compiler.plan.logical import Program
from compiler.plan.pipeline import Compilation
from engine.host.stages import as_stream
from engine.host.stores import stream_schema
from engine.pattern.batch import needed, of_table
from engine.pattern.choice import Sample, beginning, candidates, sample
from engine.pattern.event import END_OF_STREAM
from engine.pattern.nfa import Numbering
from engine.pattern.operator import PatternOperator
from engine.pattern.output import schema
from engine.pattern.trace import trace, traced_engine
from seustream.errors import UserError
from seustream.reading import read

ROWS_AT_ONCE = 1 << 18
"""Rows between two watermarks: many enough for columns, few enough for memory."""


@dataclass(slots=True)
class PatternReport:
    """What became of the patterns, by name; by stream what was taken, what was late, and what had
    no time a window could be added to."""

    results: dict[str, int] = field(default_factory=dict)
    engines: dict[str, str] = field(default_factory=dict)
    taken: dict[str, int] = field(default_factory=dict)
    late: dict[str, int] = field(default_factory=dict)
    untimed: dict[str, int] = field(default_factory=dict)


def run_patterns(
    program: Program,
    streams: Mapping[str, pa.Table],
    write: Callable[[str, pa.Table], None],
    slack: int = 0,
    engine: str = "auto",
    on_late: Callable[[str, pa.Table], None] = lambda stream, rows: None,
) -> PatternReport:
    """Runs every pattern of a program, those that feed others first. `streams` are the rows of
    base streams in order of arrival, and the results of queries that patterns read, by stream."""
    report = PatternReport()
    rows = {}
    for name, table in streams.items():
        rows[name], late = on_time(table, slack)
        if late.num_rows:
            report.late[name] = late.num_rows
            on_late(name, late)
    fed = {name: stream for stream, name in program.feeds.items()}
    known = {stream.name: stream for stream in program.streams}
    for query in program.patterns:
        operator = PatternOperator(query, engine)
        report.engines[query.name] = operator.engine
        feeds = fed.get(query.name)
        parts = []
        for results, times in _results(operator, rows[query.stream.name]):
            report.results[query.name] = report.results.get(query.name, 0) + results.num_rows
            if feeds is not None:
                parts.append(as_stream(known[feeds], results, times))
            else:
                write(query.name, results)
        report.results.setdefault(query.name, 0)
        report.taken[query.stream.name] = operator.stats.taken
        if operator.stats.bad_events:
            report.untimed[query.stream.name] = operator.stats.bad_events
        if feeds is not None:
            rows[feeds] = pa.concat_tables([stream_schema(known[feeds]).empty_table(), *parts])
    return report


def _results(
    operator: PatternOperator, rows: pa.Table
) -> list[tuple[pa.Table, np.ndarray[tuple[int], np.dtype[np.int64]]]]:
    """The results of all rows, an epoch at a time."""
    found = []
    times = rows["ts"].to_numpy()
    highest = np.maximum.accumulate(times) if len(times) else times
    # A watermark may only be where no later row falls at or below it.
    lowest = np.minimum.accumulate(times[::-1])[::-1] if len(times) else times
    for begin in range(0, rows.num_rows, ROWS_AT_ONCE):
        end = min(begin + ROWS_AT_ONCE, rows.num_rows)
        operator.push_table(rows.slice(begin, end - begin))
        if end < rows.num_rows:
            watermark = min(int(highest[end - 1]), int(lowest[end])) - 1
            found.append(operator.advance_table(max(watermark, operator.watermark)))
    found.append(operator.advance_table(END_OF_STREAM))
    return found


def on_time(table: pa.Table, slack: int) -> tuple[pa.Table, pa.Table]:
    """The rows that fall back no further than promised, and the late ones; as the host driver
    decides it."""
    times = table["ts"].to_numpy()
    if not len(times):
        return table, table
    late = pa.array(times < np.maximum.accumulate(times) - slack)
    return table.filter(pc.invert(late)), table.filter(late)


def joined_stream(stream: Stream, results: list[pa.Table]) -> pa.Table:
    """Rows of a query on the device as rows of the stream it defines: a result is of the time
    of its newest tuple, and comes in that order."""
    target = stream_schema(stream)
    parts = []
    for table in results:
        columns = [table["ts_newest"], *table.columns[: len(stream.columns)]]
        parts.append(pa.Table.from_arrays(columns, names=target.names).cast(target))
    whole = pa.concat_tables([target.empty_table(), *parts])
    order = np.argsort(whole["ts"].to_numpy(), kind="stable")
    return whole.take(pa.array(order))


def trace_file(
    query: ir.Query, rows: pa.Table, versions: str, engine: str = "auto"
) -> Iterator[str]:
    """The teaching view of a pattern over the rows of a file."""
    names = {column.name.lower() for column in query.stream.columns}
    batch = of_table(rows, query.stream, query.type_column, names, 0)
    events = sorted(batch.rows(), key=lambda event: event.order)
    return trace(query, events, Numbering(versions), traced_engine(query, engine))


def samples(c: Compilation, patterns: Iterable[ir.Query], given: list[str]) -> dict[str, Sample]:
    """What the beginning of each pattern's stream shows, of those given as STREAM=FILE."""
    streams = {stream.name.lower(): stream for stream in c.streams if stream.defined_by is None}
    tables: dict[str, pa.Table] = {}
    for argument in given:
        name, equals, path = argument.partition("=")
        if not equals or name.lower() not in streams:
            hint = suggest(name, [stream.name for stream in streams.values()], "streams")
            raise UserError([f"--input {argument}: want STREAM=FILE"], hint=hint)
        stream = streams[name.lower()]
        tables[stream.name] = read(Path(path), stream)
    found = {}
    for query in patterns:
        if query.stream.name in tables and len(candidates(query)) > 1:
            rows = tables[query.stream.name].slice(0, ROWS_AT_ONCE)
            columns = {n.removeprefix("prev.") for n in needed(query)} - {ir.TIME}
            batch = of_table(rows, query.stream, query.type_column, columns, 0)
            batch = batch.take(np.argsort(batch.ts, kind="stable"))
            found[query.name] = sample(query, beginning(batch, query.window), len(batch))
    return found


def result_schemas(program: Program) -> dict[str, pa.Schema]:
    """The columns of each pattern whose results are asked for."""
    fed = set(program.feeds.values())
    return {query.name: schema(query) for query in program.patterns if query.name not in fed}


def given_streams(program: Program, patterns: Iterable[ir.Query]) -> set[str]:
    """The streams these patterns read that are there before queries and patterns run."""
    return {
        query.stream.name
        for query in patterns
        if query.stream.defined_by is None or query.stream.name in program.apas
    }
