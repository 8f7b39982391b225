"""Faults planted into the product, which the simulated world must find.

Each takes out or rewrites a line of a function, as a hurried hand might in the storage, the session, the
protocol, the sink or the source. `planted` puts one in for a while.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import textwrap
from collections.abc import Iterator
from typing import Any

_B = "seustream.cosim.bridge."
_S = "seustream.spark_feeder.source:"

PLANTED = {
    # storage
    "records are not synced": (_B + "journal:Journal.append", "if sync:", "if False:"),
    "a failed write is forgotten": (
        _B + "journal:Journal._failing", "self.failure = str(error)", "pass"),
    "writing goes on behind a failed write": (
        _B + "journal:Journal.check", "if self.failure is not None:", "if False:"),
    "what the last one closed is not synced": (
        _B + "journal:Journal._open", "file.sync()", "pass"),
    "names of a new log are not synced": (
        _B + "journal:Journal._turn", "self.disk.sync(self.folder)", "pass"),
    "a generation is not named elsewhere": (_B + "journal:Journal._turn", "self._mark()", "pass"),
    "names of parts are not synced": (
        _B + "journal:Journal.end_part", "self.disk.sync(self.staged)", "pass"),
    "parts are not synced": (_B + "sealed:SealedWriter.seal", "self._file.sync()", "pass"),
    "new logs are not synced": (_B + "disk:write_whole", "file.sync()", "pass", "journal"),
    "names of snapshots are not synced": (
        _B + "journal:Journal.end_snapshot", "self.disk.sync(self.folder)", "pass"),
    "digests of blocks are not compared": (
        _B + "sealed:read_sealed", "!= want", "== b''", "journal", "survey"),
    "digests of records are not compared": (
        _B + "log:_payload", "== whole else None", "is not None else None"),
    "parts that are wanted are swept": (
        _B + "journal:Journal.sweep", "name not in wanted and", ""),
    "the snapshot is removed as old": (
        _B + "journal:Journal._remove_old", 'current.add(self._begin["snapshot"][0])', "pass"),
    "records after a snapshot are dropped": (
        _B + "journal:Journal.end_snapshot", "for record in later", "for record in later[:0]"),
    "the last record is not replayed": (
        _B + "journal:Journal.records", "tail, self._tail = self._tail", "tail, self._tail = self._tail[:-1]"),
    "a torn record is written behind": (
        _B + "log:read", "log.uneven = bool(left) or len(data[1] or b\"\") < at", "log.uneven = False"),
    "errors of the disk are faults of the bridge": (
        _B + "journal:storage", '"storage",', '"internal",', "epochs", "saving"),
    "what was begun is left": (
        _B + "journal:Journal._remove_partials", "remove_quietly(self.disk, folder / name)", "pass"),
    "a copy that was cut is written behind": (
        _B + "journal:Journal._open", "or found.uneven or found.notes", ""),
    "the second copy of the log is not read": (
        _B + "log:read", "for path in paths]", "for path in paths[:1]] + [None]"),
    # session
    "a record counts before it is on disk": (
        _B + "session:Session.append", "self.journal.append(record)\n    self.take(record)",
        "self.take(record)\n    self.journal.append(record)"),
    "a snapshot forgets a record that waits": (
        _B + "saving:Saving.take", "later = list(session.records)", "later = list(session.records)[1:]"),
    "results of a snapshot are not restored": (
        _B + "saving:Saving.recover", "session.logs[name].restore(first, end, rows)", "pass"),
    "writers of a snapshot are not restored": (
        _B + "saving:Saving.recover", 'session.epochs.restore(saved.rest["writers"])', "pass"),
    "ended streams of a snapshot are not restored": (
        _B + "saving:Saving.recover", 'session.ended = set(saved.rest["ended"])', "pass"),
    "operators of a snapshot are not restored": (
        _B + "saving:Saving.recover", "session.runner.run.resume(saved.state)", "pass"),
    "commits do not wait for room": (
        _B + "session:Session._wait_for_room", "while full := self._full(rows)", "while full := None"),
    "processing does not wait for readers": (
        _B + "session:Session._deliver", "while self.delivery.full and", "while False and"),
    "a trim does not wait for the replay": (
        _B + "reading:Reading.trim", "self._wait_for_replay(log, trim.offset)", "pass"),
    "a read does not wait for the replay": (
        _B + "reading:Reading.read", "self._wait_for_replay(log, read.end)", "pass"),
    "a replay is taken for done": (
        _B + "saving:Saving.recover", "session.replayed = session.taken", "session.replayed = 0"),
    "a swap begins with empty windows": (
        _B + "runner:Runner.swapped", "after.run.resume(state)", "pass"),
    "a swap begins offsets anew": (
        _B + "session:Session._swap", "self.make_logs()", "self.logs.clear(); self.make_logs()"),
    "an ended stream is forgotten": (
        _B + "session:Session.take", 'self.ended.update(record["streams"])', "pass"),
    "the end of a stream is not passed on": (
        _B + "runner:Runner.apply", "self.run.end(stream)", "pass"),
    "rows of an epoch are not sorted": (
        _B + "runner:Runner._rows_of", "if np.any(ts[1:] < ts[:-1]):", "if False:"),
    "a watermark is too high": (
        _B + "runner:Runner.apply", "highest - self.run.gates[stream].slack", "highest + 20"),
    "rows that wait are not saved": (
        _B + "snapshot:save", "files.put(one.waiting)", "files.put(one.waiting.slice(0, 0))"),
    "results that wait are not saved": (
        _B + "snapshot:save", "files.put(log.rows)", "files.put(log.rows.slice(0, 0))"),
    "an idle exchange is never ended": (
        _B + "exchanges:Exchanges.idle", "now - one.waiting > longest", "False"),
    "a stop wakes nobody": (
        _B + "session:Session.stop", "self.changed.notify_all()", "pass"),
    "a stop waits for its clients": (
        _B + "bridge:Bridge.close", "self.stop()", "self.world.sleep(30)"),
    "a query that fails ends all": (
        _B + "runner:Runner._run", "contained=True", "contained=False"),
    # results
    "a trim takes a row too many": (
        _B + "results:ResultLog._drop_before", "chunk.slice(beyond)", "chunk.slice(beyond + 1)"),
    "a small table of results is lost": (
        _B + "results:ResultLog.append", "pa.concat_tables([last, rows])", "pa.concat_tables([rows])"),
    # protocol
    "an epoch counts each time it comes": (
        _B + "epochs:Epochs.is_in", "if commit.epoch == writer.epoch + 1:", "if True:"),
    "an epoch does not count": (
        _B + "epochs:Epochs.take", 'writer.epoch = record["epoch"]', "pass"),
    "what is staged in vain stays": (
        _B + "epochs:Epochs.take", 'self.discard(record["writer"], 0, record["epoch"])', "pass"),
    "only the first part of an epoch is read": (
        _B + "epochs:Epochs.rows", "if of == stream\n]", "if of == stream\n][:1]"),
    "a load begins anew": (
        _B + "bridge:Bridge.load", "if self._session is not None:", "if False:"),
    "a batch is staged twice": (
        _B + "bridge:Bridge.stage", "part.write(self._taken(stream, chunk.data), chunk.data.num_rows)",
        "[part.write(self._taken(stream, chunk.data), chunk.data.num_rows) for _ in range(2)]"),
    "other rows are taken for the same": (
        _B + "epochs:Epochs.is_in", "elif _content(self.parts(commit)) == past.content", "elif True"),
    "two attempts of a partition count": (
        _B + "epochs:Epochs.parts",
        "(one.stage.stream, one.stage.partition) == (",
        "False and (one.stage.stream, one.stage.partition) == ("),
    "a stream takes two writers": (
        _B + "epochs:Epochs.check_writer", "if name != writer and", "if False and"),
    "a stream goes on after its end": (
        _B + "session:Session.commit", "if name in self.ended:", "if False:"),
    # sink and source
    "the sink names the latest row too high": (
        _S + "SourceWriter._commit", "max(tops)}", "max(tops) + 9}"),
    "the sink commits the first part alone": (
        _S + "SourceWriter._commit", "for message in written\n", "for message in written[:1]\n"),
    "the sink stages attempts under one name": (
        _S + "SourceWriter._write", "str(uuid.uuid4())", 'f"{writer} {self.stream} {epoch}"'),
    "the source gives up what it plans": (
        _S + "SourceReader.partitions", "self._trim(start)", "self._trim(end)"),
    "the source begins at the end": (
        _S + "SourceReader.initialOffset", '"first"', '"end"'),
    "the source reads a row too few": (
        _S + "BridgeResults.read", "part.end)", "max(part.end - 1, part.start))"),
}  # fmt: skip
"""By name: the function, its text, and the text in its place; then further modules that hold the
function."""


@contextlib.contextmanager
def planted(name: str) -> Iterator[None]:
    """Puts one of these faults into the product."""
    place, old, new, *others = PLANTED[name]
    module_name, _, path = place.partition(":")
    module = importlib.import_module(module_name)
    *owners, function = path.split(".")
    owner: Any = module
    for one in owners:
        owner = getattr(owner, one)
    was = owner.__dict__[function]
    text = textwrap.dedent(inspect.getsource(was))
    if text.count(old) < 1:
        old, new = textwrap.indent(old, "    ").strip(), textwrap.indent(new, "    ").strip()
    assert old in text, f"{name}: {place} has no {old!r}"
    made: dict[str, Any] = {}
    exec(compile(text.replace(old, new), f"<{name}>", "exec"), vars(module), made)
    holders = [owner, *(importlib.import_module(_B + one) for one in others)]
    for holder in holders:
        setattr(holder, function, made[function])
    try:
        yield
    finally:
        for holder in holders:
            setattr(holder, function, was)
