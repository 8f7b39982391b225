"""Car reports, requests and a toll history, as the Linear Road benchmark has them.

The load rises; some cars crash in pairs, stand for a while, and those behind them crawl.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

TUPLES = 20_000
SEED = 2004
BEGIN = 1_078_125_600_000  # milliseconds since 1970
PERIOD = 30  # seconds from one report of a car to the next
REPORTS = 20  # of a car, at most
RATE = 15  # average reports per second
SEGMENTS, MILE = 100, 5280  # of each direction, a mile long in feet
BUSY = 4  # segments at the middle, through which most cars go
CRASHED = slice(5, 13)  # the reports of a car that has stopped
DAYS = 69  # of history

Ints = npt.NDArray[np.int64]


def streams(tuples: int, seed: int) -> dict[str, pa.Table]:
    """Returns each stream in the order of its times, and the history; `tuples` counts position
    reports."""
    chance = np.random.default_rng(seed)
    cars = -(-tuples // REPORTS) + 2
    begin = np.sort((tuples // RATE * np.sqrt(chance.random(cars))).astype(np.int64))
    position = _positions(chance, begin).slice(0, tuples)
    ts, vid = position["ts"].to_numpy().astype(np.int64), position["vid"].to_numpy()
    asked = np.sort(chance.choice(len(ts), max(len(ts) // 100, 1), replace=False))
    planned = np.sort(chance.choice(len(ts), max(len(ts) // 200, 1), replace=False))
    day, of = (one.reshape(-1) for one in np.meshgrid(range(1, DAYS + 1), range(cars)))
    return {
        "position": position,
        "balance": _table(ts[asked], vid=vid[asked], qid=np.arange(len(asked))),
        "expenditure": _table(
            ts[planned],
            vid=vid[planned],
            xway=np.zeros(len(planned)),
            qid=len(asked) + np.arange(len(planned)),
            day=chance.integers(1, DAYS + 1, len(planned)),
        ),
        "history": _table(
            None, vid=of, day=day, xway=np.zeros(len(of)), toll=chance.integers(10, 100, len(of))
        ),
    }


def _positions(chance: np.random.Generator, begin: Ints) -> pa.Table:
    cars = len(begin)
    direction = chance.integers(0, 2, cars)
    middle = SEGMENTS // 2 * MILE
    feet = np.where(chance.random(cars) < 0.7, middle, chance.uniform(0, middle, cars))
    feet += chance.uniform(0, BUSY * MILE, cars)
    # The car after a crashed one has been beside it all the time.
    crashed = np.arange(1, cars - 1, max(cars // 4, 3))
    direction[crashed + 1], feet[crashed + 1] = direction[crashed], feet[crashed]
    standing = np.concatenate([crashed, crashed + 1])
    lane, rows = chance.integers(1, 4, cars), []
    for report in range(REPORTS):
        busy = (feet >= middle) & (feet < middle + BUSY * MILE)
        speed = np.clip(chance.normal(np.where(busy, 22, 58), 8), 1, 100).astype(np.int64)
        speed[crashed + 1], lane[crashed + 1] = speed[crashed], lane[crashed]
        if CRASHED.start < report < CRASHED.stop:
            speed[standing] = 0
        elif report % 4 == 0:
            lane = chance.integers(1, 4, cars)
        feet += speed * MILE * PERIOD / 3600
        at = np.clip(feet, 0, SEGMENTS * MILE - 1).astype(np.int64)
        at = np.where(direction == 1, SEGMENTS * MILE - 1 - at, at)
        ends = {0: 0, REPORTS - 1: 4}.get(report)  # the lanes of entry and exit
        lanes = lane if ends is None else np.full(cars, ends)
        rows.append((begin + report * PERIOD, speed, lanes, at))
    ts, speed, lanes, at = (np.stack(one, axis=1).reshape(-1) for one in zip(*rows, strict=True))
    order = np.argsort(ts, kind="stable")
    made = {
        "vid": np.repeat(np.arange(cars), REPORTS),
        "spd": speed,
        "xway": np.zeros(len(ts)),
        "lane": lanes,
        "dir": np.repeat(direction, REPORTS),
        "seg": at // MILE,
        "pos": at,
    }
    return _table(BEGIN + 1000 * ts[order], **{name: one[order] for name, one in made.items()})


def _table(ts: Ints | None, **columns: npt.NDArray[np.generic]) -> pa.Table:
    times = {} if ts is None else {"ts": pa.array(ts, pa.int64()).cast(pa.timestamp("ms"))}
    return pa.table({**times, **{name: one.astype(np.int32) for name, one in columns.items()}})
