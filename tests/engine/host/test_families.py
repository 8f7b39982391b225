"""Queries that differ in constants: together they give what each gives by itself with its
conditions evaluated as written.

DuckDB judges the results. The faults must be those of a run of each query by itself that uses no
index for its conditions.
"""

from __future__ import annotations

import random
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import seustream as ss
from seustream.compiler.pipeline import Options, compile_text
from seustream.engine.graph import GraphRun
from seustream.engine.host import families, shared, stages
from seustream.engine.runs import Report

STREAMS = (
    "CREATE STREAM R (k int, v int, x double precision, t varchar(9), d decimal(9,2));"
    "CREATE STREAM S (k int, w bigint, t varchar(9));"
)


def rows(chance: np.random.Generator, count: int) -> dict[str, pa.Table]:
    def gaps(values: Any) -> pa.Array:
        return pa.array(values, mask=chance.random(count) < 0.1)

    def ints(size: int) -> Any:
        return chance.integers(-size, size + 1, count)

    ts = np.cumsum(chance.integers(0, 3, count))
    texts = np.array(["", "a", "b", "bc", "B"])
    decimal = pa.array(ints(300) / 100).cast(pa.decimal128(9, 2))
    return {
        "R": pa.table(
            {
                "ts": ts,
                "k": pa.array(ints(3), pa.int32()),
                "v": gaps(ints(6)).cast(pa.int32()),
                "x": gaps(ints(8) / 4),
                "t": gaps(texts[chance.integers(0, 5, count)]),
                "d": decimal,
            }
        ),
        "S": pa.table(
            {
                "ts": ts + 1,
                "k": pa.array(ints(3), pa.int32()),
                "w": gaps(ints(5)),
                "t": gaps(texts[chance.integers(0, 5, count)]),
            }
        ),
    }


def condition(chance: random.Random) -> str:
    n, m = chance.randint(-7, 7), chance.randint(-7, 7)
    op = chance.choice(["<", "<=", "=", ">", ">=", "<>"])
    return chance.choice(
        [
            f"R.v {op} {n}",
            f"R.v = {n}",
            f"R.v BETWEEN {n} AND {m}",
            f"R.v > {n} AND R.v < {n + 3}",
            f"R.v >= {n} AND R.v < {n}",
            f"{n} {op} R.v",
            f"R.x {op} {n / 4}",
            f"R.x >= {n / 4} AND R.x < {m / 4}",
            f"R.v {op} {n}.5",
            f"R.d {op} {m / 4}",
            f"R.t = '{chance.choice(['', 'a', 'b', 'z'])}'",
            f"R.v IN ({n}, {m})",
            f"R.v + R.k {op} {n}",
            f"R.v + {m} {op} {n}",
            f"R.v - {m} = {n}",
            "R.k > -2",
            "R.t IS NOT NULL",
            "(R.v > 2 OR R.x < 0)",
        ]
    )


def faulty(chance: random.Random) -> str:
    n = chance.randint(-3, 3)
    return chance.choice([f"R.x / R.k > {n}", f"mod(R.v, R.k) = {n}", "R.v / R.k < R.x"])


def run(
    text: str, streams: dict[str, pa.Table], cuts: list[int]
) -> tuple[dict[str, list[tuple[Any, ...]]], Report]:
    c = compile_text(text, options=Options(devices=0))
    driver = GraphRun(c)
    found: dict[str, list[tuple[Any, ...]]] = {name: [] for name in c.program.names}
    for start, end in zip([0, *cuts], [*cuts, None], strict=True):
        for name in driver.streams:
            some = streams[name.name]
            driver.push(name.name, some.slice(start, None if end is None else end - start))
        for query, results in driver.finish() if end is None else driver.advance():
            found[query] += zip(*(column.to_pylist() for column in results.columns), strict=True)
    return found, driver.report


@pytest.mark.parametrize("join", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_together_as_alone(seed: int, join: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    print(f"seed {seed}, join {join}")
    chance, dice = np.random.default_rng(seed), random.Random(seed)
    count = dice.choice([60, 200])
    streams = rows(chance, count)
    lists = ["R.v, R.x", "R.t, R.k + R.v AS s", "R.x / R.k AS q"]
    queries, wheres = [], []
    for number in range(24):
        terms = [condition(dice) for _ in range(dice.randint(1, 3))]
        terms += [faulty(dice)] if dice.random() < 0.25 else []
        dice.shuffle(terms)
        what, source, end = dice.choice(lists), "R", ""
        if join:
            terms += dice.choice([["R.k = S.k"], ["R.k = S.k", f"S.w > {dice.randint(-3, 3)}"]])
            what, source, end = f"{what}, S.w", "R, S", " WINDOW RANGE 9"
        where = " AND ".join(terms)
        if dice.random() < 0.15:
            what, where, end = "count(*) AS n, sum(R.v) AS s", where, " WINDOW RANGE 9"
        wheres.append((what, source, where))
        queries.append(
            f"REGISTER QUERY q{number} AS SELECT {what} FROM {source} WHERE {where}{end};"
        )
    cuts = sorted(dice.sample(range(count), dice.randint(0, 5)))
    together, report = run(STREAMS + "".join(queries), streams, cuts)
    assert sum(map(len, together.values())) > 100

    def as_written(conditions: Any) -> Any:
        return None, tuple(conditions)

    for module in (families, shared, stages):
        monkeypatch.setattr(module, "by_interval", as_written, raising=False)
    monkeypatch.setattr(shared, "shape", lambda query: None)
    monkeypatch.setattr(stages, "shape", lambda query: None)
    for number, query in enumerate(queries):
        alone, its = run(STREAMS + query, streams, [])
        name = f"q{number}"
        assert together[name] == alone[name], query
        mine = {place.split(" at ")[0]: n for place, (n, _) in its.faults.get(name, {}).items()}
        theirs = report.faults.get(name, {}).items()
        assert {place.split(" at ")[0]: n for place, (n, _) in theirs} == mine, query
    with duckdb.connect() as connection:
        connection.execute("SET error_on_division_by_zero = false")
        for name, some in streams.items():
            connection.register(name, some)
        for (what, source, where), (name, found) in zip(wheres, together.items(), strict=True):
            if "count" in what:
                continue
            near = " AND abs(R.ts - S.ts) <= 9" if join else ""
            sql = f"SELECT {what} FROM {source} WHERE {where}{near}"
            want = connection.execute(sql.replace("/ R.k", "/ nullif(R.k, 0)")).fetchall()
            assert sorted(repr(row[:-2]) for row in found) == sorted(map(repr, want)), name


@pytest.mark.parametrize("seed", range(4))
def test_many_ranges(seed: int) -> None:
    """Open and closed ranges, single values, empty ranges, equal ranges, a NULL bound; each query
    keeps the order of its rows."""
    print(f"seed {seed}")
    chance, dice = np.random.default_rng(seed), random.Random(seed)
    count = dice.choice([40, 3000])
    streams = {"R": rows(chance, count)["R"].append_column("row", pa.array(range(count)))}
    form = ["R.v > {}", "R.v <= {}", "R.v = {}", "R.v > {} AND R.v <= {}", "R.v BETWEEN {} AND {}"]
    wheres = []
    for _ in range(150):
        bounds = [dice.randint(-9, 9), dice.randint(-9, 9)]
        bounds[dice.random() < 0.5] += dice.choice([0, 0, 40])
        wheres.append(dice.choice(form).format(*bounds if dice.random() < 0.95 else ["NULL"] * 2))
    lists = ["v, row", "row, t, 12 / nullif(v, 0) AS q"]
    selects = [f"SELECT {dice.choice(lists)} FROM R WHERE {where}" for where in wheres]
    texts = [f"REGISTER QUERY q{n} AS {select};" for n, select in enumerate(selects)]
    definition = STREAMS.partition("CREATE STREAM S")[0].replace("k int", "k int, row bigint")
    cuts = sorted(dice.sample(range(count), 2))
    found, _ = run(definition + "".join(texts), streams, cuts)
    with duckdb.connect() as connection:
        connection.register("R", streams["R"])
        for select, mine in zip(selects, found.values(), strict=True):
            want = connection.execute(select.replace("FROM", ", ts, ts FROM") + " ORDER BY row")
            assert list(map(repr, mine)) == list(map(repr, want.fetchall())), select


def test_a_strict_query_fails_alone() -> None:
    text = STREAMS + "".join(
        f"REGISTER QUERY q{n} AS SELECT v FROM R WHERE v = {n} AND x / k > 1 WITH (strict);"
        for n in range(4)
    )
    c = compile_text(text, options=Options(devices=0))
    driver = GraphRun(c, contained=True)
    table = pa.table({"ts": [1, 2, 3], "k": [0, 1, 1], "v": [1, 1, 2], "x": [2.0, 2.0, 3.0]})
    table = table.append_column("t", pa.array(["a"] * 3))
    table = table.append_column("d", pa.array([0.0] * 3).cast(pa.decimal128(9, 2)))
    driver.push("R", table)
    found = {name: results.num_rows for name, results in driver.finish()}
    assert found == {"q2": 1}
    assert driver.failed.keys() == {"q1"}


def test_an_equal_condition_of_another_text_counts_nothing() -> None:
    """A remembered condition does not carry along its place in an earlier text."""
    rows = {"S": pa.table({"ts": [1], "k": [0], "w": [1], "t": ["a"]})}
    for gap in ("", " "):
        text = f"CREATE STREAM S (k int, w bigint, t varchar(9)); {gap}SELECT w FROM S WHERE 12 / k > 3 WINDOW NOW"
        (places,) = run(text, rows, [])[1].faults.values()
        assert [count for count, _ in places.values()] == [1]


@pytest.mark.parametrize("other", ["lower(kind) = 'temp'", "kind LIKE 't%'", "mod(n, 2) = 0"])
@pytest.mark.parametrize("seed", range(3))
def test_a_row_without_a_value_changes_no_other(seed: int, other: str) -> None:
    """Each of several queries that differ in a constant has the rows that it has alone."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    count = 40
    rows = {
        "ts": list(range(count)),
        "sensor": [chance.choice([1, 2, 3, 7, None]) for _ in range(count)],
        "kind": [chance.choice(["temp", "Temp", "wind", None]) for _ in range(count)],
        "n": [chance.randrange(5) for _ in range(count)],
    }
    texts = [f"SELECT sensor, kind, n FROM R WHERE sensor = {n} AND {other}" for n in (1, 2, 9)]
    texts.append(f"SELECT sensor, kind, n FROM R WHERE sensor > 2 AND {other}")
    alone = [ss.run(text, R=rows)["q0"].rows() for text in texts]
    assert any(alone)
    assert [found.rows() for found in ss.run(";".join(texts), R=rows).values()] == alone
