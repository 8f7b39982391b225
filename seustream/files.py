"""Writes several files so that all appear or none."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from seustream.errors import UserError


def write_all(directory: Path, files: Mapping[str, bytes]) -> None:
    """Writes files by name into a directory, which is created if it is missing. An existing target
    that is not a regular file, such as a pipe or a device, is written to, not replaced."""
    written: list[tuple[str, Path]] = []
    try:
        directory.mkdir(parents=True, exist_ok=True)
        targets = {Path(os.path.realpath(directory / name)): files[name] for name in files}
        through = {
            path for path in targets if path.exists() and not (path.is_file() or path.is_dir())
        }
        for target in targets.keys() - through:
            handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
            written.append((temporary, target))
            with os.fdopen(handle, "wb") as out:
                out.write(targets[target])
            os.chmod(temporary, 0o666 & ~_umask())
        for target in through:
            with target.open("wb") as out:
                out.write(targets[target])
        for temporary, target in written:
            os.replace(temporary, target)
    except OSError as error:
        for temporary, _ in written:
            Path(temporary).unlink(missing_ok=True)
        where = error.filename2 or error.filename or directory
        raise UserError([f"{where}: {error.strerror}"]) from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
