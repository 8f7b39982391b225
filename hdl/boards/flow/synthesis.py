"""Synthesis: a top to a netlist of an ECP5's cells."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from seustream.hdl.boards.board import Part
from seustream.hdl.boards.flow.floorplan import plan
from seustream.hdl.boards.flow.names import plain
from seustream.hdl.boards.flow.tools import BitstreamFailed, run
from seustream.hdl.boards.tops import BoardTop, Setting
from seustream.hdl.config import MAX_STREAMS

# An Amaranth read port gives what was there before a write to the same address in the same cycle;
# block RAM gives anything. The two cannot meet, or what is read then is not used, in
SEPARATE = (
    # window buffer: a slot that is written is one no probe may see, and masked out of its row;
    "stamps", "selections", "bank*",
    # ... a context is asked for some cycles after its view was noted;
    "views",
    # equality index: the slot inserted is reached only by chains that have ended (but what is
    # overwritten in `newest` is what is wanted of it);
    "older",
    # tables: only the half not in use is written;
    "plans", "instructions", "destinations", "routes", "tests", "sets", "operands*", "kinds",
    # fetch: nobody asks for a raw tuple before it is kept;
    "arrivals",
    # queues: what is pushed can be taken in the next cycle at the earliest;
    "probes",
    # host link: what is written belongs to a ring only later.
    "received", "sending",
)  # fmt: skip
# Lie apart on the chip: what each keeps of something common must not become one register for all.
APART = (*(f"area{number}" for number in range(MAX_STREAMS)), "selection", "output*")
# Shallow and wide: a few LUTs a bit, where block RAM would lie empty.
SHALLOW = ("raws", "tallies", "storage", "comparisons*", "queue_*")
# Deep enough for block RAM, though yosys would not say so.
BLOCKS = ("views", "operands*", "kinds")
# Deep FIFOs, by the module they are in: their memory is called as that of shallow ones.
DEEP = ("network*.waiting", "network*.gathered", "usb*.coming", "usb*.going")


@dataclass(frozen=True, slots=True)
class Size:
    """Counts a netlist's use of a part, before placing: LUT4 (carry chains and small memories
    counted by the LUTs they take up), registers, block RAMs."""

    cells: int
    registers: int
    ram: int

    def exceeds(self, part: Part) -> list[str]:
        """Names the resources the part has too little of."""
        have = (
            ("LUT4", self.cells, part.cells),
            ("registers", self.registers, part.cells),
            ("block RAMs", self.ram, part.ram),
        )
        return [f"{wanted:,} {what} of {there:,}" for what, wanted, there in have if wanted > there]


def memory_hints() -> Iterator[str]:
    """Adds the use of memories that yosys cannot know."""
    for name in SEPARATE:
        # Backslashes: a memory's name is a string with one, and there may be a number after it.
        for pattern in (name, f"{name}$*"):
            yield f"setparam -set COLLISION_X_MASK 1'1 */t:$memrd_v2 */r:MEMID=\\\\{pattern} %i"
    for name in SHALLOW:
        yield f'setattr -set ram_style "distributed" */m:{name}'
    for name in BLOCKS:
        yield f'setattr -set ram_style "block" */m:{name}'
    for name in DEEP:
        yield f'setattr -set ram_style "block" *.{name}*/m:storage'


def mapping() -> Iterator[str]:
    """From `top` to `top.json`."""
    for part in APART:
        yield f"setattr -mod -set keep_hierarchy 1 *.wjasip.{part}"
    yield "synth_ecp5 -top top"
    yield "setattr -mod -unset keep_hierarchy *"
    yield from ("flatten", "opt_clean -purge", "write_json top.json")


def rtlil(setting: Setting) -> str:
    from amaranth.back import rtlil as back

    top = BoardTop(setting)
    collects = gc.isenabled()
    gc.disable()  # elaboration makes millions of objects and drops none: half the time
    try:
        text = back.convert(top, name="top", ports=top.ports, emit_src=False)
        return plain(str(text))
    finally:
        if collects:
            gc.enable()


def synthesise(setting: Setting, folder: Path) -> Size:
    """Writes `top.json` and `cells.json` into the folder."""
    (folder / "top.il").write_text(rtlil(setting))
    script = [
        "read_rtlil top.il",
        *memory_hints(),
        *mapping(),
        "tee -q -o cells.json stat -json",
    ]
    (folder / "script.ys").write_text("\n".join(script) + "\n")
    status, last = run("yosys", ["-q", "-l", "yosys.log", "-s", "script.ys"], folder)
    if status:
        # Of what it did not expect itself yosys says nothing aloud.
        said = ("".join(last).strip() and last) or (folder / "yosys.log").read_text().splitlines()
        raise BitstreamFailed("synthesis failed:\n" + "\n".join(said[-10:]))
    plan(folder / "top.json", setting.board.part.option)
    return size(folder)


def size(folder: Path) -> Size:
    """Of a netlist that was written there."""
    cells = json.loads((folder / "cells.json").read_text())["design"]["num_cells_by_type"]
    # A carry cell takes two LUTs, a memory of 16 x 4 bits a slice and half of another.
    takes = {"LUT4": 1, "CCU2C": 2, "TRELLIS_DPR16X4": 6}
    return Size(
        cells=sum(cells.get(name, 0) * luts for name, luts in takes.items()),
        registers=cells.get("TRELLIS_FF", 0),
        ram=sum(cells.get(name, 0) for name in ("DP16KD", "PDPW16KD")),
    )
