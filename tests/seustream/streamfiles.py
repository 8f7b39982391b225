"""Files for streams in the working folder: written, then read as rows or as their error
messages."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pyarrow as pa
import pytest

from seustream.compiler.catalogue import Column, Stream
from seustream.compiler.language.types import INT, REAL, Kind, Type
from seustream.errors import InputError
from seustream.reading import read

ROADS = Stream(
    "Roads",
    (Column("xPos", INT), Column("dir", Type(Kind.VARCHAR, 4)), Column("speed", REAL)),
)
R = Stream("R", (Column("a", INT), Column("b", Type(Kind.VARCHAR))))


def put(name: str, content: str | bytes) -> Path:
    path = Path(name)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def silent(message: str) -> NoReturn:
    raise AssertionError(f"unexpected warning: {message}")


def rows(path: Path, stream: Stream = R) -> list[tuple[object, ...]]:
    table = read(path, stream, silent)
    assert table.schema.names == ["ts", *(column.name for column in stream.columns)]
    assert table.schema.field(0).type == pa.int64()
    assert not table.schema.field(0).nullable
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def errors(path: Path, stream: Stream = R) -> list[str]:
    with pytest.raises(InputError) as caught:
        read(path, stream, silent)
    assert caught.value.total >= len(caught.value.messages) - 1
    return list(caught.value.messages)
