"""Computed attributes: joins that compare expressions, on devices and in the engine, judged by
DuckDB."""

from __future__ import annotations

import datetime
import warnings

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import seustream as ss
from seustream.compiler.pipeline import Compilation, Options, compile_text
from seustream.compiler.plan.divide import JoinFactor
from seustream.engine.graph import GraphRun, drive
from seustream.hdl.config import CONFIGURATIONS
from tests.engine.host.running import DEVICES

STREAMS = """CREATE STREAM R (a int, b int, x varchar(9), t timestamp);
CREATE STREAM S (d int, f double precision, y varchar(9), e date);
"""
CONDITIONS = {
    "R.a + 1 = S.d": "R.a + 1 = S.d",
    "R.a = S.d - R.b AND R.a * 2 = S.d": "R.a = S.d - R.b AND R.a * 2 = S.d",
    "lower(R.x) = lower(S.y)": "lower(R.x) = lower(S.y)",
    "CAST(R.t AS date) = S.e": "CAST(R.t AS date) = S.e",
    "floor(S.f / 3) = R.a": "floor(S.f / 3) = R.a",
    "abs(R.a) = abs(S.d) OR R.b + 2 = S.d": "abs(R.a) = abs(S.d) OR R.b + 2 = S.d",
    "R.a BETWEEN S.d - 1 AND S.d + 1": "R.a BETWEEN S.d - 1 AND S.d + 1",
    "R.a / R.b = S.d": "R.a / nullif(R.b, 0) = S.d",
    "R.a = S.d AND R.ts < S.ts": "R.a = S.d AND R.ts < S.ts",
    "R.ts < S.ts AND S.ts <= R.ts + 5 ms": "R.ts < S.ts AND S.ts <= R.ts + 5",
    "S.ts - 7 ms >= R.ts AND R.a = S.d": "S.ts - 7 >= R.ts AND R.a = S.d",
}
"""A condition, and its spelling for DuckDB."""
PLACES = ("engine", "golden", "iss")


def rows(seed: int, count: int = 120) -> dict[str, pa.Table]:
    chance = np.random.default_rng(seed)
    print(f"seed {seed}")

    def some(values: list[object]) -> pa.Array:
        return pa.array([None if chance.random() < 0.1 else v for v in values])

    def ints() -> pa.Array:
        return some([int(v) for v in chance.integers(-4, 9, count)]).cast(pa.int32())

    def texts() -> pa.Array:
        return some([str(v) for v in chance.choice(["a", "A", "bC", "Bc", ""], count)])

    day = datetime.datetime(2026, 3, 1)
    moments = [day + datetime.timedelta(hours=int(h)) for h in chance.integers(0, 90, count)]
    r = {"a": ints(), "b": ints(), "x": texts(), "t": some(moments).cast(pa.timestamp("us"))}
    s = {
        "d": ints(),
        "f": some([float(v) for v in chance.integers(-9, 20, count)]),
        "y": texts(),
        "e": some([day.date() + datetime.timedelta(int(n)) for n in chance.integers(0, 4, count)]),
    }
    return {
        name: pa.table({"ts": np.cumsum(chance.integers(0, 3, count)), **columns})
        for name, columns in (("R", r), ("S", s))
    }


def compiled(condition: str, config: str = "default") -> Compilation:
    text = f"{STREAMS}SELECT R.a, S.d FROM R, S WHERE {condition} WINDOW RANGE 20;"
    return compile_text(text, options=Options(CONFIGURATIONS[config]))


def results(c: Compilation, place: str, data: dict[str, pa.Table]) -> list[tuple[object, ...]]:
    devices = [] if place == "engine" else [DEVICES[place](c.options.config)]
    found = [table for _, table in drive(GraphRun(c, devices, slice_rows=32), data, 25)]
    columns = pa.concat_tables(found).columns if found else []
    return sorted(zip(*(column.to_pylist() for column in columns), strict=True), key=str)


@pytest.mark.parametrize("config", ["default", "thesis"])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("condition", CONDITIONS)
def test_as_duckdb_joins(condition: str, place: str, config: str) -> None:
    data = rows(len(condition))
    found = results(compiled(condition, config), place, data)
    with duckdb.connect() as connection:
        for name, table in data.items():
            connection.register(name, table)
        want = connection.execute(
            "SELECT a, d, least(R.ts, S.ts), greatest(R.ts, S.ts) FROM R, S"
            f" WHERE ({CONDITIONS[condition]}) AND abs(R.ts - S.ts) <= 20"
        ).fetchall()
    assert found == sorted(want, key=str)
    assert len(want) > 3


@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_device_compares_it(condition: str) -> None:
    """Every conjunct that compares two streams becomes a factor, except one that mixes them on one
    side."""
    parts = compiled(condition).divisions[0].parts
    mixed = [part for part in parts if not isinstance(part.device, JoinFactor)]
    assert len(mixed) == ("OR" in condition or "S.d - R.b" in condition)


def test_an_equality_is_no_cross_product() -> None:
    """About as few joined tuples circulate as for the same join of plain columns."""
    data = rows(1, 400)
    circulated = []
    for condition in ("R.a = S.d", "R.a + 1 = S.d"):
        c = compiled(condition)
        run = GraphRun(c, DEVICES["golden"](c.options.config))
        for _ in drive(run, data):
            pass
        circulated.append(run.devices[0].status().circulated)
    assert circulated[1] < 1.3 * circulated[0] < 100_000


def test_columns_have_the_attributes_first() -> None:
    """An area has four attributes; the host checks the conditions that are left over."""
    names = ("a", "b", "x", "t")
    compares = " AND ".join(f"R.{name} IS NOT NULL" for name in names[:1])
    condition = (
        f"{compares} AND R.a = S.d AND R.b = S.d AND R.a > 0 AND R.ts < S.ts AND R.a + 1 <> S.d"
        " AND lower(R.x) = S.y"
    )
    c = compiled(condition)
    assert c.requests.attributes[0] == ("a", "b", "TimeStamp", "[lower(R.x)]")
    assert not c.placement.software


def test_a_fault_is_counted_at_its_place() -> None:
    """A row whose expression has no value goes to the host, which counts the fault as the engine
    does."""
    c, data, faults = compiled("R.a / R.b = S.d"), rows(3), []
    for place in PLACES:
        devices = [] if place == "engine" else [DEVICES[place](c.options.config)]
        run = GraphRun(c, devices)
        for _ in drive(run, data):
            pass
        faults.append(run.report.faults)
    assert faults[0] == faults[1] == faults[2]
    assert sum(count for count, _ in faults[0]["q0"].values()) > 3


@pytest.mark.parametrize(
    ("columns", "values"),
    [
        ('k int, "k + 1" int', {"k": [5, 0], "k + 1": [-1, 7]}),
        ('k int, "[A.k + 1]" int', {"k": [5, 0], "[A.k + 1]": [1, -1]}),
    ],
)
def test_columns_named_like_expressions(columns: str, values: dict[str, list[int]]) -> None:
    odd = list(values)[-1].replace("[", "").replace("]", "")
    other = f'-A."{odd}"' if odd in values else f'A."{list(values)[-1]}"'
    own = "-A.k + 1" if odd in values else "A.k + 1"
    text = f"""CREATE STREAM R (k int); CREATE STREAM A ({columns});
    REGISTER QUERY p AS SELECT R.k FROM R, A WHERE R.k = {other} WINDOW RANGE 1 s;
    REGISTER QUERY q AS SELECT R.k FROM R, A WHERE R.k = {own} WINDOW RANGE 1 s;"""
    found = {
        place: {n: r.rows() for n, r in ss.run(text, backend=place, R=ONE, A={"ts": [2, 3], **values}).items()}
        for place in PLACES
    }  # fmt: skip
    assert found["golden"] == found["iss"] == found["engine"]
    assert found["engine"]["p"] == [(1, 1, 2)]
    assert len(found["engine"]["q"]) == 1


ONE = {"ts": [1], "k": [1]}


@pytest.mark.parametrize(
    "value",
    [
        "CASE WHEN R.k / R.j > 1 THEN 1 ELSE 2 END",
        "coalesce(R.k / R.j, 1)",
        "coalesce(CAST(R.x AS int), 1)",
    ],
)
def test_a_fault_is_counted_whose_value_another_takes(value: str) -> None:
    """The device compares a value that is there; that a part of it had none is for the host to count."""
    seed = 5
    print(f"seed {seed}")
    chance = np.random.default_rng(seed)
    count = 300
    r = {
        "ts": np.arange(count),
        "k": chance.integers(0, 4, count),
        "j": np.where(chance.random(count) < 0.02, 0, 1),
        "x": np.where(chance.random(count) < 0.02, "x", "1"),
    }
    s = {"ts": np.arange(count), "a": chance.integers(0, 3, count)}
    text = f"""CREATE STREAM R (k int, j int, x varchar); CREATE STREAM S (a int);
    SELECT R.k, S.a FROM R, S WHERE {value} = S.a WINDOW RANGE 20 ms"""
    said = {}
    for place in PLACES:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            rows = ss.run(text, backend=place, R=r, S=s)["q0"].rows()
        said[place] = (rows, [str(one.message) for one in seen])
        with pytest.raises(ss.Error, match=r"division by zero|no int"):
            ss.run(f"{text} WITH (strict)", backend=place, R=r, S=s)
    assert "fault" in said["engine"][1][0]
    assert said["golden"] == said["iss"] == said["engine"]
