"""The mark of a journal's folder: its owner, its format, and the latest generation of the log.

    seustream journal, format 3
    <digest of that line>
    generation 00000003 <digest of these two words>
    generation 00000004 …

A generation adds its line when its log is on disk, and counts afterwards. The mark is older than the log
it names, so a folder whose new names a disk has forgotten is not taken for the older state it shows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from operator import ne
from pathlib import Path

from seustream.cosim.bridge.disk import Disk
from seustream.cosim.bridge.journal_errors import JournalDamaged, JournalRefused
from seustream.cosim.bridge.sealed import digest

FORMAT = 3
MARK = "journal"
MOST_BYTES = 8_192
"""A longer mark is rewritten with its last line alone."""

_HEAD = re.compile(rb"seustream journal, format (\d+)\n([0-9a-f]{32})\n")
_GENERATION = re.compile(rb"(generation ([0-9a-f]{8})) ([0-9a-f]{32})\n")
_NUMBER, _DIGEST = slice(11, 19), slice(20, 52)
_DAMAGED = 4
"""The most letters in which a damaged digest may differ; digests of different lines differ in most."""


@dataclass(frozen=True, slots=True)
class Mark:
    """The latest `generation` that the mark names, its `size`, and its damage, if any. `illegible`
    are the places and texts of damaged lines."""

    generation: int | None
    size: int
    damage: JournalDamaged | None
    illegible: tuple[tuple[int, bytes], ...] = ()

    def hidden(self, highest: int) -> int | None:
        """Returns the place of a line that may have named a generation after this one."""
        lines = map(line, range(max(0, highest - MOST_BYTES), highest + 1))
        known = {one[_NUMBER]: one[_DIGEST] for one in lines} if self.illegible else {}
        for at, text in self.illegible:
            number, digest = text[_NUMBER], text[_DIGEST]
            if digest not in known.values() and not _near(digest, known.get(number, b"")):
                return at
        return None


def _near(damaged: bytes, digest: bytes) -> bool:
    """Distinguishes a damaged digest from that of another line."""
    return len(digest) == len(damaged) and sum(map(ne, damaged, digest)) <= _DAMAGED


def head() -> bytes:
    """Returns the beginning of every mark."""
    said = b"seustream journal, format %d\n" % FORMAT
    return said + digest(said).encode() + b"\n"


def line(generation: int) -> bytes:
    """Returns the line that a generation adds to the mark."""
    said = b"generation %08x" % generation
    return b"%s %s\n" % (said, digest(said).encode())


def read_mark(disk: Disk, folder: Path) -> Mark:
    """Reads the mark of a folder; raises `JournalRefused` for one of another format."""
    path = folder / MARK
    try:
        said = disk.read(path)
    except FileNotFoundError:
        return Mark(None, 0, JournalDamaged(path, 0, "the file is missing"))
    except OSError as error:
        return Mark(None, 0, JournalDamaged(path, 0, f"cannot be read: {error.strerror or error}"))
    begin = _HEAD.match(said)
    whole = begin is not None and digest(said[: begin.start(2)]) == begin[2].decode()
    if whole and begin is not None and int(begin[1]) != FORMAT:
        raise other_format(folder, int(begin[1]))
    end = len(head()) if whole else 0
    found = [one for one in _GENERATION.finditer(said) if digest(one[1]) == one[3].decode()]
    for one in found:
        if one.start() != end:
            break
        end = one.end()
    damaged = not whole or end != len(said)
    latest = max((int(one[2], 16) for one in found), default=None)
    what = JournalDamaged(path, end, "not what was written")
    illegible = tuple(_illegible(said, found)) if damaged else ()
    return Mark(latest, len(said), what if damaged else None, illegible)


def _illegible(said: bytes, found: list[re.Match[bytes]]) -> Iterator[tuple[int, bytes]]:
    """Yields pieces as long as a line that are not valid lines; a torn one is shorter. The
    beginning of a line may be damaged too, so that two run together."""
    at, width = len(head()), len(line(0))
    for end, after in [*((one.start(), one.end()) for one in found), (len(said), len(said))]:
        for piece in re.split(rb"(?=generation )", said[at:end]):
            for begin in range(0, len(piece) - width + 1, width):
                yield at + begin, piece[begin : begin + width]
            at += len(piece)
        at = after


def other_format(folder: Path, number: int) -> JournalRefused:
    """Names the format of a journal that this release cannot read, and its own."""
    return JournalRefused(
        f"{folder}: a journal of format {number}; this bridge has format {FORMAT}",
        "let the release that wrote it bring it to its end, or give another folder",
    )
