"""Generates rows for an example's streams, as files. The same seed gives the same rows on every
machine.

    python examples/generate.py --list
    python examples/generate.py network --tuples 3000 -o data --format parquet

An example's `generate.py` defines `streams(tuples, seed)`, which returns a table for each stream,
and the defaults TUPLES and SEED.
"""

from __future__ import annotations

import argparse
import json
import sys
from importlib.util import module_from_spec, spec_from_file_location
from inspect import signature
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

HERE = Path(__file__).resolve().parent
EXAMPLES = sorted(path.parent.name for path in HERE.glob("*/generate.py"))


def example(name: str) -> ModuleType:
    """Imports an example's generator."""
    spec = spec_from_file_location(f"example_{name}", HERE / name / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    made = module_from_spec(spec)
    sys.modules[spec.name] = made  # dataclasses look up their module
    spec.loader.exec_module(made)
    return made


def write(rows: pa.Table, path: Path) -> None:
    """Writes a stream to a file in the format of its suffix."""
    if path.suffix == ".parquet":
        pa.parquet.write_table(rows, path)
    elif path.suffix == ".jsonl":
        lines = (json.dumps(row, default=str) + "\n" for row in rows.to_pylist())
        path.write_text("".join(lines), encoding="utf-8")
    else:
        pa.csv.write_csv(rows, path)


class Listed(argparse.Action):
    """Prints the examples and exits."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        for name in EXAMPLES:
            print(f"{name:<11} {(example(name).__doc__ or '').splitlines()[0]}")
        parser.exit()


def main() -> None:
    parser = argparse.ArgumentParser(description="Rows for an example's streams, as files.")
    parser.add_argument("--list", nargs=0, action=Listed, help="name the examples, and end")
    parser.add_argument("example", choices=EXAMPLES, metavar="EXAMPLE", help=", ".join(EXAMPLES))
    parser.add_argument("--tuples", type=int, metavar="N", help="rows of the largest stream")
    parser.add_argument("--seed", type=int, metavar="N", help="other rows by another seed")
    parser.add_argument("--jitter", type=int, metavar="MS", help="tolls: reports early or late")
    parser.add_argument("-o", dest="output", type=Path, default=Path("data"), metavar="DIR")
    parser.add_argument("--format", choices=("csv", "jsonl", "parquet"), default="csv")
    options = parser.parse_args()
    made = example(options.example)
    tuples = made.TUPLES if options.tuples is None else options.tuples
    seed = made.SEED if options.seed is None else options.seed
    more = {} if options.jitter is None else {"jitter": options.jitter}
    if more and "jitter" not in signature(made.streams).parameters:
        parser.error(f"{options.example} has no --jitter, tolls has")
    options.output.mkdir(parents=True, exist_ok=True)
    for name, rows in made.streams(tuples, seed, **more).items():
        path = options.output / f"{name}.{options.format}"
        write(rows, path)
        print(f"{path}: {rows.num_rows} tuples")


if __name__ == "__main__":
    main()
