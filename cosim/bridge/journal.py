"""The journal: what the bridge has accepted, on disk before it says so.

    folder/
      staged/*.arrow     parts of epochs, complete: written, synced, then named
      journal-N.log      records, one a line with its checksum; those after snapshot N
      snapshot-N/        a session's state (`cosim.bridge.snapshot`); there is none for N = 0

A record counts once its line is on disk. A torn last line was never acknowledged and is cut off;
damage before the last line is an error. Parts that a record names belong to the journal; what
else is staged waits for its commit.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Record = dict[str, Any]


class JournalDamaged(Exception):
    """A journal that cannot be trusted; says where."""


class JournalHeld(Exception):
    """Another process writes this journal."""


class Journal:
    """The records of one session since its last snapshot, and its staged parts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.staged = folder / "staged"
        self.staged.mkdir(parents=True, exist_ok=True)
        self._lock = (folder / "lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise JournalHeld(f"{folder} is the journal of a bridge that is running") from None
        for leftover in (*self.staged.glob("*.partial"), *folder.glob("*.partial")):
            _remove(leftover)
        self._generation = max(self._numbers("snapshot-"), default=0)
        for number in self._numbers("journal-"):
            if number != self._generation:
                self._path(number).unlink()
        path = self._path(self._generation)
        try:
            self._tail = _recover(path) if path.exists() else []
        except JournalDamaged:
            self._lock.close()
            raise
        self._log = path.open("ab")
        self.size = self._log.tell()

    def records(self) -> list[Record]:
        """What was recorded since the last snapshot before this journal was opened."""
        tail, self._tail = self._tail, []
        return tail

    def append(self, record: Record, sync: bool = True) -> None:
        """Puts a record on disk. Without `sync` a machine that loses power may forget it, a
        process that is killed may not."""
        self._log.write(_line(record))
        self._log.flush()
        if sync:
            os.fsync(self._log.fileno())
        self.size = self._log.tell()

    # --- parts ----------------------------------------------------------------

    def keep(self, partial: Path, name: str) -> Path:
        """A part written under another name is complete."""
        path = self.staged / name
        _sync(partial)
        partial.rename(path)
        _sync(self.staged)
        return path

    def forget(self, name: str) -> None:
        (self.staged / name).unlink(missing_ok=True)

    # --- snapshots ------------------------------------------------------------

    @property
    def snapshot(self) -> Path | None:
        """The last snapshot's folder."""
        return self.folder / f"snapshot-{self._generation}" if self._generation else None

    def begin_snapshot(self) -> Path:
        """A folder to write the state into."""
        partial = self.folder / f"snapshot-{self._generation + 1}.partial"
        _remove(partial)
        partial.mkdir()
        return partial

    def end_snapshot(self, partial: Path, later: list[Record]) -> None:
        """The snapshot is complete: `later` are the records it does not cover."""
        for path in partial.iterdir():
            _sync(path)
        _sync(partial)
        before = self._generation
        log = self._path(before + 1)
        write_whole(log, b"".join(map(_line, later)))
        # The snapshot's name makes both count; a log without its snapshot is never read.
        partial.rename(self.folder / f"snapshot-{before + 1}")
        _sync(self.folder)
        self._generation = before + 1
        self._log.close()
        self._log = log.open("ab")
        self.size = self._log.tell()
        self._path(before).unlink(missing_ok=True)
        _remove(self.folder / f"snapshot-{before}")

    # --- the end --------------------------------------------------------------

    def clear(self) -> None:
        """Forgets everything; the journal stays open."""
        self._log.close()
        for path in self.folder.iterdir():
            if path.name != "lock":
                _remove(path)
        self.staged.mkdir()
        self._generation, self._tail = 0, []
        self._log = self._path(0).open("ab")
        self.size = 0
        _sync(self.folder)

    def close(self) -> None:
        self._log.close()
        self._lock.close()

    def _path(self, number: int) -> Path:
        return self.folder / f"journal-{number}.log"

    def _numbers(self, prefix: str) -> Iterator[int]:
        for path in list(self.folder.glob(f"{prefix}*")):
            if found := re.fullmatch(rf"{prefix}(\d+)(\.log)?", path.name):
                yield int(found[1])


def write_whole(path: Path, data: bytes) -> None:
    """A file that is there completely or not at all."""
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(data)
    _sync(partial)
    partial.rename(path)
    _sync(path.parent)


def _line(record: Record) -> bytes:
    text = json.dumps(record, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _recover(path: Path) -> list[Record]:
    """The records of a log; a torn last line is cut off."""
    data = path.read_bytes()
    records: list[Record] = []
    good = 0
    while good < len(data):
        end = data.find(b"\n", good)
        line = data[good : end if end >= 0 else len(data)]
        if end < 0 or line[8:9] != b" " or line[:8] != b"%08x" % zlib.crc32(line[9:]):
            if end >= 0 and end + 1 < len(data):
                number = len(records) + 1
                raise JournalDamaged(f"{path}: record {number}, byte {good}, is damaged")
            break
        records.append(json.loads(line[9:]))
        good = end + 1
    if good < len(data):
        with path.open("r+b") as file:
            file.truncate(good)
        _sync(path)
    return records


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
