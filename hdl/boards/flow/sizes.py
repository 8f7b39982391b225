"""Sizes of known configurations, measured by builds. For a configuration that does not fit, they tell which
one does, without an hour of synthesis. `nox -s sizes` measures them anew."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from seustream.hdl.boards.flow.synthesis import Size
from seustream.hdl.boards.tops import Setting
from seustream.hdl.config import CONFIGURATIONS

FILE = Path(__file__).with_name("sizes.json")
FULL = 0.85
"""Share of the LUT4 that a netlist may take. Placing adds some 4 %, and the router needs room: of `small` beside an
Ethernet port, 91 % of an LFE5U-25, two of three seeds were not placed."""
_SERIAL, _ETHERNET, _USB = Size(0, 0, 0), Size(3_100, 2_150, 14), Size(2_000, 950, 2)
"""Size of each port beyond that of a serial one, by builds of `small`; the known sizes have a serial port."""


def known() -> dict[str, Size]:
    """Sizes by the argument of `--config`: a name, or a file of the checkout."""
    return {name: Size(**size) for name, size in json.loads(FILE.read_text()).items()}


def nearest(setting: Setting) -> str | None:
    """The known configuration that fits the part beside the port, other than the one that does not. Of several, the
    largest whose attributes are as wide at least, if there is one."""
    part = setting.board.part
    room = replace(part, cells=int(FULL * part.cells))
    port = _ETHERNET if setting.address else _USB if setting.usb else _SERIAL
    fit = {
        name: size
        for name, size in known().items()
        if not _both(size, port).exceeds(room) and Path(name).stem != setting.config.name
    }
    width = setting.config.attribute_width
    wide = {name for name, config in CONFIGURATIONS.items() if config.attribute_width >= width}
    return max(fit, key=lambda name: (name in wide, fit[name].ram, fit[name].cells), default=None)


def _both(one: Size, other: Size) -> Size:
    return Size(one.cells + other.cells, one.registers + other.registers, one.ram + other.ram)
