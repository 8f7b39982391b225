"""Boards: their clocks, their baud rates, and their pins in `constraints`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from seustream.hdl.boards.board import BOARDS

CONSTRAINTS = Path("constraints")


@pytest.mark.parametrize("name", BOARDS)
def test_every_port_has_a_pin_and_every_pin_a_port(name: str) -> None:
    board = BOARDS[name]
    ports = {"clk", "rx", "tx", *board.high} | {f"leds[{i}]" for i in range(board.leds)}
    ports |= {"button"} if board.button else set()
    text = (CONSTRAINTS / name / "pins.lpf").read_text()
    located = dict(re.findall(r'LOCATE COMP "(.+?)" SITE "(\w+)";', text))
    assert set(located) == ports
    assert len({*located.values()}) == len(located), "two ports on one pin"
    assert {*re.findall(r'IOBUF PORT "(.+?)" IO_TYPE=', text)} == ports
    clocks = (CONSTRAINTS / name / "clocks.lpf").read_text()
    assert f'FREQUENCY PORT "clk" {board.oscillator:g} MHZ;' in clocks


@pytest.mark.parametrize("name", BOARDS)
def test_every_board_has_its_folder(name: str) -> None:
    assert (CONSTRAINTS / name).is_dir()
    assert len(name) <= 15


def test_every_folder_is_a_board() -> None:
    assert {path.name for path in CONSTRAINTS.iterdir() if path.is_dir()} == {*BOARDS}
