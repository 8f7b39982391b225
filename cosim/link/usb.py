"""A USB port as a line: `usb://`, or `usb://BUS:DEVICE` if there are several boards, as `lsusb`
numbers them. USB resends damaged packets, so the host link has little to repair."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from seustream.cosim.link.device import BoardDevice
from seustream.cosim.link.errors import LinkError, NoPort, said_by
from seustream.cosim.link.session import LinkSession
from seustream.hdl.boards.protocol import (
    USB_ENDPOINT,
    USB_MAKER,
    USB_PACKET,
    USB_PRODUCT,
    USB_TITLE,
    USB_VENDOR,
)
from seustream.hdl.config import DeviceConfig

SCHEME = "usb"
_EXAMPLE = "usb://, or usb://1:4 for device 4 on bus 1"
_ADVICE = "does it hold a bitstream with a USB port, and is it plugged in at that port?"
_READ = 64 * USB_PACKET
"""Bytes requested at once; a transfer ends with a packet that is not full."""
_WRITE = 1.0
"""Seconds in which a board accepts data; a working board accepts all of it."""


@dataclass(frozen=True, slots=True)
class UsbAddress:
    """The address of a board; without `place`, of the only one."""

    place: tuple[int, int] | None = None

    @classmethod
    def parse(cls, text: str) -> UsbAddress:
        rest = text.removeprefix(f"{SCHEME}://")
        bus, colon, device = rest.partition(":")
        if rest == text or (rest and not (colon and bus.isdecimal() and device.isdecimal())):
            raise LinkError(f"{text}: want usb:// or usb://BUS:DEVICE", _EXAMPLE)
        return cls((int(bus), int(device)) if rest else None)

    def __str__(self) -> str:
        return f"{SCHEME}://" + (":".join(map(str, self.place)) if self.place else "")


class UsbLine:
    """The two endpoints of a board. `bus` is pyusb's backend, if it is not the system's."""

    def __init__(self, address: UsbAddress, bus: Any = None) -> None:
        try:
            import usb.core
            import usb.util
        except ImportError:
            raise NoPort(
                "a board on a USB port needs pyusb", 'python3 -m pip install "seustream[boards]"'
            ) from None
        self._usb, self._name = usb, str(address)
        try:
            self._device = self._found(address, bus)
            self._device.set_configuration()
            usb.util.claim_interface(self._device, 0)
            # Both sides start fresh, whatever was here before.
            for endpoint in (USB_ENDPOINT, 0x80 | USB_ENDPOINT):
                self._device.clear_halt(endpoint)
        except usb.core.NoBackendError:
            raise NoPort("there is no libusb", "install it: apt-get install libusb-1.0-0") from None
        except (usb.core.USBError, ValueError) as error:
            # pyusb raises the latter for a name that it may not read.
            raise NoPort(
                f"{address}: {said_by(error)}",
                "is it in use, and may you open it? On Linux a rule of udev says who may: "
                f'ATTRS{{idVendor}}=="{USB_VENDOR:04x}", ATTRS{{idProduct}}=="{USB_PRODUCT:04x}", '
                'MODE="0660", GROUP="plugdev"',
            ) from None

    def _found(self, address: UsbAddress, bus: Any) -> Any:
        numbers = {"idVendor": USB_VENDOR, "idProduct": USB_PRODUCT}
        found = {
            (device.bus, device.address): device
            for device in self._usb.core.find(find_all=True, backend=bus, **numbers)
            if (device.manufacturer, device.product) == (USB_MAKER, USB_TITLE)
        }
        places = ", ".join(str(UsbAddress(place)) for place in sorted(found))
        if address.place in found:
            return found[address.place]
        if address.place is None and len(found) == 1:
            return next(iter(found.values()))
        if address.place is None and found:
            raise NoPort(f"{address}: there are {len(found)} boards", f"name one: {places}")
        hint = f"there is one at {places}" if found else _ADVICE
        raise NoPort(f"{address}: no board of ours is there", hint)

    def read(self, timeout: float) -> bytes:
        try:
            # A timeout of 0 would wait for ever.
            within = max(1, round(timeout * 1000))
            return bytes(self._device.read(0x80 | USB_ENDPOINT, _READ, within))
        except self._usb.core.USBTimeoutError:
            return b""
        except self._usb.core.USBError as error:
            raise NoPort(f"{self._name} went away: {said_by(error)}") from None

    def write(self, data: bytes) -> None:
        """Sends frames. What a board does not accept in time is lost, and sent again on request."""
        try:
            self._device.write(USB_ENDPOINT, data, round(_WRITE * 1000))
        except self._usb.core.USBTimeoutError:
            pass
        except self._usb.core.USBError as error:
            raise NoPort(f"{self._name} went away: {said_by(error)}") from None

    def close(self) -> None:
        self._usb.util.dispose_resources(self._device)


def open_board(
    address: UsbAddress,
    config: DeviceConfig,
    wait: float = 0.05,
    patience: float = 5.0,
    now: Callable[[], float] = time.monotonic,
    bus: Any = None,
) -> BoardDevice:
    """Opens the board at an address and checks that it is the expected one.

    wait, patience, now   as for the session
    bus                   as for the line
    """
    line = UsbLine(address, bus)
    try:
        session = LinkSession(line, wait=wait, patience=patience, now=now, advice=_ADVICE)
        return BoardDevice(session, config)
    except BaseException:
        line.close()
        raise
