"""Taking some rows of a column, for every type, compared with Arrow's own function."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from seustream.compiler.language.types import Type
from seustream.engine.stream.schema import arrow_type
from seustream.engine.stream.taken import taken
from tests.engine.stream.values import TYPES, value

_OTHERS = [pa.null(), pa.list_(pa.int64()), pa.dictionary(pa.int32(), pa.string())]


@pytest.mark.parametrize("of", TYPES, ids=str)
@pytest.mark.parametrize("nulls", [False, True])
def test_the_same_rows_as_arrow_takes(of: Type, nulls: bool) -> None:
    chance = random.Random(f"{of} {nulls}")
    for count in (1, 2, 7, 64, 200):
        cells = [
            None if nulls and chance.random() < 0.3 else value(chance, of) for _ in range(count)
        ]
        column = pa.array([None, *cells, *cells], arrow_type(of)).slice(1, count)
        for size in (0, 1, 9, 100):
            places = [chance.randrange(count) for _ in range(size)]
            for width in (np.int32, np.int64):
                found = taken(column, np.array(places, width))
                found.validate(full=True)
                assert found.equals(column.take(pa.array(places, pa.int64())))
                assert found.null_count == sum(not column[place].is_valid for place in places)


@pytest.mark.parametrize("of", _OTHERS, ids=str)
def test_columns_of_other_types(of: pa.DataType) -> None:
    cells = [None, [1, 2], []] if pa.types.is_list(of) else [None, "a", "b"]
    column = pa.nulls(3) if pa.types.is_null(of) else pa.array(cells, of)
    assert taken(column, np.array([2, 0, 2])).equals(column.take(pa.array([2, 0, 2])))


def test_places_apart_in_memory_and_places_that_are_not_there() -> None:
    column = pa.array([3.5, None, 1.5])
    assert taken(column, np.arange(6)[::2][:2]).to_pylist() == [3.5, 1.5]
    for place in (-1, 3):
        with pytest.raises(RuntimeError, match="not there"):
            taken(column, np.array([place]))
