"""Salvages a damaged journal: inspects it, copies it up to the damage, or exports its rows.

None of this changes the journal. `copy_sound` creates another one, of the records before the first
that cannot be trusted; a session that resumes from it gives the results of those records, at their
offsets.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from seustream.cosim.bridge import snapshot
from seustream.cosim.bridge.disk import Disk
from seustream.cosim.bridge.epochs import rows_of
from seustream.cosim.bridge.journal import Journal
from seustream.cosim.bridge.journal_errors import JournalDamaged, JournalHeld
from seustream.cosim.bridge.log import Record
from seustream.cosim.bridge.sealed import Sealed, read_sealed
from seustream.cosim.bridge.survey import LOCK, STAGED, Survey, survey


@contextlib.contextmanager
def at_rest(disk: Disk, folder: Path) -> Iterator[Survey]:
    """Surveys a journal that no bridge is writing; raises `JournalHeld` if one is."""
    unlock = None
    if LOCK in disk.names(folder):
        try:
            unlock = disk.lock(folder / LOCK)
        except BlockingIOError:
            raise JournalHeld(f"{folder} is the journal of a bridge that is running") from None
    try:
        yield survey(disk, folder)
    finally:
        if unlock is not None:
            unlock()


@dataclass(frozen=True, slots=True)
class Salvaged:
    """The records before the first that cannot be trusted, and the readable ones after it.
    `hopeless` is the reason why there is nothing to resume from."""

    records: list[Record]
    lost: list[Record]
    hopeless: JournalDamaged | None

    @property
    def epochs(self) -> dict[str, int]:
        """Returns the last saved epoch of each writer."""
        return {r["writer"]: r["epoch"] for r in self.records if r["kind"] == "epoch"}


def saved(found: Survey) -> Salvaged:
    """Returns how far a journal can be trusted."""
    for damage in found.damages:
        if found.begin is None or (found.snapshot and damage.path == found.snapshot[0]):
            return Salvaged([], found.records, damage)
    for index, record in enumerate(found.records):
        if any(name not in found.parts for _, name, *_ in record.get("parts", ())):
            return Salvaged(found.records[:index], found.records[index:], None)
    return Salvaged(found.records, [], None)


def copy_sound(disk: Disk, found: Survey, keep: Salvaged, target: Path) -> None:
    """Writes a journal of what is saved to a new folder."""
    assert found.begin is not None
    partial = target.with_name(target.name + ".partial")
    journal = Journal(partial, disk)
    try:
        files = {}
        if found.snapshot is not None:
            files[partial / found.snapshot[0].name] = found.snapshot[0]
        for record in keep.records:
            for _, name, *_ in record.get("parts", ()):
                files[partial / STAGED / name] = found.folder / STAGED / name
        journal.adopt(found.begin, keep.records, files)
    finally:
        journal.close()
    disk.rename(partial, target)
    disk.sync(target.parent)


# --- rows -------------------------------------------------------------------------


@dataclass(slots=True)
class Export:
    """Exports the rows of a journal: tables by folder and name, one at a time, what could not be
    read, and the queries that keep no rows in their windows, but what they made of them."""

    disk: Disk
    found: Survey
    damages: list[JournalDamaged] = field(default_factory=list)
    without_rows: list[str] = field(default_factory=list)

    def tables(self) -> Iterator[tuple[str, str, pa.Table]]:
        """Yields tables. `streams` are the rows accepted since the snapshot, part by part, with
        their writer, epoch and partition and whether the epoch is committed. `windows` are older
        rows that queries can still reach, or that wait. `results` are those that no reader has
        trimmed."""
        yield from self._of_snapshot()
        named = {name: seal for r in self.found.records for _, name, _, seal in r.get("parts", ())}
        folder = self.found.folder / STAGED
        names = list(named) + [n for n in self.disk.names(folder) if n not in named]
        for name in names:
            if not name.endswith(".part"):
                continue
            try:
                part = read_sealed(self.disk, folder / name, "part", named.get(name))
                yield "streams", part.meta["stage"]["stream"], _with_origin(part, name in named)
            except JournalDamaged as error:
                self.damages.append(error)

    def _of_snapshot(self) -> Iterator[tuple[str, str, pa.Table]]:
        if self.found.snapshot is None:
            return
        try:
            state = snapshot.restore(read_sealed(self.disk, self.found.snapshot[0], "snapshot"))
        except JournalDamaged as error:
            self.damages.append(error)
            return
        self.without_rows = state.state.without_rows()
        for name, rows in state.state.rows():
            yield "windows", name, rows
        for name, (_, _, rows) in state.results.items():
            yield "results", name, rows

    @property
    def queries(self) -> str | None:
        """Returns the text of the query set, as far as the log is readable."""
        loads = [r["load"] for r in self.found.records if r["kind"] == "swap"]
        load = loads[-1] if loads else (self.found.begin or {}).get("load")
        if load is None:
            return None
        return str(json.loads(load["manifest"])["source"]["text"])


def _with_origin(part: Sealed, committed: bool) -> pa.Table:
    stage: dict[str, Any] = part.meta["stage"]
    rows = rows_of(part)
    for name in ("writer", "epoch", "partition"):
        rows = rows.append_column(f"journal_{name}", pa.array([stage[name]] * rows.num_rows))
    return rows.append_column("journal_committed", pa.array([committed] * rows.num_rows))
