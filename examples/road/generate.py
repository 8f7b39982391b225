"""A morning's traffic: vehicles that report every 30 seconds, accidents, and tolls."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

TUPLES = 4_000
SEED = 2006
BEGIN = int(datetime(2006, 3, 1, 7, 30, tzinfo=UTC).timestamp() * 1000)
REPORTS = 20  # of each vehicle, one every 30 seconds
PERIOD = 30_000
HIGHWAYS = 2
SEGMENTS = 12  # of a highway, one mile each
MILE = 5280  # feet
TOLL_PERIOD = 120_000  # each segment's toll is posted again after this time
DIRECTIONS = np.array(["east", "west"])
KINDS = np.array(["collision", "breakdown", "fire"])


def streams(tuples: int, seed: int) -> dict[str, pa.Table]:
    """Returns each stream's tuples, in the order of their times; `tuples` counts vehicle
    reports."""
    chance = np.random.default_rng(seed)
    vehicles = -(-tuples // REPORTS)
    length = PERIOD * REPORTS  # of a drive; drives start at random within the same length of time
    return {
        "PosSpeedStr": _reports(chance, vehicles, length).slice(0, tuples),
        "AccidentStr": _accidents(chance, max(vehicles // 5, 2), 2 * length),
        "TollStr": _tolls(chance, 2 * length),
    }


def _reports(chance: np.random.Generator, vehicles: int, length: int) -> pa.Table:
    vehicle = np.repeat(np.arange(vehicles), REPORTS)
    start = chance.integers(0, length, vehicles)
    ts = BEGIN + start[vehicle] + np.tile(np.arange(REPORTS) * PERIOD, vehicles)
    speed = np.abs(chance.normal(48, 18, vehicles * REPORTS)).astype(np.float32)  # miles per hour
    feet = np.cumsum((speed * PERIOD / 3_600_000 * MILE).reshape(vehicles, REPORTS), axis=1)
    feet += chance.uniform(0, SEGMENTS * MILE / 2, vehicles)[:, None]
    direction = chance.integers(0, 2, vehicles)
    feet = np.where(direction[:, None] == 1, SEGMENTS * MILE - feet, feet)
    table = pa.table(
        {
            "ts": _times(ts),
            "vehicleId": [f"SU-{number:05d}" for number in vehicle],
            "speed": pa.array(speed, mask=chance.random(len(speed)) < 0.02),  # a broken meter
            "xPos": np.clip(feet, 0, SEGMENTS * MILE - 1).astype(np.int32).reshape(-1),
            "dir": DIRECTIONS[direction][vehicle],
            "hwy": chance.integers(0, HIGHWAYS, vehicles, dtype=np.int32)[vehicle],
        }
    )
    return table.take(np.argsort(ts, kind="stable"))


def _accidents(chance: np.random.Generator, count: int, length: int) -> pa.Table:
    ts = BEGIN + np.sort(chance.integers(0, length, count))
    seen = ts - chance.integers(0, 60_000, count)  # shortly before the report
    return pa.table(
        {
            "ts": _times(ts),
            "id": np.arange(count) + 20_060_301_000_000,
            "hwy": chance.integers(0, HIGHWAYS, count, dtype=np.int32),
            "dir": DIRECTIONS[chance.integers(0, 2, count)],
            "seg": chance.integers(0, SEGMENTS, count, dtype=np.int16),
            "kind": KINDS[chance.integers(0, len(KINDS), count)],
            "day": pa.array(seen // 86_400_000, pa.int32()).cast(pa.date32()),
            "clock": pa.array(seen % 86_400_000, pa.int32()).cast(pa.time32("ms")),
            "blocked": chance.random(count) < 0.6,
            "cost": pa.array(
                np.round(chance.lognormal(8, 1, count), 2), mask=chance.random(count) < 0.3
            ),
        }
    )


def _tolls(chance: np.random.Generator, length: int) -> pa.Table:
    posted = np.arange(0, length, TOLL_PERIOD)
    hwy, direction, seg = (
        grid.reshape(-1)
        for grid in np.meshgrid(range(HIGHWAYS), (0, 1), range(SEGMENTS), indexing="ij")
    )
    ts = BEGIN + np.repeat(posted, len(seg))
    rounds = len(posted)
    toll = np.round(chance.gamma(1.5, 1, len(ts)), 3)
    return pa.table(
        {
            "ts": _times(ts),
            "hwy": np.tile(hwy, rounds).astype(np.int32),
            "dir": DIRECTIONS[np.tile(direction, rounds)],
            "seg": np.tile(seg, rounds).astype(np.int16),
            "toll": np.where(chance.random(len(ts)) < 0.4, 0.0, toll),
            "validUntil": _times(ts + TOLL_PERIOD).cast(pa.timestamp("us")),
        }
    )


def _times(milliseconds: np.ndarray) -> pa.Array:
    return pa.array(milliseconds, pa.int64()).cast(pa.timestamp("ms"))
