"""Columns as the numbers that kernels compare.

Two values of one type are equal where their numbers are. `ordered` numbers have the order of the values,
too; texts, and decimals of more digits than 64 bits hold, have only `Codes`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seustream.compiler.language.types import Kind, Type
from seustream.engine.kernels import native

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.uint8] | None
Numbers = tuple[Ints, Flags]
"""Numbers, and where there is none: None if there are all."""

_WHOLE = (
    Kind.SMALLINT,
    Kind.INT,
    Kind.BIGINT,
    Kind.DATE,
    Kind.TIME,
    Kind.TIMESTAMP,
    Kind.INTERVAL,
    Kind.BOOLEAN,
)
_SIGN = np.int64(np.iinfo(np.int64).max)


def is_ordered(of: Type) -> bool:
    """Tells the types that have ordered numbers."""
    return of.kind in _WHOLE or of.is_inexact or (of.is_decimal and (of.length or 0) <= 18)


def has_numbers(of: Type) -> bool:
    """Tells the types that have numbers at all."""
    return is_ordered(of) or of.is_text or of.is_decimal


def numbers(column: pa.Array, of: Type, codes: native.Codes) -> Numbers:
    """The numbers of a column of a type."""
    flags = np.asarray(column.is_valid()).astype(np.uint8) if column.null_count else None
    if of.is_text:
        return texts(column, codes), flags
    if of.is_decimal:
        words = np.frombuffer(column.buffers()[1], np.int64)
        words = words[2 * column.offset : 2 * (column.offset + len(column))]
        if is_ordered(of):
            return words[::2].copy(), flags
        found = np.empty(len(column), np.int64)
        codes.of_values(words.view(np.uint8), 16, found)
        return found, flags
    if of.is_inexact:
        doubles = np.asarray(column.cast(pa.float64()).fill_null(0.0)) + 0.0  # -0.0 becomes 0.0
        return of_doubles(doubles), flags
    stored = column
    if of.kind in (Kind.DATE, Kind.TIME):
        stored = stored.cast(pa.int32())
    stored = stored.cast(pa.int64())
    return np.asarray(stored.fill_null(0) if flags is not None else stored), flags


def of_doubles(doubles: npt.NDArray[np.float64]) -> Ints:
    """Integers in the order of doubles that are numbers and no negative zeros."""
    bits: Ints = doubles.view(np.int64)
    return np.where(bits < 0, bits ^ _SIGN, bits)


def together(columns: list[Numbers], codes: native.Codes) -> Numbers:
    """Numbers that are equal where those of all columns are."""
    if len(columns) == 1:
        return columns[0]
    values = np.stack([mine for mine, _ in columns], axis=1)
    flags: Flags = None
    for _, mine in columns:
        if mine is not None:
            flags = mine if flags is None else flags & mine
    found = np.empty(len(values), np.int64)
    codes.of_values(values.reshape(-1).view(np.uint8), 8 * len(columns), found)
    return found, flags


def texts(column: pa.Array, codes: native.Codes) -> Ints:
    """The codes of texts; of NULL any."""
    column = column.fill_null("") if column.null_count else column
    found = np.empty(len(column), np.int64)
    _, offsets, data = column.buffers()
    if offsets is None or data is None or not len(column):
        codes.of_values(np.empty(0, np.uint8), 0, found)
        return found
    own = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
    codes.of_texts(own.astype(np.int64), np.frombuffer(data, np.uint8), found)
    return found
