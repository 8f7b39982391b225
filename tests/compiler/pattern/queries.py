"""Streams and queries for the pattern tests."""

from __future__ import annotations

from seustream.compiler.catalogue import Column, Stream
from seustream.compiler.language.types import BIGINT, DOUBLE, INT, VARCHAR
from seustream.compiler.pattern import ir
from seustream.compiler.pattern.statements import compile_pattern

STOCK = Stream("stock", (Column("type", VARCHAR), Column("price", DOUBLE), Column("volume", INT)))
T = Stream("t", (Column("kind", BIGINT), Column("price", DOUBLE)))


def query(text: str, bounded: bool = False, **parameters: float | str) -> ir.PatternQuery:
    return compile_pattern(text, STOCK, parameters=parameters, bounded=bounded)
