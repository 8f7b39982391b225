"""Boards: their parts, clocks and lines. Their pins are in `constraints/<board>/`."""

from __future__ import annotations

from dataclasses import dataclass, field

from seustream.hdl.boards.protocol import PORT


class SettingRefused(ValueError):
    """Something a board cannot be built with."""


@dataclass(frozen=True, slots=True)
class NetworkAddress:
    """A board's own: four numbers, and the port its host link listens at. The hardware address is a
    locally administered one, made of them."""

    ip: tuple[int, int, int, int]
    port: int

    @property
    def mac(self) -> tuple[int, ...]:
        return (0x02, 0x53, *self.ip)

    @classmethod
    def parse(cls, text: str) -> NetworkAddress:
        """Of `192.168.1.50` or `192.168.1.50:21333`."""
        host, _, port = text.partition(":")
        numbers = [int(part) if part.isdecimal() else -1 for part in host.split(".")]
        number = int(port) if port.isdecimal() else PORT if not port else 0
        # The lowest and the highest are networks and everyone.
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
    """A PHY at a gigabit. Its pins and its clock are in `ethernet_pins.lpf`, `ethernet_clocks.lpf`.

    receive_delay, send_delay   picoseconds that data in, and the clock out, are to be late
    """

    receive_delay: int
    send_delay: int


@dataclass(frozen=True, slots=True)
class Part:
    """An FPGA: how nextpnr calls it, and what is in it.

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
    """
    oscillator  MHz
    clock       MHz of the processor, unless a configuration has its own in `clocks`
    baud        of the serial port: the most its USB bridge has
    leds        how many it has
    dark        LEDs light when low
    button      there is a reset button; it is low when pressed
    high        pins that must be held high
    programs    how people load a bitstream
    phy         of an Ethernet port
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
            # Else the ESP32 beside it restarts the board.
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
            phy=Rgmii(receive_delay=0, send_delay=2000),  # a KSZ9031, which delays its own clock
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
            baud=1_000_000,  # of whatever is soldered to it
            dark=True,
            programs="openFPGALoader -c ft232 -m",
            phy=Rgmii(receive_delay=2000, send_delay=0),  # a B50612D, as LiteX has it
        ),
    )
}

BAUDS = tuple(dict.fromkeys(board.baud for board in BOARDS.values()))
"""Those a board may be found at."""
