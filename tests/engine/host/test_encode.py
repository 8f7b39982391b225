"""Whole columns encoded, compared with the scalar encoding value by value, and the laws of both.

The compiler encodes constants of query texts one by one; the columns they are compared with are
encoded here. If a single code differs, a selection or a join loses results.
"""

from __future__ import annotations

import datetime
import math
import random
import struct
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from seustream.compiler.language.expressions import Value
from seustream.compiler.plan.encoding import Codec, Encoding
from seustream.engine.host.encode import decode, encode
from seustream.hdl.isa import Condition

WIDTHS = (8, 16, 32)
UNORDERED = {Condition.EQ, Condition.NE}

FLOATS = (
    *(0.0, -0.0, math.inf, -math.inf, 1.0, -1.0, 1.5, 2.0**24, 2.0**24 + 1, 2.0**53, 1e300),
    *(5e-324, -5e-324, 2.2e-308, 1.4e-45, -1.4e-45, 1.17e-38, 3.4028234663852886e38, -1e-40),
)
DAYS = ("0001-01-01", "1969-12-31", "1970-01-01", "1970-01-02", "2006-03-01", "9999-12-31")
MOMENTS = (
    *("0001-01-01T00:00:00", "1969-12-31T23:59:59.999999", "1970-01-01T00:00:00"),
    *("1970-01-01T00:00:00.000001", "2006-03-01T12:30:00.5", "2106-02-07T06:28:15.999999"),
    *("2106-02-07T06:28:16", "9999-12-31T23:59:59.999999"),
)
TEXTS = (
    *("", "a", "ab", "abc", "abcd", "abcde", "abce", "b", "A", "é", "aé", "abcé", "日本語", "日本"),
    *("\U0001f600", "\x00", "a\x00", "\x7f", "ÿ", "\uffff", "zzzzzzzzzzzzzzzzzzzz", " a", "a "),
)


def integers(chance: random.Random, bits: int) -> list[Value]:
    top = 1 << (bits - 1)
    edges = [-top, -top + 1, -1, 0, 1, top - 2, top - 1]
    edges += [
        sign * (1 << n) + d
        for n in (7, 8, 15, 16, 31)
        if n < bits - 1
        for sign in (1, -1)
        for d in (-1, 0, 1)
    ]
    return [*edges, *(chance.randrange(-top, top) for _ in range(200))]


def floats(chance: random.Random, single: bool) -> list[Value]:
    """Returns limits and random bit patterns, without NaN."""
    letter, size = ("f", 4) if single else ("d", 8)
    found = [*FLOATS, *(struct.unpack(letter, chance.randbytes(size))[0] for _ in range(200))]
    if single:
        with np.errstate(over="ignore"):
            found = [float(np.float32(x)) for x in found]
    return [x for x in found if not math.isnan(x)]


def days(chance: random.Random) -> list[Value]:
    found = [datetime.date.fromisoformat(day) for day in DAYS]
    return [*found, *(datetime.date.fromordinal(chance.randrange(1, 3652059)) for _ in range(200))]


def clocks(chance: random.Random) -> list[Value]:
    edges = [datetime.time(), datetime.time(23, 59, 59, 999_000), datetime.time(0, 0, 0, 1000)]
    draw = (chance.randrange(86_400_000) for _ in range(200))
    start = datetime.datetime(1970, 1, 1)
    return [*edges, *((start + datetime.timedelta(milliseconds=ms)).time() for ms in draw)]


def moments(chance: random.Random) -> list[Value]:
    start = datetime.datetime(1, 1, 1)
    draw = (chance.randrange(3652058 * 86_400 * 10**6) for _ in range(200))
    found = [start + datetime.timedelta(microseconds=us) for us in draw]
    return [*map(datetime.datetime.fromisoformat, MOMENTS), *found]


def texts(chance: random.Random) -> list[Value]:
    letters = "ab\x00é日\U0001f600~"
    draw = ("".join(chance.choices(letters, k=chance.randrange(8))) for _ in range(200))
    return [*TEXTS, *draw]


def booleans(chance: random.Random) -> list[Value]:
    return [False, True]


# Codec, Arrow type of the column, values: every pairing that a layout makes.
COLUMNS = {
    "smallint": (Codec.INTEGER, pa.int16(), lambda c: integers(c, 16)),
    "int": (Codec.INTEGER, pa.int32(), lambda c: integers(c, 32)),
    "date": (Codec.INTEGER, pa.date32(), days),
    "boolean": (Codec.INTEGER, pa.bool_(), booleans),
    "real": (Codec.REAL, pa.float32(), lambda c: floats(c, single=True)),
    "time": (Codec.CLOCK, pa.time32("ms"), clocks),
    "number of smallint": (Codec.NUMBER, pa.int16(), lambda c: integers(c, 16)),
    "number of bigint": (Codec.NUMBER, pa.int64(), lambda c: integers(c, 64)),
    "number of real": (Codec.NUMBER, pa.float32(), lambda c: floats(c, single=True)),
    "number of double": (Codec.NUMBER, pa.float64(), lambda c: floats(c, single=False)),
    "number hash of int": (Codec.NUMBER_HASH, pa.int32(), lambda c: integers(c, 32)),
    "number hash of bigint": (Codec.NUMBER_HASH, pa.int64(), lambda c: integers(c, 64)),
    "number hash of real": (Codec.NUMBER_HASH, pa.float32(), lambda c: floats(c, single=True)),
    "number hash of double": (Codec.NUMBER_HASH, pa.float64(), lambda c: floats(c, single=False)),
    "bigint hash": (Codec.INTEGER_HASH, pa.int64(), lambda c: integers(c, 64)),
    "timestamp": (Codec.SECONDS, pa.timestamp("us"), moments),
    "timestamp hash": (Codec.TIMESTAMP_HASH, pa.timestamp("us"), moments),
    "text": (Codec.TEXT, pa.string(), texts),
    "text hash": (Codec.TEXT_HASH, pa.string(), texts),
}
CASES = [(name, width) for name in COLUMNS for width in WIDTHS]


def case(name: str, width: int) -> tuple[Encoding, pa.DataType, list[Value]]:
    codec, kind, make = COLUMNS[name]
    return Encoding(codec, width), kind, make(random.Random(f"{name} {width}"))


def test_every_codec_is_here() -> None:
    assert {codec for codec, _, _ in COLUMNS.values()} == set(Codec) - {Codec.TICKS}


@pytest.mark.parametrize(("name", "width"), CASES)
def test_a_column_gets_the_codes_of_its_values(name: str, width: int) -> None:
    encoding, kind, values = case(name, width)
    codes, usable = encode(pa.array(values, kind), encoding, 0)
    assert codes.dtype == np.uint32
    for value, code, has in zip(values, codes.tolist(), usable.tolist(), strict=True):
        assert (code if has else None) == encoding.code(value), value
        assert 0 <= code < 1 << width, value


@pytest.mark.parametrize(("name", "width"), CASES)
def test_null_has_no_code_and_moves_no_other(name: str, width: int) -> None:
    encoding, kind, values = case(name, width)
    chance = random.Random(width)
    holed = [None if chance.random() < 0.3 else value for value in values]
    codes, usable = encode(pa.array(holed, kind), encoding, 0)
    full, has = encode(pa.array(values, kind), encoding, 0)
    there = np.array([value is not None for value in holed])
    assert not usable[~there].any()
    assert (usable[there] == has[there]).all()
    assert (codes[there] == full[there]).all()
    only_null, none = encode(pa.nulls(3, kind), encoding, 0)
    assert len(only_null) == 3
    assert not none.any()


@pytest.mark.parametrize(("name", "width"), CASES)
def test_no_rows_and_slices_of_columns(name: str, width: int) -> None:
    encoding, kind, values = case(name, width)
    codes, usable = encode(pa.array([], kind), encoding, 0)
    assert (len(codes), len(usable)) == (0, 0)
    whole = pa.array([None, *values, None], kind)
    part, has = encode(whole.slice(2, 5), encoding, 0)
    full, all_have = encode(whole, encoding, 0)
    assert part.tolist() == full[2:7].tolist()
    assert has.tolist() == all_have[2:7].tolist()


def ordered(value: Value) -> object:
    return value.encode() if isinstance(value, str) else value


@pytest.mark.parametrize(("name", "width"), CASES)
def test_codes_keep_what_the_encoding_promises(name: str, width: int) -> None:
    """Equal values have equal codes. No order is reversed, except in a hash. In an exact encoding
    different values have different codes. Every comparison implies its weakened form."""
    encoding, kind, values = case(name, width)
    codes, usable = encode(pa.array(values, kind), encoding, 0)
    chance = random.Random(7)
    pairs = [(chance.randrange(len(values)), chance.randrange(len(values))) for _ in range(3000)]
    pairs += [(i, j) for i in range(min(len(values), 20)) for j in range(min(len(values), 20))]
    checks = {
        Condition.LT: lambda a, b: a < b,
        Condition.EQ: lambda a, b: a == b,
        Condition.GT: lambda a, b: a > b,
        Condition.GE: lambda a, b: a >= b,
        Condition.LE: lambda a, b: a <= b,
        Condition.NE: lambda a, b: a != b,
    }
    keys = list(map(ordered, values))
    for i, j in pairs:
        if not (usable[i] and usable[j]):
            continue
        a, b, x, y = keys[i], keys[j], int(codes[i]), int(codes[j])
        if encoding.codec in (Codec.NUMBER, Codec.NUMBER_HASH) and chance.random() < 0.5:
            a, b = float(a), float(b)  # type: ignore[arg-type]  # as beside a double
        for condition, check in checks.items():
            weaker = encoding.weakened(condition)
            if weaker is not None and check(a, b):
                assert checks[weaker](x, y), (condition, a, b, x, y)
            if encoding.is_exact:
                assert check(a, b) == check(x, y), (condition, a, b, x, y)


@pytest.mark.parametrize("width", WIDTHS)
def test_integers_that_do_not_fit_are_not_usable(width: int) -> None:
    top = 1 << (width - 1)
    values = [-top - 1, -top, -1, 0, top - 1, top, -(2**63), 2**63 - 1]
    codes, usable = encode(pa.array(values, pa.int64()), Encoding(Codec.INTEGER, width), 0)
    assert usable.tolist() == [False, True, True, True, True, False, False, False]
    assert codes[usable].tolist() == [0, top - 1, top, 2 * top - 1]


def test_codes_worked_by_hand() -> None:
    def codes(codec: Codec, column: pa.Array, width: int = 32) -> list[int]:
        return encode(column, Encoding(codec, width), 0)[0].tolist()

    assert codes(Codec.INTEGER, pa.array([-1, 0, 1], pa.int32())) == [
        0x7FFFFFFF,
        0x80000000,
        0x80000001,
    ]
    reals = pa.array([-math.inf, -1.0, -0.0, 0.0, 1.0, math.inf], pa.float32())
    want = [0x007FFFFF, 0x407FFFFF, 0x80000000, 0x80000000, 0xBF800000, 0xFF800000]
    assert codes(Codec.REAL, reals) == want
    assert codes(Codec.REAL, reals, 8) == [code >> 24 for code in want]
    assert codes(Codec.TEXT, pa.array(["", "a", "abcde"])) == [0, 0x61000000, 0x61626364]
    assert codes(Codec.TEXT, pa.array(["é"]), 16) == [0xC3A9]
    assert codes(Codec.TEXT_HASH, pa.array(["123456789"])) == [0xCBF43926]
    assert codes(Codec.CLOCK, pa.array([datetime.time(0, 0, 1)], pa.time32("ms"))) == [1000]
    moments = ["1969-12-31T23:59:59", "1970-01-01T00:00:01.9", "2200-01-01T00:00:00"]
    column = pa.array(map(datetime.datetime.fromisoformat, moments), pa.timestamp("us"))
    assert codes(Codec.SECONDS, column) == [0, 1, 0xFFFFFFFF]


@pytest.mark.parametrize("width", WIDTHS)
def test_ticks_count_from_the_first_tuple_to_the_largest_code(width: int) -> None:
    largest = (1 << width) - 1
    first = 1_700_000_000_000
    values = [first, first + 1, first + largest - 1, first + largest, first + largest + 9]
    codes, usable = encode(pa.array(values), Encoding(Codec.TICKS, width), first)
    assert codes.tolist() == [0, 1, largest - 1, largest, largest]
    assert usable.all()
    assert Encoding(Codec.TICKS, width).code(first) is None


def test_ticks_at_the_ends_of_time() -> None:
    """The span of all timestamps does not fit 63 bits, yet their order must hold."""
    low, high = -(2**63), 2**63 - 1
    column = pa.array([low, low + 5, 0, high])
    assert encode(column, Encoding(Codec.TICKS, 32), low)[0].tolist() == [
        0,
        5,
        2**32 - 1,
        2**32 - 1,
    ]
    assert encode(column, Encoding(Codec.TICKS, 32), high - 1)[0].tolist() == [0, 0, 0, 1]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("scale", "more"), [(0, 0), (1, 0), (2, 1)])
def test_decimals_are_units_of_their_last_digit(width: int, scale: int, more: int) -> None:
    """A column compared with one of more digits is encoded in units of that one's last digit."""
    chance = random.Random(f"{width} {scale}")
    kind, encoding = pa.decimal128(5, scale), Encoding(Codec.INTEGER, width, scale + more)
    values = [Decimal(chance.randrange(-99999, 100000)).scaleb(-scale) for _ in range(200)]
    values += [Decimal(n).scaleb(-scale) for n in (0, 1, -1, 12, 13, -13, 99999, -99999)]
    column = pa.array([None, *values], kind).slice(1)
    codes, usable = encode(column, encoding, 0)
    units = replace(encoding, scale=0)
    for value, code, has in zip(values, codes.tolist(), usable.tolist(), strict=True):
        want = units.code(int(value.scaleb(encoding.scale)))
        assert (code if has else None) == want, value
    assert not encode(pa.nulls(2, kind), encoding, 0)[1].any()
    some = np.flatnonzero(usable)
    again = decode(codes[some].astype(np.int64), encoding, kind)
    assert again.to_pylist() == [values[i] for i in some]


@pytest.mark.parametrize("name", ["smallint", "int", "date", "boolean"])
def test_codes_are_decoded(name: str) -> None:
    encoding, kind, values = case(name, 32)
    codes, usable = encode(pa.array(values, kind), encoding, 0)
    assert usable.all()
    assert decode(codes.astype(np.int64), encoding, kind).to_pylist() == values
