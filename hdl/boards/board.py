"""Boards: their FPGAs, clocks and ports. Their pins are in `constraints/<board>/`."""

from __future__ import annotations

from dataclasses import dataclass, field

from seustream.hdl.boards.protocol import PORT


class SettingRefused(ValueError):
    """A setting that a board cannot be built with."""


@dataclass(frozen=True, slots=True)
class NetworkAddress:
    """Network address of a board: four numbers, and the port that its host link listens on. The hardware address
    is a locally administered one, made of these numbers."""

    ip: tuple[int, int, int, int]
    port: int

    @property
    def mac(self) -> tuple[int, ...]:
        return (0x02, 0x53, *self.ip)

    @classmethod
    def parse(cls, text: str) -> NetworkAddress:
        """Parses `192.168.1.50` or `192.168.1.50:21333`."""
        host, _, port = text.partition(":")
        numbers = [int(part) if part.isdecimal() else -1 for part in host.split(".")]
        number = int(port) if port.isdecimal() else PORT if not port else 0
        # The lowest and the highest numbers denote networks and broadcasts.
        right = len(numbers) == 4 and all(0 <= each <= 255 for each in numbers)
        if not right or not 0 < numbers[0] < 224 or not 0 < numbers[3] < 255:
            raise SettingRefused(f"address {text}: want four numbers of a host, as 192.168.1.50")
        if not 0 < number < 1 << 16:
            raise SettingRefused(f"address {text}: port {port}: want 1 to 65535")
        return cls((numbers[0], numbers[1], numbers[2], numbers[3]), number)

    def __str__(self) -> str:
        return ".".join(map(str, self.ip)) + ("" if self.port == PORT else f":{self.port}")


@dataclass(frozen=True, slots=True)
class Rgmii:
    """A gigabit PHY. Its pins and its clock are in `ethernet_pins.lpf` and `ethernet_clocks.lpf`.

    receive_delay, send_delay   delays of the incoming data and of the outgoing clock, in picoseconds
    """

    receive_delay: int
    send_delay: int


@dataclass(frozen=True, slots=True)
class Part:
    """An FPGA: its name in nextpnr, and its resources.

    cells  LUT4, with as many registers
    ram    block RAMs of 18 Kbit
    """

    name: str
    option: str
    package: str
    speed: str
    cells: int
    ram: int


@dataclass(frozen=True, slots=True)
class Board:
    """A board, with everything that its top depends on.

    oscillator  frequency of the oscillator in MHz
    clock       clock of the processor in MHz, unless a configuration has its own in `clocks`
    baud        baud rate of the serial port: the highest of its USB bridge
    leds        number of LEDs
    dark        LEDs are active low
    button      there is a reset button; it is active low
    high        pins that must be held high
    programs    command that loads a bitstream
    phy         PHY of an Ethernet port
    usb         two pins of the FPGA are those of a USB port; see `usb_pins.lpf`
    """

    name: str
    title: str
    part: Part
    oscillator: float
    clock: float
    leds: int
    programs: str
    baud: int
    dark: bool = False
    button: bool = False
    high: tuple[str, ...] = ()
    phy: Rgmii | None = None
    usb: bool = False
    clocks: dict[str, float] = field(default_factory=dict, hash=False)

    def clock_of(self, config: str) -> float:
        return self.clocks.get(config, self.clock)


_ECP5_85 = {"cells": 83640, "ram": 208}
LFE5U_85 = Part("LFE5U-85F", "--85k", "CABGA381", "6", **_ECP5_85)
LFE5UM5G_85 = Part("LFE5UM5G-85F", "--um5g-85k", "CABGA554", "8", **_ECP5_85)
LFE5U_25 = Part("LFE5U-25F", "--25k", "CABGA256", "6", cells=24288, ram=56)

BOARDS: dict[str, Board] = {
    board.name: board
    for board in (
        Board(
            name="ulx3s",
            title="ULX3S-85F",
            part=LFE5U_85,
            oscillator=25,
            clock=80,
            leds=8,
            baud=3_000_000,  # FT231X
            # Otherwise the ESP32 on the board restarts it.
            high=("wifi_gpio0",),
            programs="openFPGALoader -b ulx3s",
            usb=True,  # US2
        ),
        Board(
            name="ecpix5",
            title="ECPIX-5 85F",
            part=LFE5UM5G_85,
            oscillator=100,
            clock=100,
            clocks={"default3": 100, "thesis": 110},
            leds=12,
            baud=12_000_000,  # FT2232H
            dark=True,
            button=True,
            programs="openFPGALoader -b ecpix5",
            phy=Rgmii(receive_delay=0, send_delay=2000),  # KSZ9031: it delays its own clock
        ),
        Board(
            name="icesugar_pro",
            title="iCESugar-pro (LFE5U-25F)",
            part=LFE5U_25,
            oscillator=25,
            clock=50,
            leds=3,
            baud=1_000_000,  # iCELink
            dark=True,
            button=True,
            programs="openFPGALoader -b icesugar-pro",
        ),
        Board(
            name="colorlight_5a",
            title="Colorlight 5A-75B 7.0",
            part=LFE5U_25,
            oscillator=25,
            clock=80,
            leds=1,
            baud=1_000_000,  # of whatever bridge is soldered to it
            dark=True,
            programs="openFPGALoader -c ft232 -m",
            phy=Rgmii(receive_delay=2000, send_delay=0),  # B50612D, values as in LiteX
        ),
    )
}

BAUDS = tuple(dict.fromkeys(board.baud for board in BOARDS.values()))
"""Baud rates at which a board may be found."""
