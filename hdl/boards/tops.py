"""Board top: adds pins and clock to a processor with its link."""

from __future__ import annotations

from dataclasses import dataclass

from amaranth.hdl import (
    Cat,
    ClockDomain,
    ClockSignal,
    Elaboratable,
    Instance,
    IOPort,
    Module,
    ResetInserter,
    Signal,
)
from amaranth.lib.cdc import ResetSynchronizer

from seustream.hdl.boards.board import BOARDS, Board, NetworkAddress, Rgmii, SettingRefused
from seustream.hdl.boards.identity import Identity
from seustream.hdl.boards.leds import StatusLed, StatusLeds
from seustream.hdl.boards.linked import Linked, LinkedWjasip, Networked
from seustream.hdl.boards.pll import Ecp5Pll, PllParameters, UsbPll
from seustream.hdl.boards.protocol import NETWORK_RING, RING
from seustream.hdl.boards.reset import ClockGate, ResetButton
from seustream.hdl.boards.rgmii import RgmiiPhy
from seustream.hdl.boards.uart import (
    DIVISOR_BITS,
    LEAST_CYCLES,
    PARTS,
    UartReceiver,
    UartTransmitter,
)
from seustream.hdl.config import DeviceConfig

PHY_PINS = {
    "rx_clock": 1, "rx_ctl": 1, "rx_data": 4, "tx_clock": 1, "tx_ctl": 1, "tx_data": 4, "reset_n": 1,
}  # fmt: skip
"""Pins of an Ethernet port with their widths; a pin's name has the prefix `eth_`."""
USB_PINS = ("usb_dp", "usb_dn", "usb_pull_up")
_WAKE = 0.01
"""Seconds for which a PHY is held in reset, and which it then has to start."""


def divisor(clock: float, baud: int) -> int:
    """Length of a bit in fractions of a cycle (`PARTS`); the clock in MHz."""
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
    """Settings of a board's top; clock (in MHz) and baud rate are those of the board if None. With an address,
    the host link is on the Ethernet port, with `usb` on the USB port, otherwise on the serial one."""

    board: Board
    config: DeviceConfig
    wanted_clock: float | None = None
    wanted_baud: int | None = None
    address: NetworkAddress | None = None
    usb: bool = False

    def __post_init__(self) -> None:
        if self.usb and not self.board.usb:
            have = " and ".join(board.name for board in BOARDS.values() if board.usb)
            raise SettingRefused(f"{self.board.title} has no USB port of its own here; {have} does")
        if self.address and not self.board.phy:
            have = " and ".join(board.name for board in BOARDS.values() if board.phy)
            raise SettingRefused(f"{self.board.title} has no Ethernet port here; {have} do")

    @property
    def clock(self) -> float:
        """Clock in MHz that the PLL makes from the oscillator."""
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
    """oscillator -> PLL -> gate -> clock;  pins <-> UART, or PHY and network <-> link, processor

    latency     that of its parts
    throughput  that of the port, if the processor keeps up with it

    clk, rx, tx, leds, button, and the pins that must be held high: as in `constraints`
    phy         pins of an Ethernet port, as in `RgmiiPhy`, if the setting has an address
    usb         pins of a USB port, as in `UsbPort`, if the setting has one

    `linked` replaces the processor behind the port: tests use something smaller.
    """

    def __init__(self, setting: Setting, linked: Linked | None = None) -> None:
        self.setting = setting
        ring = NETWORK_RING if setting.address else RING
        self._linked = linked or LinkedWjasip(setting.config, setting.identity, ring)
        self.board = board = setting.board
        self.clk = Signal()
        self.rx = Signal(init=1)
        self.tx = Signal(init=1)
        self.leds = Signal(board.leds)
        self.button = Signal(init=1)
        self.high = [Signal(name=name) for name in board.high]
        self.phy = {
            name: Signal(width, name=f"eth_{name}")
            for name, width in PHY_PINS.items()
            if setting.address
        }
        self.usb = {name: IOPort(1, name=name) for name in USB_PINS if setting.usb}

    @property
    def ports(self) -> list[Signal | IOPort]:
        outer = (*self.phy.values(), *self.usb.values())
        button = [self.button] if self.board.button else []
        return [self.clk, self.rx, self.tx, self.leds, *self.high, *outer, *button]

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
        linked = self._linked
        m.submodules.leds = status = StatusLeds(self.setting.clock)
        if self.board.button:
            m.submodules.button = button = ResetButton()
            m.d.comb += button.button.eq(~self.button)
            # Only the link is reset; the processor is emptied when a host opens a new session.
            linked.link = ResetInserter(button.reset)(linked.link)
        if self.setting.address and self.board.phy:
            self._network(m, self.setting.address, self.board.phy, status)
        elif self.setting.usb:
            self._usb(m, status)
        else:
            self._serial(m, status)
        m.d.comb += [
            status.open.eq(linked.open),
            status.idle.eq(linked.idle),
            *(pin.eq(1) for pin in self.high),
        ]
        lit = Cat(status.leds[led] for led in StatusLed if led < self.board.leds)
        shown = Signal(self.board.leds)
        m.d.comb += [shown.eq(lit), self.leds.eq(~shown if self.board.dark else shown)]
        return m

    def _serial(self, m: Module, status: StatusLeds) -> None:
        m.submodules.linked = linked = self._linked
        m.submodules.receiver = receiver = UartReceiver()
        m.submodules.transmitter = transmitter = UartTransmitter()
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
            status.line.eq(receiver.bytes.valid | linked.transmitted.valid),
            status.noise.eq(linked.bad | receiver.broken),
        ]

    def _network(
        self, m: Module, address: NetworkAddress, delays: Rgmii, status: StatusLeds
    ) -> None:
        wake = round(_WAKE * self.board.oscillator * 1e6)
        m.domains.phy = ClockDomain(reset_less=True)
        m.submodules.phy = phy = RgmiiPhy(delays.receive_delay, delays.send_delay, wake)
        m.submodules.networked = networked = Networked(self._linked, address)
        m.d.comb += [
            phy.oscillator.eq(self.clk),
            ClockSignal("phy").eq(phy.clock),
            networked.received.eq(phy.received),
            networked.receiving.eq(phy.receiving),
            phy.sent.eq(networked.sent),
            phy.sending.eq(networked.sending),
            self.tx.eq(1),
            status.line.eq(self._linked.received.valid | self._linked.transmitted.valid),
            status.noise.eq(networked.bad),
        ]
        for name, pin in self.phy.items():
            inner = getattr(phy, name)
            m.d.comb += inner.eq(pin) if name.startswith("rx") else pin.eq(inner)

    def _usb(self, m: Module, status: StatusLeds) -> None:
        from seustream.hdl.boards.usb import UsbLinked  # needs LUNA, which no other port needs

        m.domains.usb, m.domains.usb_io = ClockDomain("usb"), ClockDomain("usb_io")
        m.submodules.usb_pll = pll = UsbPll(self.board.oscillator)
        m.submodules.usb = usb = UsbLinked(self._linked)
        for domain, clock in (("usb", pll.bit), ("usb_io", pll.line)):
            m.d.comb += ClockSignal(domain).eq(clock)
            m.submodules[f"{domain}_reset"] = ResetSynchronizer(~pll.locked, domain=domain)
        for name in ("dp", "dn"):
            m.submodules[f"pin_{name}"] = Instance(
                "BB",
                i_I=getattr(usb, f"{name}_out"),
                i_T=~usb.driven,
                o_O=getattr(usb, name),
                io_B=self.usb[f"usb_{name}"],
            )
        m.submodules.pin_pull_up = Instance(
            "OBZ", i_I=1, i_T=~usb.pull_up, o_O=self.usb["usb_pull_up"]
        )
        m.d.comb += [
            pll.source.eq(self.clk),
            self.tx.eq(1),
            status.line.eq(self._linked.received.valid | self._linked.transmitted.valid),
            status.noise.eq(usb.bad),
        ]
