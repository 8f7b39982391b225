"""State as plain values is restored with its types; values that are no state are refused."""

from __future__ import annotations

import datetime
import json
from collections import deque
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from seustream.compiler.language.tallies import Frequencies
from seustream.engine.temporal.saving import Unsavable, plain, restored

VALUES: list[Any] = [
    None, True, 7, -(2**70), 1.5, float("inf"), "ü", (), (1, (2.5, None)), [1, [2]], deque([7, (8,)]),
    {}, {"total": (1.5, 2), (1, "a"): deque([7])}, {"column": 1}, {"dict": []},
    datetime.datetime(2024, 2, 29, 12, 0, 0, 5), datetime.date(1, 1, 1), datetime.time(23, 59),
    datetime.timedelta(days=-3, microseconds=7), Decimal("-1.50"),
]  # fmt: skip


def again(value: Any) -> Any:
    return restored(json.loads(json.dumps(plain(value))))


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_plain_values_come_back(value: Any) -> None:
    found = again(value)
    assert (found, type(found)) == (value, type(value))


def test_of_a_tally_the_counts_come_back() -> None:
    tally = Frequencies({"a": 2, "b": 1})
    assert tally.most() == "a"
    found = again(tally)
    assert (found, type(found)) == ({"a": 2, "b": 1}, dict)


@pytest.mark.parametrize(
    "column",
    [np.array([1, -(2**62)]), np.array([0.5, np.inf]), np.array([True, False]), np.empty(0, np.int64)],
    ids=repr,
)  # fmt: skip
def test_columns_come_back_in_their_type(column: np.ndarray) -> None:
    found = again({"in": (column,)})["in"][0]
    assert found.dtype == column.dtype
    assert found.tolist() == column.tolist()


def test_columns_of_objects_and_of_arrow_come_back() -> None:
    objects = np.empty(3, np.object_)
    objects[:] = ["a", None, (1, 2)]
    found = again(objects)
    assert (found.dtype, found.tolist()) == (objects.dtype, objects.tolist())
    for column in (
        pa.array([1, None], pa.int16()),
        pa.array(["a", None]).slice(1),
        pa.array([], pa.bool_()),
    ):
        assert again(column).equals(column)
        assert again(column).type == column.type


def test_numbers_of_numpy_are_numbers() -> None:
    found = again((np.int64(3), np.float64(0.5), np.bool_(True)))
    assert found == (3, 0.5, True)
    assert [type(each) for each in found] == [int, float, bool]


@pytest.mark.parametrize(
    "value", [{1, 2}, object(), b"x", np.zeros((2, 2)), np.array(["a"]), lambda: 1, frozenset()]
)
def test_what_is_no_plain_value_is_refused_by_its_type(value: Any) -> None:
    with pytest.raises(Unsavable, match=f"{type(value).__name__} is no plain value"):
        plain([value])


def test_a_subclass_is_not_taken_for_what_it_is_not() -> None:
    class Mine(dict):  # type: ignore[type-arg]
        pass

    with pytest.raises(Unsavable):
        plain(Mine(a=1))
