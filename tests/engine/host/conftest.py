"""DuckDB with the rows of `expressions`, one connection for a run."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

from tests.engine.host.expressions import COUNT, ROWS


@pytest.fixture(scope="session")
def duck() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 1})
    table = pa.table(ROWS).append_column("id", pa.array(range(COUNT)))
    connection.register("incoming", table)
    connection.execute("CREATE TABLE rows AS SELECT * FROM incoming")
    return connection
