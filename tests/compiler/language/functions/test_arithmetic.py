"""Arithmetic: result types, and decimals at the limit of their digits."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from seustream.compiler.errors import Problems
from seustream.compiler.language import types as t
from seustream.compiler.language.exact import capped
from seustream.compiler.language.types import Type
from tests.compiler.language.folding import fault, value
from tests.compiler.language.plain import bind


@pytest.mark.parametrize(
    ("precision", "scale", "wanted"),
    [
        (10, 2, t.decimal(10, 2)),
        (38, 38, t.decimal(38, 38)),
        (40, 10, t.decimal(38, 8)),
        (60, 10, t.decimal(38, 6)),
        (77, 4, t.decimal(38, 4)),
    ],
)
def test_digits_are_capped(precision: int, scale: int, wanted: Type) -> None:
    assert capped(precision, scale) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a + b", t.decimal(13, 4)),
        ("a * b", t.decimal(17, 6)),
        ("a / b", t.decimal(18, 6)),
        ("b / a", t.decimal(10, 6)),
        ("mod(a, b)", t.decimal(6, 4)),
        ("a + i", t.decimal(13, 2)),
        ("i / a", t.decimal(18, 6)),
        ("a DIV b", t.BIGINT),
        ("a + x", t.DOUBLE),
        ("-a", t.decimal(10, 2)),
        ("abs(a)", t.decimal(10, 2)),
        ("ceil(a)", t.decimal(9, 0)),
        ("round(a)", t.decimal(9, 0)),
        ("i + s", t.BIGINT),
        ("abs(s)", t.BIGINT),
        ("sign(i)", t.DOUBLE),
        ("least(s, i)", t.INT),
        ("coalesce(a, i)", t.decimal(12, 2)),
        ("r + r", t.DOUBLE),
        ("r * x", t.DOUBLE),
        ("r / r", t.DOUBLE),
        ("ts - ts", t.INTERVAL),
        ("ts + g", t.TIMESTAMP),
        ("g * i", t.INTERVAL),
        ("g / 2", t.INTERVAL),
        ("g + i", t.BIGINT),
    ],
)
def test_types_of_results(text: str, wanted: Type) -> None:
    columns = {
        "a": t.decimal(10, 2), "b": t.decimal(6, 4), "i": t.INT, "s": t.SMALLINT, "x": t.DOUBLE,
        "r": t.REAL, "ts": t.TIMESTAMP, "g": t.INTERVAL,
    }  # fmt: skip
    bound = bind(text, columns)
    assert not isinstance(bound, Problems)
    assert bound.type == wanted


def test_decimals_round_once_and_half_up() -> None:
    def divided(a: str, b: str) -> Any:
        return value(f"CAST('{a}' AS decimal(38,6)) / CAST('{b}' AS decimal(38,0))")

    assert divided("0.000001", "2") == Decimal("0.000001")
    assert divided("-0.000001", "2") == Decimal("-0.000001")
    assert divided("0.000001", "3") == Decimal("0.000000")
    assert str(divided("-0.000001", "3")) == "0.000000"  # a decimal zero has no sign
    assert fault("CAST('1' AS decimal(38,0)) / CAST('0' AS decimal(38,0))").startswith("division")
    top = "9" * 38
    assert fault(f"CAST('{top}' AS decimal(38,0)) * CAST('{top}' AS decimal(38,0))") == (
        "decimal overflow"
    )
