"""Faults are counted by place, with the first row; under `strict` the first one is an error."""

from __future__ import annotations

import itertools

import pytest

from seustream.compiler.errors import Span
from seustream.compiler.language import expressions as x
from seustream.compiler.language.evaluate import compile_row
from seustream.compiler.language.faults import FaultError, Faults, Place
from seustream.compiler.language.types import BIGINT, DOUBLE
from seustream.hdl.isa import Condition

ONE, OTHER = Place(Span(3, 5), "a / b", "division by zero"), Place(None, "ln(a)", "no value")


def test_counts_and_first_rows_by_place() -> None:
    faults = Faults()
    faults.add(ONE, 2, 7)
    faults.add(OTHER, 1, 3)
    with faults.naming(lambda row: f"row of {row}"):
        faults.add(ONE, 3, 9)
    faults.add(ONE, 1, 11)
    assert faults.count == {ONE: 6, OTHER: 1}
    assert faults.first == {ONE: 7, OTHER: 3}
    assert faults.named == {ONE: "row of 9"}
    assert faults.total == 7
    assert str(ONE) == "division by zero in a / b"


def test_strict_names_the_row_and_counts_nothing() -> None:
    faults = Faults(strict=True)
    with pytest.raises(FaultError, match="division by zero in a / b, row 4"):
        faults.add(ONE, 1, 4)
    with faults.naming(lambda row: "[1,2)"), pytest.raises(FaultError, match=r"row \[1,2\)"):
        faults.add(ONE, 1, 4)
    assert not faults.total


def test_a_name_holds_for_what_is_evaluated_meanwhile_alone() -> None:
    faults = Faults()
    with pytest.raises(RuntimeError), faults.naming(str):
        raise RuntimeError
    faults.add(ONE, 1, 2)
    assert faults.named == {}


def _above(value: float, at: int) -> x.Expression:
    """Returns `ln(value) > 0`, which is NULL and has a fault if the value is 0."""
    logarithm = x.Call("ln", (x.Literal(value, DOUBLE),), (DOUBLE,), DOUBLE, at=Span(at, at + 1))
    return x.Compare(Condition.GT, logarithm, x.Literal(0.0, DOUBLE), DOUBLE)


@pytest.mark.parametrize("decisive", [False, True])
def test_a_fault_counts_unless_another_operand_decides(decisive: bool) -> None:
    """By definition, over all triples of operands, each a fault, TRUE, FALSE or NULL."""
    connect = x.Or if decisive else x.And
    some = {"fault": None, "true": True, "false": False, "null": None}
    for names in itertools.product(some, repeat=3):
        terms = tuple(
            _above(0.0, at) if name == "fault" else _above(3.0 if some[name] else 0.5, at)
            if name != "null" else x.condition(x.Literal(None, BIGINT))
            for at, name in enumerate(names)
        )  # fmt: skip
        faults = Faults()
        value = compile_row(connect(terms), lambda leaf: lambda row: None, faults)(())
        values = [some[name] for name in names]
        decided = decisive in values
        want = decisive if decided else None if None in values else not decisive
        assert value is want, names
        assert faults.total == (0 if decided else names.count("fault")), names
