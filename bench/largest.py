"""The largest configuration that fits a board, by pairs per second.

For each width of the attributes it takes as many areas as fit in the block RAM, and doubles the
lanes as long as the netlist fits. Everything else is as in `default3`: no groups, four comparators a
lane. A step takes some minutes of synthesis, so this runs only on request: `seustream bench
largest`, or `largest:ecpix5-8` for one board and width. The configuration that compares the most
pairs per cycle is then placed and routed, which takes an hour or more; if that fails, the next one
is. `--short` places nothing.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Iterator, Sequence

from bench.boards import CONSTRAINTS, _note
from seustream.commands.bench import Measurement, measured_before
from seustream.cosim.verilated.build import cache
from seustream.hdl.boards.board import BOARDS, Board
from seustream.hdl.boards.flow.bitstream import Build, TimingFailed
from seustream.hdl.boards.flow.sizes import FULL
from seustream.hdl.boards.flow.synthesis import Size
from seustream.hdl.boards.flow.tools import BitstreamFailed
from seustream.hdl.boards.tops import Setting
from seustream.hdl.config import CONFIGURATIONS, MAX_STREAMS, DeviceConfig

TITLE = "largest: the largest configuration that fits a board"
LONG = True  # only when named
PART_BY_PART = True
FAMILIES = {
    f"{name}-{width}": (BOARDS[name], width)
    for name in ("ulx3s", "ecpix5")
    for width in (32, 16, 8)
}
"""Boards with an 85F; nothing with lanes fits a 25F."""
PARTS = tuple(FAMILIES)
SHORT = {"PARTS": ("ecpix5-8",), "LANES": 8, "PLACES": False}
PLACES = True
"""Places the largest of each board and width."""
LANES = 4
"""The fewest lanes that are tried."""
HEAD = (
    "board", "bits", "streams", "lanes", "depth", "LUT4", "block RAM", "pairs a cycle",
    "MHz reached", "million pairs/s",
)  # fmt: skip


def measure(parts: Sequence[str] = PARTS) -> Measurement:
    """Measures some boards; their rows replace older ones. Writes the largest configuration beside
    the board's pins, for `--config`."""
    again = {(board.title, width) for board, width in map(FAMILIES.__getitem__, parts)}
    rows = measured_before("largest", HEAD, lambda row: (row[0], row[1]) not in again)
    remarks = list[str]()
    for part in parts:
        board, width = FAMILIES[part]
        clock: float | None = None
        for config, size in reversed(_fitting(board, width, remarks)):
            reached = None
            if clock is None and PLACES:
                try:
                    reached = clock = _clock(board, config)
                except BitstreamFailed as error:
                    remarks.append(f"{part}, {config.name}: {error}")
                else:
                    text = json.dumps(config.to_json(), indent=2) + "\n"
                    (CONSTRAINTS / board.name / f"largest-{width}.json").write_text(text)
            rows.append(_row(board, config, size, reached))
    rows.sort(key=lambda row: (str(row[0]), -int(str(row[7]))))
    conditions = f"netlists of at most {FULL:.0%} of the LUT4; one seed"
    return Measurement(HEAD, rows, {}, conditions, remarks=tuple(remarks))


def _clock(board: Board, config: DeviceConfig) -> float:
    """Returns the clock after placing and routing, whether or not it meets the request."""
    build = Build(Setting(board, config), CONSTRAINTS / board.name, cache())
    try:
        return build.run(1, _note)[1].best.clock
    except TimingFailed as error:
        return error.report.best.clock


def _fitting(board: Board, width: int, remarks: list[str]) -> list[tuple[DeviceConfig, Size]]:
    """Returns the configurations that fit, with as many streams as possible. Remarks say what does not."""
    for streams in range(MAX_STREAMS, 1, -1):
        found = list(_with_lanes(board, width, streams, remarks))
        if found:
            return found
    return []


def _with_lanes(
    board: Board, width: int, streams: int, remarks: list[str]
) -> Iterator[tuple[DeviceConfig, Size]]:
    """Doubles the lanes as long as the configuration fits."""
    base = dataclasses.replace(CONFIGURATIONS["default3"], attribute_width=width, streams=streams)
    part = dataclasses.replace(board.part, cells=int(FULL * board.part.cells))
    for lanes in (LANES << step for step in itertools.count()):
        name = f"{streams} streams, {width} bits, {lanes} lanes"
        config = dataclasses.replace(base, name=name, lanes=lanes)
        build = Build(Setting(board, config), CONSTRAINTS / board.name, cache())
        _, size = build.netlist(_note)
        if exceeds := size.exceeds(part):
            remarks.append(f"{board.title}: {name} does not fit: {', '.join(exceeds)}")
            return
        yield config, size


def _row(board: Board, config: DeviceConfig, size: Size, clock: float | None) -> tuple[object, ...]:
    pairs = config.streams * config.lanes
    return (
        board.title, config.attribute_width, config.streams, config.lanes, config.depth,
        size.cells, size.ram, pairs,
        "" if clock is None else round(clock, 1),
        "" if clock is None else round(clock * pairs),
    )  # fmt: skip
