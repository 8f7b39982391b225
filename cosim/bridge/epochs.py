"""Which epochs are in, and which parts wait for theirs: the book of a session's writers.

A writer's epochs are 0, 1, 2 … A stream has one writer: from two, nobody could tell a repetition
from more of the same.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cosim.bridge import protocol as p
from cosim.bridge.errors import BridgeError
from cosim.bridge.journal import Journal, Record

_STAGE = b"seustream.stage"


@dataclass(slots=True)
class Writer:
    """The last epoch that was committed, its rows, and the streams it feeds."""

    epoch: int = -1
    rows: int = 0
    streams: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Kept:
    """A staged part on disk."""

    stage: p.Stage
    rows: int
    highest: int | None
    path: Path


class Epochs:
    """Not thread-safe: the session's lock is held by whoever calls."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.writers: dict[str, Writer] = {}
        self.staged: dict[str, Kept] = {}

    def last(self, writer: str) -> int:
        return self.writers[writer].epoch if writer in self.writers else -1

    # --- parts ----------------------------------------------------------------

    def keep(self, stage: p.Stage, rows: int, highest: int | None, partial: Path) -> p.Staged:
        """Takes a part that is written completely under a temporary name. One of an epoch that
        is in already is a repetition, and goes."""
        self.check_writer(stage.writer, stage.stream)
        if stage.epoch <= self.last(stage.writer):
            partial.unlink()
        else:
            path = self.journal.keep(partial, file_name(stage))
            self.staged[stage.staging] = Kept(stage, rows, highest, path)
        return p.Staged(stage.staging, rows, highest)

    def discard(self, writer: str, first: int, last: int) -> int:
        """Forgets what is staged of these epochs; how many parts."""
        over = [
            staging
            for staging, kept in self.staged.items()
            if kept.stage.writer == writer and first <= kept.stage.epoch <= last
        ]
        for staging in over:
            self.journal.forget(self.staged.pop(staging).path.name)
        return len(over)

    def sweep(self, wanted: set[str]) -> None:
        """Deletes files that are neither wanted nor staged."""
        wanted = wanted | {kept.path.name for kept in self.staged.values()}
        for path in self.journal.staged.glob("*.arrow"):
            if path.name not in wanted:
                path.unlink(missing_ok=True)

    # --- epochs ---------------------------------------------------------------

    def check_writer(self, writer: str, stream: str) -> None:
        for name, one in self.writers.items():
            if name != writer and stream in one.streams:
                raise BridgeError(
                    "conflict",
                    f"stream {stream} is fed by writer {name}, up to epoch {one.epoch}",
                    "go on from that writer's checkpoint, or reset the session",
                )

    def is_in(self, commit: p.Commit) -> bool:
        """Whether an epoch was committed before; raises for one that does not follow, or is
        not what it was."""
        writer = self.writers.get(commit.writer, Writer())
        rows = sum(part.rows for part in commit.parts)
        if commit.epoch == writer.epoch and rows != writer.rows:
            raise BridgeError(
                "conflict",
                f"epoch {commit.epoch} of writer {commit.writer} was committed with"
                f" {writer.rows:,} rows, now has {rows:,}",
                "a source must give the same rows for the same epoch",
            )
        if commit.epoch > writer.epoch + 1:
            raise BridgeError(
                "gap",
                f"epoch {commit.epoch} of writer {commit.writer}, but {writer.epoch + 1} is next",
                "does the checkpoint belong to this session? a bridge without --journal forgets",
            )
        return commit.epoch <= writer.epoch

    def parts(self, commit: p.Commit) -> list[Kept]:
        """The staged parts of an epoch, in the order of their partitions."""
        found = []
        for part in commit.parts:
            kept = self.staged.get(part.staging)
            if kept is None or (kept.stage.writer, kept.stage.epoch) != (
                commit.writer,
                commit.epoch,
            ):
                message = f"nothing is staged as {part.staging:.60} for epoch {commit.epoch}"
                raise BridgeError("unknown", message, "stage the epoch again")
            if kept.rows != part.rows:
                message = f"{part.staging:.60} has {kept.rows:,} rows, not {part.rows:,}"
                raise BridgeError("conflict", message)
            found.append(kept)
        if len({part.staging for part in commit.parts}) < len(found):
            raise BridgeError("conflict", f"epoch {commit.epoch} names a part twice")
        return sorted(found, key=lambda kept: (kept.stage.stream, kept.stage.partition))

    def take(self, record: Record) -> None:
        """An epoch is in."""
        writer = self.writers.setdefault(record["writer"], Writer())
        writer.epoch, writer.rows = record["epoch"], record["rows"]
        writer.streams.update(record["streams"])
        for _, _, staging in record["parts"]:
            self.staged.pop(staging, None)
        self.discard(record["writer"], 0, record["epoch"])

    # --- restarts -------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        return {
            name: [one.epoch, one.rows, sorted(one.streams)] for name, one in self.writers.items()
        }

    def restore(self, state: dict[str, Any]) -> None:
        for name, (epoch, rows, streams) in state.items():
            self.writers[name] = Writer(epoch, rows, set(streams))

    def recover(self, named: set[str]) -> None:
        """Finds the parts that were staged before a restart; `named` belong to the journal."""
        for path in list(self.journal.staged.glob("*.arrow")):
            if path.name in named:
                continue
            kept = _found(path)
            if kept is None or kept.stage.epoch <= self.last(kept.stage.writer):
                path.unlink()
            else:
                self.staged[kept.stage.staging] = kept


def file_name(stage: p.Stage) -> str:
    """Where a part is kept; strangers name it, so the name is a digest."""
    return hashlib.sha256(p.write(stage)).hexdigest()[:40] + ".arrow"


def marked(schema: pa.Schema, stage: p.Stage) -> pa.Schema:
    """A part's schema that says whose part it is."""
    return schema.with_metadata({_STAGE: json.dumps(dataclasses.asdict(stage))})


def rows_of(path: Path) -> pa.Table:
    """A part's rows."""
    with pa.memory_map(str(path)) as source:
        table: pa.Table = pa.ipc.open_file(source).read_all()
    return table.replace_schema_metadata(None)


def _found(path: Path) -> Kept | None:
    """A part as it was staged; None for a file that is none."""
    try:
        with pa.memory_map(str(path)) as source:
            table = pa.ipc.open_file(source).read_all()
        stage = p.read(p.Stage, table.schema.metadata[_STAGE])
    except (pa.ArrowInvalid, BridgeError, KeyError, TypeError, OSError):
        return None
    highest = pc.max(table.column("ts")).as_py() if table.num_rows else None
    return Kept(stage, table.num_rows, highest, path)
