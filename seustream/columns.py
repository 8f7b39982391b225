"""Converts typed columns of files and frames to columns of a stream's types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seustream.compiler.language.types import Kind
from seustream.engine.stream.ranges import out_of_range
from seustream.engine.stream.schema import arrow_type, in_milliseconds
from seustream.tables import (
    BadCell,
    BadCells,
    Field,
    arrow,
    length_reason,
    null_reason,
    range_reason,
    shown,
    spans,
    without_nan,
)


def from_column(
    column: pa.ChunkedArray[Any], of: Field, faults: BadCells
) -> pa.ChunkedArray[Any] | None:
    """Converts a typed column to the field's type; returns None if the types are unrelated.
    Integers of any width, reals and texts of any kind are accepted if the values fit. Times finer
    than the column's type are rounded down."""
    if pa.types.is_dictionary(column.type):
        column = _decoded(column)
    if not pa.types.is_null(column.type) and not suits(column.type, of):
        return None
    chunks, row = [], 0
    for chunk in column.chunks:
        chunks.append(_typed(chunk, of, row, faults))
        row += len(chunk)
    return pa.chunked_array(chunks, type=arrow_type(of.type))


def _decoded(column: pa.ChunkedArray[Any]) -> pa.ChunkedArray[Any]:
    """Returns the values that stand for the codes of a dictionary."""
    of = column.type.value_type
    if pa.types.is_string_view(of):  # as Polars has them; Arrow takes none of these by number
        of = pa.string()
    chunks = [chunk.dictionary.cast(of).take(chunk.indices) for chunk in column.chunks]
    return pa.chunked_array(chunks, of)


def suits(found: pa.DataType, of: Field) -> bool:
    """Returns whether columns of a type may have values of the field's."""
    t = pa.types
    if of.is_time:
        return bool(t.is_integer(found) or t.is_timestamp(found))
    accepts = _ACCEPTED.get(of.type.kind, ())
    return any(accept(found) for accept in accepts)


_TEXTS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
_REALS = (pa.types.is_floating, pa.types.is_integer, pa.types.is_decimal)
_ACCEPTED: dict[Kind, tuple[Callable[[pa.DataType], bool], ...]] = {
    Kind.SMALLINT: (pa.types.is_integer,),
    Kind.INT: (pa.types.is_integer,),
    Kind.BIGINT: (pa.types.is_integer,),
    Kind.REAL: _REALS,
    Kind.DOUBLE: _REALS,
    Kind.DECIMAL: (pa.types.is_decimal, pa.types.is_integer),
    Kind.CHAR: _TEXTS,
    Kind.VARCHAR: _TEXTS,
    Kind.INTERVAL: (pa.types.is_duration, pa.types.is_integer),
    Kind.BOOLEAN: (pa.types.is_boolean,),
    Kind.DATE: (pa.types.is_date,),
    Kind.TIME: (pa.types.is_time,),
    Kind.TIMESTAMP: (pa.types.is_timestamp,),
}


def _typed(chunk: pa.Array[Any], of: Field, row: int, faults: BadCells) -> pa.Array[Any]:
    """Converts a whole chunk at once, and value by value only if that fails."""
    try:
        chunk.validate(full=True)  # Parquet does not guarantee that its texts are UTF-8
        values = _checked(chunk, of)
    except (pa.ArrowInvalid, BadCell):
        pass
    else:
        if of.nullable or not values.null_count:
            return values
    good: list[pa.Array[Any]] = []
    for index in range(len(chunk)):
        one = chunk.slice(index, 1)
        try:
            one.validate(full=True)
            value = _checked(one, of)
            if value.null_count and not of.nullable:
                raise BadCell(null_reason(of, None if one.null_count else _spelled(one)))
        except pa.ArrowInvalid:
            faults.add(row + index, _misfit(one, of))
        except BadCell as bad:
            faults.add(row + index, str(bad))
        else:
            good.append(value)
            continue
        good.append(pa.nulls(1, arrow_type(of.type)))
    return pa.concat_arrays(good)


def _checked(chunk: pa.Array[Any], of: Field) -> pa.Array[Any]:
    """Converts the chunk to the field's type; raises if a value does not fit."""
    to = arrow_type(of.type)
    if pa.types.is_null(chunk.type):
        return pa.nulls(len(chunk), to)
    if pa.types.is_timestamp(chunk.type):
        unit = cast("pa.TimestampType[Any, Any]", chunk.type).unit
        naive = arrow(pc.cast(chunk, pa.timestamp(unit)))
        if of.is_time:
            return in_milliseconds(naive)
        if unit == "ns":
            naive = arrow(pc.floor_temporal(naive, unit="microsecond"))
        return _in_range(arrow(pc.cast(naive, to)), of)
    match of.type.kind:
        case Kind.REAL | Kind.DOUBLE:
            if pa.types.is_decimal(chunk.type):
                chunk = arrow(pc.cast(chunk, pa.string()))  # otherwise Arrow rounds wrongly
            values = arrow(pc.cast(chunk, to, safe=False))
            if pa.types.is_floating(chunk.type):
                grown = pc.and_not(pc.is_inf(values), pc.is_inf(chunk))
                if pc.any(grown).as_py():
                    raise BadCell(f"{shown(_spelled(chunk))} is too large for {of.type}")
            return without_nan(values)
        case Kind.CHAR | Kind.VARCHAR:
            length = of.type.length
            values = arrow(pc.cast(chunk, to))
            if length is not None and (pc.max(pc.utf8_length(values)).as_py() or 0) > length:
                raise BadCell(length_reason(_spelled(values), of))
            return values
        case Kind.TIME:  # never negative, so that fractions are cut off downwards
            return _in_range(arrow(pc.cast(chunk, to, safe=False)), of)
        case Kind.DATE:
            return _in_range(arrow(pc.cast(chunk, to)), of)
        case Kind.INTERVAL:
            lengths = in_whole_milliseconds(chunk) if pa.types.is_duration(chunk.type) else chunk
            return spans(_in_range(arrow(pc.cast(lengths, pa.int64())), of))
        case Kind.DECIMAL if pa.types.is_integer(chunk.type):
            # Arrow requires a type that holds every integer of the column's type, and room to scale it.
            wide = arrow(pc.cast(pc.cast(chunk, pa.decimal128(20, 0)), pa.decimal256(40, 0)))
            return arrow(pc.cast(wide, to))
        case _:
            return arrow(pc.cast(chunk, to))


def in_whole_milliseconds(lengths: pa.Array[Any]) -> pa.Array[Any]:
    """Converts durations; finer ones are rounded down."""
    finer = {"us": 1_000, "ns": 1_000_000}.get(cast("pa.DurationType[Any]", lengths.type).unit)
    if finer is None:
        return arrow(pc.cast(lengths, pa.duration("ms")))
    numbers = np.asarray(pc.fill_null(pc.cast(lengths, pa.int64()), 0)) // finer
    return pa.array(numbers, mask=np.asarray(pc.is_null(lengths)))


def _in_range(values: pa.Array[Any], of: Field) -> pa.Array[Any]:
    if out_of_range(values, of.type.kind):
        raise BadCell(f"{shown(_spelled(values))} {range_reason(of)}")
    return values


def _spelled(one: pa.Array[Any]) -> str:
    """Spells the first value by Arrow's cast, since Python cannot represent some times."""
    return str(pc.cast(one.slice(0, 1), pa.string())[0].as_py())


def _misfit(one: pa.Array[Any], of: Field) -> str:
    if of.type.is_text:
        return "not UTF-8 text"
    text = shown(_spelled(one))
    if of.type.is_integer and pa.types.is_integer(one.type):
        return f"{text} {range_reason(of)}"
    return f"{text} is out of range for {of.expected}"
