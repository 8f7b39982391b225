"""Synthesis: maps a top to a netlist of an ECP5's cells."""

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

# An Amaranth read port returns the old content on a write to the same address in the same cycle; the block RAM
# returns an undefined value. Such a collision cannot happen, or the value read is not used, in
SEPARATE = (
    # window buffer: a slot being written is invisible to every probe, and masked out of its row;
    "stamps", "selections", "bank*",
    # ... a context is read some cycles after its view was recorded;
    "views",
    # equality index: the slot being inserted is reached only by chains that have ended (`newest` is not listed,
    # because there the old content is needed);
    "older",
    # tables: only the half not in use is written;
    "plans", "instructions", "destinations", "routes", "tests", "sets", "operands*", "kinds",
    # fetch: a raw tuple is never requested before it is kept;
    "arrivals",
    # queues: an entry can be taken in the cycle after its push at the earliest;
    "probes",
    # host link: a byte being written becomes part of its ring only later.
    "received", "sending",
)  # fmt: skip
# These lie apart on the chip: their local copies of broadcast registers must not be merged into one.
APART = (*(f"area{number}" for number in range(MAX_STREAMS)), "selection", "output*")
# Shallow and wide: a few LUTs per bit, where most of a block RAM would stay empty.
SHALLOW = ("raws", "tallies", "storage", "comparisons*", "queue_*")
# Deep enough for block RAM, although yosys would not choose it.
BLOCKS = ("views", "operands*", "kinds")
# Deep FIFOs, by the module they are in: their memories have the same name as those of shallow ones.
DEEP = ("network*.waiting", "network*.gathered", "usb*.coming", "usb*.going")


@dataclass(frozen=True, slots=True)
class Size:
    """Resources that a netlist needs, before placement: LUT4 (including those that carry chains and small
    memories take up), registers, block RAMs."""

    cells: int
    registers: int
    ram: int

    def exceeds(self, part: Part) -> list[str]:
        """Names the resources that the part has too little of."""
        have = (
            ("LUT4", self.cells, part.cells),
            ("registers", self.registers, part.cells),
            ("block RAMs", self.ram, part.ram),
        )
        return [f"{wanted:,} {what} of {there:,}" for what, wanted, there in have if wanted > there]


def memory_hints() -> Iterator[str]:
    """Yields commands that tell yosys how the memories are used, which it cannot know."""
    for name in SEPARATE:
        # A memory's name is a string with a backslash, and a number may follow it.
        for pattern in (name, f"{name}$*"):
            yield f"setparam -set COLLISION_X_MASK 1'1 */t:$memrd_v2 */r:MEMID=\\\\{pattern} %i"
    for name in SHALLOW:
        yield f'setattr -set ram_style "distributed" */m:{name}'
    for name in BLOCKS:
        yield f'setattr -set ram_style "block" */m:{name}'
    for name in DEEP:
        yield f'setattr -set ram_style "block" *.{name}*/m:storage'


def mapping() -> Iterator[str]:
    """Yields the commands from `top` to `top.json`."""
    for part in APART:
        yield f"setattr -mod -set keep_hierarchy 1 *.wjasip.{part}"
    yield "synth_ecp5 -top top"
    yield "setattr -mod -unset keep_hierarchy *"
    yield from ("flatten", "opt_clean -purge", "write_json top.json")


def rtlil(setting: Setting) -> str:
    from amaranth.back import rtlil as back

    top = BoardTop(setting)
    collects = gc.isenabled()
    gc.disable()  # elaboration makes millions of objects and frees none: halves the time
    try:
        text = back.convert(top, name="top", ports=top.ports, emit_src=False)
        return plain(str(text))
    finally:
        if collects:
            gc.enable()


def synthesise(setting: Setting, folder: Path) -> Size:
    """Synthesises a top; writes `top.json` and `cells.json` into the folder."""
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
        # Yosys prints nothing about an error that it does not expect itself, such as an assertion.
        said = ("".join(last).strip() and last) or (folder / "yosys.log").read_text().splitlines()
        raise BitstreamFailed("synthesis failed:\n" + "\n".join(said[-10:]))
    plan(folder / "top.json", setting.board.part.option)
    return size(folder)


def size(folder: Path) -> Size:
    """Reads the size of the netlist in a folder."""
    cells = json.loads((folder / "cells.json").read_text())["design"]["num_cells_by_type"]
    # A carry cell takes two LUTs, a memory of 16 x 4 bits three slices, that is six.
    takes = {"LUT4": 1, "CCU2C": 2, "TRELLIS_DPR16X4": 6}
    return Size(
        cells=sum(cells.get(name, 0) * luts for name, luts in takes.items()),
        registers=cells.get("TRELLIS_FF", 0),
        ram=sum(cells.get(name, 0) for name in ("DP16KD", "PDPW16KD")),
    )
