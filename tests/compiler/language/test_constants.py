"""Constants: their types, exact computation of operations on constants alone, and constants beside
a decimal."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from fractions import Fraction

import pytest

from seustream.compiler.errors import Problems
from seustream.compiler.language import expressions as x
from seustream.compiler.language import types as t
from seustream.compiler.language.constants import (
    as_times,
    beside_times,
    exact_beside,
    folded,
    number,
)
from seustream.compiler.language.scope import ParameterValue
from tests.compiler.language.plain import bind


def constant(text: str, **parameters: ParameterValue) -> x.Literal:
    found = bind(text, parameters=parameters)
    assert isinstance(found, x.Literal), found
    return found


def wrong(text: str, **parameters: ParameterValue) -> tuple[str, str, str | None]:
    found = bind(text, parameters=parameters)
    assert isinstance(found, Problems)
    (problem,) = found.found
    return problem.kind, problem.message, problem.hint


@pytest.mark.parametrize(
    ("value", "of"),
    [
        (0, t.INT), (2**31 - 1, t.INT), (-(2**31), t.INT), (2**31, t.BIGINT), (2**63 - 1, t.BIGINT),
        (-(2**63), t.BIGINT), (2**63, t.decimal(19, 0)), (10**38 - 1, t.decimal(38, 0)),
    ],
)  # fmt: skip
def test_a_whole_number_has_the_narrowest_type_that_holds_it(value: int, of: t.Type) -> None:
    found = number(Fraction(value), True)
    assert found is not None
    assert (found.type, int(str(found.value))) == (of, value)


def test_what_no_type_holds() -> None:
    assert number(Fraction(10**38), True) is None
    assert number(Fraction(10) ** 400, False) is None
    assert wrong("9" * 39)[0] == "constant-range"


def test_constants_alone_are_computed_exactly_and_rounded_once() -> None:
    """Floats would round at every step here."""
    chance = random.Random(1)
    for _ in range(300):
        numbers = [Fraction(chance.randint(-999, 999), 10 ** chance.randrange(4)) for _ in range(3)]
        texts = [f"({float(n):.3f})" for n in numbers]
        ops = chance.choices("+-*", k=2)
        want = numbers[0]
        for op, other in zip(ops, numbers[1:], strict=True):
            want = {"+": want + other, "-": want - other, "*": want * other}[op]
        text = f"(({texts[0]} {ops[0]} {texts[1]}) {ops[1]} {texts[2]})"
        found = constant(text)
        assert found.exact == want, text
        assert found.value == float(want), text
    assert constant("0.1 + 0.2").value == 0.3
    assert constant("7 / 2").value == 3.5
    assert constant("38%").value == 0.38


def test_what_has_no_value_is_left_to_the_evaluation_that_counts_it() -> None:
    one, zero, most = (x.Literal(v, t.BIGINT, Fraction(v)) for v in (1, 0, 2**63 - 1))
    assert folded("/", (one, zero)) is None
    assert folded("+", (most, one)) is None, "more than 64 bits is an overflow"
    assert folded("mod", (one, one)) is None
    assert folded("+", (one, x.ColumnReference(0, "a", t.INT, True, "R"))) is None
    assert constant("-9223372036854775808").type == t.BIGINT


def test_a_constant_with_a_point_is_a_decimal_beside_one() -> None:
    column = x.ColumnReference(0, "d", t.decimal(9, 2), True, "R")
    point = constant("0.125")
    (_, beside) = exact_beside((column, point))
    assert beside == x.Literal(Decimal("0.125"), t.decimal(3, 3), Fraction(1, 8))
    real = x.ColumnReference(0, "x", t.DOUBLE, True, "R")
    assert exact_beside((column, real, point)) == (column, real, point)
    assert exact_beside((point, constant("1"))) == (point, constant("1"))
    third = x.Literal(1 / 3, t.DOUBLE, Fraction(1, 3))
    assert exact_beside((column, third)) == (column, third), "no decimal is a third"


def test_texts_are_times_where_times_are_wanted() -> None:
    found = as_times([constant(f"'{text}'") for text in ("2006-03-01", "5 min", "abc")])
    values = [e.value for e in found if isinstance(e, x.Literal)]
    assert values == [datetime.datetime(2006, 3, 1), datetime.timedelta(minutes=5), "abc"]


def test_texts_beside_a_time_are_of_its_type() -> None:
    text = constant("'2006-03-01'")
    for of in (t.DATE, t.TIMESTAMP):
        column = x.ColumnReference(0, "d", of, True, "R")
        assert [e.type for e in beside_times([text, column])] == [of, of]
    clock = x.ColumnReference(0, "h", t.TIME, True, "R")
    assert beside_times([text, clock]) == (text, clock), "it is no time of day"
    assert beside_times([text, text]) == (text, text)


@pytest.mark.parametrize(
    ("text", "kind", "hint"),
    [
        ("DATE 'x'", "constant-range", "write it as '2006-03-01'"),
        ("TIMESTAMP '2006-13-01'", "constant-range", "write it as '2006-03-01 12:30:00'"),
        ("INTERVAL 'soon'", "constant-range", "write it as '1 hour 30 min'"),
        ("DATE '2006-03-01' DAY", "constant-range", "only an INTERVAL has one"),
        (
            ":none",
            "no-parameter",
            '--param none=VALUE gives it one, in Python parameters={"none": value}',
        ),
    ],
)
def test_what_is_no_constant_says_how_one_is_written(text: str, kind: str, hint: str) -> None:
    found = wrong(text)
    assert (found[0], found[2]) == (kind, hint)


def test_parameters_are_constants_of_their_values() -> None:
    assert constant(":p", p=0.1).exact == Fraction(1, 10), "as it is written, not as it is stored"
    assert constant(":p%", p=38).value == 0.38
    assert constant(":p", p=None).type == t.NULL
    assert constant(":p", p=float("nan")).type == t.NULL
    assert constant(":p", p=float("inf")).value == float("inf")
    assert constant(":p", p=Decimal("1.50")).exact == Fraction(3, 2)
    assert constant(":p", p="x").type == t.VARCHAR
    assert wrong(":p%", p="x")[0] == "percent"
