"""A digest of the rows a writer sent, in a few bytes: the same for the same rows in any order and any cut.

Spark repeats an epoch's rows, but a task that reads what was shuffled reads it in another order,
and tasks may be cut differently. So a content is the sum of one hash a row, in two lanes of 64
bits: enough to tell an epoch from another by accident, not by intent, which a client with a token
does not need.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Words = npt.NDArray[np.uint64]

_LANES = np.array([[0x9E3779B97F4A7C15], [0xC2B2AE3D27D4EB4F]], np.uint64)
"""A multiplier a lane, odd."""
_ADDED = _LANES >> np.uint64(7)
_SPREAD = np.uint64(0xBF58476D1CE4E5B9)
_BITS_29, _BITS_31, _BITS_32 = np.uint64(29), np.uint64(31), np.uint64(32)
_NULL = np.uint64(0xD6E8FEB86659FD93)
_ROWS_AT_ONCE = 1 << 13
_SHORT = 256
"""Bytes of text up to which texts are hashed together; longer ones are few."""
_POWERS = np.array([pow(0x100000001B3, i, 1 << 64) for i in range(_SHORT + 1)], np.uint64)


@dataclass(frozen=True, slots=True)
class Content:
    """Rows of one stream, and the sums of their hashes."""

    rows: int = 0
    sums: tuple[int, int] = (0, 0)

    def __add__(self, other: Content) -> Content:
        first, second = ((a + b) % (1 << 64) for a, b in zip(self.sums, other.sums, strict=True))
        return Content(self.rows + other.rows, (first, second))

    def __str__(self) -> str:
        return f"{self.rows:x}-{self.sums[0]:016x}{self.sums[1]:016x}"

    @classmethod
    def parse(cls, text: str) -> Content:
        rows, _, sums = text.partition("-")
        return cls(int(rows, 16), (int(sums[:16], 16), int(sums[16:], 16)))


def content_of(rows: pa.Table) -> Content:
    """Of rows with a stream's columns."""
    found = Content()
    for start in range(0, rows.num_rows, _ROWS_AT_ONCE):
        part = rows.slice(start, _ROWS_AT_ONCE) if rows.num_rows > _ROWS_AT_ONCE else rows
        mixed = np.zeros((len(_LANES), part.num_rows), np.uint64)
        for column in part.columns:
            whole = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
            mixed = _mixed(mixed + _codes(whole))
        first, second = mixed.sum(axis=1, dtype=np.uint64).tolist()
        found += Content(part.num_rows, (first, second))
    return found


def epoch_content(streams: Mapping[str, Content]) -> str:
    """Of an epoch's streams; one without rows says nothing."""
    said = ",".join(f"{len(name)}:{name}={c}" for name, c in sorted(streams.items()) if c.rows)
    return hashlib.blake2b(said.encode(), digest_size=16).hexdigest()


def _mixed(x: Words) -> Words:
    """Every bit of a word spread over all of it, in each lane."""
    x = (x ^ (x >> _BITS_31)) * _LANES + _ADDED
    x = (x ^ (x >> _BITS_29)) * _SPREAD
    return x ^ (x >> _BITS_32)


def _codes(column: Any) -> Words:
    """A word for each value: for a fixed width its bytes, for a text a hash."""
    kind = column.type
    if pa.types.is_string(kind):
        found = _of_texts(column)
    else:
        if pa.types.is_boolean(kind):
            column = column.cast(pa.uint8())
        width = column.type.byte_width
        words = np.frombuffer(column.buffers()[1], f"u{width}", len(column), column.offset * width)
        found = words.astype(np.uint64)
    if column.null_count:
        valid = pc.is_valid(column).to_numpy(zero_copy_only=False)
        found = np.where(valid, found, _NULL)
    return found


def _of_texts(column: Any) -> Words:
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, np.int32, len(column) + 1, column.offset * 4).astype(np.int64)
    lengths = np.diff(ends)
    found = np.zeros(len(column), np.uint64)
    taken = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]] if data is not None else None
    starts = ends[:-1] - ends[0]
    for index in np.flatnonzero(lengths > _SHORT):
        start = starts[index]
        assert taken is not None
        long = hashlib.blake2b(taken[start : start + lengths[index]].tobytes(), digest_size=8)
        found[index] = int.from_bytes(long.digest(), "little")
    short = np.flatnonzero(lengths <= _SHORT)
    if taken is not None and len(short):
        length = lengths[short]
        begin = np.cumsum(length) - length
        place = np.arange(int(length.sum())) - np.repeat(begin, length)
        byte = taken[np.repeat(starts[short], length) + place].astype(np.uint64)
        sums = np.zeros(len(byte) + 1, np.uint64)
        np.cumsum((byte + np.uint64(1)) * _POWERS[place], out=sums[1:])
        found[short] = sums[begin + length] - sums[begin]
    return found + lengths.astype(np.uint64) * np.uint64(0x94D049BB133111EB)
