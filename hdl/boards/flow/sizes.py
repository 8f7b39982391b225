"""Sizes of known configurations, measured by builds. For a configuration that does not fit, they tell which
one does, without an hour of synthesis. `nox -s sizes` measures them anew."""

from __future__ import annotations

import json
from pathlib import Path

from seustream.hdl.boards.board import Part
from seustream.hdl.boards.flow.synthesis import Size
from seustream.hdl.config import DeviceConfig

FILE = Path(__file__).with_name("sizes.json")


def known() -> dict[str, Size]:
    """Sizes by the argument of `--config`: a name, or a file of the checkout."""
    return {name: Size(**size) for name, size in json.loads(FILE.read_text()).items()}


def nearest(part: Part, config: DeviceConfig) -> str | None:
    """The largest known configuration that fits the part, other than the one that does not."""
    fit = {
        name: size
        for name, size in known().items()
        if not size.exceeds(part) and Path(name).stem != config.name
    }
    return max(fit, key=lambda name: (fit[name].ram, fit[name].cells), default=None)
