"""Two streams of integers, and random rows of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

STREAMS = "CREATE STREAM R (a int, b int); CREATE STREAM S (d int, e int);"


def random_rows(count: int, chance: np.random.Generator) -> dict[str, pa.Table]:
    found = {}
    for name, columns in (("R", "ab"), ("S", "de")):
        keys = {c: chance.integers(0, 5, count).astype(np.int32) for c in columns}
        found[name] = pa.table({"ts": np.cumsum(chance.integers(0, 3, count)), **keys})
    return found
