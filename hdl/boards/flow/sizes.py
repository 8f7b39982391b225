"""What the named configurations need, as builds found it: so that one that does not fit can be
told what does, without an hour of synthesis. `nox -s bitstream` measures them anew."""

from __future__ import annotations

import json
from pathlib import Path

from hdl.boards.board import Part
from hdl.boards.flow.synthesis import Size
from hdl.config import CONFIGURATIONS, DeviceConfig

FILE = Path(__file__).with_name("sizes.json")


def known() -> dict[str, Size]:
    """By the name of the configuration."""
    measured = json.loads(FILE.read_text())
    return {name: Size(**measured[name]) for name in CONFIGURATIONS if name in measured}


def nearest(part: Part, config: DeviceConfig) -> str | None:
    """The largest named configuration that fits the part, other than the one that does not."""
    fit = {
        name: size
        for name, size in known().items()
        if not size.exceeds(part) and CONFIGURATIONS[name] != config
    }
    return max(fit, key=lambda name: (fit[name].ram, fit[name].cells), default=None)
