"""Rush hour: vehicles that report every 30 seconds, more or less, and miles on which they crawl.

python examples/tolls/generate.py --tuples 6000 -o data
"""

from __future__ import annotations

import argparse
import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

BEGIN = int(datetime(2006, 3, 1, 7, 30, tzinfo=UTC).timestamp() * 1000)
PERIOD = 30_000
REPORTS = 30  # of each vehicle
HIGHWAYS = 2
SEGMENTS = 100  # of a highway, one mile each; vehicles start within the first few
STARTS = 8
MILE = 5280  # feet
DIRECTIONS = np.array(["east", "west"])


def reports(tuples: int, seed: int, jitter: int = 0) -> pa.Table:
    """Vehicle reports in the order of their times, of which several may be equal. Each comes up to
    `jitter` milliseconds early or late."""
    chance = np.random.default_rng(seed)
    vehicles = -(-tuples // REPORTS)
    highway = chance.integers(0, HIGHWAYS, vehicles)
    direction = chance.integers(0, 2, vehicles)
    # Whole seconds, so that vehicles report at the same time.
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


def write(rows: pa.Table, path: Path) -> None:
    """A stream as a file; the suffix tells the format."""
    if path.suffix == ".parquet":
        pa.parquet.write_table(rows, path)
    elif path.suffix == ".jsonl":
        lines = (json.dumps(row, default=str) + "\n" for row in rows.to_pylist())
        path.write_text("".join(lines), encoding="utf-8")
    else:
        pa.csv.write_csv(rows, path)


def main() -> None:
    parser = argparse.ArgumentParser(description="Rush hour.")
    parser.add_argument("--tuples", type=int, default=6000, help="vehicle reports (default: 6000)")
    parser.add_argument("--seed", type=int, default=2006)
    parser.add_argument(
        "--jitter", type=int, default=0, help="milliseconds around 30 s (default: 0)"
    )
    parser.add_argument("-o", dest="output", type=Path, default=Path("data"), metavar="DIR")
    parser.add_argument("--format", choices=("csv", "jsonl", "parquet"), default="csv")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    path = options.output / f"PosSpeedStr.{options.format}"
    rows = reports(options.tuples, options.seed, options.jitter)
    write(rows, path)
    print(f"{path}: {rows.num_rows} tuples")


if __name__ == "__main__":
    main()
