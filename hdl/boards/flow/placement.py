"""Placement and routing, one seed at a time; packing."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seustream.hdl.boards.board import Part
from seustream.hdl.boards.flow.progress import FlowProgress
from seustream.hdl.boards.flow.tools import BitstreamFailed, Note, ToolSilent, run

_TOO_MANY = re.compile(
    r"ERROR: (.*(?:no BELs remaining|Unable to (?:place|find legal placement)|ran out of).*)", re.I
)

PLACER = "static"
"""This placer spreads cells like electric charges. It needs a seventh less wire than nextpnr's default placer and
leaves no spot too congested for the router: a default configuration is routed in minutes, with the default
placer not even in hours."""
_PATIENCE = 1800
"""Seconds without a line of output after which a seed is given up. When the last cells find no legal place, the
placer can search for one for ever, and prints nothing meanwhile."""


class SeedFailed(BitstreamFailed):
    """A seed could not be placed or routed; another may do."""

    def __init__(self, seed: int, reason: str) -> None:
        super().__init__(f"seed {seed}: {reason}", "another seed may do: --seeds N")


@dataclass(frozen=True, slots=True)
class Placed:
    """Outcome of a seed.

    clock     clock reached, in MHz
    wanted    clock requested, in MHz
    path      steps of the slowest path: from, to, and delay in ns
    used      cells by type: used, available
    clocks    every clock of the design: reached and requested, in MHz
    """

    seed: int
    clock: float
    wanted: float
    path: list[dict[str, Any]]
    used: dict[str, tuple[int, int]]
    clocks: dict[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def meets(self) -> bool:
        return self.clock >= self.wanted


def place(
    part: Part, constraints: Sequence[Path], clock: float, seed: int, folder: Path, note: Note
) -> Placed:
    """Places and routes the netlist in the folder; writes `<seed>.config` and `<seed>.json` there, and
    `<seed>.log` while it runs."""
    arguments = [
        part.option, "--package", part.package, "--speed", part.speed,
        "--json", "top.json", "--seed", str(seed), "--freq", f"{clock:g}", "--placer", PLACER,
        "--timing-allow-fail", "--report", f"{seed}.report.json",
        "--textcfg", f"{seed}.config", "--write", f"{seed}.json",
    ]  # fmt: skip
    for pins in constraints:
        # Copy the file beside the netlist, because the tool sees little else of the file system.
        shutil.copy(pins, folder)
        arguments += ["--lpf", pins.name]
    progress = FlowProgress(f"seed {seed}", note)
    log = folder / f"{seed}.log"
    with log.open("w") as file:

        def line(text: str) -> None:
            print(text, file=file, flush=True)
            progress.line(text)

        try:
            status, last = run("nextpnr-ecp5", arguments, folder, line, _PATIENCE)
        except ToolSilent as error:
            raise SeedFailed(seed, str(error)) from None
    if status:
        if found := _TOO_MANY.search(log.read_text()):
            raise SeedFailed(seed, found[1])
        raise BitstreamFailed(f"seed {seed}: placing failed:\n" + "\n".join(last[-10:]))
    return read(json.loads((folder / f"{seed}.report.json").read_text()), seed, clock)


def read(report: dict[str, Any], seed: int, wanted: float) -> Placed:
    """Reads a report of nextpnr. Of several clocks, the one with the least slack counts."""
    clocks = report["fmax"]
    if not clocks:
        raise BitstreamFailed(f"seed {seed}: no clock in the report")
    name = min(clocks, key=lambda net: clocks[net]["achieved"] / clocks[net]["constraint"])
    path: list[dict[str, Any]] = next(
        (
            path["path"]
            for path in report["critical_paths"]
            if path["from"] == path["to"] and path["from"].endswith(name)
        ),
        [],
    )
    spare = clocks[name]["achieved"] / clocks[name]["constraint"]
    used = {
        cell: (figures["used"], figures["available"])
        for cell, figures in report["utilization"].items()
    }
    each = {
        net.removeprefix("$glbnet$"): (round(found["achieved"], 2), round(found["constraint"], 2))
        for net, found in clocks.items()
    }
    return Placed(seed, wanted * spare, wanted, path, used, each)


def pack(seed: int, folder: Path, bitstream: Path) -> None:
    status, last = run(
        "ecppack", ["--compress", "--input", f"{seed}.config", "--bit", bitstream.name], folder
    )
    if status:
        raise BitstreamFailed("packing failed:\n" + "\n".join(last[-10:]))
