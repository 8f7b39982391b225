"""Common types of two types, and the properties of types."""

from __future__ import annotations

import datetime
import itertools
from decimal import Decimal

import pytest

from seustream.compiler.language.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    ERROR,
    INT,
    INTERVAL,
    NULL,
    REAL,
    SMALLINT,
    TIME,
    TIMESTAMP,
    VARCHAR,
    Kind,
    Type,
    castable,
    common,
    decimal,
    decimal_of,
    integer_range,
    list_of,
    read_interval,
    read_time,
)

CHAR = Type(Kind.CHAR, 4)
ALL = (
    SMALLINT, INT, BIGINT, decimal(12, 2), REAL, DOUBLE, CHAR, VARCHAR, DATE, TIME, TIMESTAMP,
    BOOLEAN,
)  # fmt: skip


@pytest.mark.parametrize(
    ("a", "b", "met"),
    [
        (SMALLINT, SMALLINT, SMALLINT),
        (SMALLINT, INT, INT),
        (SMALLINT, BIGINT, BIGINT),
        (INT, BIGINT, BIGINT),
        (REAL, REAL, REAL),
        (SMALLINT, REAL, DOUBLE),
        (INT, REAL, DOUBLE),
        (BIGINT, REAL, DOUBLE),
        (INT, DOUBLE, DOUBLE),
        (REAL, DOUBLE, DOUBLE),
        (CHAR, CHAR, VARCHAR),
        (CHAR, VARCHAR, VARCHAR),
        (Type(Kind.VARCHAR, 3), Type(Kind.VARCHAR, 9), VARCHAR),
        (DATE, DATE, DATE),
        (NULL, NULL, NULL),
        (INT, VARCHAR, None),
        (DATE, TIMESTAMP, TIMESTAMP),
        (decimal(10, 2), decimal(6, 4), decimal(12, 4)),
        (decimal(10, 2), INT, decimal(12, 2)),
        (decimal(3, 2), BIGINT, decimal(21, 2)),
        (decimal(38, 38), INT, decimal(38, 38)),
        (decimal(10, 2), REAL, DOUBLE),
        (INTERVAL, INTERVAL, INTERVAL),
        (INTERVAL, SMALLINT, BIGINT),
        (INTERVAL, DOUBLE, None),
        (INTERVAL, VARCHAR, None),
        (list_of(INT), list_of(INT), list_of(INT)),
        (list_of(INT), list_of(BIGINT), None),
        (BOOLEAN, INT, None),
        (TIME, DATE, None),
    ],
)
def test_common(a: Type, b: Type, met: Type | None) -> None:
    assert common(a, b) == met
    assert common(b, a) == met


def test_null_fits_every_type() -> None:
    for kind in ALL:
        assert common(NULL, kind) == common(kind, NULL) == kind


def test_an_error_silences_what_follows() -> None:
    for kind in (*ALL, NULL, ERROR):
        assert common(ERROR, kind) == common(kind, ERROR) == ERROR


def test_meeting_is_associative() -> None:
    for a, b, c in itertools.product(ALL, repeat=3):
        left, right = common(a, b), common(b, c)
        if left is not None and right is not None:
            assert common(left, c) == common(a, right)


def test_ranges() -> None:
    assert integer_range(Kind.SMALLINT) == (-32768, 32767)
    assert integer_range(Kind.INT) == (-2147483648, 2147483647)
    assert integer_range(Kind.BIGINT) == (-9223372036854775808, 9223372036854775807)


def test_families() -> None:
    assert [t for t in ALL if t.is_integer] == [SMALLINT, INT, BIGINT]
    assert [t for t in ALL if t.is_numeric] == [
        SMALLINT, INT, BIGINT, decimal(12, 2), REAL, DOUBLE,
    ]  # fmt: skip
    assert [t for t in ALL if t.is_text] == [CHAR, VARCHAR]
    assert [t for t in (*ALL, NULL, ERROR) if t.is_unknown] == [NULL, ERROR]


def test_names() -> None:
    assert [str(t) for t in (DOUBLE, CHAR, VARCHAR)] == ["double precision", "char(4)", "varchar"]
    assert str(decimal(10, 2)) == "decimal(10,2)"
    assert str(list_of(decimal(5, 1))) == "list(decimal(5,1))"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("0", decimal(1, 0)),
        ("-12.50", decimal(4, 2)),
        ("0.001", decimal(3, 3)),
        ("1E+3", decimal(4, 0)),
        ("9" * 38, decimal(38, 0)),
        ("9" * 39, None),
        ("1E-39", None),
    ],
)
def test_the_narrowest_decimal(text: str, wanted: Type | None) -> None:
    assert decimal_of(Decimal(text)) == wanted


def test_what_can_be_cast() -> None:
    for a, b in itertools.product(ALL, repeat=2):
        if a.is_text or b.is_text or a == b or (a.is_numeric and b.is_numeric):
            assert castable(a, b)
    assert castable(BOOLEAN, DOUBLE)
    assert castable(INTERVAL, BIGINT)
    assert castable(INT, INTERVAL)
    assert castable(DATE, TIMESTAMP)
    for a, b in (
        (DATE, INT),
        (TIMESTAMP, BIGINT),
        (TIME, DATE),
        (INTERVAL, DOUBLE),
        (DATE, BOOLEAN),
    ):
        assert not castable(a, b)
        assert not castable(b, a)


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("5 min", 300_000),
        ("1 hour 30 min", 5_400_000),
        ("1.5h", 5_400_000),
        ("-2 d", -172_800_000),
        ("10s", 10_000),
        ("1 W", 604_800_000),
        ("0.5 ms", None),
        ("5", None),
        ("", None),
        ("5 parsec", None),
        ("1 month", None),
        ("999999999999 w", None),
    ],
)
def test_intervals(text: str, milliseconds: int | None) -> None:
    found = read_interval(text)
    assert (None if found is None else found // datetime.timedelta(milliseconds=1)) == milliseconds


def test_times() -> None:
    assert read_time("2024-2-3", Kind.DATE) == datetime.date(2024, 2, 3)
    assert read_time(" 2024-02-29 ", Kind.DATE) == datetime.date(2024, 2, 29)
    assert read_time("2023-02-29", Kind.DATE) is None
    assert read_time("2024-2-3 4:5", Kind.TIMESTAMP) == datetime.datetime(2024, 2, 3, 4, 5)
    assert read_time("2024-2-3 04:05", Kind.TIMESTAMP) == datetime.datetime(2024, 2, 3, 4, 5)
    assert read_time("2024-02-29T12:00+02:00", Kind.TIMESTAMP) == (
        datetime.datetime(2024, 2, 29, 10)
    )
    assert read_time("12:30:15.2509", Kind.TIME) == datetime.time(12, 30, 15, 250_000)
    assert read_time("12:30+01:00", Kind.TIME) is None
    assert read_time("9:05", Kind.TIME) == datetime.time(9, 5)
    for text in (
        "2024-02-29T12:00Z",
        "2024-02-29 12:00 UTC",
        "2024-02-29t14:00:00+02",
        "2024-02-29 9:30:00-0230",
        "2024-02-29 12:00:30.+00:00:30",
    ):
        assert read_time(text, Kind.TIMESTAMP) == datetime.datetime(2024, 2, 29, 12), text


@pytest.mark.parametrize(
    "text",
    [
        "20240229",
        "2024-W09-1",
        "2024-060",
        "2024-02-29x10:00",
        "2024-02-29-10:00:00",
        "2024-02-29 10:20:230",
        "2024-02-29 10:20:30,25",
        "2024-02-29 10:20+02:70",
        "2024-02-29 10:20+24:00",
        "2024-02-29 10:20Zulu",
        "2024-02-29 10",
        "\uff12024-02-29",
        "2024",
        "2024022912",
        "1230",
        "T12:30",
        "12:30:00,5",
        "0000-01-01",
    ],
)
def test_what_is_no_time(text: str) -> None:
    """Other spellings of ISO 8601, which Spark and DuckDB refuse too."""
    for kind in (Kind.DATE, Kind.TIME, Kind.TIMESTAMP):
        assert read_time(text, kind) is None
