"""A serial port as a line: `serial:///dev/ttyUSB0`, or `serial:///dev/ttyUSB0?baud=3000000`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

from cosim.link.device import BoardDevice
from cosim.link.errors import LinkError, NoPort
from cosim.link.session import Session
from hdl.boards.board import BAUD
from hdl.config import DeviceConfig

SCHEME = "serial"
_LEAST, _MOST = 1200, 12_000_000


@dataclass(frozen=True, slots=True)
class SerialAddress:
    port: str
    baud: int = BAUD

    @classmethod
    def parse(cls, text: str) -> SerialAddress:
        parts = urlsplit(text)
        port = parts.path if not parts.netloc else parts.netloc + parts.path
        given = parse_qs(parts.query, keep_blank_values=True)
        baud = given.pop("baud", [str(BAUD)])[-1]
        example = "serial:///dev/ttyUSB0, or serial:///dev/ttyUSB0?baud=1000000"
        if parts.scheme != SCHEME or not port or given:
            raise LinkError(f"{text}: want serial:///PORT", example)
        if not baud.isdecimal() or not _LEAST <= int(baud) <= _MOST:
            raise LinkError(f"{text}: baud {baud}: want {_LEAST} to {_MOST}", example)
        return cls(port, int(baud))


class SerialLine:
    """A serial port, which nobody else has open."""

    def __init__(self, address: SerialAddress) -> None:
        try:
            import serial
        except ImportError:
            raise NoPort(
                "a board on a serial port needs pyserial", "python3 -m pip install pyserial"
            ) from None
        self._errors: tuple[type[Exception], ...] = (serial.SerialException, OSError)
        self._name = address.port
        try:
            self._port: Any = serial.Serial(address.port, address.baud, exclusive=True)
        except (*self._errors, ValueError) as error:
            raise NoPort(
                f"{address.port}: {_said(error)}",
                "is the board plugged in, is the port in use, may you open it (group dialout)?",
            ) from None
        self._port.reset_input_buffer()

    def read(self, timeout: float) -> bytes:
        try:
            self._port.timeout = timeout
            first: bytes = self._port.read(1)
            waiting = self._port.in_waiting
            return first + (self._port.read(waiting) if waiting else b"")
        except self._errors as error:
            raise NoPort(f"{self._name} went away: {_said(error)}") from None

    def write(self, data: bytes) -> None:
        try:
            self._port.write(data)
        except self._errors as error:
            raise NoPort(f"{self._name} went away: {_said(error)}") from None

    def close(self) -> None:
        self._port.close()


def _said(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def open_board(text: str, config: DeviceConfig, patience: float = 5.0) -> BoardDevice:
    """The board at an address, opened and found to be what is wanted."""
    line = SerialLine(SerialAddress.parse(text))
    try:
        return BoardDevice(Session(line, patience=patience), config)
    except BaseException:
        line.close()
        raise
