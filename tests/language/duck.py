"""DuckDB as the judge of `cases.txt`: evaluates a case over a table with its columns.

Columns of the integer types are bigints there, because integer arithmetic is done in 64 bits.
General differences are translated on the way back: NaN becomes NULL.
"""

from __future__ import annotations

import datetime
import math
import struct
from decimal import Decimal

import duckdb

from tests.language.casefile import Case, Scalar, Value

_TYPES = {"smallint": "BIGINT", "int": "BIGINT", "bigint": "BIGINT", "double": "DOUBLE"}


def connect() -> duckdb.DuckDBPyConnection:
    """Returns a connection whose rows keep their order."""
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def literal(value: Scalar | None, type_: str) -> str:
    """Returns a value as DuckDB's SQL, cast to its type."""
    to = _TYPES.get(type_, type_.upper())
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return f"CAST(NULL AS {to})"
    if isinstance(value, datetime.timedelta):
        return f"to_milliseconds({value // datetime.timedelta(milliseconds=1)})"
    text = f"{value:f}" if isinstance(value, Decimal) else str(value)
    return "CAST('{}' AS {})".format(text.replace("'", "''"), to)


def ask(connection: duckdb.DuckDBPyConnection, case: Case) -> Value:
    """Returns DuckDB's value of a case; raises `duckdb.Error` if it has none."""
    columns = [*case.columns, ("_", "int")]
    selects = [
        "SELECT "
        + ", ".join(
            f'{literal(value, type_)} AS "{name}"'
            for value, (name, type_) in zip([*row, None], columns, strict=True)
        )
        for row in case.rows
    ]
    if not selects:
        nothing = ", ".join(f'{literal(None, type_)} AS "{name}"' for name, type_ in columns)
        selects = [f"SELECT {nothing} WHERE FALSE"]
    connection.execute(f"CREATE OR REPLACE TEMP TABLE cells AS {' UNION ALL '.join(selects)}")
    text = case.expression if case.duckdb is None else case.duckdb
    row = connection.execute(f"SELECT {text} FROM cells").fetchone()
    assert row is not None
    value = row[0]
    return None if isinstance(value, float) and math.isnan(value) else value


def difference(connection: duckdb.DuckDBPyConnection, case: Case) -> str | None:
    """Returns how DuckDB's answer to a case differs from the file, None if they agree. If the value
    is a fault, DuckDB may refuse, give NULL, or give infinity."""
    try:
        value = ask(connection, case)
    except duckdb.Error as error:
        if case.faults and case.value is None and not isinstance(error, _MISTAKES):
            return None
        return f"{case}\n    DuckDB: {str(error).splitlines()[0]}"
    if case.faults and case.value is None and isinstance(value, float) and math.isinf(value):
        return None
    if same(value, case.value, case.type, case.nearly):
        return None
    return f"{case}\n    expected {case.value!r}, DuckDB: {value!r}"


_MISTAKES = (duckdb.BinderException, duckdb.ParserException, duckdb.CatalogException)


def same(value: object, expected: Value, type_: str, nearly: bool = False) -> bool:
    """Returns whether a value of DuckDB, converted to the type, is the expected one."""
    if value is None or expected is None:
        return value is expected
    if isinstance(expected, list):
        of = type_.removeprefix("list(").removesuffix(")")
        return (
            isinstance(value, list)
            and len(value) == len(expected)
            and all(same(a, b, of) for a, b in zip(value, expected, strict=True))
        )
    if isinstance(expected, bool) or isinstance(value, bool):
        return value is expected
    if isinstance(expected, float):
        if not isinstance(value, (int, float, Decimal)):
            return False
        number = float(value)
        if nearly:
            return abs(number - expected) <= 4 * math.ulp(expected)
        return number == (single(expected) if type_ == "real" else expected)
    if isinstance(expected, (int, Decimal)):
        return isinstance(value, (int, float, Decimal)) and value == expected
    return type(value) is type(expected) and value == expected


def single(value: float) -> float:
    """Returns a double rounded to 24 bits."""
    return float(struct.unpack("f", struct.pack("f", value))[0])
