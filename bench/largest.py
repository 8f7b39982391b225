"""The largest configuration that fits a board, by pairs a second.

Doubles the lanes at each width of attributes as long as the netlist fits; some
minutes of synthesis a step, so it runs only when named: `seustream bench largest:ulx3s`. Whether
the clock is reached only placing tells: `seustream bitstream --config largest.json`.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.boards import CONSTRAINTS, _note
from cosim.verilated.build import cache
from hdl.boards.board import BOARDS, Board
from hdl.boards.flow.bitstream import Build
from hdl.boards.flow.synthesis import Size
from hdl.boards.tops import Setting
from hdl.config import CONFIGURATIONS, ConfigError, DeviceConfig
from seustream.commands.bench import Measurement

TITLE = "largest: the largest configuration that fits a board"
LONG = True  # only when named
PARTS = tuple(BOARDS)
# More of the cells can be used, but then no wire finds its way in time.
FULL = 0.85


def measure(parts: Sequence[str] = PARTS) -> Measurement:
    rows = []
    for name in parts:
        board = BOARDS[name]
        best: tuple[DeviceConfig, Size] | None = None
        for width in (32, 16, 8):
            for config, size in _fitting(board, width):
                if best is None or _pairs(config) > _pairs(best[0]):
                    best = config, size
                rows.append(_row(board, config, size))
        if best is not None:
            text = json.dumps(best[0].to_json(), indent=2) + "\n"
            Path(f"largest-{name}.json").write_text(text)
    return Measurement(
        ("board", "bits", "streams", "lanes", "depth", "LUT4", "block RAM", "pairs a cycle"),
        rows,
        {},
        f"netlists that take at most {FULL:.0%} of the LUT4; the largest is in largest-BOARD.json",
    )


def _pairs(config: DeviceConfig) -> int:
    return config.streams * max(config.lanes, 1)


def _fitting(board: Board, width: int) -> Iterator[tuple[DeviceConfig, Size]]:
    """Twice the lanes, as long as it fits."""
    base = dataclasses.replace(CONFIGURATIONS["default"], attribute_width=width)
    lanes = 2
    while True:
        try:
            config = dataclasses.replace(base, name=f"{width}x{lanes}", lanes=lanes)
        except ConfigError:
            return
        build = Build(Setting(board, config), CONSTRAINTS / board.name, cache())
        _, size = build.netlist(_note)
        part = dataclasses.replace(board.part, cells=int(FULL * board.part.cells))
        if size.exceeds(part):
            return
        yield config, size
        lanes *= 2


def _row(board: Board, config: DeviceConfig, size: Size) -> tuple[object, ...]:
    return (
        board.title, config.attribute_width, config.streams, config.lanes, config.depth,
        size.cells, size.ram, _pairs(config),
    )  # fmt: skip
