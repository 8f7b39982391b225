"""Writing several files so that all appear or none."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from seustream.errors import UserError


def write_all(directory: Path, files: Mapping[str, bytes]) -> None:
    """Writes files by name into a directory, made if it is missing."""
    written: list[tuple[str, Path]] = []
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            handle, temporary = tempfile.mkstemp(prefix=f".{name}.", dir=directory)
            written.append((temporary, directory / name))
            with os.fdopen(handle, "wb") as out:
                out.write(data)
            os.chmod(temporary, 0o666 & ~_umask())
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
