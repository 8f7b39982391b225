"""Boards: their clocks, their baud rates, and their pins in `constraints`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from seustream.hdl.boards.board import BOARDS, Board, SettingRefused
from seustream.hdl.boards.pll import CLOSE, DETECTOR, VCO, ClockRefused, PllParameters
from seustream.hdl.boards.tops import Setting, divisor
from seustream.hdl.boards.uart import LEAST_CYCLES
from seustream.hdl.config import CONFIGURATIONS

CONSTRAINTS = Path("constraints")


@pytest.mark.parametrize("oscillator", [12, 25, 48, 100])
@pytest.mark.parametrize("clock", [10, 25, 48, 50, 62.5, 80, 96, 100, 110, 125, 200])
def test_dividers_are_the_best_within_the_data_sheet(oscillator: float, clock: float) -> None:
    """Against all dividers there are."""
    reachable = [
        oscillator / i * feedback
        for i in range(1, 129)
        for feedback in range(1, 129)
        if DETECTOR[0] <= oscillator / i
        and any(VCO[0] <= oscillator / i * feedback * n <= VCO[1] for n in range(1, 129))
    ]
    best = min(reachable, key=lambda made: abs(made - clock))
    if abs(best - clock) > CLOSE * clock:
        with pytest.raises(ClockRefused, match=f"the nearest is {best:.3f}"):
            PllParameters.of(oscillator, clock)
        return
    p = PllParameters.of(oscillator, clock)
    assert abs(p.clock - clock) == pytest.approx(abs(best - clock))
    assert p.clock == pytest.approx(oscillator / p.input * p.feedback)
    assert DETECTOR[0] <= oscillator / p.input <= DETECTOR[1]
    assert VCO[0] <= p.clock * p.output <= VCO[1]
    assert all(1 <= n <= 128 for n in (p.input, p.feedback, p.output))


@pytest.mark.parametrize(
    ("oscillator", "clock", "said"),
    [
        (4, 50, "oscillator 4 MHz: want 8 to 400"),
        (25, 2, "clock 2 MHz: want 3.125 to 400"),
        (25, 500, "clock 500 MHz"),
        (12, 10, "clock 10 MHz from 12 MHz: no dividers; the nearest is"),
    ],
)
def test_clocks_out_of_reach_are_refused(oscillator: float, clock: float, said: str) -> None:
    with pytest.raises(ClockRefused, match=re.escape(said)):
        PllParameters.of(oscillator, clock)


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
