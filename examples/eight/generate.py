"""Tuples for the eight queries: streams R, S and T of small random integers.

python examples/eight/generate.py --tuples 300 -o data
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

COLUMNS = {"R": "abc", "S": "de", "T": "fg"}
VALUES = 50  # two columns agree in one pair of fifty
TICKS = 10  # from one tuple of a stream to the next, on average


def streams(tuples: int, seed: int) -> dict[str, pa.Table]:
    """Each stream's tuples, in the order of their timestamps."""
    chance = np.random.default_rng(seed)
    made = {}
    for name, columns in COLUMNS.items():
        ts = np.sort(chance.integers(0, TICKS * tuples, tuples))
        values = {c: chance.integers(0, VALUES, tuples, dtype=np.int32) for c in columns}
        made[name] = pa.table({"ts": ts, **values})
    return made


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
    parser = argparse.ArgumentParser(description="Tuples for the eight queries.")
    parser.add_argument("--tuples", type=int, default=300, help="of each stream (default: 300)")
    parser.add_argument("--seed", type=int, default=2006)
    parser.add_argument("-o", dest="output", type=Path, default=Path("data"), metavar="DIR")
    parser.add_argument("--format", choices=("csv", "jsonl", "parquet"), default="csv")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    for name, rows in streams(options.tuples, options.seed).items():
        path = options.output / f"{name}.{options.format}"
        write(rows, path)
        print(f"{path}: {rows.num_rows} tuples")


if __name__ == "__main__":
    main()
