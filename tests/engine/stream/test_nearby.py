"""Columns of numbers that are near each other, compared with a plain list."""

from __future__ import annotations

import bisect
import random

import numpy as np
import pytest

from seustream.engine.stream import nearby
from seustream.engine.stream.nearby import Nearby

LEAST, MOST = -(2**63), 2**63 - 1


@pytest.mark.parametrize("seed", range(40))
def test_it_holds_what_a_list_holds(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps are small, or so large that numbers are near each other no more."""
    print(f"seed {seed}")
    monkeypatch.setattr(nearby, "_MANY", 8)
    chance, column, plain = random.Random(seed), Nearby(), list[int]()
    far = chance.choice((2**28, 2**31, 2**33, 2**60))
    now = chance.choice((0, -(2**40), 10**12, LEAST, MOST - 2**33, LEAST + 100))
    for _ in range(300):
        if chance.random() < 0.6:
            some = []
            for _ in range(chance.randrange(12)):
                step = chance.choice((0, 1, 2, 50)) if chance.random() < 0.97 else far
                now = min(now + step, MOST)
                some.append(now)
            column.append(np.array(some, np.int64))
            plain += some
        else:
            count = chance.randrange(len(plain) // 4 + 1)
            column.drop(count)
            del plain[:count]
        assert len(column) == len(plain)
        assert column[:].tolist() == plain
        places = [chance.randrange(len(plain)) for _ in range(5 * bool(plain))]
        found = column[np.array(places, np.int64)]
        assert found.dtype == np.int64
        assert found.tolist() == [plain[place] for place in places]
        numbers = sorted(chance.choice([*plain, 0, LEAST, MOST]) for _ in range(4))
        assert column.search(np.array(numbers)).tolist() == [
            bisect.bisect_left(plain, n) for n in numbers
        ]
        assert column.find(numbers[0], after=True) == bisect.bisect_right(plain, numbers[0])


def test_many_that_are_near_take_four_bytes() -> None:
    column = Nearby()
    for first in range(0, 1_000_000, 10_000):
        column.append(np.arange(10**12 + first, 10**12 + first + 10_000))
        column.drop(max(0, len(column) - 200_000))
        assert column._held.view.itemsize == (8 if first < 10_000 else 4)


def test_numbers_that_decrease_are_held() -> None:
    column = Nearby()
    whole = np.concatenate(
        [np.arange(10**6, 10**6 + 30_000), np.arange(5), np.arange(-(2**50), -(2**50) + 5)]
    )
    for begin in range(0, len(whole), 1_000):
        column.append(whole[begin : begin + 1_000])
        assert (column[:] == whole[: begin + 1_000]).all()
    assert column._base is None
