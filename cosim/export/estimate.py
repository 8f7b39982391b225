"""Estimates the core's use of an FPGA, by synthesis with yosys, before placement."""

from __future__ import annotations

import json
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from seustream.cosim.export.core import TOP
from seustream.hdl.boards.flow.tools import BitstreamFailed, Note, run


@dataclass(frozen=True, slots=True)
class FpgaFamily:
    """An FPGA family.

    command    of yosys
    resources  for each resource, patterns of cells and the amount of it in one cell
    """

    title: str
    command: str
    resources: dict[str, dict[str, int]]


FAMILIES = {
    "xc7": FpgaFamily(
        "Xilinx 7 series",
        "synth_xilinx -family xc7",
        {
            "LUT": {"LUT[1-6]": 1, "RAM32M": 4, "RAM64M": 4, "RAM(32|64|128)X1D": 2, "SRL.*": 1},
            "flip-flop": {"FD[CPRS]E(_1)?": 1},
            "carry chain of 4": {"CARRY4": 1},
            "block RAM of 18 Kbit": {"RAMB18E1": 1, "RAMB36E1": 2},
            "DSP": {"DSP48E1": 1},
        },
    ),
    "ecp5": FpgaFamily(
        "Lattice ECP5",
        "synth_ecp5",
        {
            "LUT": {"LUT4": 1, "CCU2C": 2, "TRELLIS_DPR16X4": 6},
            "flip-flop": {"TRELLIS_FF": 1},
            "block RAM of 18 Kbit": {"DP16KD": 1},
            "DSP": {"MULT18X18D": 1},
        },
    ),
    "ice40": FpgaFamily(
        "Lattice iCE40",
        "synth_ice40",
        {
            "LUT": {"SB_LUT4": 1},
            "flip-flop": {"SB_DFF.*": 1},
            "carry": {"SB_CARRY": 1},
            "block RAM of 4 Kbit": {"SB_RAM40_4K.*": 1},
        },
    ),
}


def estimate(verilog: str, family: FpgaFamily, note: Note) -> dict[str, int]:
    """Returns the amount of each resource that a core uses in a family."""
    with tempfile.TemporaryDirectory(prefix="estimate-") as name:
        folder = Path(name)
        (folder / "core.v").write_text(verilog)
        script = (
            "read_verilog core.v",
            f"hierarchy -check -top {TOP}",
            f"{family.command} -top {TOP} -flatten",
            "tee -q -o stat.json stat -json",
        )
        (folder / "run.ys").write_text("\n".join(script) + "\n")
        note(f"estimating for {family.title}")
        status, said = run("yosys", ["-q", "-s", "run.ys"], folder)
        if status:
            raise BitstreamFailed("\n".join([f"yosys failed with {status}:", *said[-5:]]))
        return counted(json.loads((folder / "stat.json").read_text()), family)


def counted(statistics: dict[str, dict[str, dict[str, int]]], family: FpgaFamily) -> dict[str, int]:
    """Adds up the cells of a design by resource."""
    cells = statistics["design"]["num_cells_by_type"]
    return {
        resource: sum(
            count * weight
            for cell, count in cells.items()
            for pattern, weight in patterns.items()
            if re.fullmatch(pattern, cell)
        )
        for resource, patterns in family.resources.items()
    }
