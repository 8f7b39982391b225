"""Runs a simulated board in this process."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path
from typing import Any


class SimulatedBoard:
    """Wraps the library of a board. `divisor` is the number of cycles per bit for one with pins, or
    the picoseconds per cycle of the processor for one with a network."""

    def __init__(self, path: Path, divisor: int = 1) -> None:
        self._functions = _functions(path)
        self._board = self._functions.board_new(divisor)

    def put(self, data: bytes) -> None:
        """Queues bytes for the board; they go in at the speed of the line."""
        self._functions.board_put(self._board, data, len(data))

    @property
    def waiting(self) -> int:
        """Returns the number of bytes that have not gone in yet."""
        return int(self._functions.board_waiting(self._board))

    def run(self, cycles: int) -> None:
        self._functions.board_run(self._board, cycles)

    def take(self) -> bytes:
        """Returns the bytes that came out since the last call."""
        count = self._functions.board_count(self._board)
        buffer = ctypes.create_string_buffer(count)
        self._functions.board_take(self._board, buffer)
        return buffer.raw

    def reset(self) -> None:
        """Switches the board off and on."""
        self._functions.board_reset(self._board)

    @property
    def cycles(self) -> int:
        return int(self._functions.board_cycles(self._board))

    def close(self) -> None:
        if self._board:
            self._functions.board_delete(self._board)
            self._board = None

    def __del__(self) -> None:
        if getattr(self, "_board", None):
            self.close()


@functools.cache
def _functions(path: Path) -> Any:
    functions = ctypes.CDLL(str(path))
    pointer, number = ctypes.c_void_p, ctypes.c_uint64
    signatures: dict[str, tuple[Any, list[Any]]] = {
        "board_new": (pointer, [ctypes.c_uint32]),
        "board_delete": (None, [pointer]),
        "board_put": (None, [pointer, ctypes.c_char_p, number]),
        "board_waiting": (number, [pointer]),
        "board_run": (None, [pointer, number]),
        "board_reset": (None, [pointer]),
        "board_count": (number, [pointer]),
        "board_take": (None, [pointer, ctypes.c_char_p]),
        "board_cycles": (number, [pointer]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(functions, name)
        function.restype, function.argtypes = result, arguments
    return functions
