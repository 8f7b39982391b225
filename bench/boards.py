"""Bitstreams of all boards: cells, block RAM and clock after placing and routing.

A configuration takes from some minutes to an hour, so this runs only on request: `seustream bench
boards`, or `boards:ulx3s-tiny` for one board and configuration. Bitstreams are kept, and the table
of `docs/reference/boards.md` is made from the results. A row has the version of the gateware and that of the
processor in it, which a change of a port leaves alone. Each clock is listed with the cycles per raw tuple of
the same processor, because a product of figures from two processors would mean nothing. It needs the
dependency groups `fpga` and `sim`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from seustream.commands.bench import Measurement, measured_before
from seustream.cosim.verilated.build import cache
from seustream.hdl.boards.board import BOARDS, NetworkAddress
from seustream.hdl.boards.flow.bitstream import Build, TimingFailed
from seustream.hdl.boards.flow.report import NAMES, BuildReport, segments
from seustream.hdl.boards.flow.tools import WHEELS, BitstreamFailed, versions
from seustream.hdl.boards.identity import processor_version
from seustream.hdl.boards.tops import Setting
from seustream.hdl.config import CONFIGURATIONS, DeviceConfig

TITLE = "boards: bitstreams, with cells, block RAM and clock"
LONG = True  # only when named
PART_BY_PART = True  # each result is written before the next build begins

CONSTRAINTS = Path(__file__).parent.parent / "constraints"
SEEDS = 5
"""All seeds are tried, because the clock is partly a matter of luck."""

SMALL, LEAN = (
    DeviceConfig.from_json((CONSTRAINTS / f"{name}.json").read_text()) for name in ("small", "lean")
)
ADDRESS = NetworkAddress.parse("192.168.1.50")
BUILT: dict[str, Setting] = {
    f"{board}-{config.name}": Setting(BOARDS[board], config)
    for board, configs in {
        "ulx3s": ("default3", "thesis", "serial", "tiny"),
        "ecpix5": ("default3", "grouping", "thesis", "serial", "tiny"),
        "icesugar_pro": (SMALL.name,),
    }.items()
    for config in (SMALL if name == SMALL.name else CONFIGURATIONS[name] for name in configs)
}
for _board, _config in (("ecpix5", SMALL), ("colorlight_5a", LEAN)):
    BUILT[f"{_board}-{_config.name}-ethernet"] = Setting(BOARDS[_board], _config, address=ADDRESS)
BUILT["ulx3s-small-usb"] = Setting(BOARDS["ulx3s"], SMALL, usb=True)
ASKED = {"ecpix5-default3": 150.0, "ecpix5-thesis": 140.0}
"""Requested clocks in MHz, for boards whose own clock leaves slack: nextpnr works only towards the
clock it is given."""
for _part, _clock in ASKED.items():
    BUILT[_part] = replace(BUILT[_part], wanted_clock=_clock)
PARTS = tuple(BUILT)
SHORT = {"PARTS": ("ulx3s-tiny",), "SEEDS": 1}
HEAD = (
    "board", "configuration", "version", "processor", "streams", "lanes", "bits", "LUT4", "registers",
    "block RAM", "MHz asked", "MHz reached", "worst seed", "seeds", "MHz by seed", "million pairs/s",
    "cycles/tuple", "tuples/s by the port", "slowest path",
)  # fmt: skip


def measure(parts: Sequence[str] = PARTS) -> Measurement:
    """Measures some boards; their rows replace older ones."""
    again = {_case(part) for part in parts}
    rows = measured_before("boards", HEAD, lambda row: (row[0], row[1]) not in again)
    remarks = []
    for part in parts:
        setting = BUILT[part]
        build = Build(setting, CONSTRAINTS / setting.board.name, cache())
        try:
            _, report = build.run(SEEDS, _note, every=True)
        except TimingFailed as error:
            report = error.report  # the error's text names a folder of this machine
            remarks.append(f"{part}: timing failed: {report.short_by()}")
        except BitstreamFailed as error:  # other boards may succeed
            remarks.append(f"{part}: {error}")
            continue
        rows.append(_row(report))
    rows.sort(key=lambda row: (str(row[0]), str(row[1])))
    tools = ", ".join(
        f"{tool} {which.rpartition('Version ')[2].rstrip(')')}"  # from the program's version line
        for tool, which in versions(WHEELS).items()
    )
    conditions = (
        f"clock after routing, of the best and the worst of {SEEDS} seeds, or of as many as were tried;"
        f" last built with {tools}"
    )
    return Measurement(HEAD, rows, {}, conditions, remarks=tuple(remarks))


def _case(part: str) -> tuple[object, ...]:
    setting = BUILT[part]
    return setting.board.title, _named(setting)


def _named(built: Setting | BuildReport) -> str:
    """Names a configuration, and its port unless that is the serial one."""
    port = ", Ethernet" if built.address else ", USB" if built.usb else ""
    return built.config.name + port


def _note(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


def _row(report: BuildReport) -> tuple[object, ...]:
    from bench.device import on  # here, because it imports a configuration from this module

    used = {NAMES[cell]: n for cell, (n, _) in report.best.used.items() if cell in NAMES}
    config, path = report.config, segments(report.best.path)
    slower = min(1, report.best.clock / report.best.wanted)
    clocks = {seed.seed: f"{seed.clock:.1f}" for seed in report.tried}
    by_seed = ", ".join(clocks.get(seed, "none") for seed in range(1, report.seeds + 1))
    return (
        report.board.title, _named(report), f"{report.version:08x}",
        f"{processor_version():08x}", config.streams, config.lanes, config.attribute_width,
        used["LUT4"], used["registers"], used["block RAMs"],
        report.best.wanted, round(report.best.clock, 1),
        round(min(seed.clock for seed in report.tried), 1),
        f"{report.met} of {report.seeds}", by_seed,
        round(report.pairs * slower / 1e6), f"{on(config).cycles:.2f}", round(report.line_tuples),
        f"{path[0].where} to {path[-1].where}" if path else "",
    )  # fmt: skip
