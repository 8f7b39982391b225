"""How types meet, and what they are."""

from __future__ import annotations

import itertools

import pytest

from compiler.language.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    ERROR,
    INT,
    NULL,
    REAL,
    SMALLINT,
    TIME,
    TIMESTAMP,
    VARCHAR,
    Kind,
    Type,
    common,
    integer_range,
)

CHAR = Type(Kind.CHAR, 4)
ALL = (SMALLINT, INT, BIGINT, REAL, DOUBLE, CHAR, VARCHAR, DATE, TIME, TIMESTAMP, BOOLEAN)


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
        (DATE, TIMESTAMP, None),
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
    assert [t for t in ALL if t.is_numeric] == [SMALLINT, INT, BIGINT, REAL, DOUBLE]
    assert [t for t in ALL if t.is_text] == [CHAR, VARCHAR]
    assert [t for t in (*ALL, NULL, ERROR) if t.is_unknown] == [NULL, ERROR]


def test_names() -> None:
    assert [str(t) for t in (DOUBLE, CHAR, VARCHAR)] == ["double precision", "char(4)", "varchar"]
