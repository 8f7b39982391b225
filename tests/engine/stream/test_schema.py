"""The Arrow column of each type."""

from __future__ import annotations

import pyarrow as pa
import pytest

from seustream.compiler.language.types import Kind, Type, decimal, list_of
from seustream.compiler.pipeline import compile_text
from seustream.engine.stream.schema import arrow_type, in_milliseconds, with_time

WANT = {
    Kind.SMALLINT: pa.int16(),
    Kind.INT: pa.int32(),
    Kind.BIGINT: pa.int64(),
    Kind.REAL: pa.float32(),
    Kind.DOUBLE: pa.float64(),
    Kind.CHAR: pa.string(),
    Kind.VARCHAR: pa.string(),
    Kind.DATE: pa.date32(),
    Kind.TIME: pa.time32("ms"),
    Kind.TIMESTAMP: pa.timestamp("us"),
    Kind.INTERVAL: pa.duration("ms"),
    Kind.BOOLEAN: pa.bool_(),
    Kind.NULL: pa.null(),
}


@pytest.mark.parametrize("kind", [*WANT, Kind.ERROR])
def test_every_type_but_error_has_its_column(kind: Kind) -> None:
    if kind is Kind.ERROR:
        with pytest.raises(KeyError):
            arrow_type(Type(kind))
    else:
        assert arrow_type(Type(kind)) == WANT[kind]


def test_digits_and_elements_are_the_columns() -> None:
    assert arrow_type(decimal(38, 6)) == pa.decimal128(38, 6)
    assert arrow_type(list_of(decimal(9, 2))) == pa.list_(pa.decimal128(9, 2))
    assert {*WANT, Kind.ERROR, Kind.DECIMAL, Kind.LIST} == {*Kind}


def test_a_length_changes_no_column() -> None:
    assert arrow_type(Type(Kind.VARCHAR, 80)) == pa.string()
    assert arrow_type(Type(Kind.CHAR, 1)) == pa.string()


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_a_time_before_1970_is_rounded_down(unit: str, zone: str | None) -> None:
    """So that times keep their order, and 1969 is no later than it was."""
    each = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    given = [one * each + part for one in (-2, -1, 0, 1) for part in (-1, 0, 1)]
    column = pa.array([*given, None], pa.int64()).cast(pa.timestamp(unit, zone))
    want = [one * 1000 // each for one in given]
    (stream,) = compile_text("CREATE STREAM R (at timestamp) WITH (time = 'at');").streams
    rows = pa.table({"at": column})
    assert with_time(stream, rows).column("ts").to_pylist() == [*want, None]
    assert in_milliseconds(column).to_pylist() == [*want, None]
