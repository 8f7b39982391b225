from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from seustream.cosim.bridge.client import BridgeClient
from seustream.cosim.golden import GoldenDevice
from seustream.hdl.config import CONFIGURATIONS, DeviceConfig
from seustream.hdl.device import Device
from tests.cosim.bridge.serving import bridge
from tests.cosim.devices import DEVICES, linked, networked, on_usb

REMOTE = "remote"


# Over the link every case loads its image byte by byte, so that only `nox -s board` runs them all.
LINKS = {"linked": linked, "networked": networked, "usb": on_usb}


@pytest.fixture(
    params=[*DEVICES, *(pytest.param(link, marks=pytest.mark.campaign) for link in LINKS), REMOTE]
)
def new_device(request: pytest.FixtureRequest) -> Iterator[Callable[..., Device]]:
    """Yields a function that makes devices of one kind, of the tiny configuration unless another is
    given. A remote device is the golden model behind a bridge."""
    with contextlib.ExitStack() as stack:

        def make(config: DeviceConfig = CONFIGURATIONS["tiny"]) -> Device:
            if request.param in LINKS:
                return stack.enter_context(contextlib.closing(LINKS[request.param](config)))
            if request.param != REMOTE:
                return DEVICES[request.param](config)
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            _, url = stack.enter_context(bridge(folder, GoldenDevice(config)))
            client = stack.enter_context(BridgeClient(url))
            return stack.enter_context(client.device())

        yield make
