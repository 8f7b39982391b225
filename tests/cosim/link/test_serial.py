"""Tests addresses of serial ports, and the rates at which a board is looked for. Boards on ports
are in `tests/cosim/boards/test_virtual_and_simulated_and_build.py`."""

from __future__ import annotations

import pytest

from seustream.cosim.link import serial
from seustream.cosim.link.errors import BoardRefused, LinkError, NoAnswer
from seustream.cosim.link.serial import SerialAddress, open_board
from seustream.hdl.boards.board import BAUDS, BOARDS
from seustream.hdl.config import CONFIGURATIONS

TINY = CONFIGURATIONS["tiny"]


@pytest.mark.parametrize(
    "address",
    [
        "serial:",
        "serial://",
        "tcp:///dev/ttyUSB0",
        "serial:///dev/ttyUSB0?baud=fast",
        "serial:///dev/ttyUSB0?baud=1",
        "serial:///dev/ttyUSB0?speed=9600",
    ],
)
def test_addresses_are_checked(address: str) -> None:
    with pytest.raises(LinkError, match="want") as refused:
        SerialAddress.parse(address)
    assert refused.value.hint is not None


def test_addresses() -> None:
    assert SerialAddress.parse("serial:///dev/ttyUSB0") == SerialAddress("/dev/ttyUSB0")
    assert SerialAddress.parse("serial:///dev/x?baud=3000000").baud == 3_000_000
    assert SerialAddress.parse("serial://COM3").port == "COM3"
    assert SerialAddress.parse("serial:///dev/ttyUSB0").baud is None


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, float]]:
    """Records the rates at which a port was opened, and for how long; a board answers at 1
    megabaud, and takes two seconds."""
    seen: list[tuple[int, float]] = []

    def opened(port: str, baud: int, config: object, slow: float, patience: float) -> str:
        seen.append((baud, patience))
        if baud != 1_000_000 or patience < 2:
            raise NoAnswer("no answer from the board: it does not answer")
        return "it"

    monkeypatch.setattr(serial, "_opened", opened)
    return seen


def test_a_board_is_looked_for_at_all_rates(tried: list[tuple[int, float]]) -> None:
    """Each rate is tried for a short while, then for longer, for a board that has much to drop
    before it answers."""
    assert open_board(SerialAddress("x"), TINY) == "it"
    assert tried == [(baud, 1.0) for baud in BAUDS] + [(baud, 5.0) for baud in BAUDS]
    assert {board.baud for board in BOARDS.values()} == {*BAUDS}


def test_a_rate_that_is_given_is_the_only_one(tried: list[tuple[int, float]]) -> None:
    with pytest.raises(NoAnswer):
        open_board(SerialAddress("x", 500_000), TINY)
    assert tried == [(500_000, 5.0)]


def test_a_board_that_is_refused_is_not_looked_for_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = []

    def opened(port: str, baud: int, *of: object) -> None:
        seen.append(baud)
        raise BoardRefused("another version")

    monkeypatch.setattr(serial, "_opened", opened)
    with pytest.raises(BoardRefused):
        open_board(SerialAddress("x"), TINY)
    assert seen == [BAUDS[0]]
