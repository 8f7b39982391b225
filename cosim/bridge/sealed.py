"""Sealed files: bytes of some kind, followed by proof that they are those written.

    payload     as it was written
    trailer     JSON: kind, meta, the payload's length, a digest of each block of it
    footer      the trailer's length, its digest (the seal), a mark

The seal identifies the whole file: a copy of it kept elsewhere shows that the file was not replaced.
A block's digest is XXH3, the trailer's BLAKE2b, both of 128 bits. That is enough against damage, and
the first costs a twentieth of the second for hundreds of megabytes.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xxhash

from seustream.cosim.bridge.disk import Disk, File
from seustream.cosim.bridge.journal_errors import JournalDamaged

BLOCK = 1 << 16
"""Bytes of payload under one digest, which is the granularity of damage reports."""
_FOOTER = len(b"%08x %032x sealed\n" % (0, 0))
_DIGEST = 16


def digest(data: bytes | memoryview) -> str:
    return hashlib.blake2b(data, digest_size=_DIGEST).hexdigest()


class SealedWriter:
    """Writes a sealed file. Looks like a file to Arrow."""

    closed = False

    def __init__(self, file: File) -> None:
        self._file, self._blocks, self._waiting = file, list[str](), bytearray()
        self.length = 0
        self.size = 0

    def write(self, data: bytes | memoryview) -> int:
        view = memoryview(data).cast("B")
        self.length += len(view)
        given = len(view)
        if self._waiting:
            taken = view[: BLOCK - len(self._waiting)]
            self._waiting += taken
            view = view[len(taken) :]
            if len(self._waiting) == BLOCK:
                self._put(memoryview(bytes(self._waiting)))
                self._waiting.clear()
        whole = len(view) // BLOCK * BLOCK
        if whole:
            self._put(view[:whole])
        self._waiting += view[whole:]
        return given

    def flush(self) -> None:
        """Does nothing, since only whole blocks are written."""

    def seal(self, kind: str, meta: dict[str, Any]) -> str:
        """Ends the file on disk, and returns its seal."""
        if self._waiting:
            self._put(memoryview(bytes(self._waiting)))
        said = {"kind": kind, "meta": meta, "length": self.length, "blocks": self._blocks}
        trailer = json.dumps(said, separators=(",", ":")).encode()
        seal = digest(trailer)
        self._file.write(trailer + b"%08x %s sealed\n" % (len(trailer), seal.encode()))
        self._file.sync()
        self._file.close()
        self.size = self.length + len(trailer) + _FOOTER
        return seal

    def close(self) -> None:
        """Closes the file, which is invalid without a seal."""
        self._file.close()

    def _put(self, blocks: memoryview) -> None:
        self._blocks += [
            xxhash.xxh3_128_hexdigest(blocks[at : at + BLOCK])
            for at in range(0, len(blocks), BLOCK)
        ]
        self._file.write(blocks)


@dataclass(frozen=True, slots=True)
class Sealed:
    """The content of a sealed file that is as it was written."""

    meta: dict[str, Any]
    payload: memoryview
    seal: str
    size: int


def read_sealed(disk: Disk, path: Path, kind: str, seal: str | None = None) -> Sealed:
    """Reads a whole file; raises `JournalDamaged` if it is not sealed, not of this kind, or not the
    one with this seal."""
    try:
        data = memoryview(disk.read(path))
    except FileNotFoundError:
        raise JournalDamaged(path, 0, "the file is missing") from None
    except OSError as error:
        raise JournalDamaged(path, 0, f"cannot be read: {error.strerror or error}") from None
    foot = len(data) - _FOOTER
    trailer, found = _trailer(path, data, foot)
    try:
        said = json.loads(bytes(trailer))
        length, blocks, meta = said["length"], said["blocks"], said["meta"]
        known = said["kind"]
    except (ValueError, KeyError, TypeError):
        raise JournalDamaged(path, foot, "the trailer is none") from None
    start = foot - len(trailer)
    if length != start or len(blocks) != -(-length // BLOCK):
        what = f"{start:,} bytes, {length:,} were written"
        raise JournalDamaged(path, min(start, length), what)
    for number, want in enumerate(blocks):
        if (
            xxhash.xxh3_128_hexdigest(data[number * BLOCK : min((number + 1) * BLOCK, length)])
            != want
        ):
            raise JournalDamaged(
                path, number * BLOCK, f"not the bytes that were written (block {number})"
            )
    if known != kind or not isinstance(meta, dict):
        raise JournalDamaged(path, start, f"a {known!r:.20}, where a {kind} was kept")
    if seal not in (None, found):
        raise JournalDamaged(path, foot, "whole, but not the file that was kept under this name")
    return Sealed(meta, data[:length], found, len(data))


def _trailer(path: Path, data: memoryview, foot: int) -> tuple[memoryview, str]:
    """Returns the trailer, and the seal that matches it."""
    footer = bytes(data[foot:]) if foot >= 0 else b""
    try:
        length, seal = int(footer[:8], 16), footer[9:41].decode("ascii")
    except ValueError:
        length, seal = -1, ""
    if length < 0 or footer != b"%08x %s sealed\n" % (length, seal.encode()):
        raise JournalDamaged(path, max(foot, 0), f"no footer: cut off at {len(data):,} bytes?")
    trailer = data[max(foot - length, 0) : foot]
    if digest(trailer) != seal:
        raise JournalDamaged(path, max(foot - length, 0), "the trailer is not what was written")
    return trailer, seal
