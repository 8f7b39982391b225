"""Converts columns to rows of 32-bit words and back, by the layouts of the processor's streams."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint32]
Column = npt.NDArray[np.uint64]

_WORD = 32
_LOW = np.uint64((1 << _WORD) - 1)


def words_of(bits: int) -> int:
    """Returns the number of words of a payload: one or two for a port of up to 64 bits, as many as
    needed for a wider one."""
    return -(-bits // _WORD)


def flatten(layout: object, prefix: str = "", at: int = 0) -> dict[str, tuple[int, int]]:
    """Returns every leaf of a layout: dotted name -> (first bit, width)."""
    from amaranth.hdl import Shape
    from amaranth.lib import data

    if not isinstance(layout, data.Layout):
        return {prefix: (at, Shape.cast(layout).width)}
    leaves: dict[str, tuple[int, int]] = {}
    for key, field in layout:
        name = f"{prefix}.{key}" if prefix else str(key)
        leaves |= flatten(field.shape, name, at + field.offset)
    return leaves


def pack(fields: Mapping[str, tuple[int, int]], columns: Mapping[str, Column], rows: int) -> Words:
    """Packs columns into rows of a payload; fields without a column are 0."""
    width = max(at + bits for at, bits in fields.values())
    packed = np.zeros((rows, words_of(width)), np.uint32)
    for name, column in columns.items():
        at, bits = fields[name]
        value = column.astype(np.uint64) & _mask(bits)
        word, shift = divmod(at, _WORD)
        packed[:, word] |= ((value << np.uint64(shift)) & _LOW).astype(np.uint32)
        done = _WORD - shift
        while done < bits:
            word += 1
            packed[:, word] |= ((value >> np.uint64(done)) & _LOW).astype(np.uint32)
            done += _WORD
    return packed


def unpack(fields: Mapping[str, tuple[int, int]], rows: Words) -> dict[str, Column]:
    """Unpacks the columns of payload rows."""
    wide = rows.astype(np.uint64)
    columns = {}
    for name, (at, bits) in fields.items():
        word, shift = divmod(at, _WORD)
        value = wide[:, word] >> np.uint64(shift)
        done = _WORD - shift
        while done < bits:
            word += 1
            value |= wide[:, word] << np.uint64(done)
            done += _WORD
        columns[name] = value & _mask(bits)
    return columns


def _mask(bits: int) -> np.uint64:
    return np.uint64((1 << bits) - 1)
