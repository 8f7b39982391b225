"""Expressions of one stream with columns of every type, over random rows or none."""

from __future__ import annotations

import math
import random
import re

import duckdb
import pyarrow as pa

from seustream.compiler.language import expressions as x
from seustream.compiler.pipeline import compile_text
from seustream.engine.host.rows import leaves
from seustream.engine.stream.evaluate import evaluate
from tests.engine.host.reference import ARROW, value

COLUMNS = {
    **{"s": "smallint", "i": "int", "j": "int", "b": "bigint", "c": "bigint"},
    **{"r": "real", "q": "real", "x": "double precision", "y": "double precision"},
    **{"t": "varchar(8)", "u": "varchar(8)", "d": "date", "e": "date", "m": "time", "n": "time"},
    **{"z": "timestamp", "w": "timestamp", "f": "boolean", "g": "boolean", "h": "boolean"},
}
CREATE = (
    "CREATE STREAM R (" + ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items()) + ");\n"
)
COUNT = 400


def make_rows() -> dict[str, pa.Array]:
    """Makes rows of small values, so that they often equal each other and sums stay in range,
    except in `b` and `j`."""
    chance = random.Random(2006)
    columns = {}
    for name, kind in COLUMNS.items():
        values: list[object] = []
        for _ in range(COUNT):
            found = value(chance, kind)
            if kind in ("smallint", "int", "bigint") and name not in ("b", "j"):
                found = chance.randint(-9, 9)
            elif kind in ("real", "double precision"):
                edges = (math.inf, -math.inf, 0.0, -0.0, 2.5, -2.5, 0.5, 1e10)
                found = chance.choice((*edges, *(chance.randint(-40, 40) / 8 for _ in edges)))
            values.append(None if chance.random() < 0.15 else found)
        columns[name] = pa.array(values, ARROW[kind])
    return columns


ROWS = make_rows()


def bound(text: str, create: str = CREATE) -> x.Expression:
    """Returns a typed expression of stream R."""
    compiled = compile_text(f"{create}SELECT {text} AS c FROM R WINDOW NOW;", stop_after="tree")
    return compiled.program.queries[0].items[0].expression


def computed(text: str) -> list[object]:
    e = bound(text)
    rows = {(0, name): column for name, column in ROWS.items()}
    found = evaluate(e, leaves(rows), COUNT)
    assert len(found) == COUNT
    return found.to_pylist()


def judged(connection: duckdb.DuckDBPyConnection, text: str) -> list[object]:
    """Returns DuckDB's values; NaN becomes NULL."""
    text = text.replace("upper(", "capitals(")
    found = connection.sql(f"SELECT {text} AS c FROM rows ORDER BY id").to_arrow_table()
    return [None if v != v else v for v in found.column("c").to_pylist()]


def same(found: list[object], wanted: list[object], text: str) -> None:
    assert len(found) == len(wanted)
    for row, (a, b) in enumerate(zip(found, wanted, strict=True)):
        there = {name: column[row].as_py() for name, column in ROWS.items() if name in text}
        assert a == b, (text, there)
        # A boolean does not pass for a 1, nor 0.0 for -0.0.
        assert isinstance(a, bool) == isinstance(b, bool), (text, there)
        # Either of two equal zeros may be the greatest.
        if isinstance(a, float) and isinstance(b, float) and not re.search("greatest|least", text):
            assert math.copysign(1, a) == math.copysign(1, b), (text, there)


def one(text: str) -> object:
    """Returns the value of an expression without columns."""
    (found,) = evaluate(bound(text), leaves({}), 1).to_pylist()
    return found
