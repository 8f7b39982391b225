"""The journal: everything that the bridge has accepted, on disk before it is acknowledged.

A record counts once it is in both copies of the log. After a failed write, the state of the disk
behind the last counting record is unknown, so nothing more is written there. The next writer first
begins a new generation: new files with everything that counts. It continues only once they are on
disk. Until that succeeds the journal refuses records, and gives the reason.

`seustream.cosim.bridge.survey` describes the content of the folder. Only files that this journal
has created are ever removed.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from seustream.cosim.bridge import log
from seustream.cosim.bridge.disk import Disk, File, RealDisk, remove_quietly, write_whole
from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.bridge.journal_errors import JournalHeld, JournalRefused
from seustream.cosim.bridge.log import Record
from seustream.cosim.bridge.mark import FORMAT, MARK, MOST_BYTES, head, line
from seustream.cosim.bridge.sealed import Sealed, SealedWriter, read_sealed
from seustream.cosim.bridge.survey import LOCK, STAGED, Survey, check_owned, survey
from seustream.version import UNKNOWN, VERSION

_STOP_FIRST = (
    "stop a bridge of that release on it once its readers have the results, which leaves a snapshot;"
    " or take out what `seustream journal export` gives"
)


class Journal:
    """The records of one session since its last snapshot, and its staged parts. `notes` lists the
    repairs made when it was opened."""

    def __init__(self, folder: Path, disk: Disk | None = None) -> None:
        self.disk: Disk = RealDisk() if disk is None else disk
        self.folder, self.staged = folder, folder / STAGED
        self.failure: str | None = None
        self._closed, self._writing = False, 0
        self.notes: list[str] = []
        self._numbers = itertools.count()
        self._staging_failure: str | None = None
        check_owned(self.disk, folder)
        self.disk.make(self.staged)
        try:
            self._unlock = self.disk.lock(folder / LOCK)
        except BlockingIOError:
            raise JournalHeld(f"{folder} is the journal of a bridge that is running") from None
        self._files: list[File] = []
        try:
            self._open(survey(self.disk, folder))
        except BaseException:
            self._close_files()
            self._unlock()
            raise

    def _open(self, found: Survey) -> None:
        if found.damages:
            raise found.damages[0]
        assert found.mark is not None
        # A damaged or missing mark is written once the log that it names is.
        self._marked = 0 if found.mark.damage is not None else found.mark.size
        self._named = found.mark.generation
        # An existing name may be one whose sync failed; later steps rely on all of them.
        with storage():
            self.disk.sync(self.folder)
            self.disk.sync(self.staged)
        self._pending = b""
        self._highest = -1 if found.generation is None else found.generation
        self._generation = self._highest
        self._begin = found.begin or _beginning(None, None, 0)
        before = self._begin.get("release")
        if before not in (None, UNKNOWN, VERSION) and VERSION != UNKNOWN:
            self._check_records(found.records)
        self._begin = {**self._begin, "release": VERSION}
        self._payloads, self._tail = found.payloads, found.records
        self.found = found.waiting
        self.size = sum(len(log.framed(0, 0, one)) for one in found.payloads)
        self.notes += found.notes
        if found.begin is None:
            self.disk.sync(self.folder.parent)
        if found.begin is None or found.uneven or found.notes or before != VERSION:
            self._turn(self._begin, self._payloads)
        else:
            self._reopen()
            # The process that closed a copy may not have synced it: a record behind its end would
            # count.
            with storage():
                for file in self._files:
                    file.sync()
        with storage():
            if not self._marked:
                self._write_mark()
            elif self._named != self._generation:
                self._mark()
        self._remove_old()
        self._remove_partials()
        with storage():
            self._parts = set(self.disk.names(self.staged))
        for name, damage in found.spoilt.items():
            self.notes.append(f"{damage}; it belonged to no epoch, and is removed")
            self._remove_part(name)

    def _check_records(self, records: list[Record]) -> None:
        """Refuses records of another release. Their results come when they are processed again, and
        this release may give others in place of those that were read."""
        if any(record["kind"] != "trim" for record in records):
            said = (
                f"{self.folder} has records of release {self._begin['release']} behind its snapshot"
            )
            raise JournalRefused(f"{said}, this is release {VERSION}", _STOP_FIRST)

    def _remove_partials(self) -> None:
        """Removes files that were begun and will not be completed."""
        with contextlib.suppress(OSError):
            for folder in (self.folder, self.staged):
                for name in self.disk.names(folder):
                    if re.fullmatch(r"(journal|log-\d+\.[ab]|snapshot-\d+|\d+)\.partial", name):
                        remove_quietly(self.disk, folder / name)

    # --- what there is --------------------------------------------------------

    @property
    def load(self) -> dict[str, Any] | None:
        """Returns the query set of the session when this generation began; None without a session."""
        load: dict[str, Any] | None = self._begin["load"]
        return load

    @property
    def past(self) -> int:
        """The highest run of any query of the sessions before this one."""
        past: int = self._begin.get("past", 0)
        return past

    @property
    def snapshot(self) -> Sealed | None:
        """Returns the state when this generation began."""
        if self._begin["snapshot"] is None:
            return None
        name, seal = self._begin["snapshot"]
        return read_sealed(self.disk, self.folder / name, "snapshot", seal)

    def records(self) -> list[Record]:
        """Returns the records since the last snapshot that were there when this journal was opened."""
        tail, self._tail = self._tail, []
        return tail

    # --- records --------------------------------------------------------------

    def append(self, record: Record, sync: bool = True) -> None:
        """Writes a record to disk. Without `sync` it may be lost if the machine loses power, but
        not if the process is killed. Raises `BridgeError` (storage); the record does not count
        then, although it may after a restart."""
        self.check()
        payload = log.encode(record)
        line = log.framed(self._generation, 1 + len(self._payloads), payload)
        with self._failing():
            self._files[0].write(line)
            self._pending += line
            if sync:
                self._settle()
        self._payloads.append(payload)
        self.size += len(line)

    def settle(self) -> None:
        """Writes to disk what waits for the sync of a later record."""
        if self._pending:
            self.check()
            with self._failing():
                self._settle()

    def _settle(self) -> None:
        first, second = self._files
        first.sync()
        second.write(self._pending)
        second.sync()
        self._pending = b""

    def begin(self, load: dict[str, Any] | None, past: int = 0) -> None:
        """Begins a session, or none, and forgets everything before, except the highest run of any
        query."""
        self._turn(_beginning(load, None, max(past, self.past)), [])
        self._tail, self.found = [], {}
        self.sweep(set())

    def check(self) -> None:
        """Ensures that the journal can be written; raises `BridgeError` (storage)."""
        if self.failure is not None:
            self._turn(self._begin, self._payloads)

    # --- parts ----------------------------------------------------------------

    def begin_part(self) -> tuple[Path, SealedWriter]:
        """Creates a file for a part, under a temporary name."""
        partial = self.staged / f"{next(self._numbers)}.partial"
        with self.staging():
            return partial, SealedWriter(self.disk.open(partial, fresh=True))

    def end_part(
        self, partial: Path, writer: SealedWriter, name: str, meta: dict[str, Any]
    ) -> Sealed:
        """Completes a part on disk, under a name that no other part has."""
        self._parts.add(name)
        with self.staging():
            seal = writer.seal("part", meta)
            self.disk.rename(partial, self.staged / name)
            self.disk.sync(self.staged)
        self._staging_failure = None
        return Sealed(meta, memoryview(b""), seal, writer.size)

    @contextlib.contextmanager
    def staging(self) -> Iterator[None]:
        """Turns a disk failure while a part is written into the error that clients get; `trouble` has
        it until a part can be written again."""
        try:
            with storage():
                yield
        except BridgeError as error:
            self._staging_failure = str(error)
            raise

    @property
    def trouble(self) -> str | None:
        """The reason why records or parts cannot be written, if they could not be last."""
        return self.failure or self._staging_failure

    def has(self, name: str) -> bool:
        """Returns whether there is a part of this name."""
        return name in self._parts

    def drop_part(self, partial: Path, writer: SealedWriter) -> None:
        """Removes a part that did not end; does nothing for one that did."""
        with contextlib.suppress(OSError):
            writer.close()
        remove_quietly(self.disk, partial)

    def read_part(self, name: str, seal: str) -> Sealed:
        """Reads a part; raises `JournalDamaged` if it is not the one that was staged."""
        return read_sealed(self.disk, self.staged / name, "part", seal)

    def forget(self, name: str) -> None:
        """Removes a part. Not after a failed write: the failed record may exist after a restart,
        and name the part."""
        self.check()
        self._remove_part(name)

    def _remove_part(self, name: str) -> None:
        remove_quietly(self.disk, self.staged / name)
        self._parts.discard(name)

    def sweep(self, wanted: set[str]) -> None:
        """Removes parts that are not wanted; those that cannot be removed, next time."""
        with contextlib.suppress(OSError):
            for name in self.disk.names(self.staged):
                if name not in wanted and re.fullmatch(r"[0-9a-f]{40}\.part", name):
                    self._remove_part(name)

    # --- snapshots ------------------------------------------------------------

    def begin_snapshot(self) -> SealedWriter:
        """Creates a file to write the state into."""
        with storage():
            return SealedWriter(self.disk.open(self._snapshot_partial, fresh=True))

    def end_snapshot(
        self,
        writer: SealedWriter,
        meta: dict[str, Any],
        load: dict[str, Any],
        later: list[Record],
    ) -> None:
        """Completes the snapshot; `later` are the records that it does not cover."""
        partial = self._snapshot_partial
        path = partial.with_suffix("")
        with storage():
            seal = writer.seal("snapshot", {"generation": self._highest + 1, **meta})
            self.disk.rename(partial, path)
            # Before the log that names it, since names reach the disk in any order.
            self.disk.sync(self.folder)
        begin = _beginning(load, (path.name, seal), self.past)
        self._turn(begin, [log.encode(record) for record in later])

    def drop_snapshot(self, writer: SealedWriter) -> None:
        """Removes a snapshot that was begun."""
        self.drop_part(self._snapshot_partial, writer)

    @property
    def _snapshot_partial(self) -> Path:
        return self.folder / f"snapshot-{self._highest + 1}.partial"

    def adopt(self, begin: Record, records: list[Record], files: dict[Path, Path]) -> None:
        """Takes over another journal: its beginning and some of its records, with copies of the
        files that they name."""
        with storage():
            for path, of in files.items():
                write_whole(self.disk, path, self.disk.read(of))
            self.disk.sync(self.staged)
            self.disk.sync(self.folder)
        self._turn(begin, [log.encode(record) for record in records])

    # --- generations ----------------------------------------------------------

    def _turn(self, begin: Record, payloads: list[bytes]) -> None:
        """Begins a generation with these records, and removes the files before it. A number is
        never used twice, since a failed turn may leave files."""
        self._highest += 1
        lines = [log.framed(self._highest, 0, log.encode(begin))]
        lines += [log.framed(self._highest, 1 + i, one) for i, one in enumerate(payloads)]
        data = b"".join(lines)
        with self._failing():
            for copy in log.COPIES:
                write_whole(self.disk, log.path_of(self.folder, self._highest, copy), data)
            self.disk.sync(self.folder)
            if self._marked:
                self._mark()
            before, self._generation = self._generation, self._highest
            try:
                self._reopen()
            except OSError:
                self._generation = before
                raise
        self._begin, self._payloads, self._pending = begin, payloads, b""
        self.size, self.failure = len(data) - len(lines[0]), None
        self._remove_old()

    def _mark(self) -> None:
        """Records this generation in another file as well, since a disk may forget all names of a
        folder."""
        said = line(self._highest)
        with contextlib.closing(self.disk.open(self.folder / MARK, fresh=False)) as file:
            file.write(said)
            file.sync()
        self._named = self._highest
        self._marked += len(said)
        if self._marked > MOST_BYTES:
            self._write_mark()

    def _write_mark(self) -> None:
        data = head() + line(self._highest)
        write_whole(self.disk, self.folder / MARK, data)
        self.disk.sync(self.folder)
        self._marked = len(data)

    def _remove_old(self) -> None:
        """Removes the files that this generation has replaced."""
        current = {log.path_of(self.folder, self._generation, copy).name for copy in log.COPIES}
        if self._begin["snapshot"] is not None:
            current.add(self._begin["snapshot"][0])
        with contextlib.suppress(OSError):
            for name in self.disk.names(self.folder):
                if name not in current and re.fullmatch(r"log-\d+\.[ab]|snapshot-\d+", name):
                    remove_quietly(self.disk, self.folder / name)

    def _reopen(self) -> None:
        paths = [log.path_of(self.folder, self._generation, copy) for copy in log.COPIES]
        files: list[File] = []
        try:
            for path in paths:
                files.append(self.disk.open(path, fresh=False))
        except OSError:
            for file in files:
                file.close()
            raise
        self._close_files()
        self._files = files

    @contextlib.contextmanager
    def _failing(self) -> Iterator[None]:
        """After a failure inside, nothing is written except by `check`."""
        self._writing += 1
        try:
            if self._closed:
                raise BridgeError("stopping", "the journal is closed")
            with storage():
                yield
        except BridgeError as error:
            self.failure = str(error)
            raise
        finally:
            self._writing -= 1

    # --- the end --------------------------------------------------------------

    def close(self) -> None:
        """Releases the folder. Idempotent. While a call is still writing, only the end of the
        process releases it; the next process repairs a partial write."""
        if self._closed:
            return
        self._closed = True
        if self._writing:
            return
        if self._pending and self.failure is None:
            with contextlib.suppress(OSError):
                # A loss of power from here on must not tear both copies at the same place.
                self._files[0].sync()
                self._files[1].write(self._pending)
        self._close_files()
        self._remove_partials()
        self._unlock()

    def _close_files(self) -> None:
        for file in self._files:
            with contextlib.suppress(OSError):
                file.close()
        self._files = []


@contextlib.contextmanager
def storage() -> Iterator[None]:
    """Turns a disk failure into the error that clients get."""
    try:
        yield
    except OSError as error:
        raise BridgeError(
            "storage",
            f"the journal cannot be written: {error.strerror or error}",
            "nothing more is taken until it can; what was taken is safe",
        ) from None


def _beginning(load: dict[str, Any] | None, snapshot: tuple[str, str] | None, past: int) -> Record:
    return {
        "kind": "begin",
        "format": FORMAT,
        "release": VERSION,
        "load": load,
        "snapshot": None if snapshot is None else list(snapshot),
        "past": past,
    }
