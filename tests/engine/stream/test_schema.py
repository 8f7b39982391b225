"""The Arrow column of each type."""

from __future__ import annotations

import pyarrow as pa
import pytest

from seustream.compiler.language.types import Kind, Type, decimal, list_of
from seustream.engine.stream.schema import arrow_type

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
