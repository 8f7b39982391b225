"""Devices that the contract suite runs on, by name.

Making a verilated device is cheap; building one takes half a minute for each configuration. Therefore
tests that run on all devices use the configurations of `contract`, whose builds they share.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TypeVar

import pytest

from seustream.cosim.boards import build
from seustream.cosim.boards.simulated import SimulatedBoard
from seustream.cosim.golden import GoldenDevice
from seustream.cosim.iss import IssDevice
from seustream.cosim.link.device import BoardDevice
from seustream.cosim.link.session import LinkSession
from seustream.cosim.link.udp import AHEAD
from seustream.cosim.processor import device as processor
from seustream.cosim.verilated.build import missing
from seustream.cosim.verilated.device import VerilatedDevice
from seustream.hdl.config import CONFIGURATIONS, DeviceConfig
from seustream.hdl.device import Device
from tests.cosim.contract import CROWDED, NARROW, SHALLOW, TINY
from tests.cosim.link.lines import SimulatedLine

processor.PATIENCE = 2_000_000  # a random case that hangs should fail soon

_BUILT = (*CONFIGURATIONS.values(), NARROW, SHALLOW, CROWDED)
_BY_INSTRUCTIONS = (TINY, SHALLOW)
_LINKED = (TINY, NARROW, SHALLOW)


Made = TypeVar("Made", bound=Device)


def verilated(config: DeviceConfig, trace: bool = False) -> VerilatedDevice:
    """Returns the RTL. Some configurations join all pairs by instructions, the others by rows where
    a program has few of them, as users' devices do."""
    if missing():
        pytest.skip(f"without {' and '.join(missing())}; nox -s tests installs them")
    if config not in _BUILT:
        pytest.skip(f"{config.name} is not built for tests; nox -s campaign has more of them")
    device = VerilatedDevice(config, trace=trace)
    device.by_rows = config not in _BY_INSTRUCTIONS
    return device


def held(device: Made, seed: int) -> Made:
    """Returns the device; ports of the RTL are held back from now on, some never, some mostly."""
    if isinstance(device, VerilatedDevice):
        chance = random.Random(seed)
        device.hold(seed, *(chance.choice((0, 0.3, 0.8)) for _ in range(2)))
    return device


def _built_with(config: DeviceConfig, port: str) -> None:
    if config not in _LINKED:
        pytest.skip(f"{config.name} is not built with {port} for tests")


def linked(config: DeviceConfig) -> BoardDevice:
    """Returns the RTL behind its host link, over a line without faults."""
    if missing():
        pytest.skip(f"without {' and '.join(missing())}; nox -s tests installs them")
    _built_with(config, "a link")
    line = SimulatedLine(SimulatedBoard(build.linked(config)))
    return BoardDevice(LinkSession(line, now=line.now), config)


def networked(config: DeviceConfig) -> BoardDevice:
    """Returns the RTL behind its Ethernet port, over a cable without faults."""
    _built_with(config, "an Ethernet port")
    from tests.cosim.boards import cable as cables

    cable = cables.Cable(cables.networked(config))
    session = LinkSession(cable, wait=0.001, patience=1.0, ahead=AHEAD, now=cable.now)
    return BoardDevice(session, config)


def on_usb(config: DeviceConfig) -> BoardDevice:
    """Returns the RTL behind its USB port, with a host at its wires."""
    _built_with(config, "a USB port")
    from seustream.cosim.boards.usb import VirtualUsbBoard
    from tests.cosim.boards.test_usb import board

    virtual = VirtualUsbBoard(board(config))
    device = virtual.device(config)
    close = device.close

    def both() -> None:
        close()
        virtual.close()

    device.close = both  # type: ignore[method-assign]
    return device


DEVICES: dict[str, Callable[[DeviceConfig], Device]] = {
    "golden": GoldenDevice,
    "iss": IssDevice,
    "verilated": verilated,
}
