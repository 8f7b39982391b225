"""Functions that choose among values, by their definition; and values the column kernels leave to
the row reference."""

from __future__ import annotations

import datetime
import math
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from seustream.compiler.errors import Problems
from seustream.compiler.language import expressions as x
from seustream.compiler.language import types as t
from seustream.compiler.language.evaluate import compile_row
from seustream.compiler.language.functions import FUNCTIONS
from seustream.compiler.language.functions import columns as c
from tests.compiler.language.plain import bind

COLUMNS = {"a": t.DOUBLE, "b": t.DOUBLE, "d": t.DOUBLE}
VALUES = [None, 0.0, -0.0, 1.5, -2.0, math.inf]


def results(text: str, rows: list[tuple[Any, ...]]) -> list[Any]:
    bound = bind(text, COLUMNS)
    assert not isinstance(bound, Problems)

    def leaf(e: x.Leaf) -> Any:
        assert isinstance(e, x.ColumnReference)
        place = list(COLUMNS).index(e.name)
        return lambda row: row[place]

    return [compile_row(bound, leaf)(row) for row in rows]


def test_choices_by_definition() -> None:
    rows = [(a, b, d) for a in VALUES for b in VALUES for d in VALUES]
    known = [[v for v in row if v is not None] for row in rows]
    assert results("coalesce(a, b, d)", rows) == [some[0] if some else None for some in known]
    assert results("greatest(a, b, d)", rows) == [max(some, default=None) for some in known]
    assert results("least(a, b, d)", rows) == [min(some, default=None) for some in known]
    assert results("nullif(a, b)", rows) == [None if a == b else a for a, b, _ in rows]
    zeros = results("greatest(a, b)", [(-0.0, None, None), (-0.0, 0.0, None), (0.0, -0.0, None)])
    assert [math.copysign(1, found) for found in zeros] == [1, 1, 1]


@pytest.mark.parametrize("name", ["greatest", "least"])
def test_conditions_are_ordered_by_columns_too(name: str) -> None:
    entry = FUNCTIONS[name]
    assert entry.columns is not None
    values = [True, False, None]
    pairs = [(a, b) for a in values for b in values]
    found = entry.columns(pc, *(pa.array(column) for column in zip(*pairs, strict=True)))
    pick = max if name == "greatest" else min
    assert found.to_pylist() == [
        pick((v for v in pair if v is not None), default=None) for pair in pairs
    ]


def test_what_differs_by_row_is_no_constant() -> None:
    assert c.constant(pa.scalar(3)) == 3
    assert not c.is_constant(pa.array([3]))
    with pytest.raises(ValueError, match="differs by row"):
        c.constant(pa.array([3]))


def test_a_divisor_0_is_null_and_a_constant_one_is_not_divided_by() -> None:
    assert c.nonzero(pc, pa.array([1, 0, None])).to_pylist() == [1, None, None]
    assert c.nonzero(pc, pa.scalar(2)) == pa.scalar(2)
    for nothing in (pa.scalar(0), pa.scalar(None, pa.int64())):
        with pytest.raises(ValueError, match="constant 0"):
            c.nonzero(pc, nothing)


def test_letters_of_other_alphabets_are_left_to_the_rows() -> None:
    plain = pa.array(["abc", None, ""])
    assert c.all_ascii(pc, plain) is plain
    with pytest.raises(ValueError, match="ASCII"):
        c.all_ascii(pc, pa.array(["abc", "ß"]))


def test_moments_and_durations_are_those_python_has() -> None:
    micros = pa.timestamp("us")
    ends = [datetime.datetime.min, None, datetime.datetime.max]
    moments = pa.array(ends, micros)
    assert c.check_moments(pc, moments) is moments
    assert c.check_moments(pc, pa.array([None], micros)).to_pylist() == [None]
    for beyond in (-(2**62), 2**62):
        with pytest.raises(ValueError, match="timestamp overflow"):
            c.check_moments(pc, pa.array([0, beyond], micros))
    milli = datetime.timedelta(milliseconds=1)
    longest, shortest = datetime.timedelta.max // milli, datetime.timedelta.min // milli + 1
    some = pa.array([longest, shortest, None], pa.duration("ms"))
    assert c.check_durations(pc, some) is some
    with pytest.raises(ValueError, match="interval overflow"):
        c.check_durations(pc, pa.array([longest + 2], pa.duration("ms")))
