"""Tests settings of a board's top: its clocks and baud rates."""

from __future__ import annotations

import re

import pytest
from amaranth.back import rtlil

from seustream.boards import constraints_of
from seustream.hdl.boards.board import BOARDS, Board, NetworkAddress, SettingRefused
from seustream.hdl.boards.pll import CLOSE
from seustream.hdl.boards.tops import USB_PINS, BoardTop, Setting, divisor
from seustream.hdl.boards.uart import LEAST_CYCLES
from seustream.hdl.config import CONFIGURATIONS
from tests.cosim.boards.echo import Echo


@pytest.mark.parametrize("board", BOARDS.values(), ids=lambda board: board.name)
def test_each_board_makes_its_own_clocks_and_baud_rate(board: Board) -> None:
    """Covers every configuration; those that a board has a clock for are known ones."""
    assert not board.clocks.keys() - CONFIGURATIONS.keys()
    for name, config in CONFIGURATIONS.items():
        setting = Setting(board, config)
        assert setting.clock == pytest.approx(board.clocks.get(name, board.clock), rel=CLOSE)
        assert setting.divisor >= 16 * LEAST_CYCLES


def test_ports() -> None:
    """A port that a board does not have is refused, with the name of a board that has one."""
    tiny = CONFIGURATIONS["tiny"]
    assert Setting(BOARDS["ulx3s"], tiny, usb=True).identity
    with pytest.raises(SettingRefused, match=r"no USB port of its own here; ulx3s does$"):
        Setting(BOARDS["ecpix5"], tiny, usb=True)
    with pytest.raises(
        SettingRefused, match=r"no Ethernet port here; ecpix5 and colorlight_5a do$"
    ):
        Setting(BOARDS["ulx3s"], tiny, address=NetworkAddress.parse("10.0.0.7"))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("board", [b for b in BOARDS.values() if b.usb], ids=lambda b: b.name)
def test_a_usb_port_is_at_pins_of_the_board(board: Board) -> None:
    setting = Setting(board, CONFIGURATIONS["tiny"], usb=True)
    top = BoardTop(setting, Echo(setting.identity))
    text = rtlil.convert(top, name="top", ports=top.ports, emit_src=False)
    pins = "".join((constraints_of(board) / f"{kind}pins.lpf").read_text() for kind in ("", "usb_"))
    whole = re.search(r"^module \\top$.*?^end$", text, re.MULTILINE | re.DOTALL)
    assert whole is not None
    names = set(re.findall(r" (?:input|output|inout) \d+ +\\(\w+)\n", whole[0]))
    assert set(USB_PINS) < names
    assert names == {name.partition("[")[0] for name in re.findall(r'COMP "(.*?)"', pins)}


def test_baud_rates() -> None:
    """Divisors are in sixteenths of a cycle."""
    assert divisor(50, 1_000_000) == 16 * 50
    assert divisor(50, 3_000_000) == 267  # 16.67 cycles
    assert divisor(50, 12_000_000) == 67  # 4.17
    for clock, baud in ((25, 12_000_000), (50, 20_000_000), (400, 1200)):
        with pytest.raises(SettingRefused, match=f"{baud} baud at {clock} MHz"):
            divisor(clock, baud)
