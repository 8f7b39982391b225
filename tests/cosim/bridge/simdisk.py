"""A disk in memory with faults: what is written, what outlives a loss of power, and what goes wrong.

    disk = SimDisk()
    disk.faults[17] = "torn"        # the 17th call that changes something
    ...
    disk.lose_power(chance)         # what was not synced may be there, in part, or not
    disk.restart()

Faults of a call: `error`, nothing is done; `short`, half of it and an error; `torn`, half of it, then
the power fails; `dead`, the power fails before it; `late`, the power fails after it; `lost`, it is
reported as done and outlives nothing. Without power every call fails until `restart`.
"""

from __future__ import annotations

import copy
import errno
import functools
import random
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

FAULTS = ("error", "short", "torn", "dead", "late", "lost")


@functools.cache
def _folder(path: Path) -> str:
    return str(path.parent)


@dataclass(eq=False)
class _Inode:
    """Content that can be read now; content that outlives a loss of power, as far as it goes;
    ranges in which writes were lost; whether the last sync was lost."""

    data: bytearray = field(default_factory=bytearray)
    stable: bytes = b""
    lost: list[tuple[int, int]] = field(default_factory=list)
    unsynced: bool = False

    def as_stored(self) -> bytes:
        """Returns the whole content as if it were synced now."""
        stored = bytearray(self.data)
        for begin, end in self.lost:
            if end >= len(stored):
                del stored[begin:]
            else:
                stored[begin:end] = bytes(end - begin)
        return bytes(stored)


class SimDisk:
    """A disk in memory. `changes` counts the calls that change something; `room` is the number of
    bytes it holds; calls on a file whose name contains `broken` fail."""

    def __init__(self) -> None:
        self.files: dict[Path, _Inode] = {}
        self.stable: dict[Path, _Inode] = {}
        self.folders: set[Path] = set()
        self.faults: dict[int, str] = {}
        self.log: list[str] = []
        self.changes = 0
        self.room: int | None = None
        self.broken = ""
        self.power = True
        self.happened: Counter[str] = Counter()
        self._lost_names: dict[Path, _Inode | None] = {}
        self._before: dict[str, dict[Path, _Inode]] = {}
        self._locks: set[Path] = set()
        self._mutex = threading.RLock()

    def __deepcopy__(self, memo: dict[int, object]) -> SimDisk:
        with self._mutex:
            made = SimDisk()
            made.files, made.stable, made._lost_names = copy.deepcopy(
                (self.files, self.stable, self._lost_names), memo
            )
            made.folders, made.changes = set(self.folders), self.changes
            return made

    # --- as a disk --------------------------------------------------------------

    def names(self, folder: Path) -> list[str]:
        with self._mutex:
            self._powered()
            found = {path.name for path in self.files if _folder(path) == str(folder)}
            found |= {f"{path.name}/" for path in self.folders if path.parent == folder}
            return sorted(found)

    def read(self, path: Path) -> bytes:
        with self._mutex:
            self._powered()
            if path not in self.files:
                raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(path))
            return bytes(self.files[path].data)

    def open(self, path: Path, fresh: bool) -> _SimFile:
        with self._mutex:
            self._powered()
            if fresh or path not in self.files:

                def create() -> None:
                    self.files[path] = _Inode()

                def lost() -> None:
                    self._lost_names[path] = self.stable.get(path)
                    create()

                self._change(f"open {path.name}", create, lost=lost)
            return _SimFile(self, path.name, self.files[path])

    def rename(self, old: Path, new: Path) -> None:
        def rename() -> None:
            if old not in self.files:
                raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(old))
            self.files[new] = self.files.pop(old)

        def lost() -> None:
            before = self.stable.get(new)
            rename()
            self._lost_names |= {new: before, old: self.files[new]}

        with self._mutex:
            self._change(f"rename {new.name}", rename, lost=lost)

    def remove(self, path: Path) -> None:
        with self._mutex:
            self._powered()
            if path not in self.files:
                return

            def lost() -> None:
                self._lost_names[path] = self.files.pop(path)

            self._change(f"remove {path.name}", lambda: self.files.pop(path, None), lost=lost)

    def make(self, folder: Path) -> None:
        with self._mutex:
            self._powered()
            self.folders |= {folder, *folder.parents}

    def sync(self, folder: Path) -> None:
        here = str(folder)

        def sync() -> None:
            self._before[here] = {p: i for p, i in self.stable.items() if _folder(p) == here}
            for path in self._before[here]:
                del self.stable[path]
            for path in [p for p in self.files if _folder(p) == here]:
                self.stable[path] = self.files[path]
            for path, inode in self._lost_names.items():
                if _folder(path) == here:
                    self.stable.pop(path, None)
                    if inode is not None:
                        self.stable[path] = inode

        with self._mutex:
            self._change(f"sync {folder.name}/", sync)

    def lock(self, path: Path) -> Callable[[], None]:
        with self._mutex:
            self._powered()
            if path in self._locks:
                raise BlockingIOError(errno.EWOULDBLOCK, "held")
            self.files.setdefault(path, _Inode())
            self._locks.add(path)
            return lambda: self._locks.discard(path)

    # --- faults -----------------------------------------------------------------

    def _powered(self) -> None:
        if not self.power:
            raise OSError(errno.EIO, "no power")

    def _change(
        self,
        what: str,
        do: Callable[[], object],
        half: Callable[[], object] = lambda: None,
        lost: Callable[[], object] = lambda: None,
    ) -> None:
        """Makes a change, or what its fault makes of it."""
        self._powered()
        fault = self.faults.pop(self.changes, None)
        if self.broken and self.broken in what:
            fault = "error"
        self.changes += 1
        self.log.append(what)
        if fault is not None:
            self.happened[f"{fault} {what.split()[0]}"] += 1
        match fault:
            case "error":
                raise OSError(errno.EIO, "Input/output error")
            case "short":
                half()
                raise OSError(errno.ENOSPC, "No space left on device")
            case "torn" | "dead":
                if fault == "torn":
                    half()
                self.power = False
                raise OSError(errno.EIO, "no power")
            case "lost":
                lost()
            case _:
                do()
                self.power = self.power and fault != "late"

    @property
    def used(self) -> int:
        return sum(len(inode.data) for inode in self.files.values())

    def forget(self, folder: Path, kept: Path) -> bool:
        """Forgets the last sync of a folder: all its names are as they were before. Returns whether
        it did so: only if a file had been kept under the same name by then, with everything that
        was written to it."""
        before, file = self._before.get(str(folder), {}), self.files.get(kept)
        if file is None or file.lost or file.unsynced or before.get(kept) is not file:
            return False
        for names in (self.files, self.stable):
            for path in [p for p in names if p.parent == folder]:
                del names[path]
            names.update(before)
        return True

    def lose_power(self, chance: random.Random) -> None:
        """Cuts the power. Anything that was not synced may have reached the disk or not: writes up
        to some point, each name by itself."""
        with self._mutex:
            self.power = False
            self._before.clear()
            names = dict(self.stable)
            for path, inode in self.files.items():
                if path not in self._lost_names and chance.random() < 0.5:
                    names[path] = inode
            for path in [one for one in self.stable if one not in self.files]:
                if path not in self._lost_names and chance.random() < 0.5:
                    del names[path]
            files: dict[Path, _Inode] = {}
            for path, inode in names.items():
                stored, stable = inode.as_stored(), inode.stable
                if len(stored) > len(stable) and stored.startswith(stable):
                    stored = stored[: chance.randint(len(stable), len(stored))]
                elif stored != stable and chance.random() < 0.5:
                    stored = stable
                files[path] = _Inode(bytearray(stored), stored)
            self.files, self.stable = files, dict(files)
            self._lost_names.clear()

    def restart(self) -> None:
        """Switches the power on again; no file is locked."""
        with self._mutex:
            self.power = True
            self._locks.clear()


class _SimFile:
    def __init__(self, disk: SimDisk, name: str, inode: _Inode) -> None:
        self._disk, self._name, self._inode = disk, name, inode
        self._open = True

    def write(self, data: bytes | memoryview) -> None:
        data = bytes(data)
        inode, disk = self._inode, self._disk
        assert self._open, "a write to a closed file"

        def lost() -> None:
            inode.lost.append((len(inode.data), len(inode.data) + len(data)))
            inode.data.extend(data)

        with disk._mutex:
            room = len(data) if disk.room is None else disk.room - disk.used
            if room < len(data):
                inode.data.extend(data[: max(room, 0)])
                raise OSError(errno.ENOSPC, "No space left on device")
            half = data[: len(data) // 2]
            disk._change(
                f"write {self._name}",
                lambda: inode.data.extend(data),
                lambda: inode.data.extend(half),
                lost,
            )

    def sync(self) -> None:
        inode = self._inode

        def sync() -> None:
            inode.stable, inode.unsynced = inode.as_stored(), False

        def lost() -> None:
            inode.unsynced = True

        with self._disk._mutex:
            self._disk._change(f"fsync {self._name}", sync, lost=lost)

    def close(self) -> None:
        self._open = False
