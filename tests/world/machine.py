"""Simulates the machine that a bridge runs on: its disk, its power, and the supervisor that starts
it again."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from seustream.cosim.golden import GoldenDevice
from seustream.hdl.device import Batch, Results
from tests.cosim.bridge.serving import TINY
from tests.cosim.bridge.simdisk import SimDisk
from tests.world.faults import Faults
from tests.world.simulation import Killed, Process, Simulation


class BootDisk:
    """A disk as one process has it: calls take their time and go wrong, and there are none after
    its death."""

    def __init__(
        self,
        simulation: Simulation,
        process: Process,
        disk: SimDisk,
        faults: Faults,
        without_power: Callable[[], None],
    ) -> None:
        self._simulation, self._process, self._disk = simulation, process, disk
        self._faults, self._without_power = faults, without_power

    def call(self, what: str, do: Callable[[], Any], changes: bool) -> Any:
        """Makes one call of the disk."""
        if not self._process.alive:
            raise Killed
        simulation, faults = self._simulation, self._faults
        slow = faults.happens("disk slow", simulation.time)
        simulation.park(simulation.chance.random() * (8.0 if slow else 0.002))
        disk = self._disk
        if changes:
            for kind, name in faults.disk_kinds:
                if faults.happens(name, simulation.time):
                    simulation.tell(f"disk: {kind} at {what}")
                    disk.faults[disk.changes] = kind
                    break
        try:
            return do()
        finally:
            disk.faults.clear()
            if not disk.power:
                self._without_power()

    # --- as a disk --------------------------------------------------------------

    def names(self, folder: Path) -> list[str]:
        found: list[str] = self.call("names", lambda: self._disk.names(folder), False)
        return found

    def read(self, path: Path) -> bytes:
        data: bytes = self.call(f"read {path.name}", lambda: self._disk.read(path), False)
        return data

    def open(self, path: Path, fresh: bool) -> BootFile:
        opened = self.call(f"open {path.name}", lambda: self._disk.open(path, fresh), True)
        return BootFile(self, path.name, opened)

    def rename(self, old: Path, new: Path) -> None:
        self.call(f"rename {new.name}", lambda: self._disk.rename(old, new), True)

    def remove(self, path: Path) -> None:
        self.call(f"remove {path.name}", lambda: self._disk.remove(path), True)

    def make(self, folder: Path) -> None:
        self.call("make", lambda: self._disk.make(folder), False)

    def sync(self, folder: Path) -> None:
        self.call(f"sync {folder.name}/", lambda: self._disk.sync(folder), True)

    def lock(self, path: Path) -> Callable[[], None]:
        unlock: Callable[[], None] = self.call("lock", lambda: self._disk.lock(path), False)
        return unlock


class BootFile:
    def __init__(self, disk: BootDisk, name: str, file: Any) -> None:
        self._disk, self._name, self._file = disk, name, file

    def write(self, data: bytes | memoryview) -> None:
        data = bytes(data)
        self._disk.call(f"write {self._name}", lambda: self._file.write(data), True)

    def sync(self) -> None:
        self._disk.call(f"fsync {self._name}", self._file.sync, True)

    def close(self) -> None:
        self._file.close()


class SlowDevice(GoldenDevice):
    """The golden model, which takes its time now and then."""

    def __init__(self, simulation: Simulation, faults: Faults) -> None:
        super().__init__(TINY)
        self._simulation, self._faults = simulation, faults

    def push(self, batch: Batch) -> Results:
        if self._faults.happens("device slow", self._simulation.time):
            self._simulation.park(4 * self._faults.of("device slow").random())
        return super().push(batch)


def _some(disk: SimDisk, chance: random.Random) -> Path | None:
    """Returns some file with content, but not the lock."""
    files = [p for p, inode in disk.files.items() if inode.data and p.name != "lock"]
    return chance.choice(sorted(files)) if files else None


def cut(disk: SimDisk, chance: random.Random) -> str:
    """Cuts a file that is kept."""
    path = _some(disk, chance)
    if path is None:
        return "nothing"
    inode = disk.files[path]
    at = chance.randrange(len(inode.data))
    del inode.data[at:]
    inode.stable = inode.stable[:at]
    return f"{path.name}, behind byte {at}"


def flip(disk: SimDisk, chance: random.Random) -> str:
    """Flips a bit of a file that is kept."""
    path = _some(disk, chance)
    if path is None:
        return "nothing"
    inode = disk.files[path]
    at, bit = chance.randrange(len(inode.data)), chance.randrange(8)
    inode.data[at] ^= 1 << bit
    if at < len(inode.stable):
        stable = bytearray(inode.stable)
        stable[at] ^= 1 << bit
        inode.stable = bytes(stable)
    return f"{path.name}, byte {at}"
