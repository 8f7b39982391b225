"""Tests a virtual board: software that talks to a board's serial port can talk to it. The board
here is the RTL behind its link; `nox -s board` uses netlists at the pins."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from seustream.compiler.wjasip.image import encode
from seustream.cosim.boards.virtual import VirtualBoard
from seustream.cosim.link.device import BoardDevice
from seustream.cosim.link.errors import BoardRefused, NoAnswer, NoPort
from seustream.cosim.link.serial import SerialAddress, open_board
from seustream.cosim.link.session import LinkSession
from seustream.hdl.boards.identity import version
from seustream.hdl.config import CONFIGURATIONS, DeviceConfig
from tests.cosim.contract import EQUALITY, LINKED
from tests.cosim.link.lines import board
from tests.cosim.queries import R, S, arrivals, build, rows_of, run

pytest.importorskip("serial", reason="without pyserial; nox -s tests installs it")


@pytest.fixture
def virtual() -> Iterator[VirtualBoard]:
    with VirtualBoard(board(LINKED)) as made:
        yield made


def opened(virtual: VirtualBoard, config: DeviceConfig = LINKED) -> BoardDevice:
    return open_board(SerialAddress(virtual.port), config, patience=150)


def test_a_board_on_a_serial_port(virtual: VirtualBoard) -> None:
    device = opened(virtual)
    device.load(encode(build([EQUALITY]), LINKED))
    raws = arrivals([(R, 1, (5,)), (S, 2, (5,)), (S, 3, (6,)), (R, 4, (6,)), (R, 5, (5,))])
    assert sorted(rows_of(run(device, raws))) == [
        (0, 2, 1, (0, 0, -1, -1)),
        (0, 4, 3, (1, 1, -1, -1)),
        (0, 5, 2, (2, 0, -1, -1)),
    ]
    device.close()
    # The next host finds the board as new.
    device = opened(virtual)
    assert not device.status().taken
    device.close()


def test_a_board_of_another_version_is_refused(
    virtual: VirtualBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seustream.cosim.link.processor.version", lambda: 0x1234)
    want = f"holds bitstream version {version():08x}, this host wants 00001234"
    with pytest.raises(BoardRefused, match=want) as refused:
        opened(virtual)
    assert refused.value.hint == (
        "program it anew: seustream bitstream --board linked --config linked"
    )


def test_a_board_of_another_configuration_is_refused(virtual: VirtualBoard) -> None:
    with pytest.raises(BoardRefused, match="not thesis") as refused:
        opened(virtual, CONFIGURATIONS["thesis"])
    assert refused.value.hint is not None
    assert refused.value.hint.startswith("program it anew")


def test_a_port_where_nobody_answers() -> None:
    ours, theirs = os.openpty()
    try:
        with pytest.raises(
            NoAnswer, match="it does not answer, at 3000000, 12000000, 1000000 baud"
        ):
            open_board(SerialAddress(os.ttyname(theirs)), LINKED, patience=0.3)
    finally:
        os.close(ours)
        os.close(theirs)


def test_a_port_that_is_none(tmp_path: object) -> None:
    with pytest.raises(NoPort, match="nowhere"):
        open_board(SerialAddress(f"{tmp_path}/nowhere"), LINKED)


def test_noise_is_no_board() -> None:
    """Another device is on the port and sends text."""

    class Noise:
        def __init__(self) -> None:
            self.time = 0.0

        def now(self) -> float:
            return self.time

        def read(self, timeout: float) -> bytes:
            self.time += 0.01
            return b"login: ~~\x7e\x7d\x7e" * 9

        def write(self, data: bytes) -> None:
            pass

        def close(self) -> None:
            pass

    line = Noise()
    session = LinkSession(line, now=line.now)
    with pytest.raises(NoAnswer):
        session.open()
    assert session.refused
