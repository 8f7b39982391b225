"""The resources that netlists of the known configurations need, and the parts they fit.

Each synthesis takes minutes, so this runs only on request: `seustream bench sizes`, or `sizes:tiny`
for one configuration. The results go to `hdl/boards/flow/sizes.json`, from which `seustream
bitstream` knows what would fit a part when something does not. It needs the dependency group
`fpga`.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence

from bench.boards import CONSTRAINTS, LEAN, SMALL, _note
from seustream.commands.bench import Measurement, measured_before
from seustream.cosim.verilated.build import cache
from seustream.hdl.boards.board import BOARDS, Board
from seustream.hdl.boards.flow.bitstream import Build
from seustream.hdl.boards.flow.sizes import FILE
from seustream.hdl.boards.flow.synthesis import Size
from seustream.hdl.boards.tops import Setting
from seustream.hdl.config import CONFIGURATIONS, DeviceConfig

TITLE = "sizes: what known configurations need of an FPGA"
LONG = True  # only when named
PART_BY_PART = True

KNOWN: dict[str, tuple[str, DeviceConfig, Board]] = {
    **{name: (name, config, BOARDS["ulx3s"]) for name, config in CONFIGURATIONS.items()},
    "grouping": ("grouping", CONFIGURATIONS["grouping"], BOARDS["ecpix5"]),
    SMALL.name: ("constraints/small.json", SMALL, BOARDS["icesugar_pro"]),
    LEAN.name: ("constraints/lean.json", LEAN, BOARDS["icesugar_pro"]),
}
"""By argument of `--config`: its name, the configuration, and a board around it. Other boards
differ by a few LEDs."""
PARTS = tuple(KNOWN)
SHORT = {"PARTS": ("tiny", SMALL.name)}
HEAD = ("configuration", "LUT4", "registers", "block RAM", "fits")


def measure(parts: Sequence[str] = PARTS) -> Measurement:
    again = {KNOWN[part][0] for part in parts}
    rows = measured_before("sizes", HEAD, lambda row: row[0] not in again)
    for part in parts:
        typed, config, board = KNOWN[part]
        _, size = Build(Setting(board, config), CONSTRAINTS / board.name, cache()).netlist(_note)
        known = json.loads(FILE.read_text())
        known[typed] = dataclasses.asdict(size)
        FILE.write_text(json.dumps(known, indent=2, sort_keys=True) + "\n")
        rows.append((typed, size.cells, size.registers, size.ram, ", ".join(_fits(size))))
    rows.sort(key=lambda row: [typed for typed, _, _ in KNOWN.values()].index(str(row[0])))
    return Measurement(HEAD, rows, {}, "of the netlist, before placing")


def _fits(size: Size) -> list[str]:
    return [board.name for board in BOARDS.values() if not size.exceeds(board.part)]
