"""The work of `bench/peers.py`: its rows, and how results are compared by value.

There are two works. `join` is W1 of `bench/joins.py`: streams R(ts, a, b) and S(ts, a, c), each with one row per
tick, joined where `a` is equal and the times differ by at most the window; there are as many keys as the window
has ticks. `sum` gives for each row of R the sum of `b` over the rows of its key within the window behind it, with
1,000 keys.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

ENGINES = {
    "seustream": ("seustream", "at once"),
    "steps": ("seustream, live", "in steps"),
    "duckdb": ("DuckDB", "at once"),
    "datafusion": ("DataFusion", "at once"),
    "polars": ("Polars", "at once"),
    "pathway": ("Pathway", "at once"),
    "bytewax": ("Bytewax", "in steps"),
    "kafka": ("Kafka Streams", "one by one"),
    "esper": ("Esper", "one by one"),
    "siddhi": ("Siddhi", "one by one"),
}
"""Engines by part: the name, and how they take rows."""
SEED = 21
WORKS = ("join", "sum")
RESULT = {"join": ("a", "b", "c", "oldest", "newest"), "sum": ("ts", "a", "s")}
"""The columns of a result in the order in which they are compared."""
STEP = 1_000
"""Ticks in a step of engines that take rows in steps."""
KEYS = 1_000
_FACTOR = 0x9E3779B97F4A7C15
"""Also in Rows.java."""

Columns = tuple[NDArray[np.int64], ...]


def rows(work: str, count: int, window: int) -> dict[str, pa.Table]:
    """Returns the rows of a work by stream, `count` in all."""
    chance = np.random.default_rng([SEED, *work.encode(), count, window])
    keys, each = (window, count // 2) if work == "join" else (KEYS, count)
    return {
        stream: pa.table(
            {
                "ts": np.arange(each),
                "a": chance.integers(0, keys, each).astype(np.int32),
                value: chance.integers(0, 1_000, each).astype(np.int32),
            }
        )
        for stream, value in (("R", "b"), ("S", "c"))[: 2 if work == "join" else 1]
    }


def columns(table: pa.Table, work: str) -> Columns:
    """Returns the columns of a result table that are compared."""
    return tuple(np.asarray(table[name]).astype(np.int64) for name in RESULT[work])


def transposed(found: Iterable[tuple[int, ...]], work: str) -> Columns:
    """Returns the columns of results that are tuples."""
    return tuple(np.array([*found], dtype=np.int64).reshape(-1, len(RESULT[work])).T)


def digest(found: Columns) -> int:
    """Returns the sum of a hash of each row, modulo 2**64: equal for the same rows in any order."""
    mixed = np.zeros(len(found[0]), dtype=np.uint64)
    for column in found:
        mixed = (mixed ^ column.astype(np.uint64)) * np.uint64(_FACTOR)
        mixed ^= mixed >> np.uint64(32)
    return int(mixed.sum(dtype=np.uint64))
