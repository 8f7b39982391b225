"""Times that a column may hold, against those that Python can represent."""

from __future__ import annotations

import pyarrow as pa
import pytest

from seustream.compiler.language.types import TIME_RANGES, Kind, Type
from seustream.engine.stream.ranges import IN_WORDS, out_of_range
from seustream.engine.stream.schema import arrow_type


@pytest.mark.parametrize("kind", TIME_RANGES)
def test_ranges_are_those_of_python(kind: Kind) -> None:
    low, high = TIME_RANGES[kind]
    assert kind in IN_WORDS
    of = arrow_type(Type(kind))
    numbers = pa.int32() if of.bit_width == 32 else pa.int64()

    def column(*values: int | None) -> pa.Array:
        return pa.array(values, numbers).view(of)

    assert None not in column(low, high).to_pylist()
    assert not out_of_range(column(low, None, high), kind)
    assert not out_of_range(column(None), kind)
    assert not out_of_range(column(), kind)
    for value in (low - 1, high + 1):
        assert out_of_range(column(0, value, None), kind)
        assert out_of_range(pa.array([value], numbers), kind)
        if kind in (Kind.DATE, Kind.TIMESTAMP):
            with pytest.raises((OverflowError, ValueError)):
                column(value).to_pylist()


def test_other_types_have_no_range() -> None:
    assert not out_of_range(pa.array([2**62]), Kind.BIGINT)
