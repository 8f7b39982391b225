"""Tests pictures of floorplans: the tiles of a placed design, each in the colour of its
component."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

from seustream.hdl.boards.flow import picture
from tests.hdl.boards.flow.reports import made


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
