from __future__ import annotations

from collections.abc import Callable

import pytest

from hdl.config import CONFIGURATIONS, DeviceConfig
from hdl.device import Device
from tests.cosim.devices import DEVICES


@pytest.fixture(params=DEVICES)
def new_device(request: pytest.FixtureRequest) -> Callable[..., Device]:
    """Makes devices of one kind; of the small configuration unless told."""

    def make(config: DeviceConfig = CONFIGURATIONS["tiny"]) -> Device:
        return DEVICES[request.param](config)

    return make
