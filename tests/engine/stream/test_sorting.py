"""Sorting by several keys, beside numpy's."""

from __future__ import annotations

import numpy as np
import pytest

from seustream.engine.stream.sorting import lexsort

FAR = 2**63 - 1


@pytest.mark.parametrize("count", [0, 1, 2, 40, 600, 5_000])
@pytest.mark.parametrize("seed", range(12))
def test_rows_are_in_the_order_of_their_keys(seed: int, count: int) -> None:
    """Keys are of all spans, some sorted, some all equal; together they may take several words."""
    chance = np.random.default_rng(seed)
    keys = []
    for _ in range(chance.integers(1, 6)):
        span = int(chance.choice([1, 2, 300, 10**6, 2**40, FAR]))
        key = chance.integers(-span, span, count)
        if chance.random() < 0.3:
            key.sort()
        if chance.random() < 0.2:
            key = key > 0
        if chance.random() < 0.2:
            key = np.repeat(key, 2)[::2]
        keys.append(key)
    assert lexsort(keys).tolist() == np.lexsort(keys).tolist()


def test_the_whole_range_of_numbers() -> None:
    key = np.array([FAR, -FAR - 1, 0, -1, FAR - 1])
    assert lexsort([key]).tolist() == [1, 3, 2, 4, 0]
    assert lexsort([np.arange(5)[::-1].copy(), key // FAR]).tolist() == [1, 3, 4, 2, 0]


def test_other_keys_are_refused() -> None:
    with pytest.raises(TypeError, match="keys of float64"):
        lexsort([np.zeros(3)])
    with pytest.raises(RuntimeError, match="other lengths"):
        lexsort([np.zeros(3, np.int64), np.zeros(2, np.int64)])
