"""`seustream bench`: the measurements in `bench/`, ratios within one run.

Each module there has `TITLE` and `measure() -> Measurement`; the figures are printed and written
to `bench/results/NAME.json` with the conditions they were taken under.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
import pyarrow as pa

import seustream
from compiler.errors import suggest
from seustream.commands.common import table
from seustream.errors import UserError
from seustream.files import write_all

HELP = "measure, with ratios within one run"


@dataclass(frozen=True, slots=True)
class Measurement:
    """A table of figures, and what they say: ratios by name."""

    head: tuple[str, ...]
    rows: list[tuple[object, ...]]
    ratios: dict[str, float]
    conditions: str


def folder() -> Path:
    """The `bench/` of the source tree."""
    return Path(seustream.__file__).resolve().parent.parent / "bench"


def available() -> dict[str, Path]:
    return {path.stem: path for path in sorted(folder().glob("*.py"))}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="NAME", help="which (default: all)")
    parser.add_argument("--list", action="store_true", help="list them and stop")


def run(arguments: argparse.Namespace) -> int:
    known = available()
    if not known:
        raise UserError(["there is no bench folder here"], hint="benchmarks come with the sources")
    modules = {name: _load(path) for name, path in known.items()}
    if arguments.list:
        print(table([(name, title) for name, (title, _) in modules.items()], ("name", "measures")))
        return 0
    for name in arguments.names:
        if name not in known:
            hint = suggest(name, known, "benchmarks")
            raise UserError([f"there is no benchmark {name!r}"], hint=hint)
    for name in arguments.names or known:
        title, measure = modules[name]
        print(f"{title}\n", flush=True)
        found = measure()
        print(table([tuple(map(_shown, row)) for row in found.rows], found.head))
        for what, ratio in found.ratios.items():
            print(f"{what}: {ratio:.3g}")
        print(f"({found.conditions})\n", flush=True)
        data = {
            "title": title,
            "conditions": found.conditions,
            "machine": f"{platform.machine()}, {os.cpu_count()} cores",
            "versions": {
                "python": platform.python_version(),
                "numpy": np.__version__,
                "pyarrow": pa.__version__,
            },
            "head": found.head,
            "rows": found.rows,
            "ratios": found.ratios,
        }
        text = json.dumps(data, indent=2) + "\n"
        write_all(folder() / "results", {f"{name}.json": text.encode()})
    return 0


def _shown(value: object) -> object:
    return f"{value:,.3g}" if isinstance(value, float) else value


def _load(path: Path) -> tuple[str, Callable[[], Measurement]]:
    spec = importlib.util.spec_from_file_location(f"bench_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return cast(str, module.TITLE), cast("Callable[[], Measurement]", module.measure)
