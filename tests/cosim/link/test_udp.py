"""Tests addresses of boards on a network, and the error where there is none. Boards that answer are
in `tests/cosim/boards/test_datagrams.py`."""

from __future__ import annotations

import socket

import pytest

from seustream.cosim.link.errors import LinkError, NoAnswer, NoPort
from seustream.cosim.link.udp import PORT, UdpAddress, UdpLine, open_board
from seustream.hdl.config import CONFIGURATIONS


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("udp://192.168.1.50", UdpAddress("192.168.1.50", PORT)),
        ("udp://board:4000", UdpAddress("board", 4000)),
        ("udp://[::1]:4000", UdpAddress("::1", 4000)),
    ],
)
def test_addresses(text: str, want: UdpAddress) -> None:
    assert UdpAddress.parse(text) == want
    assert UdpAddress.parse(str(want)) == want


@pytest.mark.parametrize(
    "text",
    ["udp:", "udp://", "udp://:4000", "tcp://host", "udp://host:0", "udp://host:x", "udp://host:70000",
     "udp://host/path", "udp://me@host", "udp://host?baud=1", "udp://[::1"],
)  # fmt: skip
def test_addresses_are_checked(text: str) -> None:
    with pytest.raises(LinkError) as refused:
        UdpAddress.parse(text)
    assert text in str(refused.value)
    assert "udp://192.168.1.50" in str(refused.value.hint)


def test_a_host_that_there_is_not() -> None:
    with pytest.raises(NoPort, match=r"udp://nowhere\.invalid:21333: ") as refused:
        UdpLine(UdpAddress("nowhere.invalid"))
    assert refused.value.hint is not None


def test_a_port_where_nobody_listens() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        free = taken.getsockname()[1]
    with pytest.raises(NoAnswer, match="it does not answer") as refused:
        open_board(UdpAddress("127.0.0.1", free), CONFIGURATIONS["tiny"], patience=0.1)
    assert f"udp://127.0.0.1:{free}: is it powered" in str(refused.value.hint)


def test_only_the_board_is_heard() -> None:
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as board,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other,
    ):
        board.bind(("127.0.0.1", 0))
        line = UdpLine(UdpAddress(*board.getsockname()))
        line.write(b"from the host")
        data, host = board.recvfrom(100)
        assert data == b"from the host"
        other.sendto(b"from elsewhere", host)
        board.sendto(b"one", host)
        board.sendto(b"two", host)
        got = b""
        while len(got) < 6:
            got += line.read(1.0)
        assert got == b"onetwo"
        assert line.read(0.0) == b""
        line.close()
