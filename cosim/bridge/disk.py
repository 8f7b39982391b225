"""The disk as the journal sees it: eight calls, and three on an open file.

Everything that the bridge stores goes through here, so that tests can substitute a disk that fills
up, tears its writes, forgets them, or fails. Every failure is an `OSError`.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol


class File(Protocol):
    """An open file, written from its end."""

    def write(self, data: bytes | memoryview) -> None:
        """Writes all of it; after an error, any part of it may be there."""

    def sync(self) -> None:
        """Returns once the written data survives a loss of power."""

    def close(self) -> None: ...


class Disk(Protocol):
    """Files and folders."""

    def names(self, folder: Path) -> list[str]:
        """Lists a folder; names of folders in it end in a slash. A missing folder is empty."""

    def read(self, path: Path) -> bytes: ...

    def open(self, path: Path, fresh: bool) -> File:
        """Opens a file for writing: emptied if `fresh`, otherwise appending."""

    def rename(self, old: Path, new: Path) -> None:
        """Renames a file, replacing one of the new name."""

    def remove(self, path: Path) -> None:
        """Removes a file, if it is there."""

    def make(self, folder: Path) -> None:
        """Creates a folder and its parents, if they are missing."""

    def sync(self, folder: Path) -> None:
        """Returns once the names in a folder survive a loss of power."""

    def lock(self, path: Path) -> Callable[[], None]:
        """Locks a file for this process, and returns a function that releases it; `BlockingIOError`
        when another process holds it."""


class RealDisk:
    """The disk of this machine."""

    def names(self, folder: Path) -> list[str]:
        try:
            with os.scandir(folder) as found:
                return sorted(
                    f"{one.name}/" if one.is_dir(follow_symlinks=False) else one.name
                    for one in found
                )
        except FileNotFoundError:
            return []

    def read(self, path: Path) -> bytes:
        return path.read_bytes()

    def open(self, path: Path, fresh: bool) -> File:
        flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if fresh else os.O_APPEND)
        return _RealFile(os.open(path, flags | os.O_CLOEXEC, 0o666))

    def rename(self, old: Path, new: Path) -> None:
        os.replace(old, new)

    def remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)

    def make(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)

    def sync(self, folder: Path) -> None:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def lock(self, path: Path) -> Callable[[], None]:
        # Not emptied: until the owner of this folder is known, nothing in it changes.
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EROFS):
                raise
            # Who only looks needs no more, such as on a file system that a fault made read-only.
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise
        return lambda: os.close(descriptor)


class _RealFile:
    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    def _open(self) -> int:
        if self._descriptor is None:
            raise OSError("the file is closed")
        return self._descriptor

    def write(self, data: bytes | memoryview) -> None:
        left = memoryview(data)
        while left:
            left = left[os.write(self._open(), left) :]

    def sync(self) -> None:
        os.fsync(self._open())

    def close(self) -> None:
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            os.close(descriptor)


def write_whole(disk: Disk, path: Path, data: bytes) -> None:
    """Writes a file completely or not at all; its name is durable once the folder is synced."""
    partial = path.with_name(path.name + ".partial")
    try:
        with contextlib.closing(disk.open(partial, fresh=True)) as file:
            file.write(data)
            file.sync()
        disk.rename(partial, path)
    except OSError:
        remove_quietly(disk, partial)
        raise


def remove_quietly(disk: Disk, path: Path) -> None:
    """Removes a file; one that cannot be removed now is removed when the journal is next opened."""
    with contextlib.suppress(OSError):
        disk.remove(path)
