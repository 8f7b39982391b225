"""Placement and routing, a seed at a time; packing."""

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
from seustream.hdl.boards.flow.tools import BitstreamFailed, Note, run

_TOO_MANY = re.compile(r"ERROR: (.*(?:no BELs remaining|Unable to place|ran out of).*)", re.I)

PLACER = "static"
"""It spreads cells as charges do, and comes to a seventh less wire than nextpnr's usual one, with no
place so crowded that the router must give way: a default configuration is routed in minutes, which
otherwise is not in hours."""


@dataclass(frozen=True, slots=True)
class Placed:
    """Outcome of a seed.

    clock     MHz it runs at
    wanted    MHz it was to run at
    path      the slowest path: from, to, and their delays in ns
    used      cells by type, of how many
    clocks    MHz of each clock there is, reached and wanted
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
    """Writes `<seed>.config` and `<seed>.json` into the folder with the netlist, and `<seed>.log`
    as it grows."""
    arguments = [
        part.option, "--package", part.package, "--speed", part.speed,
        "--json", "top.json", "--seed", str(seed), "--freq", f"{clock:g}", "--placer", PLACER,
        "--timing-allow-fail", "--report", f"{seed}.report.json",
        "--textcfg", f"{seed}.config", "--write", f"{seed}.json",
    ]  # fmt: skip
    for pins in constraints:
        # Beside the netlist, for the tool sees little else of the file system.
        shutil.copy(pins, folder)
        arguments += ["--lpf", pins.name]
    progress = FlowProgress(f"seed {seed}", note)
    log = folder / f"{seed}.log"
    with log.open("w") as file:

        def line(text: str) -> None:
            print(text, file=file, flush=True)
            progress.line(text)

        status, last = run("nextpnr-ecp5", arguments, folder, line)
    if status:
        found = _TOO_MANY.search(log.read_text())
        reason = found and found[1]
        raise BitstreamFailed(
            f"seed {seed}: " + (reason or "placing failed:\n" + "\n".join(last[-10:])),
            "another seed may do: --seeds N" if reason else None,
        )
    return read(json.loads((folder / f"{seed}.report.json").read_text()), seed, clock)


def read(report: dict[str, Any], seed: int, wanted: float) -> Placed:
    """From a report of nextpnr's. Of several clocks, the one with least to spare."""
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
