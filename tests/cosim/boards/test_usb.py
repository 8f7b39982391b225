"""Tests a board on a USB port: the gateware at its two wires, a host there that sends some damaged
packets, and pyusb in front of it."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from seustream.cosim.boards import build
from seustream.cosim.boards.usb import SimulatedUsbBoard, VirtualUsbBoard
from seustream.cosim.link.device import BoardDevice
from seustream.cosim.link.errors import BoardRefused, NoPort
from seustream.cosim.link.usb import UsbAddress, UsbLine
from seustream.cosim.verilated.build import missing
from seustream.hdl.config import CONFIGURATIONS, DeviceConfig
from tests.cosim.contract import LINKED
from tests.cosim.link.test_device_faults import same_as_golden

usb_core = pytest.importorskip("usb.core", reason="without pyusb; nox -s tests installs it")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # from LUNA, at elaboration


def board(config: DeviceConfig = LINKED) -> SimulatedUsbBoard:
    """Returns a processor with a USB port, or skips the test if tools are missing."""
    if missing():
        pytest.skip(f"without {' and '.join(missing())}; nox -s tests installs them")
    return SimulatedUsbBoard(build.usb(config))


@pytest.fixture
def virtual() -> Iterator[VirtualUsbBoard]:
    with VirtualUsbBoard(board()) as made:
        yield made


def case(seed: int, share: float) -> dict[str, int]:
    """Runs a random case on a line that damages a share of the packets; returns how many were
    damaged, and how many frames the session refused."""
    simulated = board()
    simulated.damage(share, seed)
    with VirtualUsbBoard(simulated) as made:
        device = made.device(LINKED)
        same_as_golden(device, random.Random(seed))
        found = {"damaged": simulated.damaged, "refused": device.session.refused}
        device.close()
    return found


def test_a_bad_cable_changes_nothing_but_time() -> None:
    seed = 5
    print(f"seed {seed}")
    found = case(seed, 0.05)
    assert found["damaged"] > 100
    # USB retransmits by itself: the session above sees intact frames only.
    assert found["refused"] == 0


@pytest.mark.parametrize("seed", [2, 19, 22])
def test_it_is_found_over_a_bad_cable(seed: int) -> None:
    """Holds also if the last packet of a request is damaged, for which the device then waits."""
    simulated = board()
    simulated.damage(0.1, seed)
    with VirtualUsbBoard(simulated) as made:
        made.device(LINKED).close()
        assert simulated.damaged > 5


def test_a_bus_shows_what_the_board_says_of_itself(virtual: VirtualUsbBoard) -> None:
    """Looks as any program would, by pyusb's own means."""
    (found,) = usb_core.find(find_all=True, backend=virtual.bus)
    assert (found.idVendor, found.idProduct, found.bcdUSB) == (0x1209, 0x0001, 0x0200)
    assert (found.manufacturer, found.product) == ("SEUSTREAM", "WJASIP")
    interface = found.get_active_configuration()[(0, 0)]
    ends = [(end.bEndpointAddress, end.bmAttributes, end.wMaxPacketSize) for end in interface]
    assert ends == [(0x01, 2, 64), (0x81, 2, 64)]
    assert interface.bInterfaceClass == 0xFF


def test_the_next_host_finds_it_as_new(virtual: VirtualUsbBoard) -> None:
    for _ in range(2):
        device: BoardDevice = virtual.device(LINKED)
        assert not device.status().taken
        same_as_golden(device, random.Random(2))
        device.close()
    with pytest.raises(BoardRefused, match="not thesis"):
        virtual.device(CONFIGURATIONS["thesis"])


def test_boards_are_named_by_their_places(virtual: VirtualUsbBoard) -> None:
    UsbLine(UsbAddress((1, 1)), virtual.bus).close()
    with pytest.raises(NoPort, match=r"usb://1:7: no board of ours is there") as refused:
        UsbLine(UsbAddress((1, 7)), virtual.bus)
    assert refused.value.hint == "there is one at usb://1:1"
