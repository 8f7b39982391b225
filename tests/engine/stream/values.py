"""Random typed values, including NULLs and the values at which functions tend to fail."""

from __future__ import annotations

import datetime
import math
import random
from decimal import Decimal

from seustream.compiler.language import types as t
from seustream.compiler.language.convert import to_real
from seustream.compiler.language.types import Kind, Type

TYPES = (
    t.SMALLINT, t.INT, t.BIGINT, t.REAL, t.DOUBLE, t.decimal(5, 2), t.decimal(15, 4),
    t.decimal(20, 0), t.decimal(38, 10), t.decimal(38, 38), t.VARCHAR, Type(Kind.CHAR, 3), t.DATE,
    t.TIME, t.TIMESTAMP, t.INTERVAL, t.BOOLEAN,
)  # fmt: skip

REALS = (
    0.0, -0.0, 0.5, -0.5, 1.0, 1.5, 2.5, -2.5, 2.675, 1e300, -1e300, 5e-324, 1e16, 2.0**63,
    -(2.0**63), 0.49999999999999994, math.inf, -math.inf, 1e-7, 123456789.125, 0.1, -1.0, 2.0, 3.0,
)  # fmt: skip
TEXTS = (
    "", " ", "a", "abc", "  ab ", "ABC", "aXbX", "Straße", "İstanbul", "ΣΑΣ", "日本語", "a%c",
    "a_c", "%", "_", "a\nb", "1", "-2", "3.7", " 42 ", "1e3", "inf", "x,y,,z", ",", "\\", "a.c",
    "[a-z]+", "(", "(b)(c)?", "true", "no", "2024-02-29", "12:30:00", "2024-02-29 12:30:00.25",
    "5 min", "year", "month", "week", "hour", "second", "epoch", "dow", "yyyy-MM-dd", "century",
    "99999999999999999999", ".5", "5.", "+7", "0x1F", "1_000", "e\u0301",
)  # fmt: skip
INTEGERS = (0, 1, -1, 2, -2, 3, 5, 7, 10, -10, 100, 1000)


def value(rng: random.Random, of: Type) -> object:
    """Returns a value of a type, never NULL."""
    match of.kind:
        case Kind.SMALLINT | Kind.INT | Kind.BIGINT:
            low, high = t.integer_range(of.kind)
            ends = (low, low + 1, high, high - 1)
            pick = rng.random()
            if pick < 0.15:
                return rng.choice(ends)
            return rng.choice(INTEGERS) if pick < 0.8 else rng.randint(low, high)
        case Kind.REAL | Kind.DOUBLE:
            pick = rng.random()
            real = rng.choice(REALS) if pick < 0.6 else rng.uniform(-100, 100)
            if pick > 0.9:
                real = rng.choice((-1, 1)) * 10.0 ** rng.uniform(-30, 30)
            return to_real(real) if of.kind is Kind.REAL else real
        case Kind.DECIMAL:
            assert of.length is not None
            assert of.scale is not None
            digits = min(rng.choice((0, 1, 2, 38, 38, rng.randint(1, of.length))), of.length)
            whole = rng.randint(-(10**digits) + 1, 10**digits - 1)
            if digits == of.length and rng.random() < 0.3:
                whole = rng.choice((-1, 1)) * (10**digits - 1)
            return Decimal(f"{whole}e-{of.scale}")
        case Kind.CHAR | Kind.VARCHAR:
            return rng.choice(TEXTS)[: of.length]
        case Kind.DATE:
            return moment(rng).date()
        case Kind.TIME:
            return moment(rng).time().replace(microsecond=rng.randrange(1000) * 1000)
        case Kind.TIMESTAMP:
            return moment(rng)
        case Kind.INTERVAL:
            size = rng.choice(
                (0, 1, -1, 1000, 90_061_001, -90_061_001, 10**11, -(10**11), 86_399_999_999_999_999)
            )
            return datetime.timedelta(milliseconds=size)
        case Kind.BOOLEAN:
            return rng.random() < 0.5
    raise AssertionError(of)


def moment(rng: random.Random) -> datetime.datetime:
    """Returns a moment of any year."""
    if rng.random() < 0.2:
        return rng.choice((
            datetime.datetime.min, datetime.datetime.max, datetime.datetime(1970, 1, 1),
            datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime.datetime(2024, 2, 29, 12, 30),
        ))  # fmt: skip
    return datetime.datetime(
        rng.choice((1, 1582, 1969, 2000, 2024, 2024, 9999)), rng.randint(1, 12), rng.randint(1, 28),
        rng.randrange(24), rng.randrange(60), rng.randrange(60), rng.choice((0, 0, 250_000, 123_456)),
    )  # fmt: skip


def column(rng: random.Random, of: Type, count: int, nulls: float = 0.2) -> list[object]:
    """Returns values of a type, some of them NULL."""
    return [None if rng.random() < nulls else value(rng, of) for _ in range(count)]
