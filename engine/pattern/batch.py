"""Events in columns: a piece of a stream, from Arrow or from single events.

Columns are Arrow arrays of the attributes' types, NULL where there is no value or NaN.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from seustream.compiler.catalogue import Stream
from seustream.compiler.language import expressions as x
from seustream.compiler.language.types import Type
from seustream.compiler.pattern import ir
from seustream.engine.pattern.columns import Array, Ints, taken
from seustream.engine.pattern.event import Event
from seustream.engine.stream.evaluate import real_only
from seustream.engine.stream.schema import arrow_type


@dataclass(slots=True)
class EventBatch:
    """Rows in order of (ts, seq). `columns` are by folded attribute name; `type` the event
    types as codes of `names`, NULL being -1; `events` the rows themselves where they came
    singly."""

    ts: Ints
    seq: Ints
    type: Ints
    names: list[str]
    columns: dict[str, pa.Array]
    events: Array | None = None

    def __len__(self) -> int:
        return len(self.ts)

    def take(self, rows: Array | slice) -> EventBatch:
        return EventBatch(
            self.ts[rows],
            self.seq[rows],
            self.type[rows],
            self.names,
            {name: taken(column, rows) for name, column in self.columns.items()},
            None if self.events is None else self.events[rows],
        )

    def event(self, row: int) -> Event:
        """A row as a single event."""
        if self.events is not None:
            found: Event = self.events[row]
            return found
        code = int(self.type[row])
        attrs = {name: column[row].as_py() for name, column in self.columns.items()}
        kind = None if code < 0 else self.names[code]
        return Event(int(self.ts[row]), int(self.seq[row]), kind, attrs)

    def rows(self) -> list[Event]:
        if self.events is not None:
            return list(self.events)
        columns = {name: values(column) for name, column in self.columns.items()}
        kinds = [None if code < 0 else self.names[code] for code in self.type.tolist()]
        names = list(columns)
        cells = zip(*columns.values(), strict=True) if columns else [()] * len(self)
        return [
            Event(ts, seq, kind, dict(zip(names, row, strict=True)))
            for ts, seq, kind, row in zip(
                self.ts.tolist(), self.seq.tolist(), kinds, cells, strict=True
            )
        ]


def values(column: pa.Array) -> list[Any]:
    """The values of a column, None for NULL."""
    kind = column.type
    if column.null_count or not (pa.types.is_integer(kind) or pa.types.is_float64(kind)):
        found: list[Any] = column.to_pylist()
    else:
        found = column.to_numpy().tolist()
    return found


def concat(*pieces: EventBatch) -> EventBatch:
    """Several pieces as one; their type codes are made the same."""
    some = [piece for piece in pieces if len(piece)] or list(pieces[-1:])
    if len(some) == 1:
        return some[0]
    known: dict[str, int] = {}
    types = []
    for piece in some:
        table = [*(known.setdefault(name, len(known)) for name in piece.names), -1]
        types.append(np.array(table, np.int64)[piece.type])
    events = [piece.events for piece in some if piece.events is not None]
    return EventBatch(
        np.concatenate([piece.ts for piece in some]),
        np.concatenate([piece.seq for piece in some]),
        np.concatenate(types),
        list(known),
        {
            name: pa.concat_arrays([piece.columns[name] for piece in some])
            for name in some[0].columns
        },
        np.concatenate(events) if len(events) == len(some) else None,
    )


def of_events(events: Sequence[Event], columns: Mapping[str, Type]) -> EventBatch:
    """Single events, in order, as columns of these attributes."""
    kinds, names = _coded([event.type for event in events])
    objects = np.empty(len(events), object)
    objects[:] = events
    return EventBatch(
        np.array([event.ts for event in events], np.int64),
        np.array([event.seq for event in events], np.int64),
        kinds,
        names,
        {
            name: pa.array(_clean(event.attrs.get(name) for event in events), arrow_type(of))
            for name, of in columns.items()
        },
        objects,
    )


def _clean(values: Iterable[Any]) -> list[Any]:
    return [None if value != value else value for value in values]


def _coded(kinds: list[str | None]) -> tuple[Ints, list[str]]:
    known: dict[str, int] = {}
    codes = [-1 if kind is None else known.setdefault(kind, len(known)) for kind in kinds]
    return np.array(codes, np.int64), list(known)


def of_table(
    table: pa.Table, stream: Stream, type_column: str | None, columns: Iterable[str], first: int
) -> EventBatch:
    """Rows of a stream, in their order, with a column ts; numbered from `first`."""
    kinds: Ints = np.full(table.num_rows, -1, np.int64)
    names: list[str] = []
    if type_column is not None:
        coded = whole(table[_spelled(stream, type_column)]).dictionary_encode()
        names = coded.dictionary.to_pylist()
        indices = coded.indices.fill_null(-1) if coded.null_count else coded.indices
        kinds = indices.to_numpy().astype(np.int64)
    return EventBatch(
        table["ts"].to_numpy().astype(np.int64, copy=False),
        np.arange(first, first + table.num_rows, dtype=np.int64),
        kinds,
        names,
        {name: _from_arrow(table, stream, name) for name in columns},
    )


def _spelled(stream: Stream, name: str) -> str:
    return next(c.name for c in stream.columns if c.name.lower() == name)


def whole(array: pa.ChunkedArray) -> pa.Array:
    """A column in one piece."""
    if array.num_chunks == 1:
        return array.chunk(0)
    found = array.combine_chunks()
    if isinstance(found, pa.ChunkedArray):
        found = found.chunk(0) if found.num_chunks else pa.array([], array.type)
    return found


def _from_arrow(table: pa.Table, stream: Stream, name: str) -> pa.Array:
    """A column in the type the stream declares, without NaN."""
    column = next(c for c in stream.columns if c.name.lower() == name)
    array, wanted = whole(table[column.name]), arrow_type(column.type)
    if array.type != wanted:
        array = array.cast(wanted)
    return real_only(array) if column.type.is_inexact else array


def needed(query: ir.PatternQuery) -> dict[str, Type]:
    """The attributes a query reads, ts aside, and their types."""
    own = {column.name.lower(): column.type for column in query.stream.columns}
    found = {name: own[name] for name in query.partition if name != ir.TIME}
    expressions: list[x.Expression] = [c.expression for c in query.conjuncts]
    for output in query.outputs:
        if isinstance(output.expression, ir.Whole):
            found |= own
        else:
            expressions.append(output.expression)
    for expression in expressions:
        found |= {value.attribute: value.type for value in ir.values(expression)}
    found.pop(ir.TIME, None)
    return found
