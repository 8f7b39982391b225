"""`seustream bitstream`: a configuration onto a board, with open tools."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from seustream.boards import board_named, constraints_of, tools
from seustream.commands.common import add_config_argument
from seustream.cosim.verilated.build import cache
from seustream.devices import configuration
from seustream.errors import UserError
from seustream.hdl.boards.board import BOARDS, NetworkAddress, SettingRefused
from seustream.progress import Notes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--board", required=True, metavar="NAME", help=f"the board: {', '.join(BOARDS)}"
    )
    add_config_argument(parser)
    parser.add_argument(
        "--clock", type=float, metavar="MHZ", help="of the processor (default: the board's)"
    )
    parser.add_argument(
        "--baud", type=int, metavar="N", help="of the serial port (default: the board's)"
    )
    parser.add_argument(
        "--address",
        metavar="IP[:PORT]",
        help="the host link at the Ethernet port, under this address, instead of the serial port",
    )
    parser.add_argument(
        "--usb",
        action="store_true",
        help="the host link at the USB port of the FPGA, instead of the serial port",
    )
    parser.add_argument(
        "--seeds",
        type=int,
        default=3,
        metavar="N",
        help="placements to try until one reaches the clock (default: %(default)s)",
    )
    parser.add_argument(
        "--every-seed", action="store_true", help="try all of them, and take the best"
    )
    parser.add_argument(
        "-o", dest="output", type=Path, default=Path(), metavar="DIR", help="where the files go"
    )


def run(arguments: argparse.Namespace) -> int:
    board = board_named(arguments.board)
    config = configuration(arguments.config)
    for name, least in (("seeds", 1), ("baud", 1), ("clock", 1)):
        value = getattr(arguments, name)
        if value is not None and value < least:
            raise UserError([f"--{name} {value:g}: want {least} or more"])
    if arguments.output.exists() and not arguments.output.is_dir():
        raise UserError([f"-o {arguments.output}: not a folder"])
    with tools():
        from seustream.hdl.boards.flow.bitstream import FILES, Build, DoesNotFit, TimingFailed
        from seustream.hdl.boards.flow.sizes import nearest
        from seustream.hdl.boards.pll import ClockRefused
        from seustream.hdl.boards.tops import Setting
    ports = [
        f"--{name}"
        for name in ("address", "baud", "usb")
        if getattr(arguments, name) not in (None, False)
    ]
    if len(ports) > 1:
        raise UserError([f"{' and '.join(ports)}: the host link is at one port"])
    try:
        address = NetworkAddress.parse(arguments.address) if arguments.address is not None else None
        setting = Setting(board, config, arguments.clock, arguments.baud, address, arguments.usb)
        build = Build(setting, constraints_of(board), cache())
        with Notes() as note:
            folder, report = build.run(arguments.seeds, note, arguments.every_seed)
    except (SettingRefused, ClockRefused) as error:
        raise UserError([str(error)]) from None
    except DoesNotFit as error:
        fits = nearest(setting)
        hint = f"--config {fits} fits" if fits else "no configuration is known to fit"
        raise UserError([str(error)], hint=hint) from None
    except TimingFailed as error:
        _copy(error.folder, arguments.output, FILES[1:])
        sys.stdout.write(error.report.to_text())
        raise
    for path in _copy(folder, arguments.output, FILES):
        print(path)
    sys.stdout.write("\n" + report.to_text())
    print(f"\nload it: {board.programs} {arguments.output / FILES[0]}")
    if address:
        print(f"reach it: --backend udp://{address}")
    if arguments.usb:
        print("reach it: --backend usb://")
    return 0


def _copy(folder: Path, to: Path, names: tuple[str, ...]) -> list[Path]:
    try:
        to.mkdir(parents=True, exist_ok=True)
        return [Path(shutil.copy(folder / name, to / name)) for name in names]
    except OSError as error:
        raise UserError([f"{error.filename}: {error.strerror}"]) from None
