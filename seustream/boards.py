"""Finds boards by the name that users give them, and opens devices on them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from seustream.compiler.errors import suggest
from seustream.errors import UserError
from seustream.hdl.config import DeviceConfig
from seustream.progress import Notes

if TYPE_CHECKING:  # imported only by commands that name a board
    from seustream.cosim.link.device import BoardDevice
    from seustream.hdl.boards.board import Board

SERIAL, UDP, USB, VIRTUAL = "serial", "udp", "usb", "virtual"
SHAPES = (f"{SERIAL}:///PORT", f"{UDP}://HOST", f"{USB}://", f"{VIRTUAL}:BOARD")
VIRTUAL_UDP, VIRTUAL_USB = f"{VIRTUAL}:{UDP}", f"{VIRTUAL}:{USB}"
"""The RTL behind a UDP port of this machine, or behind a USB port with a host at its wires. Other
virtual boards are netlists behind pins."""
_SLOW = 40
"""Factor for timeouts: a simulated netlist is this much slower than a board."""


def board_named(name: str, others: tuple[str, ...] = ()) -> Board:
    """Returns a board; `others` are names that would have done as well."""
    from seustream.hdl.boards.board import BOARDS

    if name not in BOARDS:
        known = [*BOARDS, *others]
        raise UserError([f"there is no board {name!r}"], hint=suggest(name, known, "boards"))
    return BOARDS[name]


def constraints_of(board: Board) -> Path:
    """Returns the folder of the board's pins and clocks."""
    return Path(__file__).with_name("constraints") / board.name


@contextlib.contextmanager
def tools() -> Iterator[None]:
    """Guards imports of the tools that make gateware, which only the commands for boards need;
    reports what is not installed."""
    try:
        yield
    except ModuleNotFoundError:
        from seustream.hdl.boards.flow.tools import check

        check()
        raise


def is_board(backend: str) -> bool:
    return backend.startswith((f"{SERIAL}:", f"{UDP}:", f"{USB}:", f"{VIRTUAL}:"))


def check_board(backend: str) -> None:
    """Raises for an address that names no board, before anything is read."""
    scheme, _, rest = backend.partition(":")
    if scheme == VIRTUAL:
        if rest not in (UDP, USB):
            board_named(rest, (UDP, USB))
    elif scheme == UDP:
        from seustream.cosim.link.udp import UdpAddress

        UdpAddress.parse(backend)
    elif scheme == USB:
        from seustream.cosim.link.usb import UsbAddress

        UsbAddress.parse(backend)
    else:
        from seustream.cosim.link.serial import SerialAddress

        SerialAddress.parse(backend)


@contextlib.contextmanager
def board_device(backend: str, config: DeviceConfig) -> Iterator[BoardDevice]:
    """Opens the device on a board for the duration of the context."""
    with contextlib.ExitStack() as stack:
        device = (
            _udp(backend, config, stack)
            or _usb(backend, config, stack)
            or _serial(backend, config, stack)
        )
        stack.callback(device.close)
        yield device


def _udp(backend: str, config: DeviceConfig, stack: contextlib.ExitStack) -> BoardDevice | None:
    """Opens a board on a network; None for any other address."""
    from seustream.cosim.link.udp import UdpAddress, open_board

    if backend == VIRTUAL_UDP:
        from seustream.cosim.boards.build import PERIOD, networked
        from seustream.cosim.boards.datagrams import VirtualUdpBoard
        from seustream.cosim.boards.simulated import SimulatedBoard

        with Notes() as note:
            library = networked(config, note)
        virtual = stack.enter_context(VirtualUdpBoard(SimulatedBoard(library, PERIOD)))
        return virtual.device(config)
    if backend.startswith(f"{UDP}:"):
        return open_board(UdpAddress.parse(backend), config)
    return None


def _usb(backend: str, config: DeviceConfig, stack: contextlib.ExitStack) -> BoardDevice | None:
    """Opens a board on USB; None for any other address."""
    from seustream.cosim.link.usb import UsbAddress, open_board

    if backend == VIRTUAL_USB:
        from seustream.cosim.boards.build import usb

        with Notes() as note:
            library = usb(config, note)
        # The call above has already reported what is missing.
        from seustream.cosim.boards.usb import SimulatedUsbBoard, VirtualUsbBoard

        virtual = stack.enter_context(VirtualUsbBoard(SimulatedUsbBoard(library)))
        return virtual.device(config)
    if backend.startswith(f"{USB}:"):
        return open_board(UsbAddress.parse(backend), config)
    return None


def _serial(backend: str, config: DeviceConfig, stack: contextlib.ExitStack) -> BoardDevice:
    from seustream.cosim.link.serial import SerialAddress, open_board

    if not backend.startswith(f"{VIRTUAL}:"):
        return open_board(SerialAddress.parse(backend), config)
    from seustream.cosim.boards.simulated import SimulatedBoard
    from seustream.cosim.boards.virtual import VirtualBoard

    board = board_named(backend.partition(":")[2])
    with tools():
        from seustream.cosim.boards import netlist
    from seustream.cosim.boards.build import check_tools

    check_tools()
    with Notes() as note:
        library = netlist.netlist(board, config, constraints_of(board), note)
    virtual = stack.enter_context(VirtualBoard(SimulatedBoard(library, netlist.DIVISOR)))
    return open_board(SerialAddress(virtual.port, board.baud), config, _SLOW)
