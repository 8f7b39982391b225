"""The log of a journal: records with length, sequence and digest, in two copies.

A record is a line: sequence, length, digest, JSON. It is written and synced in copy `a`, then in
copy `b`, and only then counts. Everything that counts is therefore in both, and one of them may be
lost or damaged anywhere. Copy `a` may end in a record that never counted, whole or torn, of which
`b` has nothing. Records that need no sync, such as a reader's positions, reach `b` with the next
one that does.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seustream.cosim.bridge.disk import Disk
from seustream.cosim.bridge.journal_errors import JournalDamaged
from seustream.cosim.bridge.sealed import digest

Record = dict[str, Any]

COPIES = ("a", "b")
UNSYNCED = "trim"
"""The kind of records that may wait for the sync of a later one."""
_HEAD = len(b"%08x %08x %032x " % (0, 0, 0))
_ENCODER = json.JSONEncoder(separators=(",", ":"))
_LIKE_A_RECORD = re.compile(rb"([0-9a-f]{8}) [0-9a-f]{8} [0-9a-f]{32} ")


def encode(record: Record) -> bytes:
    return _ENCODER.encode(record).encode()


def framed(generation: int, sequence: int, payload: bytes) -> bytes:
    """Returns a record as it is on disk. One of another generation or place is not valid here."""
    seal = digest(b"%d %d " % (generation, sequence) + payload)
    return b"%08x %08x %s %s\n" % (sequence, len(payload), seal.encode(), payload)


def path_of(folder: Path, generation: int, copy: str) -> Path:
    return folder / f"log-{generation}.{copy}"


@dataclass(slots=True)
class Log:
    """The common content of the copies of a log: records in order, beginning with the generation's
    first; damage after which the rest is lost; and faults of one copy. They are `uneven` when the
    last records are not in both, as a kill leaves them."""

    payloads: list[bytes]
    damage: JournalDamaged | None
    notes: list[str]
    uneven: bool = False

    @property
    def records(self) -> list[Record]:
        return [json.loads(payload) for payload in self.payloads]


def read(disk: Disk, folder: Path, generation: int) -> Log:
    """Reads both copies, record by record from whichever has it."""
    paths = [path_of(folder, generation, copy) for copy in COPIES]
    log, at, have = Log([], None, []), 0, [0, 0]
    data = [_read(disk, path, log.notes) for path in paths]
    hurt = {i for i, one in enumerate(data) if one is None}
    while True:
        found = [_payload(one, at, generation, len(log.payloads)) for one in data]
        good = next((one for one in found if one is not None), None)
        if good is None:
            break
        for i, one in enumerate(found):
            # If the copy ends here, the record never reached it.
            if one is None and i not in hurt and len(data[i] or b"") > at:
                hurt.add(i)
                log.notes.append(f"{paths[i]}: byte {at:,}: not the record that was written")
            have[i] += one is not None
        log.payloads.append(good)
        at += len(framed(generation, 0, good))
    left = [i for i, one in enumerate(data) if one is not None and len(one) > at]
    # The second copy may lack all records that wait for a sync, but if it is sound, no others.
    short = {json.loads(payload).get("kind") for payload in log.payloads[have[1] :]}
    second = data[1] if 1 not in hurt and short <= {UNSYNCED} else None
    if left and not (
        log.payloads and _never_counted(data[0], second, at, generation, len(log.payloads))
    ):
        log.damage = JournalDamaged(
            paths[left[0]], at, "damaged here, and the other copy has nothing in its place"
        )
    elif not log.payloads:
        log.damage = JournalDamaged(paths[0], 0, "the log is empty")
    # The first copy may have a piece of a record that never counted, the second nothing.
    log.uneven = bool(left) or len(data[1] or b"") < at
    if 0 not in hurt and len(data[0] or b"") < at:
        log.notes.append(f"{paths[0]}: byte {len(data[0] or b''):,}: ends before the other copy")
    return log


def _never_counted(
    first: bytes | None, second: bytes | None, at: int, generation: int, sequence: int
) -> bool:
    """Returns whether the bytes after a place are one record that was torn while it was written:
    the second copy is sound and has nothing of it, and no record follows."""
    if first is None or second is None or len(second) > at:
        return False
    later = ((found.start(), int(found[1], 16)) for found in _LIKE_A_RECORD.finditer(first, at))
    return not any(
        number > sequence and _payload(first, start, generation, number) is not None
        for start, number in later
    )


def _payload(data: bytes | None, at: int, generation: int, sequence: int) -> bytes | None:
    """Returns the record at a place, if it is whole."""
    head = (data or b"")[at : at + _HEAD]
    try:
        length = int(head[9:17], 16)
    except ValueError:
        return None
    payload = (data or b"")[at + _HEAD : at + _HEAD + length]
    whole = framed(generation, sequence, payload)
    return payload if (data or b"")[at : at + len(whole)] == whole else None


def _read(disk: Disk, path: Path, notes: list[str]) -> bytes | None:
    """Reads a copy; one that cannot be read counts as missing."""
    try:
        return disk.read(path)
    except FileNotFoundError:
        notes.append(f"{path}: the file is missing")
    except OSError as error:
        notes.append(f"{path}: cannot be read: {error.strerror or error}")
    return None
