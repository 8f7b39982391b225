"""Writes an image as a host loads it into the core: register writes at its control port."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from seustream.compiler.wjasip.image import decode
from seustream.hdl.axi.registers import words
from seustream.hdl.config import DeviceConfig
from seustream.hdl.control_words import Command, ControlOperation, load_commands


def load_words(image: bytes, config: DeviceConfig) -> list[tuple[int, int, int]]:
    """Returns COMMAND, DATA_LOW and DATA_HIGH for one command after the other. The windows are
    emptied. Results come one by one, not in groups."""
    tables = replace(decode(image, config), grouped={})
    commands = [
        Command(ControlOperation.BEGIN),
        *load_commands(tables, config),
        Command(ControlOperation.COMMIT, data=1),
    ]
    return [words(command) for command in commands]


def packed(rows: list[tuple[int, int, int]]) -> bytes:
    """Packs the rows for a file: three words of 32 bits per command, least significant byte first."""
    return np.array(rows, "<u4").tobytes()
