"""Columns of members and back, and the numbers of keys."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from seustream.engine.host.keys import KeyNumbers, exported
from seustream.engine.kernels import native
from seustream.engine.stream.taken import made

DAY = datetime.date(1969, 7, 20)
COLUMNS: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int16(), [1, None, -(2**15)]),
    (pa.int64(), [2**63 - 1, None, -(2**63)]),
    (pa.float32(), [0.5, None, -1.25]),
    (pa.float64(), [5e-324, None, -0.0]),
    (pa.string(), ["", None, "日本"]),
    (pa.date32(), [DAY, None, datetime.date(2026, 1, 1)]),
    (pa.time32("ms"), [datetime.time(1, 2, 3, 4000), None, datetime.time()]),
    (pa.timestamp("us"), [datetime.datetime(1, 1, 1), None, datetime.datetime(2026, 1, 1)]),
    (pa.duration("ms"), [datetime.timedelta(-1), None, datetime.timedelta(1)]),
    (pa.bool_(), [True, None, False]),
    (pa.decimal128(5, 2), [Decimal("1.25"), None, Decimal("-999.99")]),
    (pa.decimal128(38, 0), [Decimal(10**37), None, Decimal(-(10**37))]),
    (pa.null(), [None, None, None]),
]


class Members:
    """Members with one argument each, all in one group; `last` picks the latest."""

    def __init__(self, of: pa.DataType) -> None:
        self.of, self.kernel = of, native.Aggregates()
        types, last = (of.__arrow_c_schema__(),), ((1, (0,), False, 3),)
        self.kernel.configure(types, last, ((0, 3),), (of.__arrow_c_schema__(),), (), True)

    def add(self, column: pa.Array) -> None:
        self.kernel.add(exported([column]), np.zeros(len(column), np.int64))

    def values(self, *places: int) -> pa.Array:
        found = self.kernel.take(0, np.array(places, np.int64))
        return made(found, self.of)

    def last(self, *events: int) -> pa.Array:
        """Returns the value at a point after each of the events."""
        until = np.arange(1, len(events) + 1)
        (address,), lost = self.kernel.found(np.array(events), until, 0 * until)
        assert lost is None
        return pa.Array._import_from_c(address, self.of)


@pytest.mark.parametrize(("of", "values"), COLUMNS, ids=lambda one: str(one)[:20])
def test_what_is_taken_is_what_was_put_in(of: pa.DataType, values: list[Any]) -> None:
    members = Members(of)
    members.add(pa.array([], of))
    members.add(pa.array([values[0], *values], of).slice(1))
    members.add(pa.array([values[0], values[2]], of))
    assert members.values(0, 1, 2, 3, 4).to_pylist() == [*values, values[0], values[2]]
    for places in ((5,), (-1,)):
        with pytest.raises(RuntimeError, match="not there"):
            members.values(*places)
    found = members.last(0, 1, 4, ~0, ~4)
    assert found.type == of
    assert found.to_pylist() == [values[0], values[0], values[2], values[2], None]
    found.validate(full=True)
    members.add(pa.nulls(1))
    assert members.values(5, 0).to_pylist() == [None, values[0]]


def test_columns_without_rows() -> None:
    members = Members(pa.string())
    assert members.last().to_pylist() == []
    assert members.values().to_pylist() == []


def test_a_column_of_another_kind() -> None:
    members = Members(pa.string())
    with pytest.raises(RuntimeError, match="a column of u is given l"):
        members.add(pa.array([1]))


def test_texts_that_are_all_null() -> None:
    members = Members(pa.string())
    members.add(pa.array([None, None], pa.string()))
    assert members.values(1, 0).to_pylist() == [None, None]


def test_nan_is_null() -> None:
    members = Members(pa.float64())
    members.add(pa.array([1.0]))
    members.add(pa.array([float("nan"), None, -0.0]))
    assert str(members.values(0, 1, 2, 3).to_pylist()) == "[1.0, None, None, -0.0]"


@pytest.mark.parametrize(("of", "values"), COLUMNS, ids=lambda one: str(one)[:20])
def test_equal_keys_have_one_number(of: pa.DataType, values: list[Any]) -> None:
    chance = np.random.default_rng(7)
    keys, numbers = KeyNumbers([of, pa.int64()]), dict[tuple[Any, ...], int]()
    for size in (0, 1, 5, 40):
        mine = [values[i] for i in chance.integers(0, 3, size)]
        other = chance.integers(0, 3, size)
        columns = [pa.array(mine, of), pa.array(other)]
        found = keys.numbers(columns, size).tolist()
        for key, number in zip(zip(mine, other.tolist(), strict=True), found, strict=True):
            assert numbers.setdefault(key, number) == number
    assert sorted(numbers.values()) == list(range(len(keys)))
    kept = [column.to_pylist() for column in keys.values(np.arange(len(keys)))]
    assert list(zip(*kept, strict=True)) == list(numbers)


def test_lists_are_keys() -> None:
    of = pa.list_(pa.decimal128(5, 2))
    keys = KeyNumbers([pa.int64(), of])
    lists = [[Decimal("1.25"), None], None, [], [Decimal("1.25"), None], [Decimal("1.25")]]
    columns = [pa.array([1, 1, 1, 1, 1]), pa.array(lists, of)]
    assert keys.numbers(columns, 5).tolist() == [0, 1, 2, 0, 3]
    assert keys.numbers([one[2:4] for one in columns], 2).tolist() == [2, 0]
    assert keys.values(np.array([3, 0, 1]))[1] == pa.array([lists[4], lists[0], None], of)


def test_both_zeros_are_one_key() -> None:
    keys = KeyNumbers([pa.float64()])
    assert keys.numbers([pa.array([0.0, -0.0, 1.0])], 3).tolist() == [0, 0, 1]


def test_without_columns_there_is_one_key() -> None:
    assert KeyNumbers([]).numbers([], 3).tolist() == [0, 0, 0]
