"""Encodes a column's values as the device's codes.

A device compares unsigned codes of 8, 16 or 32 bits. An *exact* encoding preserves order and
equality; a *prefix* never reverses the order (a < b gives code(a) <= code(b)); a *hash* preserves
equality alone. `weakened` is what remains of a comparison: it must hold on the codes whenever the
comparison holds on the values, so that the device loses no result. The host removes false
positives.

One comparison needs one encoding: columns compared with each other share theirs. The scalar form
here serves constants in query texts; `engine/host/encode.py` does the same for whole columns.
"""

from __future__ import annotations

import datetime
import enum
import math
import struct
import zlib
from dataclasses import dataclass
from decimal import Decimal

from seustream.compiler.language.expressions import Value
from seustream.compiler.language.types import Kind, Type
from seustream.hdl.isa import Condition


class Codec(enum.Enum):
    """integer        smallint, int, date (days), interval (milliseconds), boolean, short decimals
                      (in units of their last digit): value + 2^(w-1), exact. A value that does
                      not fit never enters the device: the host deals with its tuple
    real              real: order-preserving bits of the float, prefix when narrower than 32
    clock             time: milliseconds of the day, prefix when narrower than 27
    ticks             TimeStamp: milliseconds since the first tuple, ends at the largest code
    number            bigint, double and mixtures: order-preserving bits of the double, prefix
    number_hash       the same where only equality is asked
    integer_hash      bigint where only equality is asked
    seconds           timestamp: seconds since 1970, prefix
    timestamp_hash    timestamp where only equality is asked
    text              first four bytes of UTF-8, prefix
    text_hash         text where equality is asked"""

    INTEGER = "integer"
    REAL = "real"
    CLOCK = "clock"
    TICKS = "ticks"
    NUMBER = "number"
    NUMBER_HASH = "number hash"
    INTEGER_HASH = "integer hash"
    SECONDS = "seconds"
    TIMESTAMP_HASH = "timestamp hash"
    TEXT = "text"
    TEXT_HASH = "text hash"


_HASHES = (Codec.NUMBER_HASH, Codec.INTEGER_HASH, Codec.TIMESTAMP_HASH, Codec.TEXT_HASH)
CLOCK_BITS = 27  # of the milliseconds of a day
_EPOCH_DAY = datetime.date(1970, 1, 1).toordinal()
_EPOCH = datetime.datetime(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class Encoding:
    """The encoding of a column. `scale` is the number of digits after the point that an integer
    code includes."""

    codec: Codec
    width: int
    scale: int = 0

    @property
    def is_hash(self) -> bool:
        return self.codec in _HASHES

    @property
    def is_exact(self) -> bool:
        if self.codec is Codec.INTEGER:
            return True
        return self.width == 32 and self.codec in (Codec.REAL, Codec.CLOCK)

    def __str__(self) -> str:
        quality = "exact" if self.is_exact else "hash" if self.is_hash else "prefix"
        name = self.codec.value.removesuffix(" hash")
        return f"{name}, {quality}, {self.width} bits"

    def weakened(self, condition: Condition) -> Condition | None:
        """Returns the comparison of codes implied by this comparison of values; None if there is
        none."""
        if self.is_exact or condition is Condition.EQ:
            return condition
        if self.is_hash or condition is Condition.NE:
            return None
        return {Condition.LT: Condition.LE, Condition.GT: Condition.GE}.get(condition, condition)

    def code(self, value: Value) -> int | None:
        """Returns the code of one value; None if an exact encoding has none for it."""
        drop = 32 - self.width
        match self.codec:
            case Codec.INTEGER:
                code = int(integer_of(value) * 10**self.scale) + (1 << (self.width - 1))
                return code if 0 <= code < 1 << self.width else None
            case Codec.REAL:
                bits: int = struct.unpack("<I", struct.pack("<f", as_real(value)))[0]
                return _ordered(bits, 32) >> drop
            case Codec.CLOCK:
                return integer_of(value) >> max(CLOCK_BITS - self.width, 0)
            case Codec.NUMBER:
                return _ordered(_double_bits(value), 64) >> 64 - self.width
            case Codec.NUMBER_HASH:
                return mixed(_double_bits(value)) >> 64 - self.width
            case Codec.INTEGER_HASH | Codec.TIMESTAMP_HASH:
                return mixed(integer_of(value) & (1 << 64) - 1) >> 64 - self.width
            case Codec.SECONDS:
                seconds = integer_of(value) // 1_000_000
                return min(max(seconds, 0), (1 << 32) - 1) >> drop
            case Codec.TEXT:
                return int.from_bytes(str(value).encode()[:4].ljust(4, b"\0"), "big") >> drop
            case Codec.TEXT_HASH:
                return zlib.crc32(str(value).encode()) >> drop
            case Codec.TICKS:
                return None  # counts from a run's first tuple, which is unknown at compile time


def digits_of(width: int) -> int:
    """Returns the number of decimal digits that an integer code of this many bits always holds."""
    return len(str(1 << (width - 1))) - 1


def integer_of(value: Value) -> int:
    """Returns the integer as which a value is stored: days, milliseconds (of the day, of an
    interval), microseconds."""
    match value:
        case datetime.timedelta():
            return value // datetime.timedelta(milliseconds=1)
        case datetime.datetime():
            return (value - _EPOCH) // datetime.timedelta(microseconds=1)
        case datetime.date():
            return value.toordinal() - _EPOCH_DAY
        case datetime.time():
            seconds = (value.hour * 60 + value.minute) * 60 + value.second
            return seconds * 1000 + value.microsecond // 1000
        case int() | float():
            return int(value)
        case _:
            raise TypeError(f"{value!r} has no integer form")


def as_compared(value: Value, of: Type) -> Value:
    """Returns a constant as it is compared in a type: a date as a timestamp, an interval beside an
    integer in milliseconds, an exact number beside an inexact one as a double."""
    if of.kind is Kind.TIMESTAMP and isinstance(value, datetime.date):
        at = value if isinstance(value, datetime.datetime) else None
        return at or datetime.datetime(value.year, value.month, value.day)
    if of.is_integer and isinstance(value, datetime.timedelta):
        return integer_of(value)
    return float(value) if of.is_inexact and isinstance(value, (int, Decimal)) else value


def as_real(value: Value) -> float:
    """Returns the nearest real; infinity beyond the largest one."""
    assert isinstance(value, (int, float))
    try:
        real: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return real + 0.0  # -0.0 becomes 0.0


def _double_bits(value: Value) -> int:
    assert isinstance(value, (int, float, Decimal))
    bits: int = struct.unpack("<Q", struct.pack("<d", float(value) + 0.0))[0]
    return bits


def _ordered(bits: int, width: int) -> int:
    """Returns IEEE bits as an unsigned number in the order of the values."""
    sign = 1 << (width - 1)
    return bits ^ ((sign << 1) - 1) if bits & sign else bits | sign


def mixed(bits: int) -> int:
    """Mixes all bits with the finaliser of splitmix64; equal inputs stay equal."""
    mask = (1 << 64) - 1
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9 & mask
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EB & mask
    return bits ^ bits >> 31
