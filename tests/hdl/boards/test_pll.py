"""Tests dividers of the PLL: the best ones within the data sheet, and clocks out of reach."""

from __future__ import annotations

import re

import pytest
from amaranth.back import rtlil

from seustream.hdl.boards.pll import (
    CLOSE,
    DETECTOR,
    VCO,
    ClockRefused,
    PllParameters,
    UsbPll,
    usb_divider,
)


@pytest.mark.parametrize("oscillator", [12, 25, 48, 100])
@pytest.mark.parametrize("clock", [10, 25, 48, 50, 62.5, 80, 96, 100, 110, 125, 200])
def test_dividers_are_the_best_within_the_data_sheet(oscillator: float, clock: float) -> None:
    """Compares with all possible dividers."""
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


def test_clocks_of_a_usb_port() -> None:
    """Both come from one oscillator inside the PLL, so that they are in step."""
    for oscillator in (25, 100):
        text = rtlil.convert(UsbPll(oscillator))
        set_to = {
            name: int(value)
            for name, value in re.findall(r"parameter (?:signed )?\\(CLK\w+_DIV) (\d+)\n", text)
        }
        detector = oscillator / set_to["CLKI_DIV"]
        within = detector * set_to["CLKFB_DIV"] * set_to["CLKOP_DIV"]
        assert DETECTOR[0] <= detector <= DETECTOR[1]
        assert VCO[0] <= within <= VCO[1]
        assert (within / set_to["CLKOS_DIV"], within / set_to["CLKOS2_DIV"]) == (48, 12)
    with pytest.raises(ClockRefused, match="48 MHz from 12 MHz: want a multiple of 5"):
        usb_divider(12)
