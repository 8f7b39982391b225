"""Writes files so that all appear or none."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path

from seustream.errors import UserError


class Replacement:
    """A file that takes the place of another one, or appears: made aside, put in place by `publish`, and
    undone by `retract` until it is settled."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.temporary = unused(path.parent)
        self._backup: Path | None = None
        self._published = False

    def publish(self) -> None:
        """Renames into place, and keeps the previous file under another name."""
        check_place(self.path)
        if os.path.lexists(self.path):
            backup = unused(self.path.parent)
            try:
                os.link(self.path, backup, follow_symlinks=False)
            except (OSError, NotImplementedError):  # a file system without hard links
                self.path.replace(backup)
            self._backup = backup
        self.temporary.replace(self.path)
        self._published = True

    def retract(self) -> None:
        """Undoes `publish`."""
        if self._backup is not None:
            with contextlib.suppress(OSError):
                self._backup.replace(self.path)  # does nothing if both are still one file
                self._backup.unlink(missing_ok=True)
        elif self._published:
            self.path.unlink(missing_ok=True)
        self._backup, self._published = None, False

    def abort(self) -> None:
        """Leaves everything as it was before."""
        self.retract()
        self.temporary.unlink(missing_ok=True)

    def settle(self) -> None:
        """Makes it final: nothing will be undone any more."""
        if self._backup is not None:
            with contextlib.suppress(OSError):
                self._backup.unlink(missing_ok=True)
        self._backup, self._published = None, False


def write_all(directory: Path, files: Mapping[str, bytes]) -> None:
    """Writes files by name into a directory, which is created if it is missing. An existing target
    that is not a regular file, such as a pipe or a device, is written to, not replaced."""
    made: list[Replacement] = []
    try:
        directory.mkdir(parents=True, exist_ok=True)
        targets = {Path(os.path.realpath(directory / name)): files[name] for name in files}
        through = [target for target in targets if _is_written_to(target)]
        for target in targets:
            if target not in through:
                check_place(target)
                made.append(one := Replacement(target))
                one.temporary.write_bytes(targets[target])
        for target in through:
            with target.open("wb") as out:
                out.write(targets[target])
        for one in made:
            one.publish()
    except BaseException as error:
        for one in made:
            one.abort()
        if not isinstance(error, OSError):
            raise
        where = error.filename2 or error.filename or directory
        raise UserError([f"{where}: {error.strerror}"]) from None
    for one in made:
        one.settle()


def unused(directory: Path) -> Path:
    """Returns a name for a temporary file. It is short, since the file's own may have the maximum
    length."""
    return directory / f".{secrets.token_hex(8)}.tmp"


def check_place(path: Path) -> None:
    """Raises for a place that no file can take."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "Is a directory", str(path))


@contextlib.contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """Yields a file that takes the place of another one, or appears, once the work with it has ended
    well. What is not a regular file is itself written to."""
    target = Path(os.path.realpath(path))
    if _is_written_to(target):
        yield target
        return
    temporary = unused(target.parent)
    try:
        check_place(target)
        temporary.touch(exist_ok=False)
    except OSError as error:
        raise UserError([f"{path}: {error.strerror}"]) from None
    try:
        yield temporary
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def _is_written_to(target: Path) -> bool:
    """Returns whether a target is something else than a file or a folder, such as a device."""
    return target.exists() and not (target.is_file() or target.is_dir())
