"""Two streams whose columns have few values, and queries over them, run at once and in pieces."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa

from tests.engine.relational.generate import rows_of
from tests.engine.relational.running import at_once, in_pieces

DEFINITIONS = "CREATE STREAM R (a int, b int); CREATE STREAM S (a int, d int);\n"
Row = dict[str, Any]


def stream(chance: random.Random, other: str) -> pa.Table:
    ts = sorted(chance.randint(0, 60) for _ in range(chance.randint(1, 40)))
    columns = {
        name: pa.array([chance.choice([None, 0, 1, 2]) for _ in ts], pa.int32())
        for name in ("a", other)
    }
    return pa.table({"ts": pa.array(ts, pa.int64()), **columns})


def order(rows: dict[str, pa.Table]) -> list[Row]:
    """Returns all rows in the order of all streams, each with its stream."""
    every = [row | {"of": name} for name in rows for row in rows[name].to_pylist()]
    return sorted(every, key=lambda row: row["ts"])


def run(text: str, rows: dict[str, pa.Table], seed: int) -> list[tuple[Any, ...]]:
    print(f"seed {seed}\n{text}")
    found = at_once(text, rows).get("q")
    pieces = in_pieces(text, rows, seed).get("q")
    assert Counter(rows_of(pieces)) == Counter(rows_of(found))
    return rows_of(found)
