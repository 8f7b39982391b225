"""Rows that were told last, beside a dict; and which rows are changes, by the definition."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

from seustream.engine.relational.told import NOWHERE, RowNumbers, ToldRows, changing, signed

TYPES = [pa.string(), pa.list_(pa.int64())]


def rows(cells: list[tuple[Any, ...]]) -> list[pa.Array]:
    return [pa.array([row[n] for row in cells], of) for n, of in enumerate([*TYPES, pa.int64()])]


@pytest.mark.parametrize("seed", range(40))
def test_told_rows_beside_a_dict(seed: int) -> None:
    chance = random.Random(seed)
    told, want = ToldRows(TYPES), dict[int, tuple[Any, ...]]()
    with patch("seustream.engine.relational.told._FEW", 2):
        for step in range(40):
            things = chance.sample(range(12), chance.randint(0, 6))
            some = np.array(things, np.int64)
            kind = chance.random()
            if kind < 0.6:
                new = [(chance.choice(["a", None]), [step], chance.randint(0, 9)) for _ in things]
                told.add(some, rows(new))
                want |= dict(zip(things, new, strict=True))
            elif kind < 0.9:
                told.forget(some)
                want = {thing: row for thing, row in want.items() if thing not in things}
            else:
                now = dict(zip(things, chance.sample(range(12), len(things)), strict=True))
                told.renumber(some, np.array([*now.values()], np.int64))
                want = {now[thing]: row for thing, row in want.items() if thing in now}
            told.trim()
            assert len(told.numbers) <= 2 * len(want) + 2
            have, columns = told.all()
            found = zip(*(column.to_pylist() for column in columns), strict=True)
            assert dict(zip(have.tolist(), found, strict=True)) == want
            row, _ = told.last(np.arange(20))
            assert (row != NOWHERE).tolist() == [n in want for n in range(20)]


@pytest.mark.parametrize("seed", range(60))
def test_equal_rows_that_come_and_go_at_a_moment_are_no_changes(seed: int) -> None:
    chance = random.Random(seed)
    cells = [
        (
            chance.randint(0, 3),
            chance.randint(0, 2),
            chance.randint(-1, 1),
            chance.random() < chance.choice([0, 0.5, 1]),
        )
        for _ in range(chance.randint(0, 30))
    ]
    moment, row, oldest, comes = (
        (np.array(one) for one in zip(*cells, strict=True))
        if cells
        else [np.empty(0, np.int64)] * 4
    )
    keeps = changing(row, oldest, moment, comes.astype(np.bool_)).tolist()
    left = range(len(cells))
    for fields in ((0, 1, 2), (0, 1)):  # equal ones of one time, then of any
        keys = {place: tuple(cells[place][n] for n in fields) for place in left}
        there = Counter((keys[place], cells[place][-1]) for place in left)
        skipped, stay = Counter[Any](), []
        for place in left:
            key, sign = keys[place], cells[place][-1]
            skips = skipped[key, sign] < min(there[key, True], there[key, False])
            skipped[key, sign] += skips
            stay += [] if skips else [place]
        left = stay
    assert keeps == [place in left for place in range(len(cells))]


def test_a_row_that_changes_goes_before_it_comes() -> None:
    columns = [pa.array(["a", "b", "c"]), pa.array([1, 2, 3])]
    before, after = np.array([NOWHERE, 0, 2, NOWHERE]), np.array([1, 2, NOWHERE, NOWHERE])
    found = signed(
        before,
        after,
        np.array([5, 6, 7, 8]),
        lambda at: [one.take(pa.array(at)) for one in columns],
    )
    assert found.moment.tolist() == [5, 6, 6, 7]
    assert found.comes.tolist() == [True, False, True, False]
    assert [column.to_pylist() for column in found.rows] == [["b", "a", "c", "c"], [2, 1, 3, 3]]


def test_equal_rows_look_alike() -> None:
    numbers = RowNumbers([pa.float64(), pa.float32()])
    zeros = [pa.array([-0.0, 0.0, None]), pa.array([0.0, -0.0, -0.0], pa.float32())]
    found = numbers.of(zeros, 3)
    assert found.tolist() == [0, 0, 1]
    assert str([one.to_pylist() for one in numbers.columns(found, np.arange(3))[:2]]) == (
        "[[0.0, 0.0, None], [0.0, 0.0, 0.0]]"
    )
