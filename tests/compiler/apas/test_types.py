"""All 325 operator cases, casts and their values.

The table of what is legal is written out again here by its numbers, not taken from the compiler.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any

import pytest

from compiler.apas.types import BINARY, TYPES, Type, common, computation
from compiler.apas.values import NoValue, cast, fits, iso8601, operation
from engine.temporal.elements import insertion
from tests.compiler.apas.schemas import VALUES, problems
from tests.engine.temporal.running import Run

INT, B, T, D, S = Type.INTEGER, Type.BOOLEAN, Type.DATETIME, Type.DOUBLE, Type.STRING

LEGAL = {
    "==": 25,
    "!=": 24,
    "<": 24,
    "<=": 24,
    ">": 24,
    ">=": 24,
    "+": 23,
    "-": 14,
    "*": 14,
    "/": 14,
}
LEGAL |= {"AND": 2, "OR": 2, "XOR": 2}

SAMPLE: dict[Type, tuple[str, Any]] = {
    INT: ("$I.v", 6),
    D: ("$I.d", 2.5),
    S: ("$I.s", "x"),
    B: ("$I.f", True),
    T: ("$I.t", 1_000),
}
RIGHT: dict[Type, tuple[str, Any]] = {
    INT: ("4", 4),
    D: ("1.5", 1.5),
    S: ("'3'", "3"),
    B: ("false", False),
    T: ("$I.t", 1_000),
}
AS_DOUBLE = {INT: float, B: float, T: float, D: float}
AS_STRING = {INT: str, B: str, D: repr, S: str, T: lambda v: "1970-01-01T00:00:01.000Z"}


def by_hand(operator: str, a: Type, b: Type, x: Any, y: Any) -> tuple[Type, Any] | None:
    """Result type and value from the text of section 6.3, None of an illegal case."""
    if a is b:
        ct = a
    elif S in (a, b):
        ct, x, y = S, AS_STRING[a](x), AS_STRING[b](y)
    else:
        ct, x, y = D, AS_DOUBLE[a](x), AS_DOUBLE[b](y)
    python = {
        "==": lambda: x == y, "!=": lambda: x != y, "<": lambda: x < y, "<=": lambda: x <= y,
        ">": lambda: x > y, ">=": lambda: x >= y, "+": lambda: x + y, "-": lambda: x - y,
        "*": lambda: x * y, "/": lambda: int(x / y) if ct is INT else x / y if y else math.inf,
        "AND": lambda: x & y, "OR": lambda: x | y, "XOR": lambda: x ^ y,
    }  # fmt: skip
    if operator == "==":
        legal = True
    elif operator in ("!=", "<", "<=", ">", ">="):
        legal = ct is not B
    elif operator == "+":
        legal = ct in (INT, D, S)
    elif operator in ("-", "*", "/"):
        legal = ct in (INT, D)
    else:
        legal = ct in (INT, B)
    if not legal:
        return None
    result = B if operator in ("==", "!=", "<", "<=", ">", ">=") else ct
    return result, python[operator]()


@pytest.mark.acceptance(34)
@pytest.mark.parametrize("operator", BINARY)
def test_every_operator_case(operator: str) -> None:
    """Compiled and run in a network."""
    legal = 0
    for a, b in itertools.product(TYPES, TYPES):
        want = by_hand(operator, a, b, SAMPLE[a][1], RIGHT[b][1])
        text = f"select [r = {SAMPLE[a][0]} {operator} {RIGHT[b][0]}, i = $I.v]"
        if want is None:
            assert [p.kind for p in problems(text)] == ["NoOperator"]
            continue
        one = Run(text, VALUES)
        legal += 1
        one.feed("I", insertion(1, 2, 6, 2.5, "x", True, 1_000))
        ((_, _, value, _),) = one.finish()
        assert one.compiled.tree.children[0].type is want[0]
        assert (type(value), value) == (type(want[1]), want[1]), (operator, a, b)
    assert legal == LEGAL[operator]


@pytest.mark.acceptance(34)
def test_216_of_325_are_legal() -> None:
    cases = Counter(
        computation(operator, (a, b)) is not None
        for operator in BINARY
        for a in TYPES
        for b in TYPES
    )
    assert cases == {True: 216, False: 109}


@pytest.mark.acceptance(35)
def test_a_boolean_as_text() -> None:
    one = Run("select [r = $I.f + '']", VALUES)
    one.feed("I", insertion(1, 2, 6, 2.5, "x", True, 1_000))
    assert one.finish() == [(1, 2, "True")]


def test_common_types_move_right() -> None:
    assert common([INT, B]) is D
    assert common([INT, INT]) is INT
    assert common([T, S]) is S


def test_casts() -> None:
    assert cast(B, INT)(True) == 1
    assert cast(D, S)(0.1) == "0.1"
    assert cast(INT, D)(2**53 + 1) == float(2**53)


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (951_782_400_123, "2000-02-29T00:00:00.123Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (253_402_300_800_000, "+10000-01-01T00:00:00.000Z"),
        (-62_167_219_200_001, "-0001-12-31T23:59:59.999Z"),
    ],
)
def test_times_as_text(ms: int, text: str) -> None:
    assert iso8601(ms) == text


@pytest.mark.acceptance(38)
def test_integers() -> None:
    divide = operation("/", INT)
    assert [divide(7, 2), divide(-7, 2), divide(7, -2), divide(-7, -2)] == [3, -3, -3, 3]
    for bad in (
        lambda: divide(1, 0),
        lambda: divide(-(2**63), -1),
        lambda: operation("+", INT)(2**63 - 1, 1),
    ):
        with pytest.raises(NoValue):
            bad()


def test_doubles_are_ieee() -> None:
    divide = operation("/", D)
    assert [divide(1.0, 0.0), divide(-1.0, 0.0), divide(1.0, -0.0)] == [
        float("inf"),
        float("-inf"),
        float("-inf"),
    ]
    assert divide(0.0, 0.0) != divide(0.0, 0.0)


def test_what_is_a_value_of_a_type() -> None:
    assert fits(True, B)
    assert not fits(True, INT)
    assert not fits(1, D)
    assert not fits(2**63, INT)
