"""The row reference: NULL, faults and conversions, worked out by hand.

`seustream.compiler.language.faults` states the rule of faults; each of its sentences has rows here.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest

from seustream.compiler.errors import Problems, Span
from seustream.compiler.language import expressions as x
from seustream.compiler.language import types as t
from seustream.compiler.language.evaluate import compile_row, convert
from seustream.compiler.language.expressions import Leaf, Value
from seustream.compiler.language.faults import FaultError, Faults
from seustream.compiler.language.types import Kind, Type
from tests.compiler.language.plain import bind

COLUMNS = {
    "a": t.INT, "b": t.INT, "c": t.INT, "p": t.BOOLEAN, "q": t.BOOLEAN, "n": t.decimal(38, 38),
    "name": t.VARCHAR,
}  # fmt: skip


def leaf(of: Leaf) -> Any:
    assert isinstance(of, x.ColumnReference)
    name = of.name
    return lambda row: row.get(name)


def run(text: str, **row: Value) -> tuple[Value, list[str]]:
    """Returns the value for one row, and the texts of the faults."""
    bound = bind(text, COLUMNS)
    assert not isinstance(bound, Problems), [problem.message for problem in bound.found]
    faults = Faults()
    found = compile_row(bound, leaf, faults)(row)
    places = [place.text for place, n in faults.count.items() for _ in range(n)]
    return found, places


DIVIDED = "R.a / R.b"


@pytest.mark.parametrize(
    ("text", "row", "wanted", "faults"),
    [
        # Every operation that is reached counts; a NULL operand is no fault.
        ("a / b", {"a": 1, "b": 0}, None, [DIVIDED]),
        ("a / b", {"a": None, "b": 0}, None, []),
        ("a / b + a / b", {"a": 1, "b": 0}, None, [DIVIDED, DIVIDED]),
        ("ln(a / b)", {"a": 1, "b": 0}, None, [DIVIDED]),
        ("a / b IS NULL", {"a": 1, "b": 0}, True, [DIVIDED]),
        # AND and OR: a fault counts only if no other operand decides.
        ("b <> 0 AND a / b > 2", {"a": 1, "b": 0}, False, []),
        ("a / b > 2 AND b <> 0", {"a": 1, "b": 0}, False, []),
        ("b = 0 OR a / b > 2", {"a": 1, "b": 0}, True, []),
        ("b = 0 AND a / b > 2", {"a": 1, "b": 0}, None, [DIVIDED]),
        ("p AND a / b > 2", {"a": 1, "b": 0, "p": None}, None, [DIVIDED]),
        ("a / b > 2 AND b / b > 2", {"a": 1, "b": 0}, None, [DIVIDED, "R.b / R.b"]),
        ("NOT (a / b > 2 AND p)", {"a": 1, "b": 0, "p": False}, True, []),
        # The deciding operand may itself have faulted: its faults count, unless another decides.
        ("coalesce(a / b, 0) > 5 AND p", {"a": 1, "b": 0, "p": True}, False, [DIVIDED]),
        ("coalesce(a / b, 0) > 5 AND p", {"a": 1, "b": 0, "p": False}, False, []),
        ("p AND coalesce(a / b, 0) > 5 AND b / b > 1", {"a": 1, "b": 0, "p": True}, False, [DIVIDED]),
        ("coalesce(a / b, 9) > 5 OR coalesce(b / b, 9) > 5", {"a": 1, "b": 0}, True, []),
        # No operand of XOR decides.
        ("p XOR a / b > 2", {"a": 1, "b": 0, "p": True}, None, [DIVIDED]),
        # CASE: faults in the taken branch and in the conditions up to it count.
        ("CASE WHEN b <> 0 THEN a / b ELSE 0 END", {"a": 1, "b": 0}, 0, []),
        ("CASE WHEN b = 0 THEN a / b ELSE 0 END", {"a": 1, "b": 0}, None, [DIVIDED]),
        ("CASE WHEN a / b > 1 THEN 1 ELSE 2 END", {"a": 1, "b": 0}, 2, [DIVIDED]),
        ("CASE WHEN p THEN 1 WHEN a / b > 1 THEN 2 END", {"a": 1, "b": 0, "p": True}, 1, []),
        ("CASE WHEN p THEN 1 WHEN a / b > 1 THEN 2 END", {"a": 1, "b": 0, "p": None}, None, [DIVIDED]),
        ("if(p, a / b, 3)", {"a": 1, "b": 0, "p": False}, 3, []),
        # coalesce evaluates its arguments up to the first one that has a value.
        ("coalesce(a, a / b)", {"a": 1, "b": 0}, 1, []),
        ("ifnull(a / b, a)", {"a": 1, "b": 0}, 1, [DIVIDED]),
        ("nvl(a, b / b)", {"a": None, "b": 0}, None, ["R.b / R.b"]),
        ("coalesce(a, n)", {"a": 7, "n": None}, None, ["coalesce(R.a, R.n)"]),
        ("coalesce(n, 1, a / b)", {"a": 1, "b": 0, "n": None}, 1, []),
        ("greatest(a, a / b)", {"a": 1, "b": 0}, 1, [DIVIDED]),
        # Casts.
        ("CAST(name AS int)", {"name": "x"}, None, ["CAST(R.name AS int)"]),
        ("TRY_CAST(name AS int)", {"name": "x"}, None, []),
        ("TRY_CAST(name AS int)", {"name": " 12 "}, 12, []),
        # The common type, a decimal of 38 digits, has no room for the other operand.
        ("coalesce(n, a)", {"a": 7}, None, ["coalesce(R.n, R.a)"]),
        ("coalesce(n, a)", {"a": 0}, 0, []),
        ("CASE WHEN p THEN n ELSE a END", {"a": 7}, None, ["CASE WHEN R.p THEN R.n ELSE R.a END"]),
        ("n < a", {"a": 7, "n": Decimal("0.5")}, True, []),
    ],
)  # fmt: skip
def test_values_and_faults(
    text: str, row: dict[str, Any], wanted: Value, faults: list[str]
) -> None:
    assert run(text, **row) == (wanted, faults)


def test_a_fault_has_its_place_its_reason_and_its_first_row() -> None:
    bound = bind("b + a / b", COLUMNS)
    assert not isinstance(bound, Problems)
    faults = Faults()
    compute = compile_row(bound, leaf, faults)
    for b in (1, 0, 2, 0):
        compute({"a": 1, "b": b})
    ((place, count),) = faults.count.items()
    assert (str(place), place.at, count) == ("division by zero in R.a / R.b", Span(6, 7), 2)
    assert faults.first[place] == 1
    assert faults.total == 2


def test_strict_makes_the_first_an_error() -> None:
    bound = bind("ln(a)", COLUMNS)
    assert not isinstance(bound, Problems)
    compute = compile_row(bound, leaf, Faults(strict=True))
    assert compute({"a": 1}) == 0.0
    with pytest.raises(FaultError, match=r"outside its domain in ln\(R\.a\), row 1"):
        compute({"a": 0})


def test_without_faults_nothing_is_counted_and_nothing_kept() -> None:
    bound = bind("a / b", COLUMNS)
    assert not isinstance(bound, Problems)
    compute = compile_row(bound, leaf)
    assert [compute({"a": 1, "b": b}) for b in (0, 2, 0)] == [None, 0.5, None]


@pytest.mark.parametrize(
    ("value", "of", "to", "wanted"),
    [
        (2.9, t.DOUBLE, t.INT, 2),
        (-2.9, t.DOUBLE, t.INT, -2),
        (2.0**63, t.DOUBLE, t.BIGINT, None),
        (math.inf, t.DOUBLE, t.BIGINT, None),
        (40_000, t.INT, t.SMALLINT, None),
        (1e16, t.DOUBLE, t.VARCHAR, "1e+16"),
        (0.1, t.DOUBLE, t.REAL, 0.10000000149011612),
        (0.10000000149011612, t.REAL, t.VARCHAR, "0.1"),
        (16777216.0, t.REAL, t.VARCHAR, "16777216.0"),
        (-math.inf, t.REAL, t.VARCHAR, "-Infinity"),
        (Decimal("1E-10"), t.decimal(12, 10), t.VARCHAR, "0.0000000001"),
        (Decimal("2.50"), t.decimal(3, 2), t.decimal(3, 0), Decimal(3)),
        (Decimal("9.99"), t.decimal(3, 2), t.decimal(2, 1), None),
        ("12345", t.VARCHAR, Type(Kind.CHAR, 2), "12"),
        (" 7.9 ", t.VARCHAR, t.INT, 7),
        (".5", t.VARCHAR, t.INT, 0),
        ("-.5", t.VARCHAR, t.BIGINT, 0),
        ("1_000", t.VARCHAR, t.DOUBLE, None),
        ("--inf", t.VARCHAR, t.DOUBLE, None),
        ("-Infinity", t.VARCHAR, t.DOUBLE, -math.inf),
        ("nan", t.VARCHAR, t.DOUBLE, None),
        ("1e400", t.VARCHAR, t.decimal(10, 2), None),
        ("1e999999999", t.VARCHAR, t.decimal(10, 2), None),
        ("1e-999999999", t.VARCHAR, t.decimal(10, 2), Decimal("0.00")),
        ("9" * 5000, t.VARCHAR, t.BIGINT, None),
        ("YES", t.VARCHAR, t.BOOLEAN, True),
        ("maybe", t.VARCHAR, t.BOOLEAN, None),
        (True, t.BOOLEAN, t.INT, 1),
        (0.5, t.DOUBLE, t.BOOLEAN, True),
    ],
)
def test_conversions(value: Value, of: Type, to: Type, wanted: Value) -> None:
    found = convert(value, of, to)
    assert found == wanted
    assert type(found) is type(wanted) or isinstance(found, bool | int)
