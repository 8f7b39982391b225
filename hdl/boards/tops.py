"""The top of a board: pins and clock around a processor with its link."""

from __future__ import annotations

from dataclasses import dataclass

from amaranth.hdl import Cat, ClockDomain, ClockSignal, Elaboratable, Module, ResetInserter, Signal

from seustream.hdl.boards.board import Board, SettingRefused
from seustream.hdl.boards.identity import Identity
from seustream.hdl.boards.leds import StatusLed, StatusLeds
from seustream.hdl.boards.linked import Linked, LinkedWjasip
from seustream.hdl.boards.pll import Ecp5Pll, PllParameters
from seustream.hdl.boards.reset import ClockGate, ResetButton
from seustream.hdl.boards.uart import (
    DIVISOR_BITS,
    LEAST_CYCLES,
    PARTS,
    UartReceiver,
    UartTransmitter,
)
from seustream.hdl.config import DeviceConfig


def divisor(clock: float, baud: int) -> int:
    """Parts of a cycle a bit; the clock in MHz."""
    cycles = clock * 1e6 / baud
    most = (1 << DIVISOR_BITS) // PARTS - 1
    if not LEAST_CYCLES <= cycles <= most:
        raise SettingRefused(
            f"{baud} baud at {clock:g} MHz: {cycles:.2f} cycles a bit;"
            f" want {LEAST_CYCLES} to {most}"
        )
    return round(cycles * PARTS)


@dataclass(frozen=True, slots=True)
class Setting:
    """Settings of a board's top; clock in MHz and baud rate are the board's if None."""

    board: Board
    config: DeviceConfig
    wanted_clock: float | None = None
    wanted_baud: int | None = None

    @property
    def clock(self) -> float:
        """Clock the PLL makes of the oscillator."""
        wanted = self.wanted_clock or self.board.clock_of(self.config.name)
        return PllParameters.of(self.board.oscillator, wanted).clock

    @property
    def baud(self) -> int:
        return self.wanted_baud or self.board.baud

    @property
    def divisor(self) -> int:
        return divisor(self.clock, self.baud)

    @property
    def identity(self) -> Identity:
        return Identity.of(self.board.name, self.config, self.clock)


class BoardTop(Elaboratable):
    """oscillator -> PLL -> gate -> clock;  pins <-> UART <-> link, host port, processor

    clk, rx, tx, leds, button, and the pins that must be held high: as in `constraints`

    `linked` is what stands behind the UART, if not a processor: a test has less.
    """

    def __init__(self, setting: Setting, linked: Linked | None = None) -> None:
        self.setting = setting
        self._linked = linked
        self.board = board = setting.board
        self.clk = Signal()
        self.rx = Signal(init=1)
        self.tx = Signal(init=1)
        self.leds = Signal(board.leds)
        self.button = Signal(init=1)
        self.high = [Signal(name=name) for name in board.high]

    @property
    def ports(self) -> list[Signal]:
        return [self.clk, self.rx, self.tx, self.leds, *self.high] + (
            [self.button] if self.board.button else []
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.pll = pll = Ecp5Pll(self.board.oscillator, self.setting.clock)
        m.submodules.gate = gate = ClockGate()
        m.domains.sync = ClockDomain(reset_less=True)
        m.d.comb += [
            pll.source.eq(self.clk),
            gate.oscillator.eq(self.clk),
            gate.source.eq(pll.clock),
            gate.locked.eq(pll.locked),
            ClockSignal().eq(gate.clock),
        ]
        linked: Linked = self._linked or LinkedWjasip(self.setting.config, self.setting.identity)
        m.submodules.receiver = receiver = UartReceiver()
        m.submodules.transmitter = transmitter = UartTransmitter()
        m.submodules.leds = status = StatusLeds(self.setting.clock)
        if self.board.button:
            m.submodules.button = button = ResetButton()
            m.d.comb += button.button.eq(~self.button)
            # The processor goes on, and is emptied when a host opens a new session.
            linked.link = ResetInserter(button.reset)(linked.link)
        m.submodules.linked = linked
        m.d.comb += [
            receiver.rx.eq(self.rx),
            receiver.divisor.eq(self.setting.divisor),
            transmitter.divisor.eq(self.setting.divisor),
            self.tx.eq(transmitter.tx),
            linked.received.valid.eq(receiver.bytes.valid),
            linked.received.payload.eq(receiver.bytes.payload),
            transmitter.bytes.valid.eq(linked.transmitted.valid),
            transmitter.bytes.payload.eq(linked.transmitted.payload),
            linked.transmitted.ready.eq(transmitter.bytes.ready),
            status.open.eq(linked.open),
            status.idle.eq(linked.idle),
            status.line.eq(receiver.bytes.valid | linked.transmitted.valid),
            status.noise.eq(linked.bad | receiver.broken),
            *(pin.eq(1) for pin in self.high),
        ]
        lit = Cat(status.leds[led] for led in StatusLed if led < self.board.leds)
        shown = Signal(self.board.leds)
        m.d.comb += [shown.eq(lit), self.leds.eq(~shown if self.board.dark else shown)]
        return m
