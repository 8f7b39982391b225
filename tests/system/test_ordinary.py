"""Tests statements as users bring them from Flink, Spark, ksqlDB and Trino, on rows with NULLs, equal
times, disorder and late rows, and on empty streams; DuckDB is asked the same of the finite streams.

`ordinary.txt` has by name the statement and, after `=>`, what the judge is asked. The judge's streams have
`ts`, and `seq`, a row's place in its stream. `net`: the changes are summed up; `ordered`: the order counts.
"""

from __future__ import annotations

import datetime
import math
import random
import warnings
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import seustream as ss

DEFINITIONS = """
CREATE STREAM orders (order_id int, cust int, item varchar, price double precision, qty int);
CREATE STREAM payments (order_id int, amount decimal(9,2), method varchar);
CREATE STREAM clicks (cust int, page varchar, load_ms int, at timestamp) WITH (time = 'at');
CREATE TABLE customers (cust int NOT NULL, name varchar, tier int);
"""
SLACK = 2_000
SEEDS = range(3)
COLUMNS: dict[str, list[tuple[str, pa.DataType, tuple[Any, ...]]]] = {
    "orders": [
        ("order_id", pa.int32(), tuple(range(12))),
        ("cust", pa.int32(), (1, 2, 3, 4)),
        ("item", pa.string(), ("Pen", "pencil", "Ink %", "")),
        ("price", pa.float64(), (0.0, -0.0, 1.5, 2.25, 9.99, 100.0)),
        ("qty", pa.int32(), (0, 1, 2, 5)),
    ],
    "payments": [
        ("order_id", pa.int32(), tuple(range(12))),
        (
            "amount",
            pa.decimal128(9, 2),
            tuple(map(Decimal, ("0", "1.10", "2.20", "-3.30", "99.99"))),
        ),
        ("method", pa.string(), ("card", "cash")),
    ],
    "clicks": [
        ("cust", pa.int32(), (1, 2, 3, 4, 5)),
        ("page", pa.string(), ("/a", "/b", "/c?x=1")),
        ("load_ms", pa.int32(), (10, 20, 20, 300)),
    ],
}
CUSTOMERS = pa.table(
    {
        "cust": pa.array([1, 2, 3, 7], pa.int32()),
        "name": ["Ada", None, "Bob", "Ada"],
        "tier": pa.array([1, 2, None, 1], pa.int32()),
    }
)


@dataclass(frozen=True)
class Statement:
    name: str
    form: str
    ours: str
    theirs: str


def statements() -> list[Statement]:
    text = Path(__file__).with_name("ordinary.txt").read_text(encoding="utf-8")
    found = []
    for block in text.strip().split("\n\n"):
        head, _, both = block.partition("\n")
        (name, *form), (ours, theirs) = head[2:].split(), both.split("\n=> ")
        found.append(Statement(name, *form or [""], ours, theirs))
    return found


def arrivals(name: str, chance: random.Random, count: int) -> tuple[pa.Table, pa.Table]:
    """Returns the rows of a stream as they arrive, and those for the judge, in order and without
    the late ones."""
    span, step = chance.choice((8_000, 30_000)), chance.choice((1, 250, 1000))
    times = sorted(chance.randrange(0, span, step) for _ in range(count))
    behind = [time + chance.randint(0, 3_000) * (chance.random() < 0.3) for time in times]
    times = [time for _, time in sorted(zip(behind, times, strict=True))]
    cells: dict[str, pa.Array] = {"ts": pa.array(times, pa.int64())}
    for column, kind, values in COLUMNS[name]:
        cells[column] = pa.array([chance.choice((None, *values)) for _ in times], kind)
    if name == "clicks":
        cells["at"] = pa.array([time * 1000 for time in times], pa.timestamp("us"))
    table = pa.table(cells)
    highest, kept = -SLACK, []
    for place, time in enumerate(times):
        if time >= highest - SLACK:
            kept.append(place)
        highest = max(highest, time)
    ordered = table.take(pa.array(sorted(kept, key=lambda place: times[place]), pa.int64()))
    ordered = ordered.append_column("seq", pa.array(range(len(kept)), pa.int64()))
    return (table.drop_columns("ts") if name == "clicks" else table), ordered


def plain(value: Any) -> Any:
    """Returns a value that equals the judge's: numbers are rounded to nine digits, and their type
    does not count."""
    if isinstance(value, float | int | Decimal) and not isinstance(value, bool):
        return float(f"{float(value):.9g}") + 0.0 if math.isfinite(value) else value
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None)
    return tuple(map(plain, value)) if isinstance(value, list | tuple) else value


def rows(some: Iterable[Iterable[Any]]) -> list[tuple[Any, ...]]:
    return [tuple(map(plain, row)) for row in some]


@pytest.mark.parametrize("one", statements(), ids=lambda one: one.name)
def test_it_gives_what_duckdb_does(one: Statement) -> None:
    results = 0
    for seed in SEEDS:
        chance = random.Random(seed)
        given, judged = {}, {"customers": CUSTOMERS}
        for name in COLUMNS:
            count = chance.choice((40, 60) if seed else (0, 0, 1, 20))
            given[name], judged[name] = arrivals(name, chance, count)
        used = {n: t for n, t in (given | {"customers": CUSTOMERS}).items() if n in one.ours}
        text = one.ours if "REGISTER" in one.ours else f"REGISTER QUERY q AS {one.ours}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ss.DataWarning)
            found = ss.run(DEFINITIONS + text, streams=used, slack=SLACK)
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            for name, table in judged.items():
                connection.register(name, table)
            want = rows(connection.execute(one.theirs).fetchall())
        table = found["q"].arrow()
        times = [n for n in ("ts_oldest", "ts_newest") if n in table.column_names]
        got = rows(zip(*(column.to_pylist() for column in table.drop_columns(times)), strict=True))
        results += len(want)
        if one.form == "ordered":
            assert got == want, f"seed {seed}"
        elif one.form == "net":
            counts = Counter(row[1:] for row in got if row[0] == "+")
            counts.subtract(Counter(row[1:] for row in got if row[0] == "-"))
            assert +counts == Counter(want), f"seed {seed}"
            assert min(counts.values(), default=0) >= 0
        else:
            assert Counter(got) == Counter(want), f"seed {seed}"
    assert results
