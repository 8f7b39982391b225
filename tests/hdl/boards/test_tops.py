"""Settings of a board's top: its clocks and baud rates."""

from __future__ import annotations

import pytest

from seustream.hdl.boards.board import BOARDS, Board, SettingRefused
from seustream.hdl.boards.pll import CLOSE
from seustream.hdl.boards.tops import Setting, divisor
from seustream.hdl.boards.uart import LEAST_CYCLES
from seustream.hdl.config import CONFIGURATIONS


@pytest.mark.parametrize("board", BOARDS.values(), ids=lambda board: board.name)
def test_each_board_makes_its_own_clocks_and_baud_rate(board: Board) -> None:
    """Of every configuration, and those it has a clock for are known ones."""
    assert not board.clocks.keys() - CONFIGURATIONS.keys()
    for name, config in CONFIGURATIONS.items():
        setting = Setting(board, config)
        assert setting.clock == pytest.approx(board.clocks.get(name, board.clock), rel=CLOSE)
        assert setting.divisor >= 16 * LEAST_CYCLES


def test_baud_rates() -> None:
    """In sixteenths of a cycle."""
    assert divisor(50, 1_000_000) == 16 * 50
    assert divisor(50, 3_000_000) == 267  # 16.67 cycles
    assert divisor(50, 12_000_000) == 67  # 4.17
    for clock, baud in ((25, 12_000_000), (50, 20_000_000), (400, 1200)):
        with pytest.raises(SettingRefused, match=f"{baud} baud at {clock} MHz"):
            divisor(clock, baud)
