"""Codes keep the guarantees of their codec, so that the device loses no result.

An exact code decides every comparison, a prefix never reverses an order, a hash preserves equality.
`weakened` is tested directly: for all a, b, `a op b` implies `code(a) op' code(b)`.
"""

from __future__ import annotations

import datetime
import itertools
import math
import random
import struct
from collections.abc import Callable

import pytest

from seustream.compiler.language.expressions import Value
from seustream.compiler.plan.encoding import Codec, Encoding, as_real, integer_of, mixed
from tests.compiler.plan.three_valued import OPERATORS

WIDTHS = (8, 16, 32)
CHANCE = random.Random(2006)


def real(value: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def _integers(width: int) -> list[Value]:
    half = 1 << (width - 1)
    return [
        -half,
        1 - half,
        -1,
        0,
        1,
        half - 1,
        *(CHANCE.randrange(-half, half) for _ in range(20)),
    ]


def _reals() -> list[Value]:
    extremes = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, real(1e-45), -real(1e-45), real(3.4e38)]
    close = [real(1.0 + i * 2**-23) for i in range(-3, 4)]
    return [*extremes, *close, *(real(CHANCE.gauss(0, 10.0 ** CHANCE.randrange(-30, 30))) for _ in range(20))]  # fmt: skip


def _numbers() -> list[Value]:
    extremes: list[Value] = [0.0, -0.0, 5e-324, -5e-324, math.inf, -math.inf, 1.7e308, -1.7e308]
    wide = [2**53, 2**53 + 1, 2**63 - 1, -(2**63), 1 - 2**63, 0, 1, -1]
    return [
        *extremes,
        *wide,
        *(CHANCE.gauss(0, 10.0 ** CHANCE.randrange(-99, 99)) for _ in range(20)),
    ]


def _times() -> list[Value]:
    extremes = [datetime.time(0), datetime.time.max.replace(microsecond=999_000)]
    close = [datetime.time(12, 30, 15, 1000 * ms) for ms in (0, 1, 2, 999)]
    return [*extremes, *close, *(datetime.time(CHANCE.randrange(24), CHANCE.randrange(60)) for _ in range(12))]  # fmt: skip


def _moments() -> list[Value]:
    epoch = datetime.datetime(1970, 1, 1)
    extremes = [datetime.datetime.min, datetime.datetime.max, epoch, datetime.datetime(2106, 2, 8)]
    close = [epoch + datetime.timedelta(microseconds=us) for us in (-1, 1, 999_999, 1_000_000)]
    spread = [epoch + datetime.timedelta(seconds=CHANCE.gauss(0, 1e9)) for _ in range(16)]
    return [*extremes, *close, *spread]


def _texts() -> list[Value]:
    extremes = ["", "\0", "a", "a\0", "ab", "abcd", "abcda", "abcdb", "é", "\U0001f600", "\uffff"]
    return [
        *extremes,
        *("".join(CHANCE.choices("abz é", k=CHANCE.randrange(7))) for _ in range(20)),
    ]


_DAYS: list[Value] = [datetime.date(1970, 1, 1) + datetime.timedelta(d) for d in (-128, -1, 0, 127)]
VALUES: dict[Codec, Callable[[int], list[Value]]] = {
    Codec.INTEGER: _integers,
    Codec.REAL: lambda width: _reals(),
    Codec.CLOCK: lambda width: _times(),
    Codec.NUMBER: lambda width: _numbers(),
    Codec.NUMBER_HASH: lambda width: _numbers(),
    Codec.INTEGER_HASH: lambda width: [v for v in _numbers() if isinstance(v, int)],
    Codec.SECONDS: lambda width: _moments(),
    Codec.TIMESTAMP_HASH: lambda width: _moments(),
    Codec.TEXT: lambda width: _texts(),
    Codec.TEXT_HASH: lambda width: _texts(),
}
ENCODINGS = [Encoding(codec, width) for codec in VALUES for width in WIDTHS]
CONDITIONS = list(OPERATORS)


def compared(codec: Codec, value: Value) -> object:
    """Returns the value as the language compares it: numbers as doubles."""
    if codec in (Codec.NUMBER, Codec.NUMBER_HASH) and isinstance(value, int):
        return float(value)
    return value


@pytest.mark.parametrize("encoding", ENCODINGS, ids=str)
def test_a_comparison_implies_its_weakened_form(encoding: Encoding) -> None:
    values = VALUES[encoding.codec](encoding.width)
    codes = {id(value): encoding.code(value) for value in values}
    checked = 0
    for a, b in itertools.product(values, values):
        left, right = codes[id(a)], codes[id(b)]
        assert left is not None
        assert right is not None
        assert 0 <= left < 1 << encoding.width
        for condition in CONDITIONS:
            weakened = encoding.weakened(condition)
            holds = OPERATORS[condition](compared(encoding.codec, a), compared(encoding.codec, b))
            if weakened is None:
                continue
            checked += 1
            if holds:
                assert OPERATORS[weakened](left, right), (a, condition.symbol, b)
            elif encoding.is_exact:
                assert not OPERATORS[weakened](left, right), (a, condition.symbol, b)
    assert checked > 0


@pytest.mark.parametrize("encoding", ENCODINGS, ids=str)
def test_what_each_kind_promises(encoding: Encoding) -> None:
    weakened: dict[str, str | None] = {}
    for condition in CONDITIONS:
        left = encoding.weakened(condition)
        weakened[condition.symbol] = None if left is None else left.symbol
    same = {symbol: symbol for symbol in weakened}
    prefix = {"<": "<=", "<=": "<=", ">": ">=", ">=": ">=", "=": "=", "<>": None}
    hashed = {"<": None, "<=": None, ">": None, ">=": None, "=": "=", "<>": None}
    assert weakened == (same if encoding.is_exact else hashed if encoding.is_hash else prefix)


def test_which_encodings_are_exact() -> None:
    exact = {(e.codec, e.width) for e in ENCODINGS if e.is_exact}
    assert exact == {
        *((Codec.INTEGER, width) for width in WIDTHS),
        (Codec.REAL, 32),
        (Codec.CLOCK, 32),
    }
    hashes = {e.codec for e in ENCODINGS if e.is_hash}
    assert hashes == {codec for codec in Codec if codec.value.endswith("hash")}


@pytest.mark.parametrize(
    ("codec", "width", "value", "code"),
    [
        (Codec.INTEGER, 32, 0, 0x80000000),
        (Codec.INTEGER, 32, -(2**31), 0),
        (Codec.INTEGER, 32, 2**31 - 1, 0xFFFFFFFF),
        (Codec.INTEGER, 32, 2**31, None),
        (Codec.INTEGER, 32, -(2**31) - 1, None),
        (Codec.INTEGER, 8, 127, 0xFF),
        (Codec.INTEGER, 8, 128, None),
        (Codec.INTEGER, 8, -128, 0),
        (Codec.INTEGER, 8, -129, None),
        (Codec.INTEGER, 16, True, 0x8001),
        (Codec.INTEGER, 32, datetime.date(1970, 1, 2), 0x80000001),
        (Codec.INTEGER, 8, datetime.date(2006, 3, 1), None),
        # sign, exponent and mantissa of 1.0 are 0 01111111 0...
        (Codec.REAL, 32, 1.0, 0xBF800000),
        (Codec.REAL, 32, -1.0, 0x407FFFFF),
        (Codec.REAL, 32, 0.0, 0x80000000),
        (Codec.REAL, 32, -0.0, 0x80000000),
        (Codec.REAL, 32, math.inf, 0xFF800000),
        (Codec.REAL, 32, -math.inf, 0x007FFFFF),
        (Codec.REAL, 32, 1e300, 0xFF800000),
        (Codec.REAL, 16, 1.0, 0xBF80),
        (Codec.REAL, 8, 1, 0xBF),
        (Codec.CLOCK, 32, datetime.time(0, 1, 1, 5000), 61_005),
        (Codec.CLOCK, 8, datetime.time(23, 59), 86_340_000 >> 19),
        (Codec.NUMBER, 32, 1, 0xBFF00000),
        (Codec.NUMBER, 16, -2.0, 0x3FFF),
        (Codec.NUMBER_HASH, 32, 0.0, mixed(0) >> 32),
        (Codec.NUMBER_HASH, 32, 1, mixed(0x3FF0000000000000) >> 32),
        (Codec.INTEGER_HASH, 16, -1, mixed((1 << 64) - 1) >> 48),
        (Codec.SECONDS, 32, datetime.datetime(1970, 1, 1, 0, 1, 0, 999_999), 60),
        (Codec.SECONDS, 32, datetime.datetime(1969, 12, 31), 0),
        (Codec.SECONDS, 32, datetime.datetime(2200, 1, 1), 0xFFFFFFFF),
        (Codec.SECONDS, 8, datetime.datetime(2006, 3, 1), 1_141_171_200 >> 24),
        (Codec.TIMESTAMP_HASH, 32, datetime.datetime(1970, 1, 1, 0, 0, 1), mixed(1_000_000) >> 32),
        (Codec.TEXT, 32, "", 0),
        (Codec.TEXT, 32, "ab", 0x61620000),
        (Codec.TEXT, 32, "abcdefg", 0x61626364),
        (Codec.TEXT, 32, "é", 0xC3A90000),
        (Codec.TEXT, 16, "abc", 0x6162),
        (Codec.TEXT_HASH, 32, "123456789", 0xCBF43926),  # the check value of CRC-32
        (Codec.TEXT_HASH, 8, "123456789", 0xCB),
        (Codec.TICKS, 32, 5, None),
    ],
)
def test_code(codec: Codec, width: int, value: Value, code: int | None) -> None:
    assert Encoding(codec, width).code(value) == code


def test_the_mixer_is_that_of_splitmix64() -> None:
    assert mixed(0x9E3779B97F4A7C15) == 0xE220A8397B1DCDAF
    assert mixed(0x3C6EF372FE94F82A) == 0x6E789E6AA1B965F4
    assert mixed(0) == 0


def test_hashes_tell_most_values_apart() -> None:
    for codec in (Codec.INTEGER_HASH, Codec.NUMBER_HASH):
        codes = {Encoding(codec, 32).code(number) for number in range(20_000)}
        assert len(codes) > 19_990
    texts = {Encoding(Codec.TEXT_HASH, 32).code(f"car {number}") for number in range(20_000)}
    assert len(texts) > 19_990
    bytes_used = {Encoding(Codec.INTEGER_HASH, 8).code(number) for number in range(4_000)}
    assert len(bytes_used) == 256


def test_equal_numbers_of_two_types_have_one_code() -> None:
    for codec in (Codec.NUMBER, Codec.NUMBER_HASH):
        for width in WIDTHS:
            encoding = Encoding(codec, width)
            assert encoding.code(3) == encoding.code(3.0)
            assert encoding.code(0.0) == encoding.code(-0.0)


def test_integers_of_values() -> None:
    assert integer_of(datetime.datetime(1970, 1, 1, 0, 0, 0, 7)) == 7
    assert integer_of(datetime.date(1969, 12, 31)) == -1
    assert integer_of(datetime.time(1, 0, 0, 1999)) == 3_600_001
    assert integer_of(True) == 1
    for none in ("5", None):
        with pytest.raises(TypeError, match="has no integer form"):
            integer_of(none)


def test_as_real() -> None:
    assert as_real(0.1) == 0.10000000149011612
    assert as_real(1e39) == math.inf
    assert as_real(-1e39) == -math.inf
    assert math.copysign(1, as_real(-0.0)) == 1


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [
        (Encoding(Codec.INTEGER, 8), "integer, exact, 8 bits"),
        (Encoding(Codec.REAL, 16), "real, prefix, 16 bits"),
        (Encoding(Codec.TEXT_HASH, 32), "text, hash, 32 bits"),
        (Encoding(Codec.TICKS, 32), "ticks, prefix, 32 bits"),
    ],
)
def test_shown(encoding: Encoding, shown: str) -> None:
    assert str(encoding) == shown
