"""DuckDB with the rows of `expressions`, on one connection for a whole run."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

from tests.engine.stream.expressions import COUNT, ROWS


@pytest.fixture(scope="session")
def duck() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 1})
    table = pa.table(ROWS).append_column("id", pa.array(range(COUNT)))
    connection.register("incoming", table)
    # The upper case of ß is SS, as in Spark; DuckDB uses the single letter ẞ.
    connection.execute("CREATE MACRO capitals(t) AS replace(upper(t), 'ẞ', 'SS')")
    connection.execute("CREATE TABLE rows AS SELECT * FROM incoming")
    return connection
