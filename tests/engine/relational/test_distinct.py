"""SELECT DISTINCT and UNION: each row once within a window, compared with brute force over the
whole streams."""

from __future__ import annotations

import random
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from seustream.engine.relational import distinct
from tests.engine.relational.once import DEFINITIONS, order, run, stream


@pytest.fixture(autouse=True)
def _rows_are_soon_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distinct, "_FEW", 1)


@pytest.mark.parametrize("seed", range(40))
def test_distinct(seed: int) -> None:
    chance = random.Random(seed)
    rows = {"R": stream(chance, "b"), "S": stream(chance, "d")}
    window, size = chance.choice((("RANGE", 6), ("ROWS", 4), ("UNBOUNDED", 0), ("RANGE", 0)))
    said = f"WINDOW {window} {size}" if window != "UNBOUNDED" else "WINDOW UNBOUNDED"
    if union := chance.random() < 0.5:
        select = f"SELECT a, b FROM R WHERE b > 0 UNION SELECT a, d FROM S {said}"
    else:
        select = f"SELECT DISTINCT a, b FROM R WHERE b > 0 {said}"
    text = f"{DEFINITIONS}REGISTER QUERY q AS {select}"
    given: dict[Any, tuple[int, int]] = {}
    want, number = [], 0
    for row in order(rows if union else {"R": rows["R"]}):
        if row["of"] == "R" and not (row["b"] is not None and row["b"] > 0):
            continue
        key = (row["a"], row["b"] if row["of"] == "R" else row["d"])
        at, ts = given.get(key, (None, None))
        within = window == "UNBOUNDED" or (
            at is not None and (row["ts"] - ts <= size if window == "RANGE" else number - at < size)
        )
        if at is None or not within:
            given[key] = (number, row["ts"])
            want.append((*key, row["ts"], row["ts"]))
        number += 1
    assert run(text, rows, seed) == want


@pytest.mark.parametrize("seed", range(10))
def test_distinct_groups_of_windows(seed: int) -> None:
    chance = random.Random(seed)
    rows = {"R": stream(chance, "b")}
    select = "SELECT DISTINCT count(*) AS n FROM R GROUP BY a, TUMBLE(ts, 4) WINDOW UNBOUNDED"
    found = run(f"{DEFINITIONS}REGISTER QUERY q AS {select}", rows, seed)
    with duckdb.connect() as connection:
        connection.register("r", rows["R"])
        sql = "SELECT DISTINCT count(*) FROM r GROUP BY a, floor(ts / 4)"
        want = connection.execute(sql).fetchall()
    assert sorted(row[:1] for row in found) == sorted(want)


@pytest.mark.parametrize("union", [False, True])
@pytest.mark.parametrize(
    ("kind", "size"),
    [("RANGE", 2**63 - 1), ("RANGE", 2**63 - 2), ("RANGE", 5), ("ROWS", 2), ("UNBOUNDED", "")],
)
def test_at_the_ends_of_time(kind: str, size: Any, union: bool) -> None:
    """Times are as far apart as 64 bits allow."""
    times = [-(2**63), -(2**63) + 1, -(2**63) + 6, -2, -1, 0, 2**63 - 3]
    other = " UNION SELECT a FROM R WHERE a > 9" if union else ""
    distinct = "" if union else "DISTINCT "
    text = f"{DEFINITIONS}REGISTER QUERY q AS SELECT {distinct}a FROM R{other} WINDOW {kind} {size}"
    want = []
    at, before = 0, None  # the number and the time of the row that was given last
    for number, ts in enumerate(times):
        near = before is not None and (
            kind == "UNBOUNDED" or (ts - before <= size if kind == "RANGE" else number - at < size)
        )
        if not near:
            at, before = number, ts
            want.append((1, ts, ts))
    one = pa.array([1] * len(times), pa.int32())
    rows = {"R": pa.table({"ts": times, "a": one, "b": one})}
    for seed in range(4):
        assert run(text, rows, seed) == want
