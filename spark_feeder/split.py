"""Divides rows over several bridges, or the shards inside Spark, by key: equal keys meet on the
same one, whatever their type.

A key is hashed by its value as a number or text, so that the `int` of one stream and the `bigint`
of another take the same route. NULL joins with nothing, so any bridge will do.
"""

from __future__ import annotations

import zlib

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_SPREAD = np.uint64(0x9E3779B97F4A7C15)


class NoKey(ValueError):
    """A column that is not there, or of a type that cannot be a key."""


def key_of(rows: pa.RecordBatch, key: str) -> pa.Array:
    """Returns the column that divides rows; letter case does not matter."""
    for place, name in enumerate(rows.schema.names):
        if name.lower() == key.lower():
            return rows.column(place)
    raise NoKey(
        f"there is no column {key} to divide the rows by, but {', '.join(rows.schema.names)}"
    )


def places(key: pa.Array, bridges: int) -> npt.NDArray[np.int64]:
    """Returns the number of the bridge for each row."""
    kind = key.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_date32(kind):
        numbers = key.cast(pa.int32()) if pa.types.is_date32(kind) else key
        found = _numbers(pc.fill_null(numbers.cast(pa.int64()), 0))
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        coded = pc.fill_null(key.cast(pa.string()), "").dictionary_encode()
        words = [zlib.crc32(word.encode()) for word in coded.dictionary.to_pylist()]
        found = np.array(words, np.int64)[np.asarray(coded.indices)]
    else:
        raise NoKey(f"{kind} is no key: want whole numbers, texts, dates or booleans")
    hashed = found.view(np.uint64) * _SPREAD
    return ((hashed >> np.uint64(32)) % np.uint64(bridges)).astype(np.int64)


def _numbers(column: pa.Array) -> npt.NDArray[np.int64]:
    return np.asarray(column, dtype=np.int64)


def split(rows: pa.RecordBatch, key: str | None, bridges: int) -> list[pa.RecordBatch]:
    """Returns the rows of each bridge."""
    if bridges == 1:
        return [rows]
    if key is None:
        raise NoKey("several bridges need a key column")
    where = places(key_of(rows, key), bridges)
    return [rows.filter(pa.array(where == bridge)) for bridge in range(bridges)]
