"""Bounds that follow from a difference: they exclude no pair for which the condition is true. Values lie
at the edge of the bound, where sums are rounded, cut and overflow."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from seustream.compiler.language import expressions as x
from seustream.compiler.language.faults import Faults
from seustream.compiler.pipeline import Options, compile_text
from seustream.engine.kernels import native
from seustream.engine.stream.differences import differences, moved
from seustream.engine.stream.evaluate import evaluate, holds
from seustream.engine.stream.numbers import converted, numbers
from seustream.hdl.isa import Condition

TYPES = {
    "double precision": pa.float64(),
    "bigint": pa.int64(),
    "decimal(12,2)": pa.decimal128(12, 2),
    "timestamp": pa.timestamp("us"),
}
BOUNDS = {
    "double precision": ("0.1", "5", "0", "-3e-9", "1e10"),
    "bigint": ("0", "3", "-7", "2.5", "1000000000000"),
    "decimal(12,2)": ("0.05", "0.055", "0", "-1", "1e-1"),
    "timestamp": ("INTERVAL '0.002' SECOND", "INTERVAL '1' SECOND", "5", "INTERVAL '-1' SECOND"),
}


def bound(kind: str, condition: str) -> x.Expression:
    """Binds a condition on L.x and R.x without bringing it into another form."""
    text = f"""CREATE STREAM L (x {kind}); CREATE STREAM R (x {kind});
        SELECT L.x FROM L, R WHERE {condition} WINDOW RANGE 10 s;"""
    return (
        compile_text(text, options=Options(devices=0), stop_after="tree").written.queries[0].where
    )


def values(kind: str, chance: np.random.Generator, amount: float) -> tuple[pa.Array, pa.Array]:
    """Returns pairs of values that are about `amount` apart, in the unit of their kind."""
    count = 3_000
    near = chance.integers(-3, 4, count)
    if kind == "double precision":
        right = chance.choice([1e-300, 1e-9, 1.0, 1e6, 1e15, 1e300], count) * chance.normal(
            size=count
        )
        left = right + amount
        for step in range(3):
            left = np.where(
                np.abs(near) > step, np.nextafter(left, np.where(near > 0, np.inf, -np.inf)), left
            )
        far = chance.choice([0, 0, 1e-9, 1e-3], count) * near
        return pa.array(left + far * (abs(amount) + np.abs(right))), pa.array(right)
    if kind == "bigint":
        edge = np.iinfo(np.int64).max
        right = chance.choice([0, 50, 1 << 53, edge - 4, -edge], count)
        with np.errstate(over="ignore"):
            left = right + np.int64(amount) + near
        return pa.array(left), pa.array(right)
    units = chance.integers(-2_000, 2_000, count)
    scale = 100 if kind.startswith("decimal") else 1_000
    apart = np.int64(amount * scale) + near * chance.choice([1, 400], count)
    if kind.startswith("decimal"):
        return tuple(
            pa.array([Decimal(int(v)) / 100 for v in some], TYPES[kind])
            for some in (units + apart, units)
        )  # type: ignore[return-value]
    return pa.array(units + apart, TYPES[kind]), pa.array(units, TYPES[kind])


FORMS: tuple[Callable[[str], str], ...] = (
    lambda c: f"L.x - R.x <= {c}",
    lambda c: f"L.x - R.x < {c}",
    lambda c: f"{c} <= L.x - R.x",
    lambda c: f"R.x - L.x > {c}",
    lambda c: f"L.x - R.x = {c}",
    lambda c: f"abs(L.x - R.x) <= {c}",
    lambda c: f"{c} > abs(R.x - L.x)",
    lambda c: f"abs(L.x - R.x) = {c}",
)


CASES = [
    (kind, amount, form)
    for kind, some in BOUNDS.items()
    for amount in some
    for form in range(len(FORMS))
    if kind != "timestamp" or "abs" not in FORMS[form]("")  # there is no abs of an interval
]


@pytest.mark.parametrize(("kind", "amount", "form"), CASES)
def test_no_pair_is_excluded(kind: str, amount: str, form: int) -> None:
    e = bound(kind, FORMS[form](amount))
    found = list(differences(e))
    assert len(found) == 1 + (form >= 4)
    assert isinstance(e, x.Compare)
    literal = next(side for side in (e.left, e.right) if isinstance(side, x.Literal))
    size = literal.value
    if isinstance(size, datetime.timedelta):
        size = size / datetime.timedelta(milliseconds=1)
    chance = np.random.default_rng(form)
    kept = excluded = 0
    for sign in (1, -1):
        sides = dict(zip((0, 1), values(kind, chance, sign * float(size)), strict=True))  # type: ignore[arg-type]

        def leaf(leaf: x.Leaf, sides: dict[int, pa.Array] = sides) -> pa.Array:
            assert isinstance(leaf, x.ColumnReference)
            return sides[leaf.source]

        count = len(sides[0])
        true = holds(e, leaf, count, Faults())
        for whole in found:
            for one in (whole, whole.exchanged):
                codes = native.Codes()
                left, right = (
                    numbers(evaluate(converted((side, one.of)), leaf, count), codes)[0]
                    for side in (one.left, one.right)
                )
                bounds = one.bounds(right)
                fits = left <= bounds if one.op is Condition.LE else left >= bounds
                assert not (true & ~fits).any()
                excluded += int((~fits).sum())
        kept += int(true.sum())
    assert excluded > 100
    assert kept > 0 or form >= 4  # an equality may never hold, nor a distance below 0


@pytest.mark.parametrize(
    "condition",
    ["L.x - R.x <> 5", "abs(L.x - R.x) > 5", "L.x + R.x < 5", "L.x - R.x < R.x", "L.x < 5"],
)
def test_conditions_without_such_a_bound(condition: str) -> None:
    assert not list(differences(bound("double precision", condition)))


def test_bounds_of_integers_stay_within_sixty_four_bits() -> None:
    edge = np.iinfo(np.int64)
    ends = np.array([edge.min, edge.min + 1, edge.max - 1, edge.max])
    assert moved(ends, -5, True).tolist() == [edge.min + 5, edge.min + 6, edge.max, edge.max]
    assert moved(ends, 5, False).tolist() == [edge.min, edge.min, edge.max - 6, edge.max - 5]
