"""Loads query sets: from a message to a compilation, if the message is consistent."""

from __future__ import annotations

import base64
import functools
import hashlib
import json
from collections.abc import Sequence
from typing import Any

from seustream.compiler.apas.libraries import Libraries
from seustream.compiler.manifest import ManifestRefused, compilation_of
from seustream.compiler.pipeline import Compilation
from seustream.compiler.wjasip.image import differing
from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.errors import BridgeError
from seustream.hdl.device import Device


@functools.lru_cache(maxsize=8)
def identity(load: p.Load) -> str:
    """Returns an identifier: the same for the same queries, run the same way."""
    return hashlib.sha256(p.write(load)).hexdigest()[:16]


def compile_load(
    load: p.Load, devices: int | None = None, libraries: Libraries | None = None
) -> Compilation:
    """Compiles a `Load`, for this many devices if they are given; any error is `refused`."""
    found = _recent.get((load, devices))
    if found is not None and found[0] is libraries:
        return found[1]
    return remember(load, devices, libraries, _compiled(load, devices, libraries))


def remember(
    load: p.Load, devices: int | None, libraries: Libraries | None, compilation: Compilation
) -> Compilation:
    """Caches the compilation of a load for the next callers."""
    _recent[load, devices] = (libraries, compilation)
    while len(_recent) > _REMEMBERED:
        _recent.pop(next(iter(_recent)), None)
    return compilation


_REMEMBERED = 4
_recent: dict[tuple[p.Load, int | None], tuple[Libraries | None, Compilation]] = {}
"""The most recently compiled loads, since a swap is checked, journaled and applied. Of the next
one, only the statements that are new are compiled: a replay repeats many."""


def _compiled(load: p.Load, devices: int | None, libraries: Libraries | None) -> Compilation:
    try:
        image = base64.b64decode(load.image, validate=True)
    except ValueError:
        raise BridgeError("malformed", "Load.image: not base 64") from None
    known = [c for libs, c in _recent.values() if libs is libraries]
    try:
        return compilation_of(load.manifest, image, devices, libraries, known)
    except ManifestRefused as error:
        raise BridgeError("refused", str(error)) from error


def check_config(compilation: Compilation, devices: Sequence[Device]) -> None:
    """Checks that the devices have enough room for an image; their speed does not matter."""
    config = compilation.options.config
    for device in devices:
        if differ := differing(config, device.config):
            raise BridgeError(
                "refused",
                f"the image is for configuration {config.name}, the device is {device.config.name}:"
                f" {', '.join(differ)}",
                f"compile with --config {device.config.name}, or serve another device",
            )


def load_of(load: dict[str, Any] | None) -> p.Load:
    """Returns a query set as the journal stores it, which also has its start time, and the queries
    that begin again."""
    found = {name: value for name, value in (load or {}).items() if name not in ("since", "again")}
    return p.read(p.Load, json.dumps(found).encode())
