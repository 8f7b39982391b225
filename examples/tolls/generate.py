"""Rush hour: vehicles that report about every 30 seconds, and miles on which they crawl."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

TUPLES = 6_000
SEED = 2006
BEGIN = int(datetime(2006, 3, 1, 7, 30, tzinfo=UTC).timestamp() * 1000)
PERIOD = 30_000
REPORTS = 30  # of each vehicle
HIGHWAYS = 2
SEGMENTS = 100  # of a highway, one mile each; vehicles start within the first few
STARTS = 8
MILE = 5280  # feet
DIRECTIONS = np.array(["east", "west"])


def streams(tuples: int, seed: int, jitter: int = 0) -> dict[str, pa.Table]:
    return {"PosSpeedStr": reports(tuples, seed, jitter)}


def reports(tuples: int, seed: int, jitter: int = 0) -> pa.Table:
    """Returns vehicle reports in the order of their times, several of which may be equal. Each
    report comes up to `jitter` milliseconds early or late."""
    chance = np.random.default_rng(seed)
    vehicles = -(-tuples // REPORTS)
    highway = chance.integers(0, HIGHWAYS, vehicles)
    direction = chance.integers(0, 2, vehicles)
    # Whole seconds, so that several vehicles report at the same time.
    start = chance.integers(0, PERIOD * REPORTS // 1000, vehicles) * 1000
    jammed = chance.random((HIGHWAYS, 2, SEGMENTS)) < 0.4
    at = chance.uniform(0, STARTS, vehicles)  # miles driven
    rows = []
    for report in range(REPORTS):
        segment = np.minimum(at.astype(np.int64), SEGMENTS - 1)
        slow = jammed[highway, direction, segment]
        speed = np.abs(chance.normal(np.where(slow, 28, 56), 9)).astype(np.float32)
        feet = np.minimum(at * MILE, SEGMENTS * MILE - 1)
        feet = np.where(direction == 1, SEGMENTS * MILE - 1 - feet, feet)
        late = chance.integers(-jitter, jitter + 1, vehicles) if jitter else 0
        rows.append((start + report * PERIOD + late, speed, feet.astype(np.int32)))
        at += speed * PERIOD / 3_600_000
    ts, speed, feet = (np.stack(column, axis=1).reshape(-1) for column in zip(*rows, strict=True))
    vehicle = np.repeat(np.arange(vehicles), REPORTS)
    table = pa.table(
        {
            "ts": pa.array(BEGIN + ts, pa.int64()).cast(pa.timestamp("ms")),
            "vehicleId": [f"SU-{number:05d}" for number in vehicle],
            "speed": pa.array(speed, mask=chance.random(len(speed)) < 0.02),  # a broken meter
            "xPos": feet,
            "dir": DIRECTIONS[direction][vehicle],
            "hwy": highway[vehicle].astype(np.int32),
        }
    )
    return table.take(np.argsort(ts, kind="stable")).slice(0, tuples)
