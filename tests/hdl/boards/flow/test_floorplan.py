"""Tests floorplans: every block RAM has a place of its own, and those of an area are near each
other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from seustream.hdl.boards.board import BOARDS
from seustream.hdl.boards.flow.floorplan import GRIDS, arrange, plan

LARGE = "--85k"


def _names(areas: int, each: int, common: int = 5) -> list[str]:
    kinds = [f"bank{i}" for i in range(8)] + [f"stamps.{i}" for i in range(each - 8)]
    names = [f"linked.wjasip.area{area}.window.{kind}" for area in range(areas) for kind in kinds]
    return names + [f"linked.wjasip.output$35.routes.{i}" for i in range(common)]


@pytest.mark.parametrize("board", ["ulx3s", "ecpix5"])
def test_the_grid_has_a_place_for_each_block_of_the_part(board: str) -> None:
    part = BOARDS[board].part
    grid = GRIDS[part.option]
    assert len(set(grid)) == len(grid) == part.ram


@pytest.mark.parametrize(("areas", "each"), [(2, 34), (3, 34), (3, 60), (4, 50)])
def test_each_has_its_own_and_areas_stay_together(areas: int, each: int) -> None:
    names = _names(areas, each)
    places = arrange(names, LARGE)
    assert set(places) == set(names)
    assert len(set(places.values())) == len(names)
    assert set(places.values()) <= set(GRIDS[LARGE])
    middles = []
    for area in range(areas):
        mine = [at for name, at in places.items() if f"area{area}" in name]
        x, y = (sum(at[i] for at in mine) / len(mine) for i in range(2))
        middles.append((x, y))
        spread = sum(abs(at[0] - x) + abs(at[1] - y) for at in mine) / len(mine)
        assert spread < 35, "spread over the chip"
    apart = [
        abs(a[0] - b[0]) + abs(a[1] - b[1]) for i, a in enumerate(middles) for b in middles[i + 1 :]
    ]
    assert min(apart) > 25, "two areas in one place"
    banks = sorted(places[f"linked.wjasip.area0.window.bank{i}"] for i in range(8))
    assert banks[-1][0] - banks[0][0] < 40, "banks, which are read together, far apart"


def test_what_the_fetch_reads_lies_between_the_areas() -> None:
    names = _names(3, 40)
    places = arrange(names, LARGE)
    common = [at for name, at in places.items() if "output" in name]
    x, y = (sum(at[i] for at in common) / len(common) for i in range(2))
    for area in range(3):
        far: dict[str, list[float]] = {"bank": [], "stamps": []}
        for name, at in places.items():
            if f"area{area}" in name:
                kind = "bank" if "bank" in name else "stamps"
                far[kind].append(abs(at[0] - x) + abs(at[1] - y))
        mean = {kind: sum(found) / len(found) for kind, found in far.items()}
        assert mean["stamps"] < mean["bank"], mean


@pytest.mark.parametrize(
    ("areas", "each", "part"),
    [(3, 34, "--25k"), (4, 60, LARGE), (1, 20, LARGE)],
    ids=["no grid", "too many", "one area"],
)
def test_otherwise_the_placer_does_as_it_likes(areas: int, each: int, part: str) -> None:
    assert arrange(_names(areas, each), part) == {}


def test_only_block_ram_of_the_netlist_is_placed(tmp_path: Path) -> None:
    netlist = tmp_path / "top.json"
    cells = {name: {"type": "DP16KD", "attributes": {}} for name in _names(2, 10)}
    cells["lut"] = {"type": "LUT4", "attributes": {}}
    netlist.write_text(json.dumps({"modules": {"top": {"cells": cells}}}))
    assert plan(netlist, LARGE) == len(cells) - 1
    after = json.loads(netlist.read_text())["modules"]["top"]["cells"]
    assert after.pop("lut")["attributes"] == {}
    assert len({cell["attributes"]["BEL"] for cell in after.values()}) == len(after)
