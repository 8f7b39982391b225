"""Asks DuckDB for the values of an expression, as `judge` writes it, over rows of the core."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa

from seustream.compiler.language import expressions as x
from seustream.compiler.language.types import Kind, Type
from seustream.engine.stream.schema import arrow_type
from tests.language.duck import connect
from tests.language.judge import MACROS
from tests.language.spelling import MILLISECOND


def connection() -> duckdb.DuckDBPyConnection:
    """Returns a connection with the macros."""
    found = connect()
    found.execute(MACROS)
    return found


def cells(of: Type, values: Sequence[Any]) -> pa.Array:
    """Returns a column in the form that DuckDB takes."""
    if of.kind is Kind.INTERVAL:
        return pa.array([None if v is None else v // MILLISECOND for v in values], pa.int64())
    return pa.array(values, arrow_type(of))


def load(
    connection: duckdb.DuckDBPyConnection,
    columns: Iterable[x.ColumnReference],
    rows: Sequence[Mapping[str, Any]],
) -> None:
    """Makes the table `cells` from these columns of the rows."""
    found = {c.name: cells(c.type, [row[c.name] for row in rows]) for c in columns}
    arrow = pa.table({"row": pa.array(range(len(rows))), **found})
    connection.register("arrow_cells", arrow)
    connection.execute("CREATE OR REPLACE TEMP TABLE cells AS SELECT * FROM arrow_cells")
    connection.unregister("arrow_cells")


def ask(connection: duckdb.DuckDBPyConnection, text: str, of: Type) -> list[Any]:
    """Returns the values of an expression over the rows of `cells`, in the core's form."""
    found = connection.execute(f"SELECT {text} FROM cells").fetchall()
    return [_back(value, of) for (value,) in found]


def _back(value: Any, of: Type) -> Any:
    if value is None:
        return None
    match of.kind:
        case Kind.INTERVAL:
            return datetime.timedelta(milliseconds=value)
        case Kind.LIST:
            assert of.element is not None
            return [_back(each, of.element) for each in value]
        case Kind.DOUBLE | Kind.REAL:
            return float(value)
        case Kind.SMALLINT | Kind.INT | Kind.BIGINT:
            return int(value)
    return value


def near(a: Any, b: Any) -> bool:
    """Returns whether two doubles are so close that only the mathematical library differs."""
    if not isinstance(a, float) or not isinstance(b, float):
        return a is None and b is None
    return a == b or math.isclose(a, b, rel_tol=1e-12, abs_tol=1e-300)
