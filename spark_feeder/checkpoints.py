"""Validates checkpoints of Spark's queries before a job resumes from them.

Spark notices damage only when it reads the damaged part; it then fails, and would be restarted in
vain. It does not notice a flipped bit in a number at all. Each file of a log has a version line,
lines of JSON, and beside it the checksums that Hadoop wrote: all of them are compared.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

from seustream.spark_feeder.errors import FeedError

_HEAD = struct.Struct(">4sI")
"""The head of a checksum file: its magic, and the number of bytes per checksum."""
_HINT = "put back a copy of the checkpoint, or name a new one and reset the bridge"


def check(place: Path) -> None:
    """Raises `FeedError` for a checkpoint from which no job can resume, with file and byte."""
    for folder in sorted(found.parent for found in place.rglob("offsets")):
        metadata = folder / "metadata"
        if not metadata.is_file():
            raise _damaged(metadata, "is missing")
        _check_file(metadata, 0)
        last = {"commits": -1}
        for log in sorted(path for path in folder.rglob("*") if path.is_dir()):
            found = [path for path in log.iterdir() if path.is_file() and _number(path) >= 0]
            for path in sorted(found, key=_number):
                _check_file(path, 1)
            last[log.name] = max(map(_number, found), default=-1)
        if last["commits"] > last["offsets"]:
            raise _damaged(folder / "offsets" / str(last["commits"]), "is missing")
        if last["offsets"] >= 0:
            before = folder / "offsets" / str(last["offsets"] - 1)
            if last["offsets"] > 0 and not before.is_file():  # Spark reads the last two
                raise _damaged(before, "is missing")
            _check_sources(folder, last["offsets"])


def _check_sources(folder: Path, batch: int) -> None:
    """Checks that the log of each source of files is as long as the batch's offsets say: without it,
    Spark takes all of its files for new ones."""
    _, _, *sources = (folder / "offsets" / str(batch)).read_text("utf-8").splitlines()
    for number, line in enumerate(sources):
        offset = None if line.strip() == "-" else json.loads(line)
        if not isinstance(offset, dict) or "logOffset" not in offset:
            continue
        log, wanted = folder / "sources" / str(number), int(offset["logOffset"])
        found = {_number(path): path for path in log.iterdir()} if log.is_dir() else {}
        compact = (n for n, path in found.items() if path.name.endswith(".compact"))
        for entry in range(max(compact, default=0), wanted + 1):  # a compact one has all before it
            if entry not in found:
                raise _damaged(log / str(entry), "is missing")


def location(place: str | Path) -> str:
    """Returns `place` as a query's `checkpointLocation`.

    A query that ends while it writes its very first offset leaves a file with a hidden name. Spark
    would then refuse to start it ever again, since a new checkpoint must be empty. The file says
    nothing: it is removed, if the checkpoint is a folder here.
    """
    if "://" in str(place):
        return str(place)
    offsets = Path(place) / "offsets"
    if offsets.is_dir() and all(_number(path) < 0 for path in offsets.iterdir()):
        for path in offsets.glob(".*"):
            path.unlink()
    return str(place)


def _number(path: Path) -> int:
    """Returns the number of an entry of a log; -1 for other files."""
    name = path.name.removesuffix(".compact")
    return int(name) if name.isdecimal() else -1


def _check_file(path: Path, head: int) -> None:
    """Compares a file with its checksums, and parses the lines after its head."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise _damaged(path, error.strerror or "cannot be read") from None
    sums = path.with_name(f".{path.name}.crc")
    if sums.is_file():
        said = sums.read_bytes()
        magic, size = _HEAD.unpack_from(said) if len(said) >= _HEAD.size else (b"", 0)
        if magic == b"crc\0" and size:
            for number, at in enumerate(range(0, max(len(data), 1), size)):
                want = said[_HEAD.size + 4 * number :][:4]
                if data and zlib.crc32(data[at : at + size]).to_bytes(4, "big") != want:
                    raise _damaged(path, f"byte {at:,}: it is not what was written")
    at = 0
    for number, line in enumerate(data.splitlines(keepends=True)):
        if number >= head and line.strip() not in (b"-", b""):
            try:
                json.loads(line)
            except ValueError:
                raise _damaged(path, f"byte {at:,}: it is cut, or is no JSON") from None
        at += len(line)
    if at == 0 or (head and len(data.splitlines()) < 2):
        raise _damaged(path, f"byte {at:,}: it ends here")


def _damaged(path: Path, what: str) -> FeedError:
    return FeedError(f"checkpoint: {path}: {what}", _HINT)


@contextlib.contextmanager
def held(place: Path) -> Iterator[None]:
    """Locks a checkpoint for one job: two would write one log, each over the other's entries."""
    try:
        place.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(place / "job.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise FeedError(f"checkpoint: {place}: {error.strerror}") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise FeedError(
            f"{place} is the checkpoint of a job that is running",
            "stop that one first, or name another checkpoint",
        ) from None
    finally:
        os.close(descriptor)
