"""Columns that grow at the end and shrink at the front, compared with a plain list."""

from __future__ import annotations

import random
import sys

import numpy as np
import pytest

from seustream.engine.stream.growing import Growing


@pytest.mark.parametrize("seed", range(20))
def test_it_holds_what_a_list_holds(seed: int) -> None:
    chance, column, plain = random.Random(seed), Growing(), []
    for _ in range(200):
        if chance.random() < 0.6:
            some = [chance.randrange(-(2**62), 2**62) for _ in range(chance.randrange(40))]
            column.append(np.array(some, np.int64))
            plain += some
        else:
            count = chance.randrange(len(plain) + 1)
            column.drop(count)
            del plain[:count]
        assert column.view.tolist() == plain
        assert len(column) == len(plain)


def test_its_memory_follows_what_it_holds() -> None:
    """A window of a million rows that has moved on keeps no array of a million alive."""
    column = Growing()
    column.append(np.arange(1_000_000))
    column.drop(999_990)
    assert column._data.nbytes < 1_000
    assert column.view.tolist() == list(range(999_990, 1_000_000))


@pytest.mark.parametrize("step", [1, 7, 300])
def test_a_window_that_moves_has_room_for_half_as_many_again(step: int) -> None:
    column, whole = Growing(), np.arange(6_000)
    for place in range(0, len(whole), step):
        column.append(whole[place : place + step])
        column.drop(max(0, len(column) - 1_000))
        assert column.view.tolist() == whole[: place + step][-1_000:].tolist()
    assert len(column._data) <= 3 * (1_000 + step) // 2 + 16


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux clears pages at once")
@pytest.mark.parametrize("seed", range(4))
def test_many_numbers_have_pages_of_their_own(seed: int) -> None:
    """What has been dropped takes no memory: it reads as zeros."""
    print(f"seed {seed}")
    chance, column, first, end, given = np.random.default_rng(seed), Growing(), 1, 1, 0
    for _ in range(60):
        count = int(chance.integers(1, 60_000))
        column.append(np.arange(end, end + count))
        end += count
        assert np.array_equal(column.view, np.arange(first, end))
        gone = int(chance.integers(0, 2 * count)) if len(column) > 100_000 else 0
        column.drop(gone)
        first += gone
        assert np.array_equal(column.view, np.arange(first, end))
        given = max(given, column._given)
        assert not column._data[: column._given // 8].any()
    assert given > 1_000_000
    column.drop(len(column) - 10)
    assert column._pages is None
    assert column.view.tolist() == list(range(end - 10, end))


def test_it_keeps_its_type() -> None:
    column = Growing(np.float64)
    column.append(np.array([0.5] * 100))
    column.drop(98)
    assert column.view.dtype == np.float64
