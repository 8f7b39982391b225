"""The meaning of names in a pattern, and constants beside them."""

from __future__ import annotations

import datetime

import pytest

from seustream.compiler.catalogue import Column, Stream
from seustream.compiler.errors import CompileError
from seustream.compiler.language import expressions as x
from seustream.compiler.language.types import VARCHAR
from seustream.compiler.pattern.statements import compile_pattern
from tests.compiler.pattern.queries import query


def test_04_parameters() -> None:
    text = "PATTERN A WHERE a.price > :x AND a.price < 1 + :y% WITHIN 1 s RETURN *"
    first, second = (c.expression for c in query(text, x=2, y=38).conjuncts)
    assert isinstance(first, x.Compare)
    assert isinstance(second, x.Compare)
    assert isinstance(first.right, x.Literal)
    assert isinstance(second.right, x.Literal)
    assert (first.right.value, second.right.value) == (2, 1.38)
    with pytest.raises(CompileError, match="P018"):
        query(text, x=2)


def test_a_name_is_an_alias_first() -> None:
    found = query("PATTERN A b; B c WHERE b.price > 1 WITHIN 1 s RETURN c.price")
    assert found.conjuncts[0].refs == (0,)
    again = query("PATTERN A; B WHERE B.price > 1 WITHIN 1 s RETURN A")
    assert again.conjuncts[0].refs == (1,)


def test_a_text_is_read_as_a_date() -> None:
    from seustream.compiler.language.types import DATE, TIME, TIMESTAMP

    days = Stream(
        "d",
        (Column("type", VARCHAR), Column("d", DATE), Column("t", TIME), Column("m", TIMESTAMP)),
    )
    text = (
        "PATTERN A WHERE a.d > '1970-01-03' AND a.t < '00:00:01.5' AND a.m = '1970-01-01 00:00:01'"
        " WITHIN 1 s RETURN *"
    )
    values = [
        c.expression.right.value  # type: ignore[union-attr]
        for c in compile_pattern(text, days).conjuncts
    ]
    assert values == [
        datetime.date(1970, 1, 3),
        datetime.time(0, 0, 1, 500_000),
        datetime.datetime(1970, 1, 1, 0, 0, 1),
    ]
