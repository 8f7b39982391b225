"""`seustream bench`: the measurements in `bench/`, ratios within one run.

Each module there has `TITLE` and `measure() -> Measurement`; the figures are printed and written
to `bench/results/NAME.json` with the conditions they were taken under, charts beside them. One with `LONG = True`
runs only when it is named. One with `PARTS` measures some of them by `NAME:PART,PART`: its
`measure` takes their names.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import ModuleType
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
class Table:
    """More figures of one measurement."""

    title: str
    head: tuple[str, ...]
    rows: list[tuple[object, ...]]


@dataclass(frozen=True, slots=True)
class Measurement:
    """A table of figures, and what they say: ratios by name. Perhaps more tables, remarks in
    words, and charts by name, as SVG."""

    head: tuple[str, ...]
    rows: list[tuple[object, ...]]
    ratios: dict[str, float]
    conditions: str
    more: tuple[Table, ...] = ()
    remarks: tuple[str, ...] = ()
    charts: Mapping[str, str] = field(default_factory=dict)


def folder() -> Path:
    """The `bench/` of the source tree."""
    return Path(seustream.__file__).resolve().parent.parent / "bench"


def available() -> dict[str, Path]:
    return {path.stem: path for path in sorted(folder().glob("*.py"))}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="which (default: all but long ones)"
    )
    parser.add_argument("--list", action="store_true", help="list them and stop")


def run(arguments: argparse.Namespace) -> int:
    known = available()
    if not known:
        raise UserError(["there is no bench folder here"], hint="benchmarks come with the sources")
    modules = {name: _load(path) for name, path in known.items()}
    if arguments.list:
        titles = [(name, module.TITLE) for name, module in modules.items()]
        print(table(titles, ("name", "measures")))
        return 0
    wanted = [_wanted(name, modules) for name in arguments.names] or [
        (name, None) for name, module in modules.items() if not getattr(module, "LONG", False)
    ]
    for name, parts in wanted:
        module = modules[name]
        title = module.TITLE
        print(f"{title}\n", flush=True)
        found = cast(Measurement, module.measure() if parts is None else module.measure(parts))
        print(table([tuple(map(_shown, row)) for row in found.rows], found.head))
        for other in found.more:
            print(f"\n{other.title}\n")
            print(table([tuple(map(_shown, row)) for row in other.rows], other.head))
        for what, ratio in found.ratios.items():
            print(f"{what}: {ratio:.3g}")
        for remark in found.remarks:
            print(remark)
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
        if found.more:
            data["more"] = [asdict(other) for other in found.more]
        if found.remarks:
            data["remarks"] = found.remarks
        text = json.dumps(data, indent=2) + "\n"
        files = {f"{name}.json": text.encode()}
        files |= {f"{name}-{chart}.svg": svg.encode() for chart, svg in found.charts.items()}
        write_all(folder() / "results", files)
    return 0


def _shown(value: object) -> object:
    return f"{value:,.3g}" if isinstance(value, float) else value


def _wanted(name: str, modules: dict[str, ModuleType]) -> tuple[str, list[str] | None]:
    """A benchmark, and which of its parts."""
    name, _, some = name.partition(":")
    if name not in modules:
        hint = suggest(name, modules, "benchmarks")
        raise UserError([f"there is no benchmark {name!r}"], hint=hint)
    if not some:
        return name, None
    known: Sequence[str] = getattr(modules[name], "PARTS", ())
    for part in some.split(","):
        if part not in known:
            hint = suggest(part, known, "parts") if known else "it has no parts"
            raise UserError([f"the benchmark {name!r} has no part {part!r}"], hint=hint)
    return name, some.split(",")


def measured_before(
    name: str, head: Sequence[str], keep: Callable[[tuple[object, ...]], bool]
) -> list[tuple[object, ...]]:
    """Rows of the last run of a long benchmark of parts, for parts that are not measured again."""
    path = folder() / "results" / f"{name}.json"
    if not path.exists():
        return []
    last = json.loads(path.read_text("utf-8"))
    rows = [tuple(row) for row in last["rows"]] if tuple(last["head"]) == tuple(head) else []
    return [row for row in rows if keep(row)]


def sibling(name: str) -> ModuleType:
    """Another benchmark, for what it has in common with the one that asks."""
    return _load(folder() / f"{name}.py")


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"bench_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there for what their names mean
    spec.loader.exec_module(module)
    return module
