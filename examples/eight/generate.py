"""Tuples for the eight queries: streams R, S and T of small random integers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

TUPLES = 300
SEED = 2006
COLUMNS = {"R": "abc", "S": "de", "T": "fg"}
VALUES = 50  # two columns are equal in one pair of fifty
TICKS = 10  # from one tuple of a stream to the next, on average


def streams(tuples: int, seed: int) -> dict[str, pa.Table]:
    """Returns each stream's tuples, in the order of their timestamps."""
    chance = np.random.default_rng(seed)
    made = {}
    for name, columns in COLUMNS.items():
        ts = np.sort(chance.integers(0, TICKS * tuples, tuples))
        values = {c: chance.integers(0, VALUES, tuples, dtype=np.int32) for c in columns}
        made[name] = pa.table({"ts": ts, **values})
    return made
