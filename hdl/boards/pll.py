"""PLL of an ECP5: makes the processor's clock from the board's oscillator."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from amaranth.hdl import Instance, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

# Ranges that the part's data sheet allows, in MHz.
INPUT, OUTPUT, VCO, DETECTOR = (8, 400), (3.125, 400), (400, 800), (3.125, 400)
DIVIDERS = range(1, 129)
_REFERENCE, _USB_VCO = 5, 480
CLOSE = 0.005
"""Relative error up to which a clock counts as the one requested."""


class ClockRefused(ValueError):
    """A clock that this PLL cannot make from that oscillator."""


@dataclass(frozen=True, slots=True)
class PllParameters:
    """Dividers of the PLL: the clock is oscillator / `input` * `feedback`, and the VCO runs `output` times as fast.

    clock  the resulting clock, in MHz
    """

    input: int
    feedback: int
    output: int
    clock: float

    @classmethod
    def of(cls, oscillator: float, clock: float) -> PllParameters:
        """Finds the dividers for the clock nearest to the one requested."""
        if not INPUT[0] <= oscillator <= INPUT[1]:
            raise ClockRefused(f"oscillator {oscillator:g} MHz: want {INPUT[0]} to {INPUT[1]}")
        if not OUTPUT[0] <= clock <= OUTPUT[1]:
            raise ClockRefused(f"clock {clock:g} MHz: want {OUTPUT[0]} to {OUTPUT[1]}")
        found = []
        for divider in DIVIDERS:
            detector = oscillator / divider
            feedback = max(1, round(clock / detector))
            made = detector * feedback
            outputs = [n for n in DIVIDERS if VCO[0] <= made * n <= VCO[1]]
            if not DETECTOR[0] <= detector <= DETECTOR[1] or feedback not in DIVIDERS:
                continue
            if outputs:
                # Run the VCO near the middle of its range, where it is most stable.
                output = min(outputs, key=lambda n: abs(made * n - sum(VCO) / 2))
                off = abs(Fraction(oscillator) / divider * feedback - Fraction(clock))
                found.append((off, divider, cls(divider, feedback, output, made)))
        best = min(found, key=lambda each: each[:2], default=None)
        if best is None or best[0] > Fraction(clock) * Fraction(CLOSE):
            near = f"; the nearest is {best[2].clock:.3f}" if best else ""
            raise ClockRefused(f"clock {clock:g} MHz from {oscillator:g} MHz: no dividers{near}")
        return best[2]


_SETTINGS = {
    # Settings of the analogue parts as made by the vendor's tool.
    "a_ICP_CURRENT": "12",
    "a_LPF_RESISTOR": "8",
    "a_MFG_ENABLE_FILTEROPAMP": "1",
    "a_MFG_GMCREF_SEL": "2",
    "p_PLLRST_ENA": "DISABLED",
    "p_INTFB_WAKE": "DISABLED",
    "p_STDBY_ENABLE": "DISABLED",
    "p_DPHASE_SOURCE": "DISABLED",
    "p_OUTDIVIDER_MUXA": "DIVA",
    "p_OUTDIVIDER_MUXB": "DIVB",
    "p_OUTDIVIDER_MUXC": "DIVC",
    "p_OUTDIVIDER_MUXD": "DIVD",
    "p_FEEDBK_PATH": "CLKOP",
    **dict.fromkeys(
        ("i_RST", "i_STDBY", "i_PHASESEL0", "i_PHASESEL1", "i_PHASEDIR", "i_PHASESTEP",
         "i_PHASELOADREG", "i_PLLWAKESYNC", "i_ENCLKOP"), 0),
}  # fmt: skip
"""Settings common to every PLL here: all dynamic controls are off."""


class Ecp5Pll(wiring.Component):
    """Makes a clock from an oscillator.

    latency     some hundred microseconds to `locked`
    throughput  a clock

    source      in: the oscillator
    clock       out: the clock
    locked      out: the clock is stable
    """

    def __init__(self, oscillator: float, clock: float) -> None:
        self.parameters = PllParameters.of(oscillator, clock)
        super().__init__({"source": In(1), "clock": Out(1), "locked": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        p = self.parameters
        m.submodules.pll = Instance(
            "EHXPLLL",
            **_SETTINGS,
            p_CLKI_DIV=p.input,
            p_CLKFB_DIV=p.feedback,
            p_CLKOP_DIV=p.output,
            p_CLKOP_ENABLE="ENABLED",
            p_CLKOP_CPHASE=p.output - 1,
            p_CLKOP_FPHASE=0,
            i_CLKI=self.source,
            i_CLKFB=self.clock,
            o_CLKOP=self.clock,
            o_LOCK=self.locked,
        )
        return m


def usb_divider(oscillator: float) -> int:
    """Returns the divider from the oscillator to 5 MHz, from which a USB port's clocks are made."""
    divider = round(oscillator / _REFERENCE)
    if divider * _REFERENCE != oscillator:
        raise ClockRefused(f"48 MHz from {oscillator:g} MHz: want a multiple of 5")
    return divider


class UsbPll(wiring.Component):
    """Makes the two clocks of a full-speed port, in phase with each other: 48 and 12 MHz, divided from 480 MHz.

    latency     some hundred microseconds to `locked`
    throughput  a clock

    source      in: the oscillator, at a multiple of 5 MHz
    line, bit   out: the clocks: four cycles per bit, and one
    locked      out: the clocks are stable
    """

    def __init__(self, oscillator: float) -> None:
        self.divider = usb_divider(oscillator)
        super().__init__({"source": In(1), "line": Out(1), "bit": Out(1), "locked": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        back = Signal()
        dividers = {"OP": _USB_VCO // 10, "OS": _USB_VCO // 48, "OS2": _USB_VCO // 12}
        m.submodules.pll = Instance(
            "EHXPLLL",
            **_SETTINGS,
            p_CLKI_DIV=self.divider,
            p_CLKFB_DIV=10 // _REFERENCE,
            **{
                f"p_CLK{name}_{what}": value
                for name, divider in dividers.items()
                for what, value in (
                    ("DIV", divider), ("ENABLE", "ENABLED"), ("CPHASE", divider - 1), ("FPHASE", 0)
                )
            },
            i_CLKI=self.source,
            i_CLKFB=back,
            o_CLKOP=back,
            o_CLKOS=self.line,
            o_CLKOS2=self.bit,
            o_LOCK=self.locked,
        )  # fmt: skip
        return m
