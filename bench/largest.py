"""The largest configuration that fits a board, by pairs a second.

Of each width of attributes as many areas as the block RAM holds, and twice the lanes as long as the
netlist fits; some minutes of synthesis a step, so it runs only when named: `seustream bench
largest:ecpix5`. What compares the most pairs a cycle is then placed and routed, and if that cannot
be, what comes next.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.boards import CONSTRAINTS, _note
from cosim.verilated.build import cache
from hdl.boards.board import BOARDS, Board
from hdl.boards.flow.bitstream import Build, TimingFailed
from hdl.boards.flow.report import Report
from hdl.boards.flow.synthesis import Size
from hdl.boards.flow.tools import BitstreamFailed
from hdl.boards.tops import Setting
from hdl.config import CONFIGURATIONS, MAX_STREAMS, DeviceConfig
from seustream.commands.bench import Measurement

TITLE = "largest: the largest configuration that fits a board"
LONG = True  # only when named
PARTS = tuple(BOARDS)
# More of the cells can be used, but then no wire finds its way in time.
FULL = 0.85
LANES = 4  # the fewest that are tried
HEAD = (
    "board", "bits", "streams", "lanes", "depth", "LUT4", "block RAM", "pairs a cycle",
    "MHz reached", "million pairs/s",
)  # fmt: skip


def measure(parts: Sequence[str] = PARTS) -> Measurement:
    rows, remarks = [], []
    for name in parts:
        board = BOARDS[name]
        fit = [found for width in (32, 16, 8) for found in _fitting(board, width)]
        fit.sort(key=lambda found: _pairs(found[0]), reverse=True)
        placed: Report | None = None
        for config, size in fit:
            if placed is None:
                try:
                    placed = _placed(board, config)
                except BitstreamFailed as error:
                    remarks.append(f"{config.name}: {error}")
                else:
                    text = json.dumps(config.to_json(), indent=2) + "\n"
                    Path(f"largest-{name}.json").write_text(text)
            clock = placed.best.clock if placed and placed.config == config else None
            rows.append(_row(board, config, size, clock))
    conditions = (
        f"netlists of at most {FULL:.0%} of the LUT4; one seed; written as largest-BOARD.json"
    )
    return Measurement(HEAD, rows, {}, conditions, remarks=tuple(remarks))


def _placed(board: Board, config: DeviceConfig) -> Report:
    try:
        return Build(Setting(board, config), CONSTRAINTS / board.name, cache()).run(1, _note)[1]
    except TimingFailed as error:  # what it reaches is what is asked here
        return error.report


def _pairs(config: DeviceConfig) -> int:
    return config.streams * max(config.lanes, 1)


def _fitting(board: Board, width: int) -> list[tuple[DeviceConfig, Size]]:
    """With as many streams as there may be."""
    for streams in range(MAX_STREAMS, 1, -1):
        found = list(_with_lanes(board, width, streams))
        if found:
            return found
    return []


def _with_lanes(board: Board, width: int, streams: int) -> Iterator[tuple[DeviceConfig, Size]]:
    """Twice the lanes, as long as it fits."""
    base = dataclasses.replace(CONFIGURATIONS["default"], attribute_width=width, streams=streams)
    part = dataclasses.replace(board.part, cells=int(FULL * board.part.cells))
    for lanes in (LANES << step for step in itertools.count()):
        name = f"{streams} streams, {width} bits, {lanes} lanes"
        config = dataclasses.replace(base, name=name, lanes=lanes)
        build = Build(Setting(board, config), CONSTRAINTS / board.name, cache())
        _, size = build.netlist(_note)
        if size.exceeds(part):
            return
        yield config, size


def _row(board: Board, config: DeviceConfig, size: Size, clock: float | None) -> tuple[object, ...]:
    return (
        board.title, config.attribute_width, config.streams, config.lanes, config.depth,
        size.cells, size.ram, _pairs(config),
        "" if clock is None else round(clock, 1),
        "" if clock is None else round(clock * _pairs(config)),
    )  # fmt: skip
