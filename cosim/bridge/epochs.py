"""The committed epochs, and the parts that wait for theirs: the records of a session's writers.

A writer's epochs are 0, 1, 2 … A stream has one writer: with two, a repetition could not be
distinguished from more of the same. A committed epoch is known by its content, so that the same
number with other rows is not taken for a repetition.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.content import Content, content_of, epoch_content
from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.bridge.journal import Journal
from seustream.cosim.bridge.log import Record
from seustream.cosim.bridge.sealed import Sealed, digest
from seustream.engine.stream.merge import timestamps

REMEMBERED = 1000
"""Epochs of a writer whose content is remembered. Spark repeats the last one; a job that resumes
from a restored checkpoint may repeat more."""

ATTEMPTS = 8
"""Attempts of an epoch's partition that are kept until one is committed."""


@dataclass(frozen=True, slots=True)
class Past:
    """A committed epoch: its rows, its content, and the names in its commit."""

    rows: int
    content: str
    named: str


@dataclass(slots=True)
class EpochWriter:
    """The last committed epoch, the streams that the writer feeds, and its last epochs. For epochs
    committed again, with other parts of the same content, also the names in those commits."""

    epoch: int = -1
    streams: set[str] = field(default_factory=set)
    past: dict[int, Past] = field(default_factory=dict)
    again: dict[int, deque[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Kept:
    """A staged part on disk: its stage, its content, its file, seal and bytes, the number of rows
    left out because they had no time, and its columns, which older releases did not keep."""

    stage: p.Stage
    content: Content
    highest: int | None
    name: str
    seal: str
    size: int
    timeless: int = 0
    columns: str | None = None

    @property
    def rows(self) -> int:
        return self.content.rows


Attempt = tuple[str, int, str]
"""A writer, its epoch, and the staging identifier: what a commit says of a part."""


def attempt_of(stage: p.Stage) -> Attempt:
    return stage.writer, stage.epoch, stage.staging


class Epochs:
    """Not thread-safe: the caller holds the session's lock."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.writers: dict[str, EpochWriter] = {}
        self.staged: dict[Attempt, Kept] = {}

    def last(self, writer: str) -> int:
        return self.writers[writer].epoch if writer in self.writers else -1

    # --- parts ----------------------------------------------------------------

    def keep(self, part: PartWriter) -> p.Staged:
        """Takes a part that is written completely under a temporary name, in place of one that was
        staged under the same identifier. A part of a committed epoch is a repetition, and kept for
        comparison."""
        stage = part.stage
        self.check_writer(stage.writer, stage.stream)
        before = self.staged.get(attempt_of(stage))
        self.staged[attempt_of(stage)] = part.end()
        if before is not None:
            self.journal.forget(before.name)
        self._give_up_attempts(stage)
        return p.Staged(stage.staging, part.content.rows, part.highest)

    def _give_up_attempts(self, stage: p.Stage) -> None:
        """Removes the oldest of too many attempts of a partition: a writer that has to wait stages
        its rows again each time."""
        same = [
            attempt
            for attempt, kept in self.staged.items()
            if dataclasses.replace(kept.stage, staging=stage.staging) == stage
        ]
        for attempt in same[:-ATTEMPTS]:
            self.journal.forget(self.staged.pop(attempt).name)

    def discard(self, writer: str, first: int, last: int) -> int:
        """Forgets the staged parts of these epochs; returns their number."""
        over = [
            attempt
            for attempt in self.staged
            if attempt[0] == writer and first <= attempt[1] <= last
        ]
        for attempt in over:
            self.journal.forget(self.staged[attempt].name)
            del self.staged[attempt]
        return len(over)

    def sweep(self, wanted: set[str]) -> None:
        """Removes parts that are neither wanted nor staged."""
        self.journal.sweep(wanted | {kept.name for kept in self.staged.values()})

    # --- epochs ---------------------------------------------------------------

    def check_writer(self, writer: str, stream: str) -> None:
        for name, one in self.writers.items():
            if name != writer and stream in one.streams:
                raise BridgeError(
                    "conflict",
                    f"stream {stream} is fed by writer {name}, up to epoch {one.epoch}",
                    "go on from that writer's checkpoint, or reset the session",
                )

    def leave(self, streams: set[str]) -> None:
        """Frees streams that are gone from their writers."""
        for one in self.writers.values():
            one.streams -= streams

    def is_in(self, commit: p.Commit) -> bool:
        """Returns whether an epoch was committed before; raises for one that is out of sequence, or
        differs from the committed one."""
        writer = self.writers.get(commit.writer, EpochWriter())
        if commit.epoch > writer.epoch + 1:
            raise BridgeError(
                "gap",
                f"epoch {commit.epoch} of writer {commit.writer}, but {writer.epoch + 1} is next",
                "does the checkpoint belong to this session? a bridge without --journal forgets",
            )
        if commit.epoch == writer.epoch + 1:
            return False
        what = f"epoch {commit.epoch} of writer {commit.writer}"
        past = writer.past.get(commit.epoch)
        if past is None:
            raise BridgeError(
                "conflict",
                f"{what} is in since long, and what was in it is not known any more",
                f"{writer.epoch + 1} is next; the last {REMEMBERED:,} can be repeated",
            )
        rows = sum(part.rows for part in commit.parts)
        if rows != past.rows:
            said = f"was committed with {past.rows:,} rows, now has {rows:,}"
        elif self._is_known(commit, writer):
            return True
        elif _content(self.parts(commit)) == past.content:
            # The parts are removed. If the answer is lost, this commit is repeated and can no
            # longer be compared.
            writer.again.setdefault(commit.epoch, deque(maxlen=ATTEMPTS)).append(_named(commit))
            return True
        else:
            said = f"was committed with other rows, as many as now: {rows:,}"
        hint = "a source must give the same rows for the same epoch"
        raise BridgeError("conflict", f"{what} {said}", hint)

    def _is_known(self, commit: p.Commit, writer: EpochWriter) -> bool:
        """Returns whether this very commit was answered before and its parts are gone. While they
        exist they are compared, since names alone prove nothing."""
        if commit.parts and all(one in self.staged for one in _attempts(commit)):
            return False
        past = writer.past[commit.epoch].named
        return _named(commit) in (past, *writer.again.get(commit.epoch, ()))

    def parts(self, commit: p.Commit) -> list[Kept]:
        """Returns the staged parts of an epoch, in the order of their partitions."""
        found: list[Kept] = []
        for part, attempt in zip(commit.parts, _attempts(commit), strict=True):
            kept = self.staged.get(attempt)
            if kept is None:
                message = f"nothing is staged as {part.staging:.60} for epoch {commit.epoch}"
                raise BridgeError("unknown", message, "stage the epoch again")
            if kept.rows != part.rows:
                message = f"{part.staging:.60} has {kept.rows:,} rows, not {part.rows:,}"
                raise BridgeError("conflict", message)
            found.append(kept)
        if len({part.staging for part in commit.parts}) < len(found):
            raise BridgeError("conflict", f"epoch {commit.epoch} names a part twice")
        found.sort(key=lambda kept: (kept.stage.stream, kept.stage.partition))
        for one, other in itertools.pairwise(found):
            if (one.stage.stream, one.stage.partition) == (
                other.stage.stream,
                other.stage.partition,
            ):
                raise BridgeError(
                    "conflict",
                    f"epoch {commit.epoch} names two attempts of partition {one.stage.partition}"
                    f" of stream {one.stage.stream}: {one.stage.staging:.60},"
                    f" {other.stage.staging:.60}",
                    "a commit names one of them",
                )
        return found

    def record(self, commit: p.Commit, parts: list[Kept], streams: set[str]) -> Record:
        """Returns the journal's record of an epoch."""
        timeless = Counter[str]()
        for part in parts:
            timeless[part.stage.stream] += part.timeless
        return {
            "kind": "epoch",
            "writer": commit.writer,
            "epoch": commit.epoch,
            "rows": sum(part.rows for part in parts),
            "bytes": sum(part.size for part in parts),
            "content": _content(parts),
            "named": _named(commit),
            "streams": sorted(streams),
            "seen": commit.seen,
            "timeless": {name: count for name, count in timeless.items() if count},
            "parts": [[k.stage.stream, k.name, k.stage.staging, k.seal] for k in parts],
        }

    def rows(self, record: Record, stream: str) -> list[pa.Table]:
        """Returns the parts of a committed epoch, as they were staged."""
        return [
            rows_of(self.journal.read_part(name, seal))
            for of, name, _, seal in record["parts"]
            if of == stream
        ]

    def take(self, record: Record) -> None:
        """Marks an epoch as committed."""
        writer = self.writers.setdefault(record["writer"], EpochWriter())
        writer.epoch = record["epoch"]
        writer.streams.update(record["streams"])
        writer.past[writer.epoch] = Past(record["rows"], record["content"], record["named"])
        for known in (writer.past, writer.again):
            known.pop(writer.epoch - REMEMBERED, None)
        for _, _, staging, _ in record["parts"]:
            self.staged.pop((record["writer"], record["epoch"], staging), None)
        self.discard(record["writer"], 0, record["epoch"])

    # --- restarts -------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        return {
            name: {
                "epoch": one.epoch,
                "streams": sorted(one.streams),
                "past": [[epoch, *dataclasses.astuple(past)] for epoch, past in one.past.items()],
            }
            for name, one in self.writers.items()
        }

    def restore(self, state: dict[str, Any]) -> None:
        for name, one in state.items():
            past = {epoch: Past(*rest) for epoch, *rest in one["past"]}
            self.writers[name] = EpochWriter(one["epoch"], set(one["streams"]), past)

    def recover(self) -> None:
        """Recovers the parts that were staged before a restart and belong to no epoch yet."""
        for name, sealed in self.journal.found.items():
            kept = _kept(name, sealed)
            self.staged[attempt_of(kept.stage)] = kept


class PartWriter:
    """Writes the rows of a part to disk; as a context manager it removes a part that was not ended."""

    def __init__(self, journal: Journal, stage: p.Stage, schema: pa.Schema) -> None:
        self.journal, self.stage = journal, stage
        self.content, self.timeless, self.columns = Content(), 0, str(schema)
        self.highest: int | None = None
        self._partial, self._writer = journal.begin_part()
        with self.journal.staging():
            self._rows = pa.ipc.new_stream(self._writer, schema)

    @property
    def bytes(self) -> int:
        return self._writer.length

    def write(self, rows: pa.Table, came: int | None = None) -> None:
        """Takes the rows that remain of those that came: the others had no time."""
        self.timeless += 0 if came is None else came - rows.num_rows
        self.content += content_of(rows)
        if rows.num_rows:
            top = int(timestamps(rows).max())
            self.highest = top if self.highest is None else max(self.highest, top)
        with self.journal.staging():
            self._rows.write_table(rows)

    def end(self) -> Kept:
        """Ends the part: all of it is on disk, under its name."""
        with self.journal.staging():
            self._rows.close()
        meta = _meta(self.stage, self.content, self.highest)
        meta |= {"timeless": self.timeless, "columns": self.columns}
        # A file of the same stage may be that of a committed epoch, which has to stay.
        names = (file_name(self.stage, number) for number in itertools.count())
        name = next(name for name in names if not self.journal.has(name))
        sealed = self.journal.end_part(self._partial, self._writer, name, meta)
        return _kept(name, sealed)

    def __enter__(self) -> PartWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.journal.drop_part(self._partial, self._writer)


def file_name(stage: p.Stage, number: int) -> str:
    """Returns the file name of a part: a digest, since its names are untrusted. `number` counts the
    files of one stage."""
    what = p.write(stage) + (f" {number}".encode() if number else b"")
    return hashlib.sha256(what).hexdigest()[:40] + ".part"


def rows_of(part: Sealed) -> pa.Table:
    """Returns a part's rows."""
    table: pa.Table = pa.ipc.open_stream(pa.py_buffer(part.payload)).read_all()
    return table


def _meta(stage: p.Stage, content: Content, highest: int | None) -> dict[str, Any]:
    return {"stage": dataclasses.asdict(stage), "content": str(content), "highest": highest}


def _kept(name: str, part: Sealed) -> Kept:
    meta = part.meta
    stage, content = p.Stage(**meta["stage"]), Content.parse(meta["content"])
    rest = meta.get("timeless", 0), meta.get("columns")
    return Kept(stage, content, meta["highest"], name, part.seal, part.size, *rest)


def _content(parts: list[Kept]) -> str:
    streams: dict[str, Content] = {}
    for part in parts:
        name = part.stage.stream
        streams[name] = streams.get(name, Content()) + part.content
    return epoch_content(streams)


def _attempts(commit: p.Commit) -> list[Attempt]:
    return [(commit.writer, commit.epoch, part.staging) for part in commit.parts]


def _named(commit: p.Commit) -> str:
    """Returns a digest of the names in a commit: the same for the same commit."""
    return digest(json.dumps(sorted((part.staging, part.rows) for part in commit.parts)).encode())
