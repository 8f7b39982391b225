"""Events in columns: a piece of a stream, from Arrow or from single events.

Columns hold int64, float64, bool, or text as objects; dates and times are integers. NaN is NULL.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from compiler.catalogue import Stream
from compiler.language.types import Kind, Type
from compiler.pattern import ir
from engine.pattern.columns import Array, Column, Ints, column_of, without_nan
from engine.pattern.event import Event
from engine.stream.schema import arrow_type


@dataclass(slots=True)
class Batch:
    """Rows in order of (ts, seq). `columns` are by folded attribute name; `type` the event
    types as codes of `names`, NULL being -1; `events` the rows themselves where they came
    singly."""

    ts: Ints
    seq: Ints
    type: Ints
    names: list[str]
    columns: dict[str, Column]
    events: Array | None = None

    def __len__(self) -> int:
        return len(self.ts)

    def take(self, rows: Array) -> Batch:
        return Batch(
            self.ts[rows],
            self.seq[rows],
            self.type[rows],
            self.names,
            {name: column.take(rows) for name, column in self.columns.items()},
            None if self.events is None else self.events[rows],
        )

    def event(self, row: int) -> Event:
        """A row as a single event."""
        if self.events is not None:
            found: Event = self.events[row]
            return found
        code = int(self.type[row])
        attrs = {name: _plain(column, row) for name, column in self.columns.items()}
        kind = None if code < 0 else self.names[code]
        return Event(int(self.ts[row]), int(self.seq[row]), kind, attrs)

    def rows(self) -> list[Event]:
        if self.events is not None:
            return list(self.events)
        columns = {name: _values(column) for name, column in self.columns.items()}
        kinds = [None if code < 0 else self.names[code] for code in self.type.tolist()]
        names = list(columns)
        values = zip(*columns.values(), strict=True) if columns else [()] * len(self)
        return [
            Event(ts, seq, kind, dict(zip(names, row, strict=True)))
            for ts, seq, kind, row in zip(
                self.ts.tolist(), self.seq.tolist(), kinds, values, strict=True
            )
        ]


def _plain(column: Column, row: int) -> Any:
    if column.valid is not None and not column.valid[row]:
        return None
    value = column.values[row]
    return value.item() if isinstance(value, np.generic) else value


def _values(column: Column) -> list[Any]:
    values: list[Any] = column.values.tolist()
    if column.valid is None:
        return values
    return [v if ok else None for v, ok in zip(values, column.valid.tolist(), strict=True)]


def concat(first: Batch | None, second: Batch) -> Batch:
    """Two pieces as one; their type codes are made the same."""
    if first is None or not len(first):
        return second
    if not len(second):
        return first
    names = list(first.names)
    known = {name: code for code, name in enumerate(names)}
    moved = [known.setdefault(name, len(known)) for name in second.names]
    names += [name for name in second.names if name not in first.names]
    table = np.array([*moved, -1], np.int64)
    events = None
    if first.events is not None and second.events is not None:
        events = np.concatenate([first.events, second.events])
    return Batch(
        np.concatenate([first.ts, second.ts]),
        np.concatenate([first.seq, second.seq]),
        np.concatenate([first.type, table[second.type]]),
        names,
        {name: _joined(first.columns[name], second.columns[name]) for name in first.columns},
        events,
    )


def _joined(a: Column, b: Column) -> Column:
    x, y = a.values, b.values
    if x.dtype != y.dtype:  # a column of nothing but NULLs has no type of its own
        if a.valid is not None and not a.valid.any():
            x = _blank(len(x), y.dtype)
        elif b.valid is not None and not b.valid.any():
            y = _blank(len(y), x.dtype)
    values = np.concatenate([x, y])
    if a.valid is None and b.valid is None:
        return Column(values)
    masks = [np.ones(len(c), bool) if c.valid is None else c.valid for c in (a, b)]
    return Column(values, np.concatenate(masks))


def _blank(size: int, dtype: np.dtype[Any]) -> Array:
    return np.zeros(size, dtype)


def of_events(events: Sequence[Event], columns: Iterable[str]) -> Batch:
    """Single events, in order, as columns of these attributes."""
    kinds, names = _coded([event.type for event in events])
    objects = np.empty(len(events), object)
    objects[:] = events
    return Batch(
        np.array([event.ts for event in events], np.int64),
        np.array([event.seq for event in events], np.int64),
        kinds,
        names,
        {name: _clean([event.attrs.get(name) for event in events]) for name in columns},
        objects,
    )


def _clean(values: list[Any]) -> Column:
    return column_of([None if value != value else value for value in values])


def _coded(kinds: list[str | None]) -> tuple[Ints, list[str]]:
    known: dict[str, int] = {}
    codes = [-1 if kind is None else known.setdefault(kind, len(known)) for kind in kinds]
    return np.array(codes, np.int64), list(known)


def of_table(
    table: pa.Table, stream: Stream, type_column: str | None, columns: Iterable[str], first: int
) -> Batch:
    """Rows of a stream, in their order, with a column ts; numbered from `first`."""
    kinds: Ints = np.full(table.num_rows, -1, np.int64)
    names: list[str] = []
    if type_column is not None:
        coded = _whole(table[_spelled(stream, type_column)]).dictionary_encode()
        names = coded.dictionary.to_pylist()
        kinds = pc.fill_null(coded.indices.cast(pa.int64()), -1).to_numpy(zero_copy_only=False)
    return Batch(
        table["ts"].to_numpy().astype(np.int64, copy=False),
        np.arange(first, first + table.num_rows, dtype=np.int64),
        kinds,
        names,
        {name: _from_arrow(table[_spelled(stream, name)]) for name in columns},
    )


def _spelled(stream: Stream, name: str) -> str:
    return next(c.name for c in stream.columns if c.name.lower() == name)


def _whole(array: pa.ChunkedArray) -> pa.Array:
    found = array.combine_chunks()
    if isinstance(found, pa.ChunkedArray):
        found = found.chunk(0) if found.num_chunks else pa.array([], array.type)
    return found


def _from_arrow(chunked: pa.ChunkedArray) -> Column:
    array = _whole(chunked)
    valid = None if array.null_count == 0 else array.is_valid().to_numpy(zero_copy_only=False)
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return Column(array.to_numpy(zero_copy_only=False), valid)
    if pa.types.is_boolean(kind):
        return Column(pc.fill_null(array, False).to_numpy(zero_copy_only=False), valid)
    if pa.types.is_floating(kind):
        values = pc.fill_null(array.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False)
        return without_nan(values, valid)
    if not pa.types.is_integer(kind):  # dates and times count in their own unit
        array = array.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
    return Column(pc.fill_null(array.cast(pa.int64()), 0).to_numpy(zero_copy_only=False), valid)


def to_arrow(column: Column, of: Type) -> pa.Array:
    """A column as Arrow has its type."""
    target = arrow_type(of)
    mask = None if column.valid is None else ~column.valid
    if of.kind in (Kind.DATE, Kind.TIME):
        return pa.array(column.values.astype(np.int32), pa.int32(), mask=mask).cast(target)
    if of.kind is Kind.TIMESTAMP:
        return pa.array(column.values.astype(np.int64), pa.int64(), mask=mask).cast(target)
    if of.kind is Kind.NULL:
        return pa.nulls(len(column))
    if of.is_text:
        return pa.array(column.values, target, mask=mask, from_pandas=True)
    return pa.array(column.values, mask=mask).cast(target)


def needed(query: ir.Query) -> set[str]:
    """The attributes a query reads, ts aside."""
    found = {name for name in query.partition if name != ir.TIME}
    expressions: list[ir.Expression] = [c.expression for c in query.conjuncts]
    for output in query.outputs:
        if isinstance(output.expression, ir.Whole):
            found |= {column.name.lower() for column in query.stream.columns}
        else:
            expressions.append(output.expression)
    for expression in expressions:
        for part in ir.walk(expression):
            if isinstance(part, (ir.Value, ir.Aggregate)) and part.attribute is not None:
                found.add(part.attribute)
    found.discard(ir.TIME)
    return found
