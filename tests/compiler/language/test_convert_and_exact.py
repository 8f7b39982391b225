"""Casts and exact arithmetic on random values, compared with DuckDB and with fractions."""

from __future__ import annotations

import math
import random
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from typing import Any

import duckdb
import pytest

from seustream.compiler.language.convert import converter, may_lack_value, to_real
from seustream.compiler.language.exact import bounded, capped, fitted, interval, quotient, truncated
from seustream.compiler.language.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INT,
    INTERVAL,
    REAL,
    SMALLINT,
    TIMESTAMP,
    VARCHAR,
    Kind,
    Type,
    decimal,
)

SQL = {Kind.SMALLINT: "smallint", Kind.INT: "int", Kind.BIGINT: "bigint", Kind.REAL: "real"}
CHANCE = random.Random(23)
DIGITS = [f"{CHANCE.choice(('', '-', '+'))}{CHANCE.randrange(10**CHANCE.randrange(1, 21))}"
          for _ in range(60)]  # fmt: skip
EDGES = [
    str(edge + off) for bits in (15, 31, 63) for edge in (2**bits, -(2**bits)) for off in (-1, 0, 1)
]


# A connection of its own: a row left unread on the shared one blocks the other tests.
JUDGE = duckdb.connect()


def judged(text: str, to: str) -> Any:
    return JUDGE.execute(f"SELECT TRY_CAST(? AS {to})", [text]).fetchone()[0]  # type: ignore[index]


@pytest.mark.parametrize("to", [SMALLINT, INT, BIGINT])
def test_integers_of_texts(to: Type) -> None:
    read = converter(VARCHAR, to)
    assert read is not None
    for text in [*DIGITS, *EDGES, "", "-", "1e3x", "٣", " 7 ", "1_0"]:
        want = (
            None if text == "1_0" else judged(text, SQL[to.kind])
        )  # an underscore is not allowed in our integers
        assert read(text) == want, text


def test_integers_of_reals_lose_what_stands_after_the_point() -> None:
    cast = converter(DOUBLE, INT)
    assert cast is not None
    assert [cast(v) for v in (1.9, -1.9, 2.0**31 - 0.5, 2.0**31, math.inf)] == [1, -1, 2**31 - 1, None, None]  # fmt: skip
    assert converter(SMALLINT, BIGINT) is None  # no conversion needed: every value fits


@pytest.mark.parametrize("seed", range(3))
def test_decimals_of_texts(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(40):
        precision = chance.randrange(1, 39)
        to = decimal(precision, chance.randrange(precision + 1))
        text = f"{chance.choice(('', '-'))}{chance.randrange(10 ** chance.randrange(1, 30))}.{chance.randrange(10**8)}"
        read = converter(VARCHAR, to)
        assert read is not None
        want = judged(text, f"decimal({to.length},{to.scale})")
        assert read(text) == want, (text, to)


def test_reals_are_rounded_once() -> None:
    for _ in range(200):
        value = CHANCE.uniform(-1, 1) * 10.0 ** CHANCE.randrange(-50, 45)
        (want,) = JUDGE.execute("SELECT ?::double::float", [value]).fetchone() or (None,) if abs(value) < 3e38 else (math.copysign(math.inf, value),)  # fmt: skip
        assert to_real(value) == want
    show = converter(REAL, VARCHAR)
    assert show is not None
    for _ in range(200):
        value = to_real(CHANCE.uniform(-1000, 1000))
        assert to_real(float(show(value))) == value  # the text reads back as the value
        assert len(show(value)) <= len(f"{value:.9g}") + 2


def test_texts_of_values_are_read_back() -> None:
    import datetime as dt

    values = {
        BOOLEAN: [True, False],
        INTERVAL: [dt.timedelta(milliseconds=m) for m in (0, -1, 86_400_001)],
        TIMESTAMP: [dt.datetime(2024, 2, 29, 1, 2, 3, m) for m in (0, 1, 500_000)],
        DOUBLE: [0.1, -1e300, math.inf, 5e-324],
    }
    for of, some in values.items():
        write, read = converter(of, VARCHAR), converter(VARCHAR, of)
        assert write is not None
        assert read is not None
        assert [read(write(value)) for value in some] == some
    cut = converter(DOUBLE, Type(Kind.VARCHAR, 3))
    assert cut is not None
    assert cut(0.125) == "0.1"


def test_what_may_lack_a_value() -> None:
    assert may_lack_value(decimal(38, 0), decimal(38, 6))
    assert not may_lack_value(decimal(10, 2), decimal(38, 6))
    assert not may_lack_value(BIGINT, DOUBLE)
    assert may_lack_value(BIGINT, decimal(20, 6))
    assert not may_lack_value(BIGINT, decimal(25, 6))


def test_quotients_are_rounded_half_up_once() -> None:
    for _ in range(300):
        a = Decimal(CHANCE.randrange(-(10**12), 10**12)).scaleb(-CHANCE.randrange(7))
        b = Decimal(CHANCE.randrange(-(10**6), 10**6)).scaleb(-CHANCE.randrange(7))
        to = decimal(38, CHANCE.randrange(7))
        found = quotient(a, b, to)
        if not b:
            assert found is None
            continue
        exact = Fraction(a) / Fraction(b) * 10 ** (to.scale or 0)
        whole = (abs(exact) + Fraction(1, 2)).__floor__() * (1 if exact >= 0 else -1)
        assert found == Decimal(whole).scaleb(-(to.scale or 0), Context(prec=60))
    assert quotient(10**37, Decimal("0.01"), decimal(38, 0)) is None


def test_fitted_is_rounding_or_none() -> None:
    to = decimal(5, 2)
    for cents in range(-100_100_0, 100_100_0, 7_777):
        value = Decimal(cents).scaleb(-3)
        want = value.quantize(Decimal("0.01"), ROUND_HALF_UP)
        assert fitted(value, to) == (want if abs(want) < 1000 else None)


def test_integers_and_intervals_at_their_limits() -> None:
    assert [bounded(v) for v in (2**63 - 1, 2**63, -(2**63), -(2**63) - 1)] == [2**63 - 1, None, -(2**63), None]  # fmt: skip
    for a in (-7, 7):
        for b in (-2, 2):
            assert truncated(a, b) == int(a / b)
    assert interval(10**18) is None
    assert capped(50, 20) == decimal(38, 8)
    assert capped(60, 4) == decimal(38, 4)
    assert capped(60, 30) == decimal(38, 8)
