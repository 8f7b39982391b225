"""Opens devices by the name that users give them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, overload

from seustream.boards import SHAPES, board_device, check_board, is_board
from seustream.compiler.errors import suggest
from seustream.cosim.bridge.access import NONE, Access
from seustream.errors import UserError
from seustream.files import replaced
from seustream.hdl.config import CONFIGURATIONS, ConfigError, DeviceConfig
from seustream.hdl.device import Device
from seustream.progress import Notes

if TYPE_CHECKING:  # each backend is imported where it is made
    from seustream.cosim.bridge.client import BridgeClient

ENGINE = "engine"
"""No device: the engine joins by itself."""
BACKENDS = (ENGINE, "golden", "iss", "verilated")
SIMULATED = ("golden", "iss", "verilated")
"""Devices of which there may be several."""


def is_remote(backend: str) -> bool:
    """Returns whether the device is behind a bridge."""
    if "://" not in backend:
        return False
    from seustream.cosim.bridge.security import SCHEMES

    return backend.partition("://")[0] in SCHEMES


def check_backend(backend: str, remote: bool = True) -> None:
    if is_board(backend):
        check_board(backend)
    elif backend not in BACKENDS and not (remote and is_remote(backend)):
        known = (*BACKENDS, *SHAPES, *(("grpc://HOST:PORT",) if remote else ()))
        raise UserError(
            [f"there is no backend {backend!r}"], hint=suggest(backend, known, "backends")
        )


def check_devices(backend: str, given: str | None) -> None:
    """Refuses `--devices` for a backend that has only one device."""
    if given is None or backend in SIMULATED or (backend == ENGINE and given == "0"):
        return
    if backend == ENGINE:
        hint = f"--backend {SIMULATED[0]} --devices {given}"
        raise UserError([f"--devices {given}: backend {ENGINE} joins without a device"], hint=hint)
    if given != "1":
        what = "a bridge lends one device" if is_remote(backend) else "a board is one device"
        hint = "leave --devices out: the engine joins what the device has no room for"
        if is_remote(backend):
            hint += "; or serve several: seustream serve --devices"
        raise UserError([f"--devices {given}: {what}"], hint=hint)


class SpareDevices(Sequence[Device]):
    """Provides up to a number of devices, each created when it is first asked for. Iteration yields
    those already created."""

    def __init__(self, most: int, make: Callable[[], Device]) -> None:
        self._most, self._make = most, make
        self._made: list[Device] = []

    def __len__(self) -> int:
        return self._most

    @overload
    def __getitem__(self, index: int) -> Device: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Device]: ...
    def __getitem__(self, index: int | slice) -> Device | Sequence[Device]:
        stop = index.stop if isinstance(index, slice) else index + 1
        while len(self._made) < min(stop, self._most):
            self._made.append(self._make())
        return self._made[index]

    def __iter__(self) -> Iterator[Device]:
        return iter(tuple(self._made))


@contextlib.contextmanager
def devices(
    backend: str,
    config: DeviceConfig,
    count: int,
    waves: Path | None = None,
    access: Access = NONE,
) -> Iterator[tuple[Device, ...]]:
    """Opens this many devices for the duration of the context."""
    if waves is not None and count > 1:
        raise UserError([f"--waves: {count} devices are used, and a file is of one"])
    with contextlib.ExitStack() as stack:
        made = [device(backend, config, waves, access) for _ in range(count)]
        yield tuple(stack.enter_context(one) for one in made)


@contextlib.contextmanager
def device(
    backend: str,
    config: DeviceConfig,
    waves: Path | None = None,
    access: Access = NONE,
) -> Iterator[Device]:
    """Opens the device for the duration of the context."""
    if is_remote(backend):
        with client(backend, access, patience=5) as bridge, bridge.device() as remote:
            if remote.config != config:
                name = remote.config.name
                known = CONFIGURATIONS.get(name) == remote.config
                raise UserError(
                    [f"{backend} serves configuration {name!r}, not {config.name!r}"],
                    hint=f"--config {name if known else 'FILE, with the JSON file that it serves'}",
                )
            yield remote
    elif is_board(backend):
        with board_device(backend, config) as made_board:
            yield made_board
    elif backend == "verilated":
        with _recorded(waves) as partial, _processor(config, partial) as processor:
            yield processor
    elif backend == "iss":
        from seustream.cosim.iss import IssDevice

        yield IssDevice(config)
    else:
        from seustream.cosim.golden import GoldenDevice

        yield GoldenDevice(config)


@contextlib.contextmanager
def _processor(config: DeviceConfig, waves: Path | None) -> Iterator[Device]:
    from seustream.cosim.verilated.device import VerilatedDevice

    with Notes() as note:
        made = VerilatedDevice(config, waves=waves, note=note)
    try:
        yield made
    finally:
        made.close()


@contextlib.contextmanager
def _recorded(waves: Path | None) -> Iterator[Path | None]:
    """Yields a file that replaces `waves` once the run has ended well. The waves of a processor that
    does nothing any more are what its user looks for."""
    from seustream.cosim.verilated.library import Stuck

    if waves is None:
        yield None
        return
    stuck: Stuck | None = None
    with replaced(waves) as partial:
        try:
            yield partial
        except Stuck as error:
            stuck = error
    if stuck is not None:
        raise stuck


def configuration(name: str | Path) -> DeviceConfig:
    """Loads a configuration by name, or from a file."""
    if isinstance(name, str) and name in CONFIGURATIONS:
        return CONFIGURATIONS[name]
    path = Path(str(name))
    if not path.is_file() and path.suffix != ".json":
        hint = suggest(str(name), CONFIGURATIONS, "configurations")
        raise UserError(
            [f"there is no configuration {name if isinstance(name, Path) else repr(name)}"],
            hint=hint,
        )
    try:
        return DeviceConfig.from_json(path.read_text("utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise UserError([f"{path}: cannot be read: {why}"], hint="name a file of JSON") from None
    except ConfigError as error:
        raise UserError([f"{path}: {error}"]) from None


def unasked(url: str, access: Access, patience: float) -> BridgeClient:
    """Returns a client of a bridge with the content of the user's files, whether the bridge is there
    or not."""
    from seustream.cosim.bridge.client import BridgeClient

    try:
        return BridgeClient.of(url, access, patience)
    except (OSError, UnicodeDecodeError) as error:
        raise UserError([f"the token or certificate cannot be read: {error}"]) from None


def client(url: str, access: Access = NONE, patience: float = 60.0) -> BridgeClient:
    """Connects to a bridge with the content of the user's files; the bridge has answered."""
    from seustream.cosim.bridge.errors import BridgeError

    bridge = unasked(url, access, patience)
    try:
        bridge.health(patience=min(patience, 5))
    except BridgeError as error:
        bridge.close()
        hint = error.hint
        if error.kind == "unauthenticated":
            hint = "--token-file F, with the token the bridge was started with"
        raise UserError([f"{url}: {error}"], hint=hint) from None
    return bridge
