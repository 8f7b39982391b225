"""Insertions in columns: taking rows, times as moments, and stateless operators."""

from __future__ import annotations

import datetime
import random

import numpy as np
import pyarrow as pa
import pytest

from seustream.compiler.apas import network as n
from seustream.compiler.apas.types import INTEGER
from seustream.engine.temporal.columnar.batch import IntervalBatch, concatenated, empty
from seustream.engine.temporal.columnar.evaluate import Taken, as_numpy, for_library, moments, taken
from seustream.engine.temporal.columnar.operators import ColumnarMerge, ColumnarSetEnd
from seustream.engine.temporal.elements import FOREVER
from seustream.engine.temporal.library import LibraryFailed

EDGE = n.Edge(0, ())


def batch(*rows: tuple[int, int, int | None]) -> IntervalBatch:
    ts, te, v = ([*column] for column in zip(*rows, strict=True)) if rows else ([], [], [])
    return IntervalBatch(np.array(ts, np.int64), np.array(te, np.int64), (pa.array(v, pa.int64()),))


ROWS = [(1, 5, 7), (2, 3, None), (2, FOREVER, 9), (8, 8, 1)]


def test_rows_are_taken_by_number_or_slice() -> None:
    one = batch(*ROWS)
    assert one.elements() == ROWS
    assert one.take(np.array([3, 0, 3])).elements() == [ROWS[3], ROWS[0], ROWS[3]]
    for part in (slice(1, 3), slice(0, 0), slice(2, None), slice(3, 1)):
        assert one.take(part).elements() == ROWS[part]
    assert IntervalBatch.load(one.save()).elements() == ROWS
    assert concatenated([one, batch(), one.take(slice(0, 1))]).elements() == [*ROWS, ROWS[0]]
    assert empty((("v", INTEGER),)).elements() == []


def test_a_time_among_the_columns_of_an_edge_is_a_moment() -> None:
    found = batch(*ROWS).picked((2, 0, 1))
    columns = [column.to_pylist() for column in found.columns]
    moment = datetime.datetime(1970, 1, 1)
    assert columns[0] == [7, None, 9, 1]
    assert columns[1][3] == moment + datetime.timedelta(milliseconds=8)
    assert columns[2][2] is None, "never is no moment"
    assert found.ts.tolist() == [1, 2, 2, 8]


def test_moments_are_those_of_the_years_1_to_9999() -> None:
    first = datetime.datetime(1, 1, 1)
    last = datetime.datetime(9999, 12, 31, 23, 59, 59, 999000)
    epoch, milli = datetime.datetime(1970, 1, 1), datetime.timedelta(milliseconds=1)
    ends = [(at - epoch) // milli for at in (first, last)]
    found = moments(np.array([ends[0] - 1, *ends, ends[1] + 1, FOREVER, -FOREVER])).to_pylist()
    assert found == [None, first, last, None, None, None]


def test_some_rows_of_columns_are_taken_where_they_are_asked_for() -> None:
    columns = (np.array([4, 5, 6]), pa.array(["a", None, "c"]))
    some = Taken(columns, np.array([2, 1]))
    assert len(some) == 2
    assert some[0].tolist() == [6, 5]
    assert some[1].to_pylist() == ["c", None]
    assert taken(columns[1], slice(1, None)).to_pylist() == [None, "c"]


def test_libraries_see_columns_of_numpy_without_null() -> None:
    at = datetime.datetime(2024, 2, 29, 12)
    columns = [pa.array([1]), pa.array([0.5]), pa.array([True]), pa.array(["a"]), pa.array([at])]
    found = for_library("f()", columns)
    assert [column.dtype.kind for column in found] == ["i", "f", "b", "O", "M"]
    assert as_numpy(columns[4])[0] == np.datetime64(at)
    with pytest.raises(LibraryFailed, match=r"f\(\): an argument is NULL"):
        for_library("f()", [pa.array([1, None])])


@pytest.mark.parametrize("size", [0, 5, FOREVER, None])
def test_an_end_is_a_size_later_as_far_as_there_is_time(size: int | None) -> None:
    operator = ColumnarSetEnd(n.SetEndNode(EDGE, size, ()))
    out, promise = operator.process([batch(*ROWS, (FOREVER - 2, FOREVER, 0))], 9, False)
    for (ts, te, _), row in zip(out.elements(), [*ROWS, (FOREVER - 2, 0, 0)], strict=True):
        assert ts == row[0]
        assert te == (FOREVER if size is None else min(row[0] + size, FOREVER))
    assert promise == 9
    assert operator.save() is None


@pytest.mark.parametrize("seed", range(5))
def test_a_merge_is_in_the_order_of_ts_te_input_and_arrival(seed: int) -> None:
    chance = random.Random(seed)
    inputs = []
    for number in range(3):
        rows = sorted((chance.randrange(5), chance.randrange(5, 8)) for _ in range(6))
        inputs.append([(ts, te, 10 * number + at) for at, (ts, te) in enumerate(rows)])
    node = n.MergeNode((EDGE,) * 3, (("v", INTEGER),))
    out, _ = ColumnarMerge(node).process([batch(*rows) for rows in inputs], 9, False)
    want = sorted((row for rows in inputs for row in rows), key=lambda row: row)
    assert out.elements() == want
