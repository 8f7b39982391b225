"""Writes files so that all appear or none."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from seustream.errors import UserError


def write_all(directory: Path, files: Mapping[str, bytes]) -> None:
    """Writes files by name into a directory, which is created if it is missing. An existing target
    that is not a regular file, such as a pipe or a device, is written to, not replaced."""
    written: list[tuple[Path, Path]] = []
    try:
        directory.mkdir(parents=True, exist_ok=True)
        targets = {Path(os.path.realpath(directory / name)): files[name] for name in files}
        through = set(filter(_is_written_to, targets))
        for target in targets.keys() - through:
            temporary = _beside(target)
            written.append((temporary, target))
            temporary.write_bytes(targets[target])
        for target in through:
            with target.open("wb") as out:
                out.write(targets[target])
        for temporary, target in written:
            os.replace(temporary, target)
    except OSError as error:
        for temporary, _ in written:
            temporary.unlink(missing_ok=True)
        where = error.filename2 or error.filename or directory
        raise UserError([f"{where}: {error.strerror}"]) from None


@contextlib.contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """Yields a file that takes the place of another one, or appears, once the work with it has ended
    well. What is not a regular file is itself written to."""
    target = Path(os.path.realpath(path))
    if _is_written_to(target):
        yield target
        return
    try:
        if target.is_dir():
            raise IsADirectoryError(None, "Is a directory")
        temporary = _beside(target)
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


def _beside(target: Path) -> Path:
    """Creates an empty file in the folder of a target, under a name of its own."""
    handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    os.close(handle)
    os.chmod(temporary, 0o666 & ~_umask())
    return Path(temporary)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
