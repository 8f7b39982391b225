"""A virtual board on a USB port: our own host at the wires of the simulated device, and a pyusb bus
in front of it, so that any code that looks for a board on USB finds it."""

from __future__ import annotations

import ctypes
import threading
import time
from array import array
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from usb.backend import IBackend
from usb.core import USBTimeoutError

from seustream.cosim.boards.simulated import SimulatedBoard
from seustream.cosim.boards.virtual import Behind
from seustream.cosim.link.device import BoardDevice
from seustream.cosim.link.usb import UsbAddress, open_board
from seustream.hdl.config import DeviceConfig

PERIOD = 16 * 20833
"""Picoseconds per cycle of the processor, four bits of the line. Even so it waits for the line, and
its work meanwhile is most of the cost of a simulation."""
_CLOCK = 100_000
"""Bits per second of its host. By wall-clock time, a host would repeat its requests for what a busy
machine has not simulated yet."""
_WAIT, _PATIENCE = 0.1, 50.0
_DEVICE, _CONFIGURATION, _TEXT = 1, 2, 3
_GET_DESCRIPTOR = 6
_DEVICE_FIELDS = (
    "bLength bDescriptorType bcdUSB:2 bDeviceClass bDeviceSubClass bDeviceProtocol bMaxPacketSize0"
    " idVendor:2 idProduct:2 bcdDevice:2 iManufacturer iProduct iSerialNumber bNumConfigurations"
)
_CONFIGURATION_FIELDS = (
    "bLength bDescriptorType wTotalLength:2 bNumInterfaces bConfigurationValue iConfiguration"
    " bmAttributes bMaxPower"
)
_INTERFACE_FIELDS = (
    "bLength bDescriptorType bInterfaceNumber bAlternateSetting bNumEndpoints bInterfaceClass"
    " bInterfaceSubClass bInterfaceProtocol iInterface"
)
_ENDPOINT_FIELDS = (
    "bLength bDescriptorType bEndpointAddress bmAttributes wMaxPacketSize:2 bInterval"
)


class SimulatedUsbBoard(SimulatedBoard):
    """A simulated board with a host at its USB port."""

    def __init__(self, path: Path, divisor: int = PERIOD) -> None:
        super().__init__(path, divisor)
        pointer, number = ctypes.c_void_p, ctypes.c_uint64
        for name, result, arguments in (
            ("usb_ready", ctypes.c_bool, [pointer]),
            ("usb_clear_halt", None, [pointer, ctypes.c_uint8]),
            ("usb_damage", None, [pointer, ctypes.c_uint32, ctypes.c_uint32]),
            ("usb_damaged", number, [pointer]),
            ("usb_descriptor", number, [pointer, ctypes.c_uint16, ctypes.c_char_p]),
        ):
            function = getattr(self._functions, name)
            function.restype, function.argtypes = result, arguments

    @property
    def ready(self) -> bool:
        """Returns whether the host knows the device and has no request under way."""
        return bool(self._functions.usb_ready(self._board))

    def clear_halt(self, endpoint: int) -> None:
        self._functions.usb_clear_halt(self._board, endpoint)

    def damage(self, share: float, seed: int) -> None:
        """From now on, flips a bit in this share of all packets."""
        self._functions.usb_damage(self._board, round(share * 65536), seed)

    @property
    def damaged(self) -> int:
        """Returns the number of packets with a wrong bit so far."""
        return int(self._functions.usb_damaged(self._board))

    def descriptor(self, kind: int, index: int = 0) -> bytes:
        """Returns a descriptor that the host has read; empty if the device does not have it."""
        buffer = ctypes.create_string_buffer(256)
        count = self._functions.usb_descriptor(self._board, kind << 8 | index, buffer)
        return buffer.raw[:count]


class VirtualUsbBoard(Behind):
    """Runs a simulated board on USB; pyusb finds it on `bus`."""

    def __init__(self, board: SimulatedUsbBoard) -> None:
        self._usb = board
        self._orders: deque[bytes | int] = deque()  # data to send, and endpoints to reset
        self._came = bytearray()
        self._news = threading.Condition()
        self._descriptors: dict[tuple[int, int], bytes] = {}
        self.bus = VirtualBus(self)
        super().__init__(board)

    def now(self) -> float:
        """Returns seconds of simulated time."""
        return self._usb.cycles / _CLOCK

    def device(self, config: DeviceConfig) -> BoardDevice:
        return open_board(UsbAddress(), config, _WAIT, _PATIENCE, self.now, self.bus)

    def descriptor(self, kind: int, index: int = 0) -> bytes:
        """Returns a descriptor, once the host knows the device."""
        until = self.now() + _PATIENCE
        with self._news:
            while not (self._descriptors or self._ending.is_set()) and self.now() < until:
                self._news.wait(_WAIT)
            return self._descriptors.get((kind, index), b"")

    def send(self, data: bytes) -> None:
        self._orders.append(data)

    def clear_halt(self, endpoint: int) -> None:
        self._orders.append(endpoint)

    def receive(self, most: int, timeout: float) -> bytes:
        """Returns at most `most` received bytes; waits for them up to `timeout`."""
        until = time.monotonic() + timeout
        with self._news:
            while not self._came and (left := until - time.monotonic()) > 0:
                self._news.wait(left)
            data = bytes(self._came[:most])
            del self._came[:most]
            return data

    def _hear(self, wait: float) -> bool:
        if not self._orders:
            self._ending.wait(wait)
        heard = bool(self._orders)
        while self._orders:
            order = self._orders.popleft()
            if isinstance(order, int):
                self._usb.clear_halt(order)
            else:
                self._usb.put(order)
        return heard or not self._usb.ready

    def _say(self, data: bytes) -> None:
        with self._news:
            self._came += data
            if not self._descriptors and self._usb.ready:
                kinds = ((_DEVICE, 0), (_CONFIGURATION, 0), *((_TEXT, index) for index in range(3)))
                self._descriptors = {kind: self._usb.descriptor(*kind) for kind in kinds}
            self._news.notify_all()


class VirtualBus(IBackend):  # type: ignore[misc]  # untyped base
    """A pyusb bus with one board."""

    def __init__(self, board: VirtualUsbBoard) -> None:
        self._board = board

    def enumerate_devices(self) -> Iterator[VirtualUsbBoard]:
        yield self._board

    def get_device_descriptor(self, device: VirtualUsbBoard) -> SimpleNamespace:
        found = _fields(_DEVICE_FIELDS, device.descriptor(_DEVICE))
        found.bus, found.address, found.speed = 1, 1, 2
        found.port_number, found.port_numbers = 1, (1,)
        return found

    def get_configuration_descriptor(self, device: VirtualUsbBoard, number: int) -> SimpleNamespace:
        return self._part(_CONFIGURATION_FIELDS, 2, number)

    def get_interface_descriptor(
        self, device: VirtualUsbBoard, interface: int, setting: int, configuration: int
    ) -> SimpleNamespace:
        if setting:
            raise IndexError
        return self._part(_INTERFACE_FIELDS, 4, interface)

    def get_endpoint_descriptor(
        self, device: VirtualUsbBoard, number: int, interface: int, setting: int, configuration: int
    ) -> SimpleNamespace:
        found = self._part(_ENDPOINT_FIELDS, 5, number)
        found.bRefresh = found.bSynchAddress = 0
        return found

    def _part(self, fields: str, kind: int, number: int) -> SimpleNamespace:
        """Selects one of a kind from the descriptors that came together."""
        data = self._board.descriptor(_CONFIGURATION)
        found = []
        while data:
            if data[1] == kind:
                found.append(_fields(fields, data))
            data = data[data[0] :]
        found[number].extra_descriptors = []
        return found[number]

    def open_device(self, device: VirtualUsbBoard) -> VirtualUsbBoard:
        return device

    def close_device(self, handle: VirtualUsbBoard) -> None:
        """Does nothing: the board stays when its last user goes."""

    def set_configuration(self, handle: VirtualUsbBoard, value: int) -> None:
        """Does nothing: the host set the configuration, the only one, when it found the device."""

    def get_configuration(self, handle: VirtualUsbBoard) -> int:
        return 1

    def claim_interface(self, handle: VirtualUsbBoard, interface: int) -> None:
        """Does nothing, since there is only one process."""

    def release_interface(self, handle: VirtualUsbBoard, interface: int) -> None:
        """Does nothing, since there is only one process."""

    def clear_halt(self, handle: VirtualUsbBoard, endpoint: int) -> None:
        handle.clear_halt(endpoint)

    def bulk_write(
        self, handle: VirtualUsbBoard, endpoint: int, interface: int, data: Any, timeout: int
    ) -> int:
        handle.send(bytes(data))
        return len(data)

    def bulk_read(
        self, handle: VirtualUsbBoard, endpoint: int, interface: int, buffer: Any, timeout: int
    ) -> int:
        data = handle.receive(len(buffer), timeout / 1000)
        if not data:
            raise USBTimeoutError("nothing came")
        buffer[: len(data)] = array("B", data)
        return len(data)

    def ctrl_transfer(
        self,
        handle: VirtualUsbBoard,
        kind: int,
        request: int,
        value: int,
        index: int,
        buffer: Any,
        timeout: int,
    ) -> int:
        if request != _GET_DESCRIPTOR:
            raise NotImplementedError(f"request {request}")
        data = handle.descriptor(value >> 8, value & 0xFF)[: len(buffer)]
        buffer[: len(data)] = array("B", data)
        return len(data)


def _fields(names: str, data: bytes) -> SimpleNamespace:
    """Splits a descriptor into fields of one byte, or of the size given after the name."""
    found, at = {}, 0
    for each in names.split():
        name, _, size = each.partition(":")
        end = at + int(size or 1)
        found[name], at = int.from_bytes(data[at:end], "little"), end
    return SimpleNamespace(**found)
