"""Lists boards: the known ones, the bitstreams made for them here, and those plugged in."""

from __future__ import annotations

import json
from typing import Any

from seustream.cosim.link.errors import LinkError
from seustream.cosim.link.serial import identify
from seustream.cosim.verilated.build import cache
from seustream.errors import InputError
from seustream.hdl.boards.board import BOARDS
from seustream.hdl.boards.identity import config_digest, version
from seustream.hdl.config import CONFIGURATIONS

_MOST = 24
"""The most bitstreams shown; their floor plans are pictures of thousands of cells."""


def known() -> list[dict[str, Any]]:
    """Returns the boards for which bitstreams can be made."""
    return [
        {
            "name": board.name,
            "title": board.title,
            "part": board.part.name,
            "cells": board.part.cells,
            "ram": board.part.ram,
            "clock": board.clock,
            "baud": board.baud,
            "programs": board.programs,
        }
        for board in BOARDS.values()
    ]


def bitstreams() -> list[dict[str, Any]]:
    """Returns the reports of `seustream bitstream`, the newest first, with their floor plans."""
    reports = sorted(cache().glob("netlist-*/report.json"), key=lambda one: -one.stat().st_mtime)
    found = []
    for report in reports[:_MOST]:
        try:
            facts = json.loads(report.read_text())
            plan = report.with_name("floorplan.svg").read_text()
        except (OSError, ValueError):  # one that is being written
            continue
        found.append(
            {**facts, "current": facts["version"] == f"{version():08x}", "floorplan": plan}
        )
    return found


def ports() -> list[dict[str, str]]:
    """Returns the serial ports with something plugged in; none without pyserial."""
    try:
        from serial.tools.list_ports import comports
    except ImportError:
        return []
    return [
        {"port": one.device, "said": one.description}
        for one in sorted(comports())
        if one.hwid != "n/a"
    ]


def identity(port: str) -> dict[str, Any]:
    """Asks the board at a port for its identity. A path at which nothing is plugged in is not
    opened."""
    if port not in [one["port"] for one in ports()]:
        raise InputError(f"nothing is plugged in at {port!r}", "look for boards again")
    try:
        said = identify(port)
    except LinkError as error:
        raise InputError(str(error), error.hint) from None
    if said is None:
        what = f"{port}: the board speaks another protocol"
        raise InputError(what, "program it with a bitstream of this version: seustream bitstream")
    names = {config_digest(config): name for name, config in CONFIGURATIONS.items()}
    return {
        "board": said.board,
        "config": names.get(said.config, f"{said.config:08x}"),
        "version": f"{said.version:08x}",
        "current": said.version == version(),
        "clock": said.clock / 1000,
    }
