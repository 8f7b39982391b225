"""Columns as words and back, and the numbers of keys."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from seustream.engine.host.words import KeyNumbers, Words

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


@pytest.mark.parametrize(("of", "values"), COLUMNS, ids=lambda one: str(one)[:20])
def test_what_is_taken_is_what_was_put_in(of: pa.DataType, values: list[Any]) -> None:
    words = Words(of)
    words.append(pa.array([], of))
    words.append(pa.array([values[0], *values], of).slice(1))
    words.append(pa.array([values[0], values[2]], of))
    assert words.take(np.arange(5)).to_pylist() == [*values, values[0], values[2]]
    words.drop(2)
    known = np.array([True, False, True])
    taken = words.take(np.array([0, 9, 2]), known)
    assert taken.type == of
    assert taken.to_pylist() == [values[2], None, values[2]]
    taken.validate(full=True)


def test_texts_that_are_all_null() -> None:
    words = Words(pa.string())
    words.append(pa.array([None, None], pa.string()))
    assert words.take(np.array([1, 0])).to_pylist() == [None, None]


def test_nan_is_null() -> None:
    words = Words(pa.float64())
    words.append(pa.array([1.0, float("nan"), None]))
    assert words.take(np.arange(3)).to_pylist() == [1.0, None, None]


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
    kept = [words.take(np.arange(len(keys))).to_pylist() for words in keys.columns]
    assert list(zip(*kept, strict=True)) == list(numbers)


def test_both_zeros_are_one_key() -> None:
    keys = KeyNumbers([pa.float64()])
    assert keys.numbers([pa.array([0.0, -0.0, 1.0])], 3).tolist() == [0, 0, 1]


def test_without_columns_there_is_one_key() -> None:
    assert KeyNumbers([]).numbers([], 3).tolist() == [0, 0, 0]
