"""Bitstreams of all boards: cells, block RAM and clock after placing and routing.

A configuration takes from some minutes to an hour, so this runs only when it is named:
`seustream bench boards`, or `boards:ulx3s-tiny` for one. What is built is kept; the table goes into
`docs/reference/boards.md`. It needs the dependency group `fpga`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from cosim.verilated.build import cache
from hdl.boards.board import BOARDS
from hdl.boards.flow.bitstream import Build, DoesNotFit, TimingFailed
from hdl.boards.flow.report import NAMES, Report, segments
from hdl.boards.tops import Setting
from hdl.config import CONFIGURATIONS, DeviceConfig
from seustream.commands.bench import Measurement

TITLE = "boards: bitstreams, with cells, block RAM and clock"
LONG = True  # only when named

ROOT = Path(__file__).parent.parent
CONSTRAINTS = ROOT / "constraints"
PAGE = ROOT / "docs" / "reference" / "boards.md"
SEEDS = 3

SMALL = DeviceConfig.from_json((CONSTRAINTS / "small.json").read_text())
BUILT: dict[str, tuple[str, DeviceConfig]] = {
    f"{board}-{config.name}": (board, config)
    for board, configs in {
        "ulx3s": ("default3", "thesis", "serial", "tiny"),
        "ecpix5": ("default3", "thesis", "tiny"),
        "icesugar_pro": ("serial", SMALL.name),
    }.items()
    for config in (SMALL if name == SMALL.name else CONFIGURATIONS[name] for name in configs)
}
PARTS = tuple(BUILT)
HEAD = (
    "board", "configuration", "streams", "lanes", "bits", "LUT4", "registers", "block RAM",
    "MHz asked", "MHz reached", "million pairs/s", "million tuples/s", "tuples/s by the port",
    "slowest path",
)  # fmt: skip


def measure(parts: Sequence[str] = PARTS) -> Measurement:
    rows, remarks = [], []
    for part in parts:
        board, config = BUILT[part]
        build = Build(Setting(BOARDS[board], config), CONSTRAINTS / board, cache())
        try:
            _, report = build.run(SEEDS, _note)
        except DoesNotFit as error:
            remarks.append(str(error))
            continue
        except TimingFailed as error:
            report = error.report
            remarks.append(f"{part}: {error}")
        rows.append(_row(report))
    write(rows)
    return Measurement(
        HEAD, rows, {}, f"clock after routing, up to {SEEDS} seeds", remarks=tuple(remarks)
    )


def _note(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


def _row(report: Report) -> tuple[object, ...]:
    used = {NAMES[cell]: n for cell, (n, _) in report.best.used.items() if cell in NAMES}
    config, path = report.config, segments(report.best.path)
    return (
        report.board.title, config.name, config.streams, config.lanes, config.attribute_width,
        used["LUT4"], used["registers"], used["block RAMs"],
        report.best.wanted, round(report.best.clock, 1),
        round(report.pairs / 1e6), round(report.tuples / 1e6, 1), round(report.line_tuples),
        f"{path[0].where} to {path[-1].where}" if path else "",
    )  # fmt: skip


def write(rows: Sequence[Sequence[object]]) -> None:
    """The table in the documentation: rows of this run in the place of older ones."""
    text = PAGE.read_text(encoding="utf-8")
    found = re.search(r"(?<=<!-- bitstreams -->\n)(.*?)(?=<!-- end -->)", text, re.S)
    assert found is not None
    kept = [
        tuple(cell.strip() for cell in line.strip("|").split("|"))
        for line in found[0].splitlines()[2:]
    ]
    both = {row[:2]: row for row in kept} | {
        tuple(map(str, row[:2])): tuple(map(str, row)) for row in rows
    }
    lines = ["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    lines += ["| " + " | ".join(both[key]) + " |" for key in sorted(both)]
    page = text[: found.start()] + "\n".join(lines) + "\n" + text[found.end() :]
    PAGE.write_text(page, encoding="utf-8")
