"""A session: one query set, on devices or in the engine alone, fed by epochs, read by offsets; exactly once.

    stage    rows of an epoch go to disk, part by part
    commit   one record in the journal makes the epoch part of the input; from then on it counts,
             whatever dies. The same epoch again is recognised, one out of order refused
    process  a thread takes the records in order: sorts an epoch's rows by timestamp, pushes them
             into the host driver, appends what is released to the queries' results
    read     by ranges of offsets, repeatedly, until trimmed

The thread's work (`seustream.cosim.bridge.runner`) depends on the records alone, so a session that is
reopened over its journal gives every result its old offset. When results wait for their readers, the
thread waits; when too much waits for the thread, commits do; and this back-pressure finally reaches
the source of the rows.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from seustream.compiler.apas.libraries import Libraries
from seustream.compiler.catalogue import Stream
from seustream.compiler.logical.levels import definitions, reads
from seustream.compiler.pipeline import Compilation
from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge import snapshot
from seustream.cosim.bridge.delivery import Delivery
from seustream.cosim.bridge.epochs import Epochs, PartWriter
from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.bridge.journal import Journal
from seustream.cosim.bridge.journal_errors import JournalDamaged
from seustream.cosim.bridge.limits import Limits
from seustream.cosim.bridge.living import Book
from seustream.cosim.bridge.loading import compile_load, identity, load_of
from seustream.cosim.bridge.log import Record
from seustream.cosim.bridge.reading import Reading
from seustream.cosim.bridge.results import ResultLog
from seustream.cosim.bridge.runner import Runner, check_queries
from seustream.cosim.bridge.saving import Saving
from seustream.cosim.bridge.standing import standing
from seustream.cosim.bridge.stuck import Watch
from seustream.cosim.bridge.world import MACHINE, World
from seustream.engine.analyze import read_units
from seustream.engine.completeness import BEGINNING, complete_from
from seustream.engine.graph import GraphRun
from seustream.engine.lineage import redefined
from seustream.engine.stream.errors import EngineError
from seustream.engine.stream.failures import reason
from seustream.engine.stream.schema import stream_schema
from seustream.hdl.device import Device, Status

_LOOK = 0.5
"""Seconds between polls of the process's memory, of which there is no notification."""


class Stopping(Exception):
    """The session is closed while its thread waits for room."""


class Session:
    """Begins a session with `load`; without it, reopens the one in the journal."""

    def __init__(
        self,
        devices: Sequence[Device],
        journal: Journal,
        limits: Limits,
        load: p.Load | None = None,
        world: World = MACHINE,
        libraries: Libraries | None = None,
    ) -> None:
        self.devices, self.journal, self.limits, self.world = devices, journal, limits, world
        self.libraries = libraries or Libraries()
        self.changed = world.condition()
        self.epochs = Epochs(journal)
        self.book = Book()
        self.delivery = Delivery(limits, self.book)
        self.records: deque[Record] = deque()
        self._came: deque[float] = deque()  # when, by the clock that never goes back
        self.ended: set[str] = set()
        self.active_at: dict[str, float] = {}  # when streams last brought rows or promises
        self.pending: Counter[str] = Counter()  # of streams, the records that wait
        self.followed: dict[str, int] = {}  # what was last promised for idle streams
        self.waiting_rows = self.input_bytes = 0
        self.taken = self.applied = self.replayed = self.committed = 0
        self.failure: str | None = None
        self.device_status: tuple[Status, ...] = ()
        self.cycles = self._cycles()
        self._stopping = self._is_at_rest = self._to_read_units = False
        self.busy_seconds = self._waited = 0.0
        self.reading, self.saving = Reading(self), Saving(self)
        self._lost: dict[str, str] = {}
        self.latest_load = load or self._standing(journal.load)
        sealed = None if load is not None else journal.snapshot
        saved = None if sealed is None else snapshot.restore(sealed)
        rest = {} if saved is None else saved.rest
        self.shed: set[str] = {*rest.get("shed", ())}
        self.broken: set[str] = {*rest.get("broken", ()), *self._lost}
        out = self.shed | self.broken
        self.runner = Runner(devices, self.latest_load, self.epochs.rows, self.libraries, out)
        if load is not None:
            c, since = self.compilation, self.world.today()
            self.book.begin_behind(journal.past)
            self.book.loaded(c.program.names, since, c.source.text)
            self.make_logs()
            journal.begin(asdict(load) | {"since": since})
        else:
            self.saving.recover(saved)
        self._watch = Watch(self.libraries, limits.call_seconds)
        self._task = world.start("session", self._work)

    @staticmethod
    def exists(journal: Journal) -> bool:
        """Returns whether there is a session in the journal."""
        return journal.load is not None

    # --- what there is --------------------------------------------------------

    @property
    def load(self) -> p.Load:
        return self.runner.load

    @property
    def run(self) -> GraphRun:
        return self.runner.run

    @property
    def compilation(self) -> Compilation:
        return self.runner.loaded

    @property
    def logs(self) -> dict[str, ResultLog]:
        return self.delivery.logs

    @property
    def identity(self) -> str:
        return identity(self.load)

    def stream(self, name: str) -> Stream:
        """Returns a base stream as it will be once all records are processed."""
        streams = self.compiled(self.latest_load).program.base
        for stream in streams:
            if stream.name == name:
                return stream
        known = ", ".join(stream.name for stream in streams)
        raise BridgeError("unknown", f"there is no stream {name:.60}", f"streams: {known}")

    def _base(self) -> set[str]:
        """Returns the names of the base streams as they will be once all records are processed."""
        return {*_base_of(self.compiled(self.latest_load))}

    def compiled(self, load: p.Load) -> Compilation:
        """Compiles a load for the devices and libraries that are here."""
        return compile_load(load, len(self.devices), self.libraries)

    @property
    def swapped_out(self) -> dict[str, ResultLog]:
        """Returns the results of queries that have ended."""
        return self.delivery.ended(self.runner.schemas)

    @property
    def over(self) -> bool:
        """Returns whether all input has ended and all of it is processed."""
        return not self.records and self.ended >= {stream.name for stream in self.run.streams}

    # --- rows in --------------------------------------------------------------

    def keep(self, part: PartWriter) -> p.Staged:
        """Takes a part whose rows are complete."""
        with self.changed:
            self.check_running()
            return self.epochs.keep(part)

    def commit(self, commit: p.Commit) -> dict[str, object]:
        """Makes an epoch part of the input."""
        p.check_name("writer", commit.writer)
        with self.changed:
            self.check_running()
            if self.epochs.is_in(commit):
                self.epochs.discard(commit.writer, 0, commit.epoch)
                return {"epoch": self.epochs.last(commit.writer), "already": True}
            self._wait_for_room(sum(part.rows for part in commit.parts))
            # Waiting releases the lock, so another call may have committed it.
            if self.epochs.is_in(commit):
                return {"epoch": self.epochs.last(commit.writer), "already": True}
            parts = self.epochs.parts(commit)
            size = sum(part.size for part in parts)
            if size > self.limits.epoch_bytes:
                most = f"an epoch of {size:,} bytes, at most {self.limits.epoch_bytes:,}"
                raise BridgeError("too-large", most, "let the source give less at a time")
            for part in parts:
                columns = str(stream_schema(self.stream(part.stage.stream)))
                if part.columns not in (None, columns):
                    raise BridgeError(
                        "schema",
                        f"{part.stage.staging:.60} has other columns than stream"
                        f" {part.stage.stream} now, which was made anew",
                        "stage the epoch again",
                    )
            streams = {part.stage.stream for part in parts} | set(commit.seen)
            for name in streams:
                self.stream(name)
                self.epochs.check_writer(commit.writer, name)
                if name in self.ended:
                    raise BridgeError(
                        "conflict",
                        f"stream {name} has ended",
                        "rows after the end need another checkpoint, or a reset of the bridge",
                    )
            self.append(self.epochs.record(commit, parts, streams))
            highest = max(
                (part.highest for part in parts if part.highest is not None), default=None
            )
            self.delivery.quality.arrived(highest, self.world.now())
            return {"epoch": commit.epoch, "already": False}

    def abort(self, abort: p.Abort) -> dict[str, object]:
        with self.changed:
            return {"forgotten": self.epochs.discard(abort.writer, abort.epoch, abort.epoch)}

    @property
    def behind(self) -> int:
        """Returns the milliseconds that the oldest rows have waited to be processed; 0 while a
        journal is replayed."""
        with self.changed:
            if self.applied < self.replayed:
                return 0
            pairs = zip(self.records, self._came, strict=True)
            waiting = (came for record, came in pairs if record["kind"] == "epoch")
            now = self.world.now()
            return round(1000 * (now - next(waiting, now)))

    def give_way(self, shed: dict[str, str]) -> None:
        """Sheds these queries from here on, each for its reason, and brings others back."""
        with self.changed:
            self.check_running()
            self.append({"kind": "shed", "shed": shed})

    def promise(self, promise: p.Promise, is_idle: bool = False) -> dict[str, object]:
        """Takes a promise of a client, or one that is made for a stream because it is idle."""
        with self.changed:
            self.check_running()
            name = self.stream(promise.stream).name
            record: Record = {"kind": "promise", "stream": name, "timestamp": promise.timestamp}
            self.append(record | {"idle": True} if is_idle else record)
            return {}

    def end(self, end: p.End) -> dict[str, object]:
        with self.changed:
            self.check_running()
            names = end.streams
            if names is None:  # also those whose creation waits to be processed
                names = tuple(self._base())
            fresh = sorted({self.stream(name).name for name in names} - self.ended)
            if fresh:
                self.append({"kind": "end", "streams": fresh})
            return {"ended": sorted(self.ended)}

    def swap(self, load: p.Load) -> bool:
        """Replaces the queries from here on; rows in the windows stay, results continue to count.
        Returns False if they are the same. Waits for nothing."""
        with self.changed:
            self.check_running()
            if identity(load) == identity(self.latest_load):
                return False
            self.check_swap(load, set())
            program, known = self.compiled(load).program, self.book.queries
            check_queries(program, load.run)
            runs = {name: self.book.dropped + 1 for name in program.names if name not in known}
            self.append({"kind": "swap", "load": asdict(load), "runs": runs})
            return True

    def leave(self, again: bool = False) -> None:
        """Ends the session on disk, and asks its thread to end; `again` leaves one there that begins
        the same queries anew. If the disk refuses that, the session goes on."""
        with self.changed:
            load = None
            if again:
                names = self.compiled(self.latest_load).program.names
                behind = {"since": self.world.today(), "again": self.book.again(names)}
                load = asdict(self.latest_load) | behind
            self.journal.begin(load, self.delivery.last_run)
            self.stop()

    def begin_again(self, again: dict[str, Any], time: int) -> None:
        """Enters the queries that statements have registered in an earlier session, as those of this
        one from its beginning."""
        self.book.take({"time": time, "living": {"registered": again}})
        for name in again:
            self.book.begin(name, BEGINNING, time, is_back=False)
        self.delivery.renew({"registered": again})

    def check_swap(self, load: p.Load, fresh: set[str]) -> None:
        """Raises `BridgeError` for a load that cannot replace this one; `fresh` queries begin anew."""
        latest = self.compiled(self.latest_load).program
        self.runner.check_swap(load, latest.base)
        # Of a name that a waiting statement registers anew, the log is not made yet.
        before = {name: log.schema for name, log in self.logs.items()}
        before |= self.runner.fresh_schemas(latest)
        for name, schema in self.runner.fresh_schemas(self.compiled(load).program).items():
            if name not in fresh and before.get(name, schema) != schema:
                hint = "give the new query another name"
                raise BridgeError("refused", f"query {name} has other columns now", hint)

    def flush(self, patience: float | None = None) -> None:
        """Waits until everything recorded so far is processed; `busy` if that takes too long."""
        longest = self.limits.patience
        until = self.world.now() + (longest if patience is None else min(patience, longest))
        with self.changed:
            last = self.taken
            while self.applied < last:
                self.check_running()
                left = until - self.world.now()
                if left <= 0:
                    raise self.busy("rows wait to be processed")
                self.changed.wait(left)

    def read_units(self) -> None:
        """Has the thread read how the devices have spent their cycles, once no row is in them. If that takes
        too long, what was read before stays."""
        until = self.world.now() + self.limits.patience
        with self.changed:
            self._to_read_units = True
            self.changed.notify_all()
            while self._to_read_units and self.failure is None and not self._stopping:
                left = until - self.world.now()
                if left <= 0:
                    return
                self.changed.wait(left)

    # --- the thread -----------------------------------------------------------

    def _work(self) -> None:
        try:
            while True:
                with self.changed:
                    self._read_units()
                    while not self.records and not self._stopping:
                        self.changed.wait()
                        self._read_units()
                    if self._stopping:
                        self._is_at_rest = True
                        return
                    record = self.records[0]
                begun, self._waited = self.world.now(), 0.0
                self._apply(record)
                with self.changed:
                    worked = self.world.now() - begun - self._waited
                    self.saving.seconds += worked
                    self.busy_seconds += worked
                    self.records.popleft()
                    self._came.popleft()
                    self._note_activity(record, -1)
                    self.waiting_rows -= record.get("rows", 0)
                    self.applied += 1
                    if self.applied == self.replayed:
                        self.measure()
                    self.saving.take_if_due()
                    self.changed.notify_all()
        except Stopping:
            return
        except BaseException as error:  # whatever it is, the run must not end without a word
            self.fail(error)

    def fail(self, error: BaseException) -> None:
        """Ends the run: every later caller must learn what stopped it."""
        hint = getattr(error, "hint", None)
        what = (
            ""
            if isinstance(error, (EngineError, BridgeError, JournalDamaged))
            else f"{type(error).__name__}: "
        )
        with self.changed:
            self.failure = f"{what}{error}{f' ({hint})' if hint else ''}"
            self.changed.notify_all()

    def _apply(self, record: Record) -> None:
        if record["kind"] in ("swap", "shed"):
            self._swap(record)
        for query, results in self.runner.apply(record):
            self._deliver(query, results)
        with self.changed:
            for name, why in self.run.failed.items():
                self.book.fail(name, self.delivery.run_of(name), record.get("time", 0), why)
        # Only this thread may use the devices; others see the counters published here.
        self.device_status = tuple(device.status() for device in self.devices)
        self.cycles = self._cycles()

    def _read_units(self) -> None:
        if self._to_read_units:
            read_units(self.run)
            self._to_read_units = False
            self.changed.notify_all()

    def _cycles(self) -> int | None:
        """Returns the clock cycles of the devices that have a clock; None if none has."""
        counts = [getattr(device, "cycles", None) for device in self.devices]
        known = [count for count in counts if count is not None]
        return sum(known) if known else None

    def _swap(self, record: Record) -> None:
        load = self._standing(record["load"]) if "load" in record else self.load
        living, time = record.get("living", {}), record.get("time", 0)
        first: dict[str, int] = record.get("runs", {})
        registered = {*living.get("registered", ())}
        with self.changed:
            standing, before = self.runner.loaded.program, self.runner.schemas
            running = self.runner.compilation.program
            past = self.run.passed
            now = min(past.values(), default=0)
            kept = [one for one in running.queries if self.book.is_complete(one.name, now)]
            gone = registered | {*living.get("stopped", ())} | {*living.get("dropped", ())}
            for name in gone:
                self.book.begun.pop(name, None)
            self.shed = {*record.get("shed", self.shed)} - gone
            self.broken = (self.broken - gone) | {*self._lost}
            self.delivery.quality.worked(self.run)
        fresh = registered | ({*self.compiled(load).program.names} - {*standing.names})
        try:
            after = self._changed(load)
        except Exception as error:
            if not fresh:
                raise
            # A query that cannot even begin must not end the others.
            self.broken |= fresh
            after = self._changed(load)
            with self.changed:
                for name in fresh:
                    how = living.get("registered", {}).get(name, {})
                    run = how.get("run", first.get(name, self.delivery.run_of(name)))
                    self.book.fail(name, run, time, reason(error))
        with self.changed:
            self.delivery.renew(living)
            self.delivery.runs |= {n: run for n, run in first.items() if n not in self.logs}
            self.delivery.leave({s.name for s in standing.base} - {*_base_of(after.loaded)})
            self.runner = after
            program = after.compilation.program
            begun = (registered | ({*program.names} - {*running.names})) & {*program.names}
            for name in begun:
                after.run.failures.why.pop(name, None)
                self.delivery.quality.begun(name, self.run.taken_of(name))
            streams, anew = self.book.streams, redefined(running, program)
            kept = [one for one in kept if not reads(one) & anew]
            # Streams within a query are its own.
            own = {n: node.name for n, node in definitions(program).items() if "#" not in n}
            known = {name: streams.get(name, BEGINNING) for name in own.keys() - anew}
            made = {name: node for name, node in own.items() if name in anew}
            said = complete_from(after.compilation, begun | {*made.values()}, past, kept, known)
            self.book.streams = known | {name: said[node] for name, node in made.items()}
            for name in begun:
                self.book.begin(name, said[name], time, name not in registered)
            self.make_logs()
            self.delivery.give_up_ended({**before, **self.runner.schemas})

    def _changed(self, load: p.Load) -> Runner:
        """Returns the runner that continues with other queries: a new one or this one."""
        out = self.shed | self.broken
        with self.changed:
            if self.runner.change(load, out):
                return self.runner
        return self.runner.swapped(load, out)

    def _deliver(self, query: str, results: pa.Table) -> None:
        """Appends results; waits while too many wait for readers."""
        with self.changed:
            begun = self.world.now()
            while self.delivery.full and not self._stopping:
                if self.reading.ahead and self.over_memory() is None:
                    break
                self._read_units()
                self.changed.wait()
            self._waited += self.world.now() - begun
            if self._stopping:
                raise Stopping
            self.delivery.append(query, results)
            if self.applied >= self.replayed:
                self.delivery.quality.delivered(query, results, self.world.now())
            self.changed.notify_all()

    # --- inside ---------------------------------------------------------------

    def make_logs(self) -> None:
        self.delivery.make(self.runner.schemas, self.load.run)

    def append(self, record: Record) -> None:
        """Journals a record, then applies it."""
        record["time"] = self.world.today()
        self.journal.append(record)
        self.take(record)
        self.changed.notify_all()

    def take(self, record: Record) -> None:
        if record["kind"] == "trim":
            said = record["query"], record.get("run"), record["reader"], record["offset"]
            self.delivery.trimmed(*said)
            return
        if record["kind"] == "epoch":
            self.epochs.take(record)
            self.waiting_rows += record["rows"]
            self.input_bytes += record["bytes"]
            self.committed += 1
        elif record["kind"] == "end":
            self.ended.update(record["streams"])
        elif record["kind"] == "shed":
            self.book.give_way(record["shed"], record["time"])
        elif record["kind"] == "swap":
            before = self._base()
            self.latest_load, time = self._standing(record["load"]), record.get("time", 0)
            # A stream that is created under the name of one that is gone is another stream.
            gone = before - self._base()
            for name in gone:
                self.active_at.pop(name, None)
                self.followed.pop(name, None)
            self.ended -= gone
            self.epochs.leave(gone)
            if "living" in record:
                self.book.take(record)
            else:
                c = self.compiled(self.latest_load)
                names, runs = (*c.program.names, *self._lost), record.get("runs", {})
                self.book.loaded(names, time, c.source.text, runs)
            self.fail_lost(time)
        elif record.get("idle", False):
            self.followed[record["stream"]] = record["timestamp"]
        self.taken += 1
        self.records.append(record)
        self._came.append(self.world.now())
        self._note_activity(record, 1)

    def _note_activity(self, record: Record, more: int) -> None:
        """Notes that streams have brought something, which waits or is processed now."""
        names = {name for name, *_ in record.get("parts", ())}
        if record["kind"] == "promise" and not record.get("idle", False):
            names.add(record["stream"])
        for name in names:
            self.active_at[name] = self.world.now()
            self.pending[name] += more

    def _wait_for_room(self, rows: int) -> None:
        if rows > self.limits.epoch_rows:
            most = f"an epoch of {rows:,} rows, at most {self.limits.epoch_rows:,}"
            raise BridgeError("too-large", most, "let the source give less at a time")
        until = self.world.now() + self.limits.patience
        while full := self._full(rows):
            left = until - self.world.now()
            if left <= 0:
                raise self.busy(full)
            self.changed.wait(min(left, _LOOK))
            self.check_running()

    def _full(self, rows: int) -> str | None:
        """Returns why there is no room now for this many more rows."""
        if self.waiting_rows and self.waiting_rows + rows > self.limits.waiting_rows:
            return f"{self.waiting_rows:,} rows wait to be processed"
        return self.over_memory()

    def over_memory(self) -> str | None:
        """Reports if the process exceeds its memory limit."""
        most = self.limits.memory
        if most is None or (have := self.world.resident()) <= most:
            return None
        return f"the bridge has {have >> 20:,} MB of memory, and may have {most >> 20:,}"

    def busy(self, what: str) -> BridgeError:
        what = self.delivery.waits_for if self.delivery.full else what
        return BridgeError("busy", what, "read and trim results while writing")

    def check_open(self) -> None:
        if self._stopping:
            raise BridgeError("stopping", "the session is closed")

    def check_running(self) -> None:
        self.check_open()
        if self.failure is not None:
            raise BridgeError("failed", self.failure, "reset the session, or close it")

    def _standing(self, load: dict[str, Any] | None) -> p.Load:
        """Returns a query set of the journal, without what does not compile here."""
        found, self._lost = standing(load_of(load), len(self.devices), self.libraries)
        return found

    def fail_lost(self, time: int) -> None:
        """Records in the book the queries that no longer compile."""
        for name, why in self._lost.items():
            one = self.book.queries.get(name)
            self.book.fail(name, 1 if one is None else one.run, time, why)

    def measure(self) -> None:
        """Starts measuring queries, once everything is replayed."""
        for name in self.compilation.program.names:
            self.delivery.quality.begun(name, self.run.taken_of(name))

    def end_stuck(self) -> str | None:
        """Ends a call of a user's function that does not return; returns which one."""
        return self._watch.look(self._task, self.world.now())

    def stop(self) -> None:
        """Asks the thread to end, and wakes the waiting calls."""
        with self.changed:
            self._stopping = True
            self.changed.notify_all()

    def close(self, patience: float | None = None, save: bool = False) -> bool:
        """Ends the thread; the journal's content stays. Returns False if the thread is still
        working after `patience` seconds, on an epoch that is in the journal. With `save`, a
        snapshot takes the place of the records that are applied."""
        self.stop()
        self._task.join(patience)
        if self._task.is_alive():
            return False
        if save and self._is_at_rest:
            with self.changed:
                self.saving.take_last()
        return True


def _base_of(c: Compilation) -> tuple[str, ...]:
    return tuple(stream.name for stream in c.program.base)
