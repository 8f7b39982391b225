"""Random streams, and aggregates in the spelling of X-SQL and of DuckDB."""

from __future__ import annotations

import math
import random
from typing import Any

import duckdb
import pyarrow as pa

DEFINITIONS = """CREATE STREAM R (a int, b double precision, c varchar(9));
CREATE STREAM S (k int, v bigint);
"""

AGGREGATES: tuple[tuple[str, str], ...] = (
    ("count(*)", "count(*)"),
    ("count({a})", "count({a})"),
    ("count(DISTINCT {a})", "count(DISTINCT {a})"),
    ("sum({a})", "sum({a})"),
    ("sum({b})", "sum({b})"),
    ("avg({b})", "avg({b})"),
    ("avg({a}) FILTER (WHERE {b} > 0)", "avg({a}) FILTER (WHERE {b} > 0)"),
    ("min({c})", "min({c})"),
    ("max({b})", "max({b})"),
    ("min({a} + 1)", "min({a} + 1)"),
    ("stddev_pop({b})", "stddev_pop({b})"),
    ("var_samp({b})", "var_samp({b})"),
    ("bool_and({a} > 1)", "bool_and({a} > 1)"),
    ("bool_or({b} > 2)", "bool_or({b} > 2)"),
    ("median({b})", "median({b})"),
    ("bit_and({a})", "bit_and({a})"),
    ("bit_or({a} + 5)", "bit_or({a} + 5)"),
    ("first({b})", "arg_min({b}, {rn}) FILTER (WHERE {b} IS NOT NULL)"),
    ("last({c})", "arg_max({c}, {rn}) FILTER (WHERE {c} IS NOT NULL)"),
    ("string_agg({c}, '-')", "string_agg({c}, '-' ORDER BY {rn})"),
    ("array_agg({a})", "list({a} ORDER BY {rn}) FILTER (WHERE {a} IS NOT NULL)"),
    ("min_by({c}, {b})", "arg_min({c}, ({b}, {rn})) FILTER (WHERE {b} IS NOT NULL AND {c} IS NOT NULL)"),
)  # fmt: skip


def r_stream(chance: random.Random, rows: int, spread: int = 3) -> pa.Table:
    """Returns a stream R with NULLs, equal times and pauses."""
    ts, now = [], chance.randint(-50, 50)
    for _ in range(rows):
        now += chance.choice([0, 0, 1, spread]) + (chance.random() < 0.08) * chance.randint(0, 60)
        ts.append(now)

    def some(values: list[Any]) -> list[Any]:
        return [chance.choice([None, *values]) for _ in range(rows)]

    return pa.table(
        {
            "ts": ts,
            "a": pa.array(some(list(range(5))), pa.int32()),
            "b": pa.array(some([n / 4 for n in range(-8, 16)]), pa.float64()),
            "c": pa.array(some(["", "x", "yy", "ö", "z"]), pa.string()),
        }
    )


def s_stream(chance: random.Random, rows: int) -> pa.Table:
    ts = sorted(chance.randint(-50, 200) for _ in range(rows))
    return pa.table(
        {
            "ts": ts,
            "k": pa.array([chance.choice([None, *range(5)]) for _ in ts], pa.int32()),
            "v": pa.array([chance.randint(-9, 9) for _ in ts], pa.int64()),
        }
    )


def asked(chance: random.Random, most: int = 4) -> list[tuple[str, str]]:
    """Returns some aggregates over columns a, b, c; `rn` is the place of a row in its stream."""
    names = {"a": "a", "b": "b", "c": "c", "rn": "rn"}
    some = chance.sample(AGGREGATES, chance.randint(1, most))
    return [(ours.format(**names), duck.format(**names)) for ours, duck in some]


def judged(sql: str, **tables: pa.Table) -> list[tuple[Any, ...]]:
    """Returns DuckDB's rows. Each table has its rows numbered in a column rn."""
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    for name, table in tables.items():
        connection.register(name, table.append_column("rn", pa.array(range(table.num_rows))))
    return [tuple(row) for row in connection.execute(sql).fetchall()]


def rows_of(table: pa.Table | None) -> list[tuple[Any, ...]]:
    return [] if table is None else [tuple(row.values()) for row in table.to_pylist()]


def same(found: list[tuple[Any, ...]], want: list[tuple[Any, ...]]) -> None:
    """Asserts that rows are equal in any order, and reals up to rounding."""
    assert len(found) == len(want)
    for mine, other in zip(sorted(found, key=_sortable), sorted(want, key=_sortable), strict=True):
        assert len(mine) == len(other)
        for x, y in zip(mine, other, strict=True):
            if isinstance(x, float) and isinstance(y, float):
                assert math.isclose(x, y, rel_tol=1e-12, abs_tol=1e-12), (mine, other)
            else:
                assert x == y, (mine, other)


def _sortable(row: tuple[Any, ...]) -> tuple[str, ...]:
    return tuple(
        f"{round(v, 6) + 0.0:+024.6f}" if isinstance(v, (int, float)) else str(v) for v in row
    )
