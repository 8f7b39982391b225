"""A session: one query set on the device, fed by epochs, read by offsets; exactly once.

    stage    rows of an epoch go to disk, part by part
    commit   one record in the journal makes the epoch part of the input; from then on it counts,
             whatever dies. The same epoch again is recognised, one out of order refused
    process  a thread takes the records in order: sorts an epoch's rows by timestamp, pushes them
             into the host driver, appends what is released to the queries' results
    read     by ranges of offsets, as often as one likes, until trimmed

What the thread does depends on the records alone, so a session that is opened again over its
journal gives every result its old offset. When results wait for their readers, the thread waits;
when too much waits for the thread, commits do; and so in the end does the source of the rows.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from compiler.catalogue import Stream
from compiler.errors import CompileError
from compiler.plan.pipeline import Compilation
from compiler.wjasip.manifest import ManifestRefused, compilation_of
from cosim.bridge import protocol as p
from cosim.bridge import snapshot
from cosim.bridge.errors import BridgeError
from cosim.bridge.journal import Journal, Record, write_whole
from cosim.bridge.results import ResultLog
from engine.host.complete import result_schema
from engine.host.driver import HostDriver, stream_schema
from engine.host.errors import HostError
from engine.host.state import resume, state_of
from engine.temporal.merge import timestamps
from hdl.device import Device, LoadRefused, Status


@dataclass(frozen=True, slots=True)
class Limits:
    """What one bridge takes on itself.

    batch_rows     rows of one record batch
    batch_bytes    and its bytes
    epoch_rows     rows of an epoch: they are sorted together, so they are in memory together
    waiting_rows   rows committed and not yet processed, before commits wait
    result_rows    results kept for readers, before processing waits
    patience       seconds a call waits for room before it is told `busy`
    journal_bytes  of inputs, before a snapshot takes their place
    """

    batch_rows: int = 1 << 20
    batch_bytes: int = 256 << 20
    epoch_rows: int = 1 << 24
    waiting_rows: int = 1 << 22
    result_rows: int = 1 << 22
    patience: float = 30.0
    journal_bytes: int = 256 << 20


@dataclass(slots=True)
class Writer:
    """One source of epochs: the last that was committed, with what it was made of."""

    epoch: int = -1
    parts: str = ""
    streams: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Kept:
    """A staged part on disk."""

    stage: p.Stage
    rows: int
    highest: int | None
    path: Path


class Stopping(Exception):
    """The session is closed while its thread waits for room."""


class Session:
    """`load` and `run` as in a `Load`; opens what is in the journal, or begins it."""

    def __init__(self, load: p.Load, device: Device, journal: Journal, limits: Limits) -> None:
        self.load, self.device, self.journal, self.limits = load, device, journal, limits
        self.changed = threading.Condition(threading.RLock())
        self.writers: dict[str, Writer] = {}
        self.staged: dict[str, Kept] = {}
        self.ended: set[str] = set()
        self.records: deque[tuple[int, Record]] = deque()
        self.waiting_rows = 0
        self.applied = journal.base
        self.epochs = 0
        self.replayed = 0
        self.failure: str | None = None
        self.device_status = Status()
        self.cycles: int | None = None
        self.logs: dict[str, ResultLog] = {}
        self._stopping = False
        self._snapshot_wanted = False
        self.driver = self._driver(_compilation(load), load.run)
        self._make_logs()
        self._recover()
        self._thread = threading.Thread(target=self._work, name="session", daemon=True)
        self._thread.start()

    # --- what there is --------------------------------------------------------

    @property
    def compilation(self) -> Compilation:
        return self.driver.compilation

    @property
    def identity(self) -> str:
        """The same for the same queries, run the same way."""
        return identity(self.load)

    def stream(self, name: str) -> Stream:
        for stream in self.driver.streams:
            if stream.name == name:
                return stream
        known = ", ".join(stream.name for stream in self.driver.streams)
        raise BridgeError("unknown", f"there is no stream {name:.60}", f"streams: {known}")

    def log(self, query: str) -> ResultLog:
        if query in self.logs:
            return self.logs[query]
        hint = f"queries: {', '.join(self.logs)}"
        raise BridgeError("unknown", f"there is no query {query:.60}", hint)

    @property
    def retained(self) -> int:
        """Results kept for readers."""
        return sum(len(log) for log in self.logs.values())

    @property
    def drained(self) -> bool:
        """Everything recorded is processed."""
        return not self.records

    def over(self) -> bool:
        """All input has ended, and all of it is processed."""
        return self.drained and self.ended >= {s.name for s in self.driver.streams}

    # --- epochs in ------------------------------------------------------------

    def keep(self, stage: p.Stage, rows: int, highest: int | None, partial: Path) -> p.Staged:
        """Takes a part that is written completely under a temporary name."""
        self.check_writer(stage.writer, stage.stream)
        name = _file_name(stage, rows, highest)
        path = self.journal.keep(partial, name)
        with self.changed:
            self.staged[stage.staging] = Kept(stage, rows, highest, path)
        return p.Staged(stage.staging, rows, highest)

    def check_writer(self, writer: str, stream: str) -> None:
        """A stream has one writer, whose epochs are counted: from two, nobody could tell a
        repetition from more of the same."""
        for name, one in self.writers.items():
            if name != writer and stream in one.streams:
                raise BridgeError(
                    "conflict",
                    f"stream {stream} is fed by writer {name}, up to epoch {one.epoch}",
                    "go on from that writer's checkpoint, or reset the session",
                )

    def commit(self, commit: p.Commit) -> dict[str, object]:
        """Makes an epoch part of the input."""
        digest = _parts_digest(commit)
        with self.changed:
            self._check_running()
            writer = self.writers.get(commit.writer, Writer())
            if commit.epoch <= writer.epoch:
                if commit.epoch == writer.epoch and _rows(commit) != writer.parts:
                    raise BridgeError(
                        "conflict",
                        f"epoch {commit.epoch} of writer {commit.writer} was committed with other"
                        f" rows: {writer.parts}, now {_rows(commit)}",
                        "a source must give the same rows for the same epoch",
                    )
                self._discard(commit.writer, commit.epoch)
                return {"epoch": writer.epoch, "already": True}
            if commit.epoch != writer.epoch + 1:
                raise BridgeError(
                    "gap",
                    f"epoch {commit.epoch} of writer {commit.writer}, but {writer.epoch + 1} is next",
                    "does the checkpoint belong to this session? a bridge without --journal"
                    " forgets when it stops",
                )
            parts = self._parts(commit)
            rows = sum(part.rows for part in parts)
            if rows > self.limits.epoch_rows:
                most = f"an epoch of {rows:,} rows, at most {self.limits.epoch_rows:,}"
                raise BridgeError("too-large", most, "let the source give less at a time")
            self._wait_for_room(rows)
            streams = sorted({part.stage.stream for part in parts} | set(commit.seen))
            record: Record = {
                "kind": "epoch",
                "writer": commit.writer,
                "epoch": commit.epoch,
                "digest": digest,
                "summary": _rows(commit),
                "rows": rows,
                "streams": streams,
                "seen": commit.seen,
                "parts": [[part.stage.stream, part.path.name] for part in parts],
            }
            self._append(record)
            self._discard(commit.writer, commit.epoch)
            return {"epoch": commit.epoch, "already": False}

    def _parts(self, commit: p.Commit) -> list[Kept]:
        """The staged parts of an epoch, in the order of their partitions."""
        found = []
        for part in commit.parts:
            kept = self.staged.get(part.staging)
            if kept is None or (kept.stage.writer, kept.stage.epoch) != (commit.writer, commit.epoch):
                message = f"nothing is staged as {part.staging:.60} for epoch {commit.epoch}"
                raise BridgeError("unknown", message, "stage the epoch again")
            if kept.rows != part.rows:
                message = f"{part.staging:.60} has {kept.rows:,} rows, the commit says {part.rows:,}"
                raise BridgeError("conflict", message)
            found.append(kept)
        if len({part.staging for part in commit.parts}) < len(found):
            raise BridgeError("conflict", f"epoch {commit.epoch} names a part twice")
        for name in {kept.stage.stream for kept in found} | set(commit.seen):
            self.stream(name)
            self.check_writer(commit.writer, name)
            if name in self.ended:
                raise BridgeError("conflict", f"stream {name} has ended")
        return sorted(found, key=lambda kept: (kept.stage.stream, kept.stage.partition))

    def abort(self, abort: p.Abort) -> dict[str, object]:
        with self.changed:
            forgotten = self._discard(abort.writer, abort.epoch, abort.epoch)
            return {"forgotten": forgotten}

    def promise(self, promise: p.Promise) -> dict[str, object]:
        with self.changed:
            self._check_running()
            self.stream(promise.stream)
            kind = {"kind": "promise", "stream": promise.stream, "timestamp": promise.timestamp}
            self._append(kind)
            return {}

    def end(self, end: p.End) -> dict[str, object]:
        with self.changed:
            self._check_running()
            names = end.streams
            if names is None:
                names = tuple(stream.name for stream in self.driver.streams)
            fresh = sorted({self.stream(name).name for name in names} - self.ended)
            if fresh:
                self._append({"kind": "end", "streams": fresh})
            return {"ended": sorted(self.ended)}

    def swap(self, load: p.Load) -> dict[str, object]:
        """Other queries from here on; rows in the windows stay, results go on counting."""
        with self.changed:
            self._check_running()
            if identity(load) == self.identity:
                return {"already": True}
            compilation = _compilation(load)
            self._check_swap(compilation, load)
            self._append({"kind": "swap", "load": asdict(load)})
        self.flush()
        self._check_failed()
        return {"already": False}

    def _check_swap(self, compilation: Compilation, load: p.Load) -> None:
        if load.run != self.load.run:
            raise BridgeError("refused", "a swap changes queries, not how they run")
        if compilation.options.config != self.device.config:
            raise _wrong_config(compilation, self.device)
        old = {stream.name: stream_schema(stream) for stream in self.driver.streams}
        for stream in compilation.streams:
            if stream.name in old and old[stream.name] != stream_schema(stream):
                raise BridgeError("refused", f"stream {stream.name} has other columns now")
        for query in compilation.program.queries:
            log = self.logs.get(query.name)
            if log is not None and log.schema != result_schema(query):
                hint = "give the new query another name"
                raise BridgeError("refused", f"query {query.name} has other columns now", hint)

    # --- results out ----------------------------------------------------------

    def latest(self, latest: p.Latest) -> dict[str, object]:
        """Waits a while for something new."""
        until = time.monotonic() + min(latest.wait_ms / 1000, self.limits.patience)
        with self.changed:
            while True:
                log = self.log(latest.query)
                left = until - time.monotonic()
                if log.end > latest.beyond or self.over() or self.failure or left <= 0:
                    break
                if self._stopping:
                    raise BridgeError("stopping", "the session is closed")
                self.changed.wait(left)
            self._check_failed()
            return {"first": log.first, "end": log.end, "over": self.over()}

    def read(self, read: p.Read) -> pa.Table:
        with self.changed:
            return self.log(read.query).read(read.start, read.end)

    def trim(self, trim: p.Trim) -> dict[str, object]:
        p.check_name("reader", trim.reader or "reader")
        with self.changed:
            log = self.log(trim.query)
            log.trim(trim.reader, trim.offset)
            self.changed.notify_all()
            return {"first": log.first}

    def flush(self) -> None:
        """Waits until everything recorded so far is processed; `busy` if that takes too long."""
        until = time.monotonic() + self.limits.patience
        with self.changed:
            last = self.journal.last
            while self.applied < last and not self.failure and not self._stopping:
                left = until - time.monotonic()
                if left <= 0:
                    raise self._busy("rows wait to be processed")
                self.changed.wait(left)

    # --- the thread -----------------------------------------------------------

    def _work(self) -> None:
        try:
            while True:
                with self.changed:
                    while not self.records and not self._stopping and not self._snapshot_wanted:
                        self.changed.wait()
                    if self._stopping:
                        return
                    if not self.records:
                        self._snapshot()
                        continue
                    number, record = self.records[0]
                self._apply(record)
                with self.changed:
                    self.records.popleft()
                    self.waiting_rows -= record.get("rows", 0)
                    self.applied = number
                    if self._snapshot_due():
                        self._snapshot()
                    self.changed.notify_all()
        except Stopping:
            return
        except Exception as error:
            # Whatever stops the run is what everybody who asks must hear.
            with self.changed:
                hint = getattr(error, "hint", None)
                self.failure = f"{error}{f' ({hint})' if hint else ''}"
                if not isinstance(error, HostError):
                    self.failure = f"{type(error).__name__}: {self.failure}"
                self.changed.notify_all()

    def _apply(self, record: Record) -> None:
        """One record's effect on the driver; depends on nothing else."""
        match record["kind"]:
            case "epoch":
                for stream in record["streams"]:
                    rows = self._rows_of(record, stream)
                    if rows.num_rows:
                        self.driver.push(stream, rows)
                    highest = record["seen"].get(stream)
                    if highest is not None:
                        self.driver.promise(stream, highest - self.load.run.slack)
                self._lag_behind()
            case "promise":
                self.driver.promise(record["stream"], record["timestamp"])
                self._lag_behind()
            case "end":
                for stream in record["streams"]:
                    self.driver.end(stream)
            case "swap":
                self._swap(p.read(p.Load, json.dumps(record["load"]).encode()))
        for query, results in self.driver.advance():
            self._deliver(query, results)
        self._look_at_device()

    def _rows_of(self, record: Record, stream: str) -> pa.Table:
        """An epoch's rows of one stream by timestamp: what is late is late by earlier epochs,
        never by the chance of how Spark cut this one into partitions."""
        parts = [
            _read(self.journal.staged / name) for of, name in record["parts"] if of == stream
        ]
        if not parts:
            return stream_schema(self.stream(stream)).empty_table()
        rows = pa.concat_tables(parts)
        ts = timestamps(rows)
        if np.any(ts[1:] < ts[:-1]):
            rows = rows.take(pa.array(np.argsort(ts, kind="stable")))
        return rows

    def _lag_behind(self) -> None:
        """Streams that lag too far behind the foremost promise what they did not say."""
        if self.load.run.lag is None:
            return
        promises = [q.promise for q in self.driver.merger.queues if q.promise is not None]
        if promises:
            for stream in self.driver.streams:
                self.driver.promise(stream.name, max(promises) - self.load.run.lag)

    def _deliver(self, query: str, results: pa.Table) -> None:
        """Appends results; waits while readers have too many to read."""
        with self.changed:
            while self.retained >= self.limits.result_rows and not self._stopping:
                self.changed.wait()
            if self._stopping:
                raise Stopping
            self.logs[query].append(results)
            self.changed.notify_all()

    def _late(self, stream: str, rows: pa.Table) -> None:
        if self.load.run.late:
            self._deliver(p.LATE + stream, rows)

    def _swap(self, load: p.Load) -> None:
        state = state_of(self.driver)
        driver = self._driver(_compilation(load), load.run)
        resume(driver, state)
        with self.changed:
            self.load, self.driver = load, driver
            self._make_logs()

    def _look_at_device(self) -> None:
        """Counters as of now, for whoever asks; the device itself is this thread's alone."""
        self.device_status = self.device.status()
        self.cycles = getattr(self.device, "cycles", None)

    # --- inside ---------------------------------------------------------------

    def _driver(self, compilation: Compilation, run: p.Run) -> HostDriver:
        if compilation.options.config != self.device.config:
            raise _wrong_config(compilation, self.device)
        try:
            return HostDriver(
                compilation, self.device, run.overflow, run.slack, on_late=self._late
            )
        except (CompileError, LoadRefused, ValueError) as error:
            raise BridgeError("refused", str(error)) from None

    def _make_logs(self) -> None:
        """A log for each query, and for late rows if they are wanted; those there are stay."""
        run = self.load.run
        names = {query.name for query in self.compilation.program.queries}
        if run.keep is not None and (foreign := sorted(set(run.keep) - names)):
            raise BridgeError("refused", f"keep: there is no query {foreign[0]:.60}")
        for query in self.compilation.program.queries:
            kept = run.keep is None or query.name in run.keep
            self.logs.setdefault(query.name, ResultLog(query.name, result_schema(query), kept))
        if run.late:
            for stream in self.driver.streams:
                name = p.LATE + stream.name
                self.logs.setdefault(name, ResultLog(name, stream_schema(stream)))

    def _append(self, record: Record) -> None:
        """Journals a record, then lets it take effect."""
        number = self.journal.append(record)
        self._take(number, record)
        self.changed.notify_all()

    def _take(self, number: int, record: Record) -> None:
        if record["kind"] == "epoch":
            writer = self.writers.setdefault(record["writer"], Writer())
            writer.epoch, writer.parts = record["epoch"], record["summary"]
            writer.streams.update(record["streams"])
            self.waiting_rows += record["rows"]
            self.epochs += 1
            for _, name in record["parts"]:
                self.staged.pop(_staging(name), None)
        elif record["kind"] == "end":
            self.ended.update(record["streams"])
        self.records.append((number, record))

    def _discard(self, writer: str, epoch: int, first: int = 0) -> int:
        """Forgets what is staged of epochs that are over: attempts that lost."""
        over = [
            staging
            for staging, kept in self.staged.items()
            if kept.stage.writer == writer and first <= kept.stage.epoch <= epoch
        ]
        for staging in over:
            self.journal.forget(self.staged.pop(staging).path.name)
        return len(over)

    def _wait_for_room(self, rows: int) -> None:
        until = time.monotonic() + self.limits.patience
        while self.waiting_rows and self.waiting_rows + rows > self.limits.waiting_rows:
            left = until - time.monotonic()
            if left <= 0:
                raise self._busy(f"{self.waiting_rows:,} rows wait to be processed")
            self.changed.wait(left)
            self._check_running()

    def _busy(self, what: str) -> BridgeError:
        if self.retained >= self.limits.result_rows:
            most = max(self.logs.values(), key=len)
            what = f"{len(most):,} results of {most.name} wait for a reader"
        return BridgeError("busy", what, "read and trim results while writing")

    def _check_running(self) -> None:
        if self._stopping:
            raise BridgeError("stopping", "the session is closed")
        self._check_failed()

    def _check_failed(self) -> None:
        if self.failure is not None:
            raise BridgeError("failed", self.failure, "reset the session, or close it")

    # --- disk -----------------------------------------------------------------

    def _snapshot_due(self) -> bool:
        return self._snapshot_wanted or self._journal_size() > self.limits.journal_bytes

    def _journal_size(self) -> int:
        return self.journal.size + self._input_bytes

    def _snapshot(self) -> None:
        """Puts the state in place of the records up to here."""
        number = self.applied
        partial = self.journal.begin_snapshot(number)
        rest = {
            "load": asdict(self.load),
            "ended": sorted(self.ended),
            "epochs": self.epochs,
            "writers": {
                name: [one.epoch, one.parts, sorted(one.streams)]
                for name, one in self.writers.items()
            },
        }
        later = [record for _, record in self.records]
        # Writers are those after the later records; taking these again changes nothing.
        snapshot.save(partial, state_of(self.driver), self.logs, rest)
        self.journal.end_snapshot(number, partial, later)
        self._snapshot_wanted = False
        self._sweep()

    def _sweep(self) -> None:
        """Deletes parts no record needs any more."""
        wanted = {name for _, record in self.records for _, name in record.get("parts", ())}
        wanted |= {kept.path.name for kept in self.staged.values()}
        for path in self.journal.staged.glob("*.arrow"):
            if path.name not in wanted:
                path.unlink(missing_ok=True)

    @property
    def _input_bytes(self) -> int:
        return 0

    def _recover(self) -> None:
        """The state of a session that was open over this journal before."""
        if self.journal.snapshot is not None:
            state, rest = snapshot.restore(self.journal.snapshot, self.logs)
            resume(self.driver, state)
            self.ended = set(rest["ended"])
            self.epochs = rest["epochs"]
            for name, (epoch, parts, streams) in rest["writers"].items():
                self.writers[name] = Writer(epoch, parts, set(streams))
        named = set()
        for number, record in self.journal.records():
            self._take(number, record)
            named.update(name for _, name in record.get("parts", ()))
            self.replayed += 1
        for path in self.journal.staged.glob("*.arrow"):
            if path.name not in named:
                kept = _kept(path)
                if kept is None or self.writers.get(kept.stage.writer, Writer()).epoch >= kept.stage.epoch:
                    path.unlink()
                else:
                    self.staged[kept.stage.staging] = kept
