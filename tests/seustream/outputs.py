"""Writes results into `out`; has a stream with a column of every type."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from seustream.compiler.catalogue import Column, Stream
from seustream.compiler.language.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    REAL,
    SMALLINT,
    TIME,
    TIMESTAMP,
    Kind,
    Type,
)
from seustream.engine.stream.schema import stream_schema
from seustream.writing import OutputSet

ALL = Stream(
    "All",
    (
        Column("R.small", SMALLINT),
        Column("R.int", INT),
        Column("R.big", BIGINT),
        Column("real", REAL),
        Column("double", DOUBLE),
        Column("char", Type(Kind.CHAR, 8)),
        Column('var"char, ', Type(Kind.VARCHAR)),
        Column("date", DATE),
        Column("time", TIME),
        Column("at", TIMESTAMP),
        Column("ok", BOOLEAN),
    ),
)


def put(format: str, table: pa.Table, name: str = "q") -> Path:
    with OutputSet("out", format, {name: table.schema}) as out:
        out.write(name, table)
    return out.paths[name]


def table_of(*columns: list[object]) -> pa.Table:
    return pa.table(list(columns), schema=stream_schema(ALL))
