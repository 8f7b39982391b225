"""A serial port as a line: `serial:///dev/ttyUSB0`, or `serial:///dev/ttyUSB0?baud=500000`."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

from seustream.cosim.link.device import BoardDevice
from seustream.cosim.link.errors import LinkError, NoAnswer, NoPort, said_by
from seustream.cosim.link.session import LinkSession
from seustream.hdl.boards.board import BAUDS
from seustream.hdl.boards.identity import Identity
from seustream.hdl.boards.protocol import RING
from seustream.hdl.config import DeviceConfig

SCHEME = "serial"
_LEAST, _MOST = 1200, 12_000_000


@dataclass(frozen=True, slots=True)
class SerialAddress:
    """The address of a serial port. Without `baud`, a board is searched for at all rates with which
    boards are built."""

    port: str
    baud: int | None = None

    @classmethod
    def parse(cls, text: str) -> SerialAddress:
        parts = urlsplit(text)
        port = parts.path if not parts.netloc else parts.netloc + parts.path
        given = parse_qs(parts.query, keep_blank_values=True)
        baud = given.pop("baud", [None])[-1]
        example = "serial:///dev/ttyUSB0, or serial:///dev/ttyUSB0?baud=500000"
        if parts.scheme != SCHEME or not port or given:
            raise LinkError(f"{text}: want serial:///PORT", example)
        if baud is None:
            return cls(port)
        if not baud.isdecimal() or not _LEAST <= int(baud) <= _MOST:
            raise LinkError(f"{text}: baud {baud}: want {_LEAST} to {_MOST}", example)
        return cls(port, int(baud))


class SerialLine:
    """A serial port, opened exclusively."""

    def __init__(self, port: str, baud: int) -> None:
        try:
            import serial
        except ImportError:
            raise NoPort(
                "a board on a serial port needs pyserial",
                'python3 -m pip install "seustream[boards]"',
            ) from None
        self._errors: tuple[type[Exception], ...] = (serial.SerialException, OSError)
        self._name = port
        try:
            self._port: Any = serial.Serial(port, baud, exclusive=True)
        except (*self._errors, ValueError) as error:
            raise NoPort(
                f"{port}: {said_by(error)}",
                "is the board plugged in, is the port in use, may you open it (group dialout)?",
            ) from None
        # Otherwise a USB bridge holds back the end of its input for 16 ms. Not every port supports
        # it.
        with contextlib.suppress(ValueError, NotImplementedError, AttributeError):
            self._port.set_low_latency_mode(True)
        self._port.reset_input_buffer()

    def read(self, timeout: float) -> bytes:
        try:
            self._port.timeout = timeout
            first: bytes = self._port.read(1)
            waiting = self._port.in_waiting
            return first + (self._port.read(waiting) if waiting else b"")
        except self._errors as error:
            raise NoPort(f"{self._name} went away: {said_by(error)}") from None

    def write(self, data: bytes) -> None:
        try:
            self._port.write(data)
        except self._errors as error:
            raise NoPort(f"{self._name} went away: {said_by(error)}") from None

    def close(self) -> None:
        self._port.close()


def open_board(
    address: SerialAddress, config: DeviceConfig, slow: float = 1.0, patience: float = 5.0
) -> BoardDevice:
    """Opens the board at an address and checks that it is the expected one.

    slow      factor by which the other end is slower than a board
    patience  seconds a board may take to answer; one at another rate never does
    """
    if address.baud is not None:
        return _opened(address.port, address.baud, config, slow, patience)
    for shorter in (patience / 5, patience):
        for baud in BAUDS:
            try:
                return _opened(address.port, baud, config, slow, shorter)
            except NoAnswer as error:
                silent = error
    rates = ", ".join(map(str, BAUDS))
    raise NoAnswer(f"{silent}, at {rates} baud", silent.hint)


def identify(port: str, patience: float = 1.0) -> Identity | None:
    """Asks the board at a port for its identity; None if it speaks another protocol. Raises
    `NoPort` and, if nothing answers at any rate, `NoAnswer`."""
    for baud in BAUDS:
        line = SerialLine(port, baud)
        try:
            session = LinkSession(line, wait=max(0.1, 30 * RING / baud), patience=patience)
            return Identity.decode(session.open())
        except NoAnswer as error:
            silent = error
        finally:
            line.close()
    raise silent


def _opened(
    port: str, baud: int, config: DeviceConfig, slow: float, patience: float
) -> BoardDevice:
    line = SerialLine(port, baud)
    wait = slow * max(0.1, 30 * RING / baud)  # a multiple of the time for what may be on its way
    try:
        session = LinkSession(line, wait=wait, patience=max(slow * patience, 4 * wait))
        return BoardDevice(session, config, stall=60.0 * slow)
    except BaseException:
        line.close()
        raise
