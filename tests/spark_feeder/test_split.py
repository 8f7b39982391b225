"""Keys divided over bridges: equal keys meet, whatever their types, and each bridge gets some."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from seustream.spark_feeder.split import NoKey, places, split


@pytest.mark.parametrize("bridges", [2, 3, 7])
def test_equal_keys_meet(bridges: int) -> None:
    numbers = list(range(-500, 500))
    wide = places(pa.array(numbers, pa.int64()), bridges)
    for kind in (pa.int16(), pa.int32()):
        assert np.array_equal(places(pa.array(numbers, kind), bridges), wide)
    assert min(np.bincount(wide, minlength=bridges)) > 500 / bridges
    texts = pa.array([f"host {i % 100}" for i in numbers])
    found = places(texts, bridges)
    assert np.array_equal(places(texts.cast(pa.large_string()), bridges), found)
    assert all(len(set(found[i::100])) == 1 for i in range(100))
    assert set(found) == set(range(bridges))


def test_rows_are_divided_and_none_is_lost() -> None:
    rows = pa.record_batch({"k": pa.array([1, None, 2, 3, 1], pa.int32()), "v": [1, 2, 3, 4, 5]})
    parts = split(rows, "k", 2)
    assert sorted(v for part in parts for v in part.column("v").to_pylist()) == [1, 2, 3, 4, 5]
    assert split(rows, None, 1) == [rows]
    with pytest.raises(NoKey):
        split(rows, None, 2)
    with pytest.raises(NoKey, match="double is no key"):
        places(pa.array([1.5]), 2)


def test_the_key_is_found_in_any_case() -> None:
    """A name that there is not is not the last column."""
    rows = pa.record_batch({"k": pa.array([1, 2, 3, 4, 5, 6]), "v": [0] * 6})
    assert split(rows, "K", 2) == split(rows, "k", 2)
    assert all(part.num_rows for part in split(rows, "k", 2))
    with pytest.raises(NoKey, match="no column key to divide the rows by, but k, v"):
        split(rows, "key", 2)
