"""Boards: the reports of bitstreams, and the boards that are plugged in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from seustream.cosim.boards.virtual import VirtualBoard
from seustream.cosim.link.serial import identify
from seustream.errors import InputError
from seustream.hdl.boards.board import BOARDS
from seustream.hdl.boards.identity import config_digest, version
from seustream.hdl.config import CONFIGURATIONS
from seustream.studio import boards
from tests.cosim.link.lines import board


def report(folder: Path, made: int, of: str) -> None:
    folder.mkdir()
    facts = {"board": "ulx3s", "config": {"name": "tiny"}, "version": of, "clock": {}, "path": []}
    (folder / "report.json").write_text(json.dumps(facts))
    (folder / "floorplan.svg").write_text(f"<svg>{made}</svg>")


def test_bitstreams_are_those_made_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEUSTREAM_CACHE", str(tmp_path))
    assert boards.bitstreams() == []
    report(tmp_path / "netlist-a", 1, "00000000")
    report(tmp_path / "netlist-b", 2, f"{version():08x}")
    (tmp_path / "netlist-c").mkdir()
    (tmp_path / "netlist-c" / "report.json").write_text("{")  # a report that is still being written
    found = {one["floorplan"]: one["current"] for one in boards.bitstreams()}
    assert found == {"<svg>1</svg>": False, "<svg>2</svg>": True}


def test_the_boards_are_those_of_the_product() -> None:
    assert [one["name"] for one in boards.known()] == list(BOARDS)


def test_a_board_says_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = CONFIGURATIONS["tiny"]
    with VirtualBoard(board(tiny)) as virtual:
        said = identify(virtual.port, patience=30)
        assert said is not None
        assert said.config == config_digest(tiny)
        plugged = [{"port": virtual.port, "said": "a board"}]
        monkeypatch.setattr(boards, "ports", lambda: plugged)
        monkeypatch.setattr(boards, "identify", lambda port: said)
        assert boards.identity(virtual.port)["config"] == "tiny"
        assert boards.identity(virtual.port)["current"]


def test_only_a_port_with_something_plugged_in_is_opened(tmp_path: Path) -> None:
    for port in (str(tmp_path / "file"), "/etc/passwd", ""):
        with pytest.raises(InputError, match="nothing is plugged in"):
            boards.identity(port)
