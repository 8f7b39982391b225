"""Tests the report made from nextpnr's, what fits, and what the errors say; the tools run in `nox
-s bitstream`."""

from __future__ import annotations

import dataclasses
import inspect
import json
from pathlib import Path

import pytest
from amaranth.lib import fifo

from seustream.hdl.boards.board import NetworkAddress
from seustream.hdl.boards.flow.bitstream import TimingFailed
from seustream.hdl.boards.flow.progress import FlowProgress
from seustream.hdl.boards.flow.report import component, segments
from seustream.hdl.boards.flow.synthesis import memory_hints
from seustream.hdl.config import CONFIGURATIONS
from tests.hdl.boards.flow.reports import PATH, made


@pytest.mark.parametrize(
    ("cell", "whose"),
    [
        ("linked.wjasip.area0.scanner.factors.x_LUT4_Z", "area0.scanner"),
        ("linked.wjasip.sequencer.now_TRELLIS_FF_Q", "sequencer"),
        ("linked.link.deframer.head", "link.deframer"),
        ("transmitter.tx", "transmitter"),
        ("$abc$1.x", "top"),
        ("clk", "top"),
    ],
)
def test_components_of_cells(cell: str, whose: str) -> None:
    assert component(cell) == whose


def test_the_slowest_path_by_component() -> None:
    found = [(s.where, s.logic, s.routing) for s in segments(PATH)]
    assert found == [
        ("area0.scanner", 0.5, 0.0),
        ("area0.scanner to router", 0.0, 2.0),
        ("router", 0.25, 0.75),
    ]


def test_a_report() -> None:
    report = made(60.0)
    text = report.to_text()
    assert "ULX3S-85F, configuration tiny, bitstream version 12345678" in text
    assert "60.0 MHz reached, 50 MHz asked: met" in text
    assert "LUT4          9,000 of  83,640   11%" in text
    assert "0.25  0.75  router" in text
    data = json.loads(json.dumps(report.to_json()))
    assert data["clock"] == {"wanted": 50.0, "reached": 60.0, "met": True}
    assert data["used"]["block RAMs"] == {"used": 13, "of": 208}
    # Four areas of two lanes at the clock that was asked for.
    assert data["pairs_a_second"] == 4 * 2 * 50_000_000
    # A head, a step, two attributes of two bytes; 248 of 264 bytes of a frame.
    assert data["tuples_a_second"]["line"] == round(100_000 * 248 / 264 / 7)


def test_a_unit_without_lanes_takes_cycles_for_a_pair() -> None:
    serial = dataclasses.replace(made(60.0), config=CONFIGURATIONS["serial"])
    assert serial.pairs == pytest.approx(4 * 50_000_000 / 15)


def test_timing_that_fails_says_by_how_much_and_where() -> None:
    report = made(40.0, 44.0)
    error = TimingFailed(report, Path("there"))
    assert str(error) == (
        "timing failed: 44.0 MHz of 50 MHz asked, 6.0 MHz (12%) short in the best of 2 seeds;"
        " slowest path: area0.scanner to router; the report is in there"
    )
    assert error.hint is not None
    assert error.hint.startswith("--clock 44 makes a bitstream")
    assert "NOT met" in report.to_text()


def test_hints_name_memories_the_gateware_has() -> None:
    """A memory that was given another name would silently become logic. The memory of a FIFO is
    Amaranth's."""
    sources = "".join(path.read_text() for path in Path("hdl").rglob("*.py"))
    sources += inspect.getsource(fifo)
    for hint in memory_hints():
        name = hint.split("MEMID=")[-1].split("*/m:")[-1].split()[0].strip("\\").rstrip("*$")
        assert f".{name} " in sources or f'f"{name}' in sources or f'[f"{name}' in sources, name


def test_progress_tells_phases_and_how_far_they_are() -> None:
    said: list[str] = []
    progress = FlowProgress("seed 7", said.append)
    for line in (
        "Info: Packing constants..",
        "Info: Packing LUTs...",
        "Info: ⌁ initialising bels...",
        "Info: overlap: COMB=99.6%, FF=99.4%, RAM=0.0%, MUL=0.0%",
        "Info: overlap: COMB=93.2%, FF=87.6%, RAM=0.0%, MUL=0.0%",
        "Info: overlap: COMB=91.0%, FF=86.6%, RAM=0.0%, MUL=0.0%",
        "Info: overlap: COMB=60.0%, FF=47.1%, RAM=0.0%, MUL=0.0%",
        "Info: Running simulated annealing placer for refinement.",
        "Info:   at iteration #5: temp = 0.000000, timing cost = 11, wirelen = 2345",
        "Info: Routing globals...",
        "Info: Routing 200 arcs.",
        "Info:    IterCnt |  w/ripup   wo/ripup |  w/r  wo/r |      arcs| batch(sec) total(sec)|",
        "Info:         10 |        6        3 |    6     3 |       191|       0.01       0.01|",
        "Info:         20 |       12        7 |    6     3 |       178|       0.01       0.02|",
        "Info:         30 |       12        7 |    6     3 |       185|       0.01       0.03|",
        "Info:         40 |       12        7 |    6     3 |       100|       0.01       0.04|",
    ):
        progress.line(line)
    assert said == [
        "seed 7: packing",
        "seed 7: placing",
        "seed 7: placing, 95 % of the logic still overlaps",
        "seed 7: placing, 60 % of the logic still overlaps",
        "seed 7: refining the placement",
        "seed 7: refining the placement, round 5: 2,345 of wire",
        "seed 7: routing",
        "seed 7: routing, 10 % of 200 wires",
        "seed 7: routing, 50 % of 200 wires",
    ]


def test_a_report_of_an_ethernet_port() -> None:
    """It has every clock, and what a gigabit carries."""
    report = dataclasses.replace(made(55.0), address=NetworkAddress.parse("10.0.0.7"))
    said = report.to_text()
    assert "over the Ethernet port" in said
    assert "clk         55.0 MHz reached, 50 MHz asked" in said
    assert report.to_json()["port"] == {"address": "10.0.0.7"}
    # tiny: a tuple of 7 bytes, and 2 cycles; the cable brings more.
    assert report.line_tuples == pytest.approx(50e6 / (7 + 2))
    fast = dataclasses.replace(report, best=dataclasses.replace(report.best, wanted=300.0))
    # 248 of 264 bytes a frame, 1472 of 1538 a packet.
    assert fast.line_tuples == pytest.approx(125e6 * 248 / 264 * 1472 / 1538 / 7)


def test_a_report_of_a_usb_port() -> None:
    """It has what full speed carries: 19 packets of 64 bytes per millisecond."""
    report = dataclasses.replace(made(55.0), usb=True)
    assert "over the USB port" in report.to_text()
    assert report.to_json()["port"] == {"usb": "full speed"}
    assert report.line_tuples == pytest.approx(19 * 64_000 * 248 / 264 / 7)


def test_what_is_deep_is_said_after_what_is_shallow() -> None:
    """Both hints name the memory of a FIFO, and the last one counts."""
    hints = [hint for hint in memory_hints() if "ram_style" in hint]
    shallow = hints.index('setattr -set ram_style "distributed" */m:storage')
    for name in ("waiting", "gathered"):
        assert hints.index(f'setattr -set ram_style "block" *.network*.{name}*/m:storage') > shallow
