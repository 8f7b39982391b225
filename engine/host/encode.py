"""Encodes whole columns as the device's codes: `seustream.compiler.plan.encoding`, vectorised.

The two modules must agree code by code: constants in query texts are encoded there, and the columns
they are compared with are encoded here.
"""

from __future__ import annotations

import zlib

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from seustream.compiler.plan.encoding import CLOCK_BITS, Codec, Encoding

Codes = npt.NDArray[np.uint32]
Bools = npt.NDArray[np.bool_]
_LARGEST = (1 << 32) - 1


def encode(column: pa.Array, encoding: Encoding, first_tick: int) -> tuple[Codes, Bools]:
    """Returns the codes of a column, and which rows have one: not NULLs, nor integers that do not
    fit the attribute. `Codec.TICKS` counts from `first_tick`."""
    valid = np.asarray(column.is_valid())
    width, drop = encoding.width, np.uint32(32 - encoding.width)
    match encoding.codec:
        case Codec.INTEGER:
            codes = _units(column, encoding.scale) + (1 << (width - 1))
            fits = (codes >= 0) & (codes < 1 << width)
            return np.where(fits, codes, 0).astype(np.uint32), valid & fits
        case Codec.REAL:
            reals = _floats(column, np.dtype(np.float32)) + np.float32(0)
            return _ordered32(reals.view(np.uint32)) >> drop, valid
        case Codec.CLOCK:
            return _integers(column).astype(np.uint32) >> np.uint32(
                max(CLOCK_BITS - width, 0)
            ), valid
        case Codec.TICKS:
            return _ticks(_integers(column), first_tick, (1 << width) - 1), valid
        case Codec.NUMBER:
            return _top(_ordered64(_double_bits(column)), width), valid
        case Codec.NUMBER_HASH:
            return _top(_mixed(_double_bits(column)), width), valid
        case Codec.INTEGER_HASH | Codec.TIMESTAMP_HASH:
            return _top(_mixed(_integers(column).view(np.uint64)), width), valid
        case Codec.SECONDS:
            seconds = np.clip(_integers(column) // 1_000_000, 0, _LARGEST)
            return seconds.astype(np.uint32) >> drop, valid
        case Codec.TEXT:
            return _texts(column, _prefix) >> drop, valid
        case Codec.TEXT_HASH:
            return _texts(column, zlib.crc32) >> drop, valid


def _integers(column: pa.Array) -> npt.NDArray[np.int64]:
    """Returns values as they are stored, NULL as 0."""
    stored: pa.Array = column
    if pa.types.is_date32(stored.type) or pa.types.is_time32(stored.type):
        stored = stored.cast(pa.int32())
    return np.asarray(stored.cast(pa.int64()).fill_null(0)).copy()


def _units(column: pa.Array, scale: int) -> npt.NDArray[np.int64]:
    """Returns numbers in units of the last of `scale` digits after the point, NULL as 0."""
    if not pa.types.is_decimal(column.type):
        return _integers(column) * np.int64(10**scale)
    decimals = column.cast(pa.decimal128(38, scale)).fill_null(0)
    # A decimal is two words; with so few digits the lower one holds it all.
    words = np.frombuffer(decimals.buffers()[1], np.int64)
    units: npt.NDArray[np.int64] = words[2 * decimals.offset :: 2][: len(decimals)]
    return units


def decode(codes: npt.NDArray[np.int64], encoding: Encoding, of: pa.DataType) -> pa.Array:
    """Returns the values, of type `of`, that codes of an integer codec stand for."""
    units = codes - (1 << (encoding.width - 1))
    if pa.types.is_decimal(of):
        units = units // 10 ** (encoding.scale - of.scale)
        words = np.column_stack((units, units >> 63))
        data = pa.py_buffer(np.ascontiguousarray(words))
        return pa.Array.from_buffers(of, len(units), [None, data])
    units = units // 10**encoding.scale
    if pa.types.is_boolean(of):
        return pa.array(units != 0)
    narrow = pa.array(units).cast(pa.int32() if pa.types.is_date32(of) else of)
    return narrow.cast(of)


def _ticks(timestamps: npt.NDArray[np.int64], first: int, largest: int) -> Codes:
    # The difference of any two timestamps fits into 64 unsigned bits.
    since = np.maximum(timestamps, first).view(np.uint64) - np.uint64(first & (1 << 64) - 1)
    codes: Codes = np.minimum(since, np.uint64(largest)).astype(np.uint32)
    return codes


def _floats(column: pa.Array, to: np.dtype[np.floating]) -> npt.NDArray[np.floating]:
    return np.asarray(pc.fill_null(column, 0)).astype(to)


def _double_bits(column: pa.Array) -> npt.NDArray[np.uint64]:
    doubles = _floats(column, np.dtype(np.float64)) + 0.0  # -0.0 becomes 0.0
    return doubles.view(np.uint64)


def _ordered32(bits: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    sign = np.uint32(1 << 31)
    return np.where(bits & sign, ~bits, bits | sign)


def _ordered64(bits: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    sign = np.uint64(1 << 63)
    return np.where(bits & sign, ~bits, bits | sign)


def _top(bits: npt.NDArray[np.uint64], width: int) -> Codes:
    return (bits >> np.uint64(64 - width)).astype(np.uint32)


def _mixed(bits: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    bits = (bits ^ bits >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ bits >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return bits ^ bits >> np.uint64(31)


def _prefix(text: bytes) -> int:
    return int.from_bytes(text[:4].ljust(4, b"\0"), "big")


def _texts(column: pa.Array, code: object) -> Codes:
    """Encodes each distinct text once."""
    assert callable(code)
    distinct = column.dictionary_encode()
    of_each = [code((text or "").encode()) for text in distinct.dictionary.to_pylist()]
    index = np.asarray(distinct.indices.fill_null(len(of_each)))
    codes: Codes = np.array([*of_each, 0], np.uint32)[index]
    return codes
