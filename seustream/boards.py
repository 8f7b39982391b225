"""Boards by the name users give them, and devices on them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from seustream.compiler.errors import suggest
from seustream.errors import UserError
from seustream.hdl.boards.board import BOARDS, Board
from seustream.hdl.boards.flow.tools import check
from seustream.hdl.config import DeviceConfig
from seustream.progress import Notes

if TYPE_CHECKING:  # boards are imported by those who name one
    from seustream.cosim.link.device import BoardDevice

SCHEME = "serial"
VIRTUAL = "virtual"
SHAPES = (f"{SCHEME}:///PORT", f"{VIRTUAL}:BOARD")
_SLOW = 40
"""A netlist in simulation is so much slower than a board."""


def board_named(name: str) -> Board:
    if name not in BOARDS:
        raise UserError([f"there is no board {name!r}"], hint=suggest(name, BOARDS, "boards"))
    return BOARDS[name]


def constraints_of(board: Board) -> Path:
    """The folder of its pins and clocks."""
    return Path(__file__).with_name("constraints") / board.name


@contextlib.contextmanager
def tools() -> Iterator[None]:
    """For the import of what makes gateware, which no command but those of boards needs: says
    what is not installed."""
    try:
        yield
    except ModuleNotFoundError:
        check()
        raise


def is_board(backend: str) -> bool:
    return backend.startswith((f"{SCHEME}:", f"{VIRTUAL}:"))


def check_board(backend: str) -> None:
    """Raises for an address that names no board, before anything is read."""
    scheme, _, rest = backend.partition(":")
    if scheme == VIRTUAL:
        board_named(rest)
    else:
        from seustream.cosim.link.serial import SerialAddress

        SerialAddress.parse(backend)


@contextlib.contextmanager
def board_device(backend: str, config: DeviceConfig) -> Iterator[BoardDevice]:
    """The device on a board, while it is needed."""
    from seustream.cosim.boards.simulated import SimulatedBoard
    from seustream.cosim.boards.virtual import VirtualBoard
    from seustream.cosim.link.serial import SerialAddress, open_board

    with contextlib.ExitStack() as stack:
        if backend.startswith(f"{VIRTUAL}:"):
            board = board_named(backend.partition(":")[2])
            with tools():
                from seustream.cosim.boards import netlist
            with Notes() as note:
                library = netlist.netlist(board, config, constraints_of(board), note)
            simulated = SimulatedBoard(library, netlist.DIVISOR)
            virtual = stack.enter_context(VirtualBoard(simulated))
            address, slow = SerialAddress(virtual.port, board.baud), _SLOW
        else:
            address, slow = SerialAddress.parse(backend), 1
        device = open_board(address, config, slow)
        stack.callback(device.close)
        yield device
