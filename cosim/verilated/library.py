"""The shim's C interface in Python: one processor, its clock and its ports."""

from __future__ import annotations

import ctypes
import functools
import os
from pathlib import Path
from typing import Any

import numpy as np

from seustream.cosim.processor.bits import Words

_VERDICT = 15


class Stuck(RuntimeError):
    """The processor did nothing for longer than it ever should."""


class CompiledProcessor:
    """One processor in a shared library. Without `waves` nothing is recorded."""

    def __init__(self, path: Path, waves: Path | None = None) -> None:
        self._functions = _functions(path)
        name = b""
        if waves is not None:
            waves.open("wb").close()  # the writer of waves does not report a failure
            name = os.fsencode(waves)
        self._device = self._functions.device_new(name)
        if not self._device:
            raise RuntimeError(f"{waves}: this library records no waves")

    def close(self) -> None:
        if self._device:
            self._functions.device_delete(self._device)
            self._device = None

    def __del__(self) -> None:
        if getattr(self, "_device", None):
            self.close()

    def hold(self, seed: int, inputs: float, outputs: float) -> None:
        """From now on, holds each port back with these chances in every cycle."""
        chances = [int(min(chance, 0.99) * (1 << 32)) for chance in (inputs, outputs)]
        self._functions.device_hold(self._device, seed, *chances)

    def commands(self, rows: Words, patience: int) -> tuple[int, Words]:
        """Sends commands one after the other, up to one that is refused; returns how many were
        answered, and the last answer."""
        answer = np.zeros(8, np.uint32)
        count, words = rows.shape
        rows = np.ascontiguousarray(rows)
        answered = self._functions.device_commands(
            self._device, _pointer(rows), count, words, _pointer(answer), patience
        )
        if answered < count and not answer[0] & _VERDICT:
            raise Stuck(f"no answer within {patience} cycles")
        return int(answered), answer

    def run(self, raws: Words, patience: int) -> None:
        """Pushes raw tuples and drains."""
        rows, words = raws.shape
        raws = np.ascontiguousarray(raws)
        if not self._functions.device_run(self._device, _pointer(raws), rows, words, patience):
            raise Stuck(f"nothing went in or came out for {patience} cycles")

    def take(self, what: int, words: int) -> Words:
        """Returns the output since the last call, in rows."""
        count = self._functions.device_count(self._device, what)
        rows = np.empty(count, np.uint32)
        self._functions.device_take(self._device, what, _pointer(rows))
        return rows.reshape(-1, words)

    def record(self, on: bool) -> None:
        """Sets whether executed instructions are kept; at first, none are."""
        self._functions.device_record(self._device, on)

    @property
    def cycles(self) -> int:
        return int(self._functions.device_cycles(self._device))


def _pointer(array: Words) -> Any:
    return array.ctypes.data_as(ctypes.c_void_p)


@functools.cache
def _functions(path: Path) -> Any:
    functions = ctypes.CDLL(str(path))
    pointer, number = ctypes.c_void_p, ctypes.c_uint64
    signatures = {
        "device_new": (pointer, [ctypes.c_char_p]),
        "device_delete": (None, [pointer]),
        "device_hold": (None, [pointer, number, ctypes.c_uint32, ctypes.c_uint32]),
        "device_commands": (number, [pointer, pointer, number, number, pointer, number]),
        "device_run": (ctypes.c_int, [pointer, pointer, number, number, number]),
        "device_record": (None, [pointer, ctypes.c_int]),
        "device_cycles": (number, [pointer]),
        "device_count": (number, [pointer, ctypes.c_int]),
        "device_take": (None, [pointer, ctypes.c_int, pointer]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(functions, name)
        function.restype, function.argtypes = result, arguments
    return functions
