"""Events in columns: a piece of a stream, made from Arrow or from single events.

Columns are Arrow arrays of the attributes' types. A missing value or NaN is NULL.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from seustream.compiler.catalogue import Stream
from seustream.compiler.language import expressions as x
from seustream.compiler.language.types import Type
from seustream.compiler.pattern import ir
from seustream.engine.kernels import native
from seustream.engine.pattern.columns import Array, Ints, taken
from seustream.engine.pattern.event import Event
from seustream.engine.stream.evaluate import real_only
from seustream.engine.stream.merge import timestamps
from seustream.engine.stream.numbers import numbers
from seustream.engine.stream.schema import arrow_type

_MOST_NAMES = 1 << 14
"""The most names of event types that are remembered."""


@dataclass(slots=True)
class EventBatch:
    """Rows in order of (ts, seq). `columns` is keyed by folded attribute name. `type` holds the
    event types as codes into `names`, with -1 for NULL. `events` holds the rows themselves where
    they arrived singly."""

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
        """Returns a row as a single event."""
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
    """Returns the values of a column, None for NULL."""
    kind = column.type
    if column.null_count or not (pa.types.is_integer(kind) or pa.types.is_float64(kind)):
        found: list[Any] = column.to_pylist()
    else:
        found = column.to_numpy().tolist()
    return found


def concat(*pieces: EventBatch) -> EventBatch:
    """Joins several batches into one; their type codes are made to agree."""
    some = [piece for piece in pieces if len(piece)] or list(pieces[-1:])
    if len(some) == 1:
        return some[0]
    names, types = some[-1].names, [piece.type for piece in some]
    if any(piece.names is not names for piece in some):
        names, types = _coded_alike(some)
    events = [piece.events for piece in some if piece.events is not None]
    return EventBatch(
        np.concatenate([piece.ts for piece in some]),
        np.concatenate([piece.seq for piece in some]),
        np.concatenate(types),
        names,
        {
            name: pa.concat_arrays([piece.columns[name] for piece in some])
            for name in some[0].columns
        },
        np.concatenate(events) if len(events) == len(some) else None,
    )


def _coded_alike(pieces: Sequence[EventBatch]) -> tuple[list[str], list[Ints]]:
    """Returns the names of types, and each piece's codes into them. The last piece's names are kept
    where they suffice, so that later pieces share them."""
    last = pieces[-1].names
    known = {name: code for code, name in enumerate(last)}
    types = []
    for piece in pieces:
        if piece.names is last:
            types.append(piece.type)
        else:
            table = [*(known.setdefault(name, len(known)) for name in piece.names), -1]
            types.append(np.array(table, np.int64)[piece.type])
    return last if len(known) == len(last) else list(known), types


def of_events(events: Sequence[Event], columns: Mapping[str, Type]) -> EventBatch:
    """Returns single events, given in order, as columns of these attributes."""
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


class EventTypes:
    """Codes of event types, shared by all batches; once there are many, coding starts over."""

    def __init__(self) -> None:
        self._codes, self.names = native.Codes(), list[str]()

    def of(self, column: pa.Array) -> Ints:
        """Returns the code of each value, -1 for NULL."""
        if len(self.names) > _MOST_NAMES:
            self._codes, self.names = native.Codes(), []  # earlier batches keep the names they have
        found, flags = numbers(column, self._codes)
        fresh = np.arange(len(self.names), self._codes.count())
        if len(fresh):
            ends = np.empty(len(fresh) + 1, np.int64)
            data = self._codes.texts(fresh, ends)
            self.names += [data[a:b].decode() for a, b in itertools.pairwise(ends.tolist())]
        if flags is not None:
            found[flags == 0] = -1
        return found


class TableReader:
    """Makes batches from rows of a stream, with these columns, and with event types where the
    stream has a type column."""

    def __init__(self, stream: Stream, type_column: str | None, columns: Iterable[str]) -> None:
        own = {column.name.lower(): column for column in stream.columns}
        self._type = None if type_column is None else own[type_column].name
        self._types = EventTypes()
        self._columns = [
            (name, own[name].name, arrow_type(own[name].type), own[name].type.is_inexact)
            for name in columns
        ]

    def read(self, table: pa.Table, first: int) -> EventBatch:
        """Reads rows, in their order and with a column ts; numbers them from `first`."""
        count = table.num_rows
        kinds: Ints
        if self._type is None:
            kinds = np.full(count, -1, np.int64)
        else:
            kinds = self._types.of(whole(table.column(self._type)))
        columns = {}
        for name, spelled, of, real in self._columns:
            column = whole(table.column(spelled))
            column = column if column.type == of else column.cast(of)
            columns[name] = real_only(column) if real else column
        return EventBatch(
            timestamps(table),
            np.arange(first, first + count, dtype=np.int64),
            kinds,
            self._types.names,
            columns,
        )


def of_table(
    table: pa.Table, stream: Stream, type_column: str | None, columns: Iterable[str], first: int
) -> EventBatch:
    """Reads rows of a stream, in their order and with a column ts; numbers them from `first`."""
    return TableReader(stream, type_column, columns).read(table, first)


def whole(array: pa.ChunkedArray) -> pa.Array:
    """Returns a column in one piece."""
    if array.num_chunks == 1:
        return array.chunk(0)
    found = array.combine_chunks()
    if isinstance(found, pa.ChunkedArray):
        found = found.chunk(0) if found.num_chunks else pa.array([], array.type)
    return found


def needed(query: ir.PatternQuery) -> dict[str, Type]:
    """Returns the attributes that a query reads, except ts, with their types."""
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
