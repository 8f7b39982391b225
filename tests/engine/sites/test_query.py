"""X-SQL joins spread over sites, compared with DuckDB on the same rows."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from seustream.compiler.pipeline import compile_text
from seustream.engine.sites.errors import BadQuery, DisconnectedJoinGraph, RowWindowRefused
from seustream.engine.sites.model import EquiJoin
from seustream.engine.sites.query import blocks_of, join_of
from tests.engine.sites.network import LineFaults
from tests.engine.sites.running import feed, network

STREAMS = "CREATE STREAM R (a int, b int); CREATE STREAM S (d bigint, e varchar(9)); CREATE STREAM T (f varchar(5));"
COLUMNS = {"R": ("a", "b"), "S": ("d", "e"), "T": ("f",)}


def join(query: str) -> EquiJoin:
    return join_of(compile_text(STREAMS + query).program.queries[0])


def rows(seed: int, name: str, tuples: int = 40) -> pa.Table:
    chance = np.random.default_rng([seed, ord(name)])
    columns: dict[str, pa.Array] = {"ts": pa.array(np.sort(chance.integers(0, 60, tuples)))}
    for column in COLUMNS[name]:
        values = chance.integers(0, 6, tuples)
        kind = pa.string() if column in "ef" else pa.int64()
        columns[column] = pa.array(
            [None if chance.random() < 0.1 else v for v in values.tolist()], pa.int64()
        ).cast(kind)
    return pa.table(columns)


CASES = {
    "one key": ("R, S", "R.a = S.d", (9, 4)),
    "chain": ("R, S, T", "R.a = S.d AND S.e = T.f", (20, 5, 0)),
    "two keys": ("R, R R2", "R.a = R2.b AND R.b = R2.a", (15, 15)),
    "inequality": ("R, S", "R.a = S.d AND R.b < S.d", (9, 4)),
    "or": (
        "R, S, T",
        "R.a = S.d AND S.e = T.f AND (R.b > 3 OR R.b IS NULL OR S.d = 2)",
        (20, 5, 9),
    ),
    "either": ("R, S", "(R.a = S.d AND R.b = 1) OR (R.a = S.d AND S.e = '2')", (12, 12)),
    "across": ("R, S, T", "R.a = S.d AND S.e = T.f AND CAST(R.b AS varchar) <> T.f", (20, 5, 9)),
    "at the source": ("R, S", "R.a = S.d AND R.b > 2 AND S.e IS NOT NULL", (9, 9)),
    "in time": ("R, S", "R.a = S.d AND R.ts < S.ts", (9, 9)),
    "triangle": ("R, S, R R2", "R.a = S.d AND S.d = R2.b", (6, 30, 12)),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("seed", range(3))
def test_against_duckdb(name: str, seed: int) -> None:
    sources, condition, windows = CASES[name]
    ranges = ", ".join(f"RANGE {window}" for window in windows)
    made = join(f"SELECT * FROM {sources} WHERE {condition} WINDOW {ranges};")
    tables = [rows(seed, source.strip()[0]) for source in sources.split(",")]
    net = network(made, seed, LineFaults(20, 0.1, 0.1))
    blocks = [
        block for k, table in enumerate(tables) for block in blocks_of(made.streams[k], k, table)
    ]
    feed(net, sorted(blocks, key=lambda block: block.tau))
    found = sorted(tuple(row.payload[0] for row in result.rows) for _, result in net.results)
    with duckdb.connect() as connection:
        for table, source in zip(tables, made.streams, strict=True):
            place = pa.array(range(table.num_rows))
            connection.register(source.name, table.append_column("place", place))
        times = ", ".join(f"{source.name}.ts" for source in made.streams)
        inside = " AND ".join(
            f"greatest({times}) - {source.name}.ts <= {window}"
            for source, window in zip(made.streams, windows, strict=True)
        )
        names = [source.name for source in made.streams]
        places = ", ".join(f"{name}.place" for name in names)
        answer = connection.sql(
            f"SELECT {places} FROM {', '.join(names)} WHERE ({condition}) AND {inside}"
        ).fetchall()
    assert found == sorted(answer)
    assert found


@pytest.mark.parametrize("condition", ["R.a < S.d", "R.a = S.d OR R.b = S.d", "R.a = 3"])
def test_streams_that_nothing_equates_are_refused(condition: str) -> None:
    with pytest.raises(DisconnectedJoinGraph, match="no equality connects S with R"):
        join(f"SELECT * FROM R, S WHERE {condition} WINDOW RANGE 5;")


def test_windows_that_count_are_refused() -> None:
    with pytest.raises(RowWindowRefused):
        join("SELECT * FROM R, S WHERE R.a = S.d WINDOW ROWS 5;")


def test_blocks_are_numbered_on() -> None:
    made = join("SELECT * FROM R, S WHERE R.a = S.d WINDOW RANGE 5;")
    table = pa.table({"ts": [1, 1, 4], "a": [5, 6, 7], "b": [0, 0, 0]})
    blocks = list(blocks_of(made.streams[0], 0, table, first=3))
    assert [(b.no, b.tau, [r.keys for r in b.rows]) for b in blocks] == [
        (3, 1, [(5,), (6,)]),
        (4, 4, [(7,)]),
    ]
    blocks = list(blocks_of(made.streams[0], 0, table, most=2))
    assert [(b.no, b.tau, [r.payload for r in b.rows]) for b in blocks] == [
        (0, 1, [(0,), (1,)]),
        (1, 4, [(2,)]),
    ]
    with pytest.raises(BadQuery, match="order"):
        list(blocks_of(made.streams[0], 0, table.take([2, 0])))
