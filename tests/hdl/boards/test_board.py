"""Tests boards: their clocks, their baud rates, and their pins in `constraints`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from seustream.hdl.boards.board import BOARDS, NetworkAddress, SettingRefused
from seustream.hdl.boards.tops import PHY_PINS

CONSTRAINTS = Path("constraints")


@pytest.mark.parametrize("name", BOARDS)
def test_every_port_has_a_pin_and_every_pin_a_port(name: str) -> None:
    board = BOARDS[name]
    ports = {"clk", "rx", "tx", *board.high} | {f"leds[{i}]" for i in range(board.leds)}
    ports |= {"button"} if board.button else set()
    phy = {
        f"eth_{pin}" + (f"[{bit}]" if width > 1 else "")
        for pin, width in PHY_PINS.items()
        for bit in range(width)
    }
    sites: list[str] = []
    for prefix, want in (("", ports), ("ethernet_", phy if board.phy else set())):
        file = CONSTRAINTS / name / f"{prefix}pins.lpf"
        text = file.read_text() if file.exists() else ""
        located = dict(re.findall(r'LOCATE COMP "(.+?)" SITE "(\w+)";', text))
        assert set(located) == want
        assert {*re.findall(r'IOBUF PORT "(.+?)" IO_TYPE=', text)} == want
        sites += located.values()
    assert len({*sites}) == len(sites), "two ports on one pin"
    clocks = (CONSTRAINTS / name / "clocks.lpf").read_text()
    assert f'FREQUENCY PORT "clk" {board.oscillator:g} MHZ;' in clocks
    if board.phy:
        clocks = (CONSTRAINTS / name / "ethernet_clocks.lpf").read_text()
        assert 'FREQUENCY PORT "eth_rx_clock" 125 MHZ;' in clocks


def test_addresses() -> None:
    address = NetworkAddress.parse("10.0.0.7")
    assert (address.ip, str(address)) == ((10, 0, 0, 7), "10.0.0.7")
    assert address.port == 21333
    assert str(NetworkAddress.parse("192.168.1.50:7")) == "192.168.1.50:7"
    bad = ["", "board", "1.2.3", "1.2.3.4.5", "1.2.3.256", "1.2.3.-4", "0.1.2.3", "224.0.0.1"]
    for text in (*bad, "1.2.3.0", "1.2.3.255", "1.2.3.4:0", "1.2.3.4:65536", "1.2.3.4:x", "::1"):
        with pytest.raises(SettingRefused, match=re.escape(f"address {text}: ")):
            NetworkAddress.parse(text)


@pytest.mark.parametrize("name", BOARDS)
def test_every_board_has_its_folder(name: str) -> None:
    assert (CONSTRAINTS / name).is_dir()
    assert len(name) <= 15


def test_every_folder_is_a_board() -> None:
    assert {path.name for path in CONSTRAINTS.iterdir() if path.is_dir()} == {*BOARDS}
