"""The type names of APAS."""

from __future__ import annotations

import pytest

from seustream.compiler.apas.types import (
    DOUBLE,
    ERROR,
    INTEGER,
    NAMES,
    STRING,
    named,
    settled,
    shown,
    widest,
)
from seustream.compiler.language import types as t


def test_names_are_read_and_written() -> None:
    for name, of in NAMES.items():
        assert named(name) == of
        assert shown(of) == name
    assert named("DECIMAL(10,2)") == t.decimal(10, 2)
    assert shown(t.decimal(10, 2)) == "DECIMAL(10,2)"
    assert shown(None) == "a group"


@pytest.mark.parametrize(
    "text",
    ["integer", "DECIMAL", "DECIMAL(2,3)", "DECIMAL(39,0)", "DECIMAL(1,x)", "DECIMAL(1,2,3)", ""],
)
def test_there_is_no_such_type(text: str) -> None:
    assert named(text) is None


def test_a_leaf_has_the_widest_of_its_kind() -> None:
    assert [settled(of) for of in (t.SMALLINT, t.INT, t.BIGINT)] == [INTEGER] * 3
    assert [settled(of) for of in (t.REAL, t.DOUBLE)] == [DOUBLE] * 2
    assert [settled(of) for of in (t.Type(t.Kind.CHAR, 3), t.VARCHAR, t.NULL)] == [STRING] * 3
    assert settled(t.decimal(3, 1)) == t.decimal(3, 1)


@pytest.mark.parametrize(
    ("a", "b", "want"),
    [
        (t.INT, t.BIGINT, t.BIGINT),
        (t.SMALLINT, t.INT, t.INT),
        (t.REAL, t.DOUBLE, t.DOUBLE),
        (t.REAL, t.REAL, t.REAL),
        (t.Type(t.Kind.VARCHAR, 3), t.Type(t.Kind.CHAR, 9), t.VARCHAR),
        (t.Type(t.Kind.VARCHAR, 3), t.Type(t.Kind.VARCHAR, 3), t.Type(t.Kind.VARCHAR, 3)),
        (t.decimal(3, 1), t.decimal(3, 1), t.decimal(3, 1)),
        (t.decimal(3, 1), t.decimal(4, 1), None),
        (t.INT, t.REAL, None),
        (t.DATE, t.TIMESTAMP, None),
        (t.INTERVAL, t.BIGINT, None),
        (t.INT, ERROR, ERROR),
    ],
)
def test_the_wider_of_two_types_that_are_one(a: t.Type, b: t.Type, want: t.Type | None) -> None:
    assert widest(a, b) == widest(b, a) == want
