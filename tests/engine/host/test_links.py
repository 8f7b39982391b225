"""Links between streams by every way to find partners, compared with DuckDB; parts and codes of the
join.

Finds: a bound that omits a partner if a constant is added to a column, a value is NULL, or a sum
would overflow; memory of rows that are gone; a tuple whose results are split in two.
"""

from __future__ import annotations

import datetime
from decimal import Decimal

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from seustream.compiler.pipeline import compile_text
from seustream.engine.host import join as module
from seustream.engine.host.stages import SoftwareJoin
from seustream.engine.stream.faults import QueryFaults
from seustream.engine.stream.merge import END_OF_STREAM
from seustream.engine.stream.schema import stream_schema

BANDS = [
    "R.x BETWEEN S.x - 50 AND S.x + 50",
    "R.x > S.x AND S.x >= R.x - 9",
    "R.d BETWEEN S.d - 0.3 AND S.d + 0.1",
    "R.d < S.d - 2.5",
    "R.d <= S.x AND S.d > R.x",
    "R.e BETWEEN S.e AND S.e + 0.1",
    "R.t > S.t - INTERVAL '2' SECOND AND R.t <= S.t + INTERVAL '1' SECOND",
    "R.k = S.k AND R.x < S.x + 5",
    "R.k = S.k AND R.n = S.n",
    "R.k = S.k AND R.e = S.e AND R.x <> S.x",
    "R.e = S.e",
    "R.k < S.k AND R.x = S.n + 1",
    "R.big >= S.big - 1 AND R.big <= S.big",
    "R.k = S.k OR (R.x = S.x AND S.n < 9)",
    "(R.x + S.x > 5 AND R.k = S.k) OR (R.n < 10 AND R.e = S.e) OR R.x = S.n",
    "R.k <> S.k OR (R.x >= S.x AND R.n + S.n = 10)",
    "abs(R.x - S.n) <= 2",
    "R.n - S.x = 3 OR R.x + S.x = -10",
    "abs(R.d - S.d) <= 0.3",
    "R.e - S.e BETWEEN -0.05 AND 0.1",
    "R.t - S.t <= INTERVAL '1' SECOND AND S.t - R.t <= INTERVAL '1' SECOND",
    "R.x - S.d > 20 AND R.n <> S.n",
    "R.k IS NOT DISTINCT FROM S.k",
    "(R.e = S.e OR S.e IS NULL AND R.e IS NULL) AND R.t IS NOT DISTINCT FROM S.t",
]
COLUMNS = {
    "x": "int",
    "n": "int",
    "d": "double precision",
    "e": "decimal(12,2)",
    "t": "timestamp",
    "k": "varchar(20)",
    "big": "bigint",
}


def wide_rows(chance: np.random.Generator, count: int) -> pa.Table:
    """Returns rows with NULLs, short and long texts, and numbers whose sum would overflow."""

    def some(values: list[object], kind: pa.DataType) -> pa.Array:
        kept = [None if chance.random() < 0.1 else value for value in values]
        return pa.array(kept, kind)

    start = datetime.datetime(2024, 1, 1)
    numbers = chance.integers(-300, 300, count).tolist()
    edges = [2**63 - 1, -(2**62), 2**62 + 1, 7, 8]
    return pa.table(
        {
            "ts": pa.array(np.cumsum(chance.integers(0, 3, count))),
            "x": some(list(numbers), pa.int32()),
            "n": some(chance.integers(0, 20, count).tolist(), pa.int32()),
            "d": some((chance.integers(-40, 40, count) / 10).tolist(), pa.float64()),
            "e": some([Decimal(n - n % 3) / 100 for n in numbers], pa.decimal128(12, 2)),
            "t": some(
                [start + datetime.timedelta(milliseconds=10 * n) for n in numbers],
                pa.timestamp("us"),
            ),
            "k": some([f"{n % 7}" * (n % 2) for n in numbers], pa.string()),
            "big": some([edges[n % 5] for n in numbers], pa.int64()),
        }
    )


@pytest.mark.parametrize("large", [0, 1 << 40], ids=["by value", "by scan"])
@pytest.mark.parametrize("where", BANDS)
def test_conditions_between_columns_like_duckdb(
    where: str, large: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LARGE", large)
    seed = 40 + BANDS.index(where)
    print(f"seed {seed}")
    chance = np.random.default_rng(seed)
    streams = {name: wide_rows(chance, 350) for name in "RS"}
    columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    program = compile_text(
        "".join(f"CREATE STREAM {name} ({columns});" for name in streams)
        + f"SELECT R.*, S.* FROM R, S WHERE {where} WINDOW RANGE 300;",
        stop_after="predicate",
    ).program
    faults = {query.name: QueryFaults(True) for query in program.queries}
    operator = SoftwareJoin(program.streams, program.queries, 64, faults)
    found = []
    for stream in program.streams:
        operator.push(stream.name, streams[stream.name].cast(stream_schema(stream)))
        operator.advance(stream.name, END_OF_STREAM)
    for _, results in operator.outputs():
        found += zip(*(column.to_pylist() for column in results.columns), strict=True)
    with duckdb.connect() as connection:
        for name, rows in streams.items():
            connection.register(name, rows)
        names = ", ".join(f"{name}.{column}" for name in "RS" for column in COLUMNS)
        want = connection.execute(
            f"SELECT {names}, least(R.ts, S.ts), greatest(R.ts, S.ts) FROM R, S"
            f" WHERE ({where}) AND abs(R.ts - S.ts) <= 300"
        ).fetchall()
    assert len(want) > 10
    assert sorted(map(repr, found)) == sorted(map(repr, want))


def test_codes_of_texts_that_are_gone_are_forgotten() -> None:
    """Memory follows the window, however many different texts have passed."""
    program = compile_text(
        "CREATE STREAM R (k varchar(20)); CREATE STREAM S (k varchar(20));"
        "SELECT R.k FROM R, S WHERE R.k = S.k WINDOW ROWS 10;",
        stop_after="predicate",
    ).program
    query = program.queries[0]
    operator = SoftwareJoin(program.streams, [query], 64, {query.name: QueryFaults(False)})
    results = most = 0
    for start in range(0, 40_000, 1000):
        texts = [f"text {n}" for n in range(start, start + 1000)]
        for name in ("R", "S"):
            rows = pa.table({"ts": np.arange(start, start + 1000), "k": texts})
            operator.push(name, rows.cast(stream_schema(program.streams[0])))
            operator.advance(name, start + 999)
        results += sum(rows.num_rows for _, rows in operator.outputs())
        most = max(most, operator.windows[query.name].codes.count())
    assert results == 40_000
    assert 4000 < most < 12_000


def test_a_result_explosion_comes_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    program = compile_text(
        "CREATE STREAM R (a int); CREATE STREAM S (a int);"
        "SELECT R.a, S.a FROM R, S WINDOW UNBOUNDED;",
        stop_after="predicate",
    ).program
    query = program.queries[0]
    operator = SoftwareJoin(program.streams, [query], 8192, {query.name: QueryFaults(False)})
    monkeypatch.setattr(module, "_MOST_PAIRS", 10_000)
    for name in ("R", "S"):
        rows = pa.table({"ts": np.arange(500), "a": np.arange(500)})
        operator.push(name, rows.cast(stream_schema(program.streams[0])))
        operator.advance(name, END_OF_STREAM)
    sizes = [rows.num_rows for _, rows in operator.outputs()]
    assert sum(sizes) == 250_000
    assert max(sizes) <= 20_000


def test_a_tuple_in_several_roles_is_never_cut_in_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """The results of such a tuple change a group once."""
    program = compile_text(
        "CREATE STREAM R (a int);"
        "SELECT x.a, count(*) FROM R AS x, R AS y GROUP BY x.a WINDOW RANGE 5;",
        stop_after="predicate",
    ).program
    query = program.queries[0]
    rows = pa.table({"ts": np.arange(60), "a": np.zeros(60, np.int64)})
    answers = []
    for most in (1 << 20, 4):
        monkeypatch.setattr(module, "_MOST_PAIRS", most)
        operator = SoftwareJoin(program.streams, [query], 64, {query.name: QueryFaults(False)})
        operator.push("R", rows.cast(stream_schema(program.streams[0])))
        operator.advance("R", END_OF_STREAM)
        answers.append([row for _, some in operator.outputs() for row in some.to_pylist()])
    assert answers[0] == answers[1]
    assert [row["ts_newest"] for row in answers[0]] == list(range(60))
