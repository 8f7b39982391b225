"""Inspects patterns over files: their traces, and samples for the planner."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from seustream.compiler.errors import suggest
from seustream.compiler.pattern import ir
from seustream.compiler.pipeline import Compilation
from seustream.engine.pattern.batch import needed, of_table
from seustream.engine.pattern.choice import Sample, beginning, candidates, sample
from seustream.engine.pattern.event import Event
from seustream.engine.pattern.trace import trace, traced_engine
from seustream.engine.pattern.versions import Numbering
from seustream.errors import UserError
from seustream.reading import read

_SAMPLED = 1 << 18
"""Rows sampled at the beginning of a stream."""


def trace_file(
    query: ir.PatternQuery, rows: pa.Table, versions: str, engine: str = "auto"
) -> Iterator[str]:
    """Yields the teaching view of a pattern over the rows of a file."""
    events = events_of(query, rows)
    return trace(query, events, Numbering(versions), traced_engine(query, engine))


def events_of(query: ir.PatternQuery, rows: pa.Table) -> list[Event]:
    """Returns rows of the pattern's stream as events, in the order of their time."""
    names = [column.name.lower() for column in query.stream.columns]
    batch = of_table(rows, query.stream, query.type_column, names, 0)
    return sorted(batch.rows(), key=lambda event: event.order)


def samples(
    c: Compilation, patterns: Iterable[ir.MatchQuery], given: list[str]
) -> dict[str, Sample]:
    """Samples the beginning of each pattern's stream, of those given as STREAM=FILE."""
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
    for query in (way for pattern in patterns for way in pattern.ways):
        if not isinstance(query, ir.PatternQuery) or query.stream.name not in tables:
            continue
        if {"columns", "optiseq"} & {*candidates(query)}:  # which search lists, in some order
            rows = tables[query.stream.name].slice(0, _SAMPLED)
            columns = {*needed(query)} - {ir.TIME}
            batch = of_table(rows, query.stream, query.type_column, columns, 0)
            batch = batch.take(np.argsort(batch.ts, kind="stable"))
            if len(batch):
                found[query.name] = sample(query, beginning(batch, query.window), len(batch))
    return found
