"""The six cases that a reader of the system once found wrong, in one place; the fourth is counted, not timed.

1. A grouped self-join sees an arrival once.    4. An expression of one stream joins like a column.
2. Many queries with thresholds run.            5. A late query over groups counts what its window holds.
3. Five streams over three joins run.           6. A text under a CAST ends no other query, nor after a restart.
"""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from seustream.compiler.pipeline import Options, compile_text
from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.client import BridgeClient
from seustream.cosim.golden import GoldenDevice
from seustream.engine.graph import GraphRun, drive
from tests.cosim.bridge.serving import bridge, feed_epoch
from tests.system.test_limits import DIVISIONS, STREAMS, rows

Found = dict[str, list[tuple[object, ...]]]


def run(text: str, tables: dict[str, pa.Table], devices: int | None) -> Found:
    """Returns the results of each query, without their times."""
    c = compile_text(text, options=Options(devices=devices))
    graph = GraphRun(c, [GoldenDevice(one.options.config) for one in c.devices])
    found: Found = {name: [] for name in c.program.names}
    for name, table in drive(graph, tables):
        found[name] += zip(*(column.to_pylist() for column in table.columns[:-2]), strict=True)
    return found


def of_duckdb(sql: str, tables: dict[str, pa.Table]) -> list[tuple[object, ...]]:
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        return sorted(connection.execute(sql).fetchall())


@pytest.mark.parametrize("devices", DIVISIONS)
def test_1_a_grouped_self_join_sees_an_arrival_once(devices: int | None) -> None:
    text = """CREATE STREAM R (a int); REGISTER QUERY q AS
    SELECT x.a, count(*) AS n FROM R x, R y WHERE x.a = y.a GROUP BY x.a WINDOW RANGE 9"""
    table = pa.table({"ts": [1, 2], "a": pa.array([7, 7], pa.int32())})
    assert run(text, {"R": table}, devices)["q"] == [(7, 1), (7, 4)]


@pytest.mark.parametrize("devices", DIVISIONS)
@pytest.mark.parametrize("count", [16, 20, 65, 100])
def test_2_so_many_queries_with_thresholds(count: int, devices: int | None) -> None:
    queries = "".join(
        f"REGISTER QUERY q{n} AS SELECT R.a, S.e FROM R, S WHERE R.a = S.d AND R.b > {n % 40}"
        " WINDOW RANGE 9;\n"
        for n in range(count)
    )
    data = rows(count, 150)
    found = run(STREAMS + queries, data, devices)
    joined = "SELECT b, a, e FROM R, S WHERE a = d AND abs(R.ts - S.ts) <= 9"
    every = of_duckdb(joined, data)
    for n in range(count):
        assert sorted(found[f"q{n}"]) == sorted(row[1:] for row in every if row[0] > n % 40), n  # type: ignore[operator]  # of integers


@pytest.mark.parametrize("devices", DIVISIONS)
def test_3_five_streams_over_three_joins_and_in_one(devices: int | None) -> None:
    names = "ABCDE"
    text = "".join(f"CREATE STREAM {n} (k int, v int);\n" for n in names)
    for x, y in ("AB", "CD", "EA"):
        text += f"REGISTER QUERY {x}{y} AS SELECT {x}.v, {y}.v FROM {x}, {y} WHERE {x}.k = {y}.k"
        text += " WINDOW RANGE 20;\n"
    joined = " AND ".join(f"A.k = {n}.k" for n in names[1:])
    text += f"REGISTER QUERY five AS SELECT A.v, E.v FROM {', '.join(names)} WHERE {joined}"
    text += " WINDOW UNBOUNDED;\n"
    chance = np.random.default_rng(5)
    data = {
        n: pa.table(
            {
                "ts": np.cumsum(chance.integers(1, 9, 40)),
                "k": chance.integers(0, 15, 40).astype(np.int32),
                "v": chance.integers(0, 99, 40).astype(np.int32),
            }
        )
        for n in names
    }
    found = run(text, data, devices)
    for x, y in ("AB", "CD", "EA"):
        both = f"{x}.k = {y}.k AND abs({x}.ts - {y}.ts) <= 20"
        want = of_duckdb(f"SELECT {x}.v, {y}.v FROM {x}, {y} WHERE {both}", data)
        assert sorted(found[x + y]) == want != []
    want = of_duckdb(f"SELECT A.v, E.v FROM {', '.join(names)} WHERE {joined}", data)
    assert sorted(found["five"]) == want
    assert len(want) > 20


def test_4_an_expression_of_one_stream_joins_like_a_column() -> None:
    """The device compares no more pairs, and gives the host no more to check."""
    data = rows(4, 1_000)
    shifted = data["S"].set_column(1, "d", pa.array(np.asarray(data["S"].column("d")) + 1))
    seen, found = [], []
    for left, table in (("R.a", data["S"]), ("R.a + 1", shifted)):
        text = f"{STREAMS}SELECT R.b, S.e FROM R, S WHERE {left} = S.d WINDOW RANGE 50"
        c = compile_text(text)
        device = GoldenDevice(c.options.config)
        parts = [t for _, t in drive(GraphRun(c, device), {"R": data["R"], "S": table})]
        found.append(pa.concat_tables(parts))
        status = device.status()
        seen.append((status.circulated, status.delivered))
    assert found[0] == found[1]
    assert found[0].num_rows > 100
    assert seen[1] == seen[0]


def say(client: BridgeClient, text: str) -> None:
    client.act("statement", p.Statement(text, "some.xsql"), patience=0)


def read(client: BridgeClient, name: str) -> list[tuple[object, ...]]:
    found = client.latest(name)
    table = client.read(name, found["first"], found["end"])
    return list(zip(*(column.to_pylist() for column in table.columns[:-2]), strict=True))


@pytest.mark.parametrize("windows", ["RANGE 100", "ROWS 9"])
def test_5_a_late_query_over_groups_counts_what_its_window_holds(
    windows: str, tmp_path: Path
) -> None:
    """The rows in it are those that a join keeps."""
    first, then = ([1, 2, 3], [7, 8, 7]), ([5], [7])
    with bridge(tmp_path) as (_, url), BridgeClient(url, patience=2) as client:
        say(client, "CREATE STREAM R (a int)")
        say(
            client,
            f"REGISTER QUERY pairs AS SELECT x.a FROM R x, R y WHERE x.a = y.a WINDOW {windows}",
        )
        for epoch, (ts, a) in enumerate((first, then)):
            feed_epoch(client, epoch, {"R": pa.table({"ts": ts, "a": pa.array(a, pa.int32())})})
            client.promise("R", ts[-1] + 1)
            client.flush()
            if not epoch:
                late = f"SELECT a, sum(a) AS s FROM R GROUP BY a WINDOW {windows}"
                say(client, f"REGISTER QUERY late AS {late}")
        assert read(client, "late") == [(7, 21)]


def test_6_a_text_under_a_cast_ends_no_other_query(tmp_path: Path) -> None:
    for restart in range(2):
        with bridge(tmp_path) as (_, url), BridgeClient(url, patience=2) as client:
            if not restart:
                say(client, "CREATE STREAM P (name varchar(9))")
                say(client, "REGISTER QUERY plain AS SELECT name FROM P")
                say(client, "REGISTER QUERY counted AS SELECT CAST(name AS int) AS n FROM P")
                say(
                    client,
                    "REGISTER QUERY strict AS SELECT name::int AS n FROM P WINDOW NOW WITH (strict)",
                )
            feed_epoch(client, restart, {"P": pa.table({"ts": [restart * 9 + 1], "name": ["abc"]})})
            client.promise("P", restart * 9 + 2)
            client.flush()
            phases = {one["name"]: one["phase"] for one in client.act("query-list")["queries"]}
            assert phases == {"plain": "RUNNING", "counted": "RUNNING", "strict": "FAILED"}
            assert read(client, "plain") == [("abc",)] * (restart + 1)
            assert read(client, "counted") == [(None,)] * (restart + 1)
            if restart:
                say(client, "DROP QUERY strict")
