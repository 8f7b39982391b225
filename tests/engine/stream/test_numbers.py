"""Columns as the numbers that kernels compare: equal for equal values, and in the same order."""

from __future__ import annotations

import itertools
import random
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from seustream.compiler.language import expressions as x
from seustream.compiler.language import types as t
from seustream.compiler.language.types import Kind, Type
from seustream.engine.kernels import native
from seustream.engine.stream.numbers import (
    as_column,
    comparable,
    converted,
    has_numbers,
    is_ordered,
    numbers,
    of_doubles,
    order_of,
    stored,
    together,
)
from seustream.engine.stream.schema import arrow_type
from seustream.hdl.isa import Condition
from tests.engine.stream.values import TYPES, value


def column(of: Type, chance: random.Random, count: int = 60) -> tuple[list[Any], pa.Array]:
    """Returns values of a type, each several times, and a view into the middle of a column of
    them."""
    some = [value(chance, of) for _ in range(12)] + [None]
    values = [chance.choice(some) for _ in range(count)]
    return values, pa.array([None, None, *values, None], arrow_type(of)).slice(2, count)


@pytest.mark.parametrize("of", [of for of in TYPES if has_numbers(of)], ids=str)
def test_numbers_are_equal_where_values_are_and_in_their_order(of: Type) -> None:
    chance, codes = random.Random(str(of)), native.Codes()
    values, cells = column(of, chance)
    found, flags = numbers(cells, codes)
    there = [v is not None for v in values]
    assert (flags.tolist() if flags is not None else [1] * len(values)) == there
    known = [
        (v, n) for v, n in zip(cells.to_pylist(), found.tolist(), strict=True) if v is not None
    ]
    for (one, mine), (other, theirs) in itertools.combinations(known, 2):
        assert (one == other) == (mine == theirs), (one, other)
        if is_ordered(of):
            assert (one < other) == (mine < theirs), (one, other)
    again, _ = numbers(cells, codes)
    assert again.tolist() == found.tolist(), "codes stay"


def test_doubles_in_their_order_with_infinities_and_the_smallest() -> None:
    chance = random.Random(5)
    some = [
        float("-inf"),
        -1.7e308,
        -1.0,
        -5e-324,
        0.0,
        5e-324,
        2.2e-308,
        1.0,
        1.7e308,
        float("inf"),
    ]
    some += [chance.uniform(-1, 1) * 10.0 ** chance.randrange(-300, 300) for _ in range(500)]
    some.sort()
    found = of_doubles(np.array(some)).tolist()
    assert found == sorted(found)
    assert len(set(found)) == len(set(some))
    both, _ = numbers(pa.array([0.0, -0.0]), native.Codes())
    assert both[0] == both[1]


def test_decimals_of_more_digits_than_fit_are_known_but_have_no_order() -> None:
    wide, narrow = t.decimal(38, 2), t.decimal(18, 2)
    assert (is_ordered(wide), has_numbers(wide), is_ordered(narrow)) == (False, True, True)
    huge = Decimal(10**30)
    cells = pa.array([huge, Decimal(10**30 + 1), -huge, huge], pa.decimal128(38, 2))
    found, _ = numbers(cells, native.Codes())
    assert found[0] == found[3]
    assert len(set(found.tolist())) == 3


def test_several_columns_are_equal_together_where_all_of_them_are() -> None:
    chance, codes = random.Random(7), native.Codes()
    for _ in range(20):
        columns = [
            column(of, chance, 30) for of in chance.sample([t.INT, t.DOUBLE, Type(Kind.VARCHAR)], 2)
        ]
        found, flags = together(
            [numbers(cells, codes) for _, cells in columns],
            codes,
        )
        rows = list(zip(*(cells.to_pylist() for _, cells in columns), strict=True))
        there = [None not in row for row in rows]
        assert (flags.tolist() if flags is not None else [1] * len(rows)) == there
        for one, other in itertools.combinations([n for n, some in enumerate(there) if some], 2):
            assert (rows[one] == rows[other]) == (found[one] == found[other])


@pytest.mark.parametrize("of", [pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()])
def test_a_column_without_a_copy_and_back(of: pa.DataType) -> None:
    cells = pa.array([1, None, 3, 4], of)
    part = cells.slice(1, 3)
    assert stored(part)[1:].tolist() == [3, 4]
    nulls = np.array([True, False, False])
    assert as_column(stored(part), of, nulls).equals(part)
    assert stored(pa.array([], of)).tolist() == []


def test_comparisons_of_kernels_are_those_whose_sides_always_have_numbers() -> None:
    def compare(left: Type, right: Type, op: Condition, of: Type) -> x.Compare:
        sides = [x.ColumnReference(n, "a", side, True, "R") for n, side in enumerate((left, right))]
        return x.Compare(op, *sides, of)  # type: ignore[arg-type]

    text = Type(Kind.VARCHAR)
    wanted: list[tuple[x.Expression, bool]] = [
        (compare(t.INT, t.BIGINT, Condition.LT, t.BIGINT), True),
        (compare(text, text, Condition.EQ, text), True),
        (compare(text, text, Condition.NE, text), True),
        (compare(text, text, Condition.LT, text), False),
        (compare(t.decimal(38, 2), t.decimal(38, 2), Condition.GE, t.decimal(38, 2)), False),
        (x.ColumnReference(0, "a", t.BOOLEAN, True, "R"), False),
    ]
    for e, found in wanted:
        assert comparable(e) == found, x.show(e)
    cast = converted((wanted[0][0].left, t.BIGINT))  # type: ignore[attr-defined]
    assert (cast.type, converted((cast, t.BIGINT))) == (t.BIGINT, cast)


@pytest.mark.parametrize("most", [1, 2, 1000, 1 << 16, (1 << 16) + 1, 1 << 31, 1 << 40])
@pytest.mark.parametrize("count", [0, 1, 999, 5000])
def test_numbers_in_order(most: int, count: int) -> None:
    numbers = np.random.default_rng(count).integers(0, most, count)
    wanted = sorted(range(count), key=numbers.tolist().__getitem__)
    assert order_of(numbers).tolist() == wanted
