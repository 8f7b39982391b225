"""Surveys a journal's folder: its content, and how much of it can be trusted. Changes nothing.

    folder/
      journal            a mark: whose folder this is, and how far it has come (`seustream.cosim.bridge.mark`)
      lock               held by the bridge that writes here
      log-N.a, log-N.b   the records since generation N began (`seustream.cosim.bridge.log`)
      snapshot-N         a session's state when it began, if the log names it; sealed
      staged/*.part      parts of epochs; sealed

The first record of a log begins its generation: the format, the loaded query set, the snapshot and its
seal. An epoch's record has the seals of its parts. Every file that counts is therefore vouched for by the
log, and the log by its other copy.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from seustream.cosim.bridge import log
from seustream.cosim.bridge.disk import Disk
from seustream.cosim.bridge.journal_errors import JournalDamaged, JournalRefused
from seustream.cosim.bridge.mark import FORMAT, MARK, Mark, other_format, read_mark
from seustream.cosim.bridge.sealed import Sealed, read_sealed

LOCK, STAGED = "lock", "staged"

_OURS = re.compile(rf"{LOCK}|{STAGED}/|({MARK}|log-\d+\.[ab]|snapshot-\d+)(\.partial)?", re.ASCII)
_PART = re.compile(r"[0-9a-f]{40}\.part|\d+\.partial", re.ASCII)
_LOG = re.compile(r"log-(\d+)\.[ab]", re.ASCII)
_FIRST_FORMAT = re.compile(
    rf"{LOCK}|{STAGED}/|session\.json|journal-\d+\.log|snapshot-\d+/|.*\.partial/?", re.ASCII
)
_MOST_NAMED = 5


@dataclass(slots=True)
class Survey:
    """The content of a folder. `damages` cannot be repaired, `notes` can. Parts are listed by name
    with their content: `parts` belong to epochs, `waiting` to none yet; `spoilt` are damaged ones
    of the latter. Logs are `uneven` when the last records did not reach both, as after a kill."""

    folder: Path
    generation: int | None = None
    begin: log.Record | None = None
    records: list[log.Record] = field(default_factory=list)
    payloads: list[bytes] = field(default_factory=list)
    parts: dict[str, Sealed] = field(default_factory=dict)
    waiting: dict[str, Sealed] = field(default_factory=dict)
    spoilt: dict[str, JournalDamaged] = field(default_factory=dict)
    mark: Mark | None = None
    uneven: bool = False
    notes: list[str] = field(default_factory=list)
    damages: list[JournalDamaged] = field(default_factory=list)

    @property
    def snapshot(self) -> tuple[Path, str] | None:
        """Returns the snapshot of this generation, and its seal."""
        if self.begin is None or self.begin["snapshot"] is None:
            return None
        name, seal = self.begin["snapshot"]
        return self.folder / name, seal


def check_owned(disk: Disk, folder: Path) -> None:
    """Raises `JournalRefused` for a folder with anything that no journal puts there."""
    names = disk.names(folder)
    staged = disk.names(folder / STAGED) if f"{STAGED}/" in names else []
    inside = [name for name in staged if not _PART.fullmatch(name)]
    first = [n for n in names if re.fullmatch(r"session\.json|journal-\d+\.log", n, re.ASCII)]
    ours = _FIRST_FORMAT if first else _OURS
    foreign = [name for name in names if not ours.fullmatch(name)]
    if first:
        inside = [name for name in inside if not name.endswith(".arrow")]
    foreign += [f"{STAGED}/{name}" for name in inside]
    if foreign:
        more = len(foreign) - _MOST_NAMED
        shown = ", ".join(foreign[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
        raise JournalRefused(
            f"{folder}: no journal puts there {shown}",
            "give a folder that is empty, or not there yet",
        )
    if first:
        raise other_format(folder, 1)


def survey(disk: Disk, folder: Path) -> Survey:
    """Reads everything; raises `JournalRefused` for a folder that is not a journal of this format."""
    check_owned(disk, folder)
    names = disk.names(folder)
    staged = disk.names(folder / STAGED)
    found = Survey(folder)
    numbers = {int(m[1]) for name in names if (m := _LOG.fullmatch(name))}
    found.mark = read_mark(disk, folder)
    if not numbers:
        _without_log(found, names, staged)
        _read_parts(disk, found, staged)
        return found
    found.generation = max(numbers)
    if found.mark.damage is not None:
        found.notes.append(str(found.mark.damage))
    latest = found.mark.generation
    if latest is not None and latest > found.generation:
        what = f"the file is missing, but {folder / MARK} names it; log-{found.generation} is older"
        path = log.path_of(folder, latest, "a")
        found.damages.append(JournalDamaged(path, 0, f"{what}: what was taken since is lost"))
    elif (at := found.mark.hidden(found.generation)) is not None:
        what = f"a generation that cannot be read; if it is later than log-{found.generation}"
        path = folder / MARK
        found.damages.append(JournalDamaged(path, at, f"{what}, what was taken since is lost"))
    _read_log(disk, found)
    if found.snapshot is not None:
        path, seal = found.snapshot
        try:
            read_sealed(disk, path, "snapshot", seal)
        except JournalDamaged as error:
            found.damages.append(error)
    _read_parts(disk, found, staged)
    return found


def _without_log(found: Survey, names: list[str], staged: list[str]) -> None:
    """Surveys a new folder, or one that has lost its log."""
    left = [n for n in names if n == MARK or re.fullmatch(r"snapshot-\d+", n)]
    left += [f"{STAGED}/{name}" for name in staged if name.endswith(".part")]
    if left:
        path = log.path_of(found.folder, 0, "a").with_name("log-N.a")
        what = f"there is no log, but {left[0]}" + (f" and {len(left) - 1} more" * (len(left) > 1))
        found.damages.append(JournalDamaged(path, 0, what))


def _read_log(disk: Disk, found: Survey) -> None:
    assert found.generation is not None
    read = log.read(disk, found.folder, found.generation)
    found.notes += read.notes
    found.uneven = read.uneven
    if read.damage is not None:
        found.damages.append(read.damage)
    records = read.records
    if not records:
        return
    if records[0].get("format") != FORMAT:
        raise other_format(found.folder, records[0].get("format", 0))
    found.begin, found.records = records[0], records[1:]
    found.payloads = read.payloads[1:]


def _read_parts(disk: Disk, found: Survey, staged: list[str]) -> None:
    """Checks every byte of every part, one part at a time."""
    named = {name: seal for r in found.records for _, name, _, seal in r.get("parts", ())}
    for name, seal in named.items():
        try:
            found.parts[name] = _part(disk, found.folder, name, seal)
        except JournalDamaged as error:
            found.damages.append(error)
    for name in staged:
        if name.endswith(".part") and name not in named:
            try:
                found.waiting[name] = _part(disk, found.folder, name, None)
            except JournalDamaged as error:
                found.spoilt[name] = error


def _part(disk: Disk, folder: Path, name: str, seal: str | None) -> Sealed:
    """Returns a part without its rows."""
    part = read_sealed(disk, folder / STAGED / name, "part", seal)
    return Sealed(part.meta, memoryview(b""), part.seal, part.size)
