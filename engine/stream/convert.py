"""Conversions of columns between types, and the row reference over columns.

The values are those of `seustream.compiler.language.convert`. Arrow's cast is used where it gives
the same.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seustream.compiler.language.convert import converter
from seustream.compiler.language.functions.columns import check_durations
from seustream.compiler.language.types import MAX_PRECISION, Kind, Type, digits
from seustream.engine.stream.schema import arrow_type

_EXACT_DIGITS = 15
"""Decimals of up to this many digits have an unscaled value and a power of ten that doubles hold:
their quotient is the nearest double."""

_WIDER: dict[tuple[Kind, Kind], pa.DataType] = {
    (Kind.SMALLINT, Kind.INT): pa.int32(),
    (Kind.SMALLINT, Kind.BIGINT): pa.int64(),
    (Kind.INT, Kind.BIGINT): pa.int64(),
    (Kind.SMALLINT, Kind.DOUBLE): pa.float64(),
    (Kind.INT, Kind.DOUBLE): pa.float64(),
    (Kind.BIGINT, Kind.DOUBLE): pa.float64(),
    (Kind.REAL, Kind.DOUBLE): pa.float64(),
}
"""The most frequent conversions of operands. They lose nothing that matters: a bigint becomes the
nearest double."""

_FEW = 32
"""The most rows for which it does not pay to look for equal ones."""


def convert(value: pa.Array, of: Type, to: Type) -> pa.Array:
    """Converts the column to another type; a value that has none there becomes NULL."""
    wider = _WIDER.get((of.kind, to.kind))
    if wider is not None:
        return cast(value, wider, False)
    try:
        found = _cast(value, of, to)
    except (ValueError, NotImplementedError):
        found = None
    if found is not None:
        return found
    change = converter(of, to)
    assert change is not None
    return each_row(change, (value,), arrow_type(to), strict=True)


def _cast(value: pa.Array, of: Type, to: Type) -> pa.Array | None:
    """Converts by Arrow; returns None where Arrow's values differ."""
    wanted = arrow_type(to)
    if to.is_text:
        return _to_text(value, of, to)
    if of.is_text:
        return value if wanted == value.type else None
    if value.type == wanted:
        return value
    match to.kind:
        case Kind.SMALLINT | Kind.INT | Kind.BIGINT:
            if of.is_inexact or of.is_decimal:
                value = pc.trunc(value)
            elif of.kind is Kind.INTERVAL:
                value = cast(value, pa.int64())
            return cast(value, wanted)
        case Kind.REAL | Kind.DOUBLE:
            return _to_inexact(value, of, wanted)
        case Kind.DECIMAL:
            return _to_decimal(value, of, to)
        case Kind.BOOLEAN:
            return pc.not_equal(value, 0) if of.is_integer or of.is_inexact else None
        case Kind.INTERVAL:
            return check_durations(pc, cast(cast(value, pa.int64()), wanted))
        case Kind.TIMESTAMP if of.kind is Kind.DATE:
            return cast(value, wanted)
        case Kind.DATE:
            return cast(value, wanted, safe=False)
    return None


def _to_text(value: pa.Array, of: Type, to: Type) -> pa.Array | None:
    if of.kind is Kind.BOOLEAN:
        text = pc.if_else(value, "true", "false")
    elif of.is_text or of.is_integer or of.kind is Kind.DATE:
        text = cast(value, pa.string())
    else:
        return None
    return text if to.length is None else pc.utf8_slice_codeunits(text, 0, to.length)


def _to_inexact(value: pa.Array, of: Type, wanted: pa.DataType) -> pa.Array | None:
    if of.kind is Kind.INTERVAL:
        value = cast(value, pa.int64())
    if of.is_decimal:
        found = _quotients(value, of)
        return None if found is None else cast(found, wanted, safe=False)
    # A large integer has no exact double; SQL compares with the nearest.
    return cast(cast(value, pa.float64(), safe=False), wanted, safe=False)


def _quotients(value: pa.Array, of: Type) -> pa.Array | None:
    """Returns decimals as doubles, correctly rounded, which Arrow's cast does not do."""
    assert of.length is not None
    assert of.scale is not None
    if of.length > _EXACT_DIGITS:
        return None
    words = np.frombuffer(value.buffers()[1], np.int64)
    low = words[2 * value.offset : 2 * (value.offset + len(value)) : 2]
    doubles = pa.array(low / 10.0**of.scale)
    return pc.if_else(pc.is_valid(value), doubles, None) if value.null_count else doubles


def _to_decimal(value: pa.Array, of: Type, to: Type) -> pa.Array | None:
    wanted = arrow_type(to)
    if not (of.is_integer or of.is_decimal):
        return None
    (precision, scale), (_, places) = digits(of), digits(to)
    if precision - scale + places > MAX_PRECISION:
        return None  # Arrow would not notice that 128 bits overflow
    if of.is_integer:
        return cast(cast(value, pa.decimal128(19, 0)), wanted)
    if places < scale:
        # Arrow rounds 9.5 with two digits to 0, hence one digit more.
        value = cast(value, pa.decimal128(precision + 1, scale))
        value = pc.round(value, ndigits=places, round_mode="half_towards_infinity")
    return cast(value, wanted)


@functools.cache
def _options(to: pa.DataType, safe: bool) -> pc.CastOptions:
    return pc.CastOptions.safe(to) if safe else pc.CastOptions.unsafe(to)


def cast(value: pa.Array, to: pa.DataType, safe: bool = True) -> pa.Array:
    """Casts by Arrow with cached options: making them takes longer than casting a small column."""
    return pc.call_function("cast", [value], _options(to, safe))


# --- by rows ------------------------------------------------------------------


def each_row(
    compute: Callable[..., Any], arguments: Sequence[Any], to: pa.DataType, strict: bool
) -> pa.Array:
    """Computes the row reference over columns, at least one of them an array. A function of one
    column is called once per distinct value. A strict one has no value where an argument has
    none."""
    varying = [place for place, a in enumerate(arguments) if not isinstance(a, pa.Scalar)]
    if strict and len(varying) == 1 and len(arguments[varying[0]]) > _FEW:
        column = arguments[varying[0]]
        if not pa.types.is_floating(column.type):  # reals seldom repeat
            distinct = column.dictionary_encode()
            shorter = [*arguments]
            shorter[varying[0]] = distinct.dictionary
            return pa.array(_computed(compute, shorter, strict), to).take(distinct.indices)
    return pa.array(_computed(compute, arguments, strict), to)


def _computed(compute: Callable[..., Any], arguments: Sequence[Any], strict: bool) -> list[Any]:
    count = next(len(a) for a in arguments if not isinstance(a, pa.Scalar))
    lists = [[a.as_py()] * count if isinstance(a, pa.Scalar) else a.to_pylist() for a in arguments]
    if not strict:
        return [compute(*row) for row in zip(*lists, strict=True)]
    if len(lists) == 1:
        return [None if value is None else compute(value) for value in lists[0]]
    return [None if None in row else compute(*row) for row in zip(*lists, strict=True)]
