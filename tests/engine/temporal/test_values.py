"""Values on their way in and out of channels: each type survives both ways; other values are
refused."""

from __future__ import annotations

import contextlib
import datetime
import json
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from seustream.compiler.language import types as t
from seustream.compiler.language.types import Type
from seustream.engine.stream.schema import arrow_type
from seustream.engine.temporal.values import NoSuchValue, Spelled, shown_value, taken

VALUES: list[tuple[Type, Any, Any]] = [
    (t.BIGINT, -(2**63), -(2**63)),
    (t.DOUBLE, 5, 5.0),
    (t.REAL, 0.1, 0.10000000149011612),
    (t.VARCHAR, "x", "x"),
    (t.BOOLEAN, True, True),
    (t.TIMESTAMP, 1500, datetime.datetime(1970, 1, 1, 0, 0, 1, 500000)),
    (t.TIMESTAMP, -0.001, datetime.datetime(1969, 12, 31, 23, 59, 59, 999999)),
    (t.DATE, "2024-02-29", datetime.date(2024, 2, 29)),
    (t.TIME, "12:30:00", datetime.time(12, 30)),
    (t.INTERVAL, -300_000, datetime.timedelta(minutes=-5)),
    (t.decimal(5, 2), "3.25", Decimal("3.25")),
    (t.decimal(5, 2), 7, Decimal(7)),
    (t.decimal(38, 20), Spelled("0.12345678901234567890"), Decimal("0.12345678901234567890")),
    (t.DOUBLE, Spelled("1.5"), 1.5),
    (t.REAL, Spelled("0.1"), 0.10000000149011612),
    (t.TIMESTAMP, Spelled("1500.5"), datetime.datetime(1970, 1, 1, 0, 0, 1, 500500)),
    (t.TIMESTAMP, "2026-01-01T01:00:00+01:00", datetime.datetime(2026, 1, 1)),
    (t.INTERVAL, "1 min 500 ms", datetime.timedelta(seconds=60.5)),
    (t.decimal(38, 0), 10**38 - 1, Decimal(10**38 - 1)),
    (Type(t.Kind.VARCHAR, 2), "öö", "öö"),
]


@pytest.mark.parametrize(("of", "given", "value"), VALUES)
def test_there_and_back(of: Type, given: Any, value: Any) -> None:
    found = taken(given, of)
    assert (found, type(found)) == (value, type(value))
    assert taken(json.loads(json.dumps(shown_value(found))), of) == value
    assert taken(None, of) is None


def test_nan_is_null() -> None:
    assert taken(float("nan"), t.DOUBLE) is None
    assert shown_value(None) is None


WRONG: list[tuple[Type, Any]] = [
    (t.BIGINT, 2**63),
    (t.BIGINT, True),
    (t.BIGINT, 1.5),
    (t.SMALLINT, 2**15),
    (t.DOUBLE, "1"),
    (t.DOUBLE, 10**400),
    (t.REAL, 1e300),
    (t.BOOLEAN, 1),
    (t.VARCHAR, 1),
    (t.VARCHAR, "\ud800"),
    (t.VARCHAR, "a\udc00b"),
    (Type(t.Kind.VARCHAR, 2), "abc"),
    (Type(t.Kind.CHAR, 1), "ab"),
    (t.TIMESTAMP, 2**62),
    (t.TIMESTAMP, "29 February"),
    (t.DATE, "2023-02-29"),
    (t.INTERVAL, 2**62),
    (t.decimal(5, 2), "3.257"),
    (t.decimal(5, 2), "12345"),
    (t.decimal(5, 2), "x"),
    (t.decimal(5, 2), "NaN"),
    (t.decimal(5, 2), 1.5),
    (t.decimal(38, 0), 10**38),
    (t.decimal(38, 0), -(10**40)),
    (t.decimal(38, 0), "1e999999"),
    (t.decimal(38, 38), "1"),
]


@pytest.mark.parametrize(("of", "value"), WRONG)
def test_what_the_type_does_not_have(of: Type, value: Any) -> None:
    with pytest.raises(NoSuchValue):
        taken(value, of)


def test_what_is_taken_is_held_by_a_column() -> None:
    """Whatever a source sends, a value that is not refused fits Arrow's column of its type."""
    types = [of for of, *_ in VALUES] + [of for of, _ in WRONG]
    numbers = [sign * 2**n + more for sign in (-1, 1) for n in (0, 31, 63, 126) for more in (-1, 0)]
    tens = [10**n for n in (3, 37, 38, 39, 4000)]
    texts = [
        "",
        "\0",
        "\ud800",
        "24:00",
        "9999-12-31",
        "0e100",
        "0e-100",
        "1e38",
        "1e-999999",
        "inf",
    ]
    values = [*numbers, *tens, *texts, 1e308, math.inf, 1e-320, 86_399_999_999_999_999, [], {}]
    held = 0
    for of in dict.fromkeys(types):
        for value in values:
            with contextlib.suppress(NoSuchValue):
                found = taken(value, of)
                assert pa.array([found], arrow_type(of)).to_pylist() == [found], (of, value)
                held += 1
    assert held > 100


def test_a_number_that_is_too_large_is_no_infinity() -> None:
    for of in (t.DOUBLE, t.REAL):
        with pytest.raises(NoSuchValue):
            taken(Spelled("1e400"), of)
        assert taken(math.inf, of) == math.inf
        assert taken(Spelled("1.5"), of) == 1.5
