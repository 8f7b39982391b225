"""The prices of one symbol, and the results of MATCH_RECOGNIZE over them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from seustream.compiler.catalogue import Column, Stream
from seustream.compiler.language.types import INT, VARCHAR
from seustream.compiler.pattern.rows import RowQuery
from seustream.compiler.pattern.statements import compile_pattern
from seustream.engine.pattern.event import END_OF_STREAM
from seustream.engine.pattern.recognize.operator import RowOperator

TICKER = Stream("ticker", (Column("symbol", VARCHAR), Column("price", INT)))


def run(inside: str, prices: list[int | None], cuts: tuple[int, ...] = ()) -> list[dict[str, Any]]:
    """Returns the results over one symbol, with a price each tick from 0 on."""
    text = f"SELECT * FROM ticker MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY ts {inside})"
    query = compile_pattern(text, TICKER, bounded=True)
    assert isinstance(query, RowQuery)
    operator = RowOperator(query)
    count = len(prices)
    symbols = pa.array(["ACME"] * count, pa.string())
    rows = {"ts": range(count), "symbol": symbols, "price": pa.array(prices, pa.int32())}
    operator.push_table(pa.table(rows))
    found = []
    for cut in (*cuts, END_OF_STREAM):
        found += operator.advance_table(cut)[0].drop_columns("symbol").to_pylist()
    return found
