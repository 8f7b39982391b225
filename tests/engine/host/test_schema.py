"""Types of columns, of results, and the errors' shape."""

from __future__ import annotations

import pyarrow as pa
import pytest

from compiler.language.types import Kind, Type
from engine.host.schema import arrow_type

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
    Kind.BOOLEAN: pa.bool_(),
    Kind.NULL: pa.null(),
}


@pytest.mark.parametrize("kind", Kind)
def test_every_type_but_error_has_its_column(kind: Kind) -> None:
    if kind is Kind.ERROR:
        with pytest.raises(KeyError):
            arrow_type(Type(kind))
    else:
        assert arrow_type(Type(kind)) == WANT[kind]


def test_a_length_changes_no_column() -> None:
    assert arrow_type(Type(Kind.VARCHAR, 80)) == pa.string()
    assert arrow_type(Type(Kind.CHAR, 1)) == pa.string()
