"""Columns of members as 64-bit words: kernels read them, and results are rebuilt from them.

Texts are the codes of a `Codes`; decimals of more than 18 digits take two words; a NULL is a flag.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seustream.engine.kernels import native
from seustream.engine.stream.growing import Growing
from seustream.engine.stream.numbers import as_column, numbers, stored, stored_as

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.uint8] | None


class Words:
    """A column of one type that grows at the end and shrinks at the front."""

    __slots__ = ("_flags", "_words", "codes", "type", "wide")

    def __init__(self, of: pa.DataType) -> None:
        self.type = of
        self.codes = native.Codes() if pa.types.is_string(of) else None
        self.wide = pa.types.is_decimal(of) and of.precision > 18
        self._words = Growing()
        self._flags: Growing | None = None

    def __len__(self) -> int:
        return len(self._words) // (2 if self.wide else 1)

    @property
    def words(self) -> Ints:
        """The words, valid until the column changes."""
        return self._words.view

    @property
    def flags(self) -> Flags:
        """0 where a value is NULL; None if no value is."""
        return None if self._flags is None else self._flags.view

    def append(self, column: pa.Array) -> None:
        before = len(self)
        words, flags = self.of(column)
        self._words.append(words)
        if flags is not None and self._flags is None:
            self._flags = Growing(np.uint8)
            self._flags.append(np.ones(before, np.uint8))
        if self._flags is not None:
            self._flags.append(np.ones(len(column), np.uint8) if flags is None else flags)

    def drop(self, count: int) -> None:
        """Drops the first `count` values."""
        self._words.drop(count * (1 + self.wide))
        if self._flags is not None:
            self._flags.drop(count)

    def take(self, places: Ints, known: npt.NDArray[np.bool_] | None = None) -> pa.Array:
        """Returns the values in some places; NULL where a place is not `known`."""
        flags = None if self._flags is None else self._flags.view
        if known is not None:
            if not len(self):
                return pa.nulls(len(places), self.type)
            places = np.where(known, places, 0)
        there = None if flags is None else flags[places] != 0
        if known is not None:
            there = known if there is None else there & known
        words = self.words.reshape(-1, 2)[places] if self.wide else self.words[places]
        return self.values(words, None if there is None else ~there)

    def values(self, words: Ints, nulls: npt.NDArray[np.bool_] | None = None) -> pa.Array:
        """Turns words into values again."""
        of = self.type
        if pa.types.is_null(of):
            return pa.nulls(len(words))
        if self.codes is not None:
            if not self.codes.count():  # NULLs alone, whose words are zeros
                return pa.nulls(len(words), of)
            offsets = np.empty(len(words) + 1, np.int64)
            data = self.codes.texts(words, offsets)
            validity = None if nulls is None else pa.array(~nulls).buffers()[1]
            starts = pa.py_buffer(offsets.astype(np.int32))
            return pa.Array.from_buffers(of, len(words), [validity, starts, pa.py_buffer(data)])
        if pa.types.is_decimal(of):
            if not self.wide:
                words = np.stack([words, words >> 63], axis=1)
            return decimals(words, of, nulls)
        if pa.types.is_boolean(of):
            return pa.array(words != 0, mask=nulls)
        kind = stored_as(of)
        if kind == "f4":
            cells = words.view(np.float64).astype(np.float32)
        else:
            cells = words.view(kind) if kind[1] == "8" else words.astype(kind)
        return as_column(cells, of, nulls)

    def of(self, column: pa.Array) -> tuple[Ints, Flags]:
        """Returns values as words, and flags of those that are not NULL."""
        of, count = self.type, len(column)
        if pa.types.is_null(of):
            return np.zeros(count, np.int64), np.zeros(count, np.uint8)
        if self.codes is not None:
            return numbers(column, self.codes)
        flags = np.asarray(column.is_valid()).astype(np.uint8) if column.null_count else None
        if pa.types.is_boolean(of):
            return np.asarray(column.fill_null(False)).astype(np.int64), flags
        if pa.types.is_decimal(of):
            words = np.frombuffer(column.buffers()[1], np.int64)
            words = words[2 * column.offset : 2 * (column.offset + count)]
            return (words if self.wide else words[::2]), flags
        cells = stored(column)
        if cells.dtype.kind == "i":
            return cells.astype(np.int64, copy=False), flags
        doubles = cells.astype(np.float64, copy=False)
        bad = np.isnan(doubles)
        if bad.any():
            flags = np.ones(count, np.uint8) if flags is None else flags
            flags[bad] = 0
        return doubles.view(np.int64), flags


def decimals(words: Ints, of: pa.DataType, nulls: npt.NDArray[np.bool_] | None) -> pa.Array:
    """Returns decimals of two words each."""
    validity = None if nulls is None else pa.array(~nulls).buffers()[1]
    data = pa.py_buffer(np.ascontiguousarray(words))
    return pa.Array.from_buffers(of, words.size // 2, [validity, data])


class KeyNumbers:
    """Numbers the distinct values of several columns; NULL is a value like any other."""

    def __init__(self, types: list[pa.DataType]) -> None:
        self.columns = [Words(of) for of in types]
        self._codes = native.Codes()

    def __len__(self) -> int:
        return self._codes.count()

    def numbers(self, columns: list[pa.Array], count: int) -> Ints:
        """Returns the number of each of `count` rows."""
        before, found = len(self), np.empty(count, np.int64)
        native.keys(tuple([one.__arrow_c_array__() for one in columns]), self._codes, found)
        if columns and len(self) > before:
            new = np.flatnonzero(found >= before)
            first = pa.array(new[np.unique(found[new], return_index=True)[1]])
            for words, column in zip(self.columns, columns, strict=True):
                words.append(column.take(first))
        return found
