"""The devices the contract suite runs on, by name."""

from __future__ import annotations

from collections.abc import Callable

from cosim.golden import GoldenDevice
from cosim.iss import IssDevice
from hdl.config import DeviceConfig
from hdl.device import Device

DEVICES: dict[str, Callable[[DeviceConfig], Device]] = {
    "golden": GoldenDevice,
    "iss": IssDevice,
}
