"""Runs queries behind a bridge: the result of `connect` for an address."""

from __future__ import annotations

import json
import secrets
import threading
import time
import warnings
from collections.abc import Collection
from typing import Any

import pyarrow as pa

from seustream.api import DataWarning
from seustream.compiler.errors import CompileError, Problems, SourceText
from seustream.compiler.pipeline import Compilation, Options
from seustream.compiler.xsql.parse import parse
from seustream.compiler.xsql.statements import split
from seustream.compiler.xsql.tree import DropQuery, DropStream
from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.client import BridgeClient
from seustream.cosim.bridge.errors import RETRIABLE, BridgeError
from seustream.cosim.bridge.statements import made_by
from seustream.engine.runs import Report
from seustream.errors import QueryError
from seustream.hdl.config import DeviceConfig
from seustream.live import LiveQueries
from seustream.texts import NAME, compiled, translated

_UNREAD = (0, 0)
_LOOK, _PATIENCE = 500, 60.0
"""Milliseconds after which a wait for processing looks whether results wait for readers, and seconds
after which it gives up."""


class BridgeQueries(LiveQueries):
    """Writes to and reads from the queries behind a bridge."""

    def __init__(
        self,
        url: str,
        token: str | None,
        certificate: bytes | None,
        slack: int | None,
        strict: bool,
        writer: str | None,
    ) -> None:
        self._client = client = BridgeClient(url, token, certificate, 10)
        super().__init__(
            Options(DeviceConfig.from_json(json.dumps(client.health(patience=5)["config"])))
        )
        # A push that waits for room does not keep another thread from reading what takes it.
        self._writing = threading.RLock()
        self._how = p.Run(slack=slack, strict=strict)
        self._writer = writer or f"python-{secrets.token_hex(6)}"
        self._reader = writer or ""
        status = client.status()
        self._epoch = status.get("writer_epoch", {}).get(writer, -1) + 1
        self._unsure: tuple[str, pa.Table] | None = None
        self._before = _report_of(status)
        self._pushed: dict[str, None] = {}  # in the order of their first rows
        self._has_session = False
        self._standing: Compilation | None = (
            None  # the catalogue as it was last seen, as far as it compiles here
        )
        self._known = ""  # its text
        self._foreign: set[str] = set()  # the queries that do not
        self._defined: set[str] = set()  # and the streams, folded
        self._is_owner = writer is not None  # its first queries keep results for readers
        self._mine: set[str] = set()  # queries whose results wait for this reader
        self._read: dict[str, tuple[int, int]] = {}  # by query, the run and results read
        self._failed: dict[str, str] = {}
        try:
            with translated():
                self._catch_up()
        except BaseException:
            client.close()
            raise

    def _close(self) -> None:
        self._client.close()

    def _catch_up(self) -> None:
        """Compiles what this or other clients have added to the catalogue since."""
        found = self._client.act("catalogue")
        standing, run = found["text"], found.get("run")
        if run is not None:
            self._check_run(run)
        self._has_session = run is not None or bool(standing)
        if not standing:
            self._standing, self._known = None, ""
            self._foreign.clear()
            self._defined.clear()
            if self._compiled is not None:  # others have dropped everything
                self._stand(compiled(None, "", self._options))
            return
        if self._standing is None or standing != self._known:
            on, known = self._standing, self._known
            if on is None or not standing.startswith(known):
                on, known = None, ""
                self._foreign.clear()
                self._defined.clear()
            self._standing = self._compiled_here(on, standing.removeprefix(known))
            self._known = standing
            self._foreign -= {*self._standing.program.names}
        self._stand(self._standing)

    def _compiled_here(self, on: Compilation | None, text: str) -> Compilation:
        """Compiles statements that are in effect at the bridge, without those that do not compile
        here, such as calls of functions that only the bridge has, and what depends on these."""
        while True:
            try:
                return compiled(on, text, self._options)
            except CompileError as error:
                rest = self._without(text, error)
                if rest == text:
                    raise
                text = rest

    def _without(self, text: str, error: CompileError) -> str:
        """Blanks the statements with problems, and notes the queries and streams that are among them."""
        places = [one.span.start for one in error.problems]
        for span in split(text, Problems()):
            if not any(span.start <= place < span.end for place in places):
                continue
            written = text[span.start : span.end]
            for statement in parse(SourceText(written), Problems()):
                if isinstance(statement, DropQuery):
                    dropped = statement.name.text.lower()
                    self._foreign = {one for one in self._foreign if one.lower() != dropped}
                elif isinstance(statement, DropStream):
                    self._defined.discard(statement.name.text.lower())
                elif (made := made_by(statement, [])) is not None and made[0] == "query":
                    self._foreign.add(made[1])
                elif made is not None and made[0] == "stream":
                    self._defined.add(made[1].lower())
            text = text[: span.start] + " " * len(written) + text[span.end :]
        return text

    def _judged_there(self, text: str, error: CompileError) -> list[str] | None:
        is_unknown = {"unknown-function", "UnknownFunction"} & {one.kind for one in error.problems}
        # A session that a mere statement begins has none of the options.
        if not (self._foreign or is_unknown) or not (self._has_session or self._how == p.PLAIN):
            return None
        try:
            shown = self._send(text)
        except BridgeError as there:
            names = any("unknown" in one.kind.lower() for one in error.problems)
            if there.kind == "compile" and not (self._foreign and names):
                return None  # the same, whose place is known here
            raise
        self._catch_up()
        return shown

    def _is_defined_there(self, stream: str) -> bool:
        return stream.lower() in self._defined

    def _named(self, query: str) -> str:
        foreign = {name.lower(): name for name in self._foreign}
        return foreign.get(query.lower()) or super()._named(query)

    def _stand(self, c: Compilation) -> None:
        super()._stand(c)
        # The late rows of a stream that is made anew count from 0.
        late = {name for name in self._read if name.startswith(p.LATE)} - {*c.program.names}
        for name in late:
            if self._stream(name.removeprefix(p.LATE)) is None:
                del self._read[name]

    def _check_run(self, run: dict[str, Any]) -> None:
        """Raises `QueryError` for options that have no effect, since the bridge's queries were
        begun with others."""
        slack = self._how.slack
        if slack is not None and slack != run["slack"]:
            theirs = "each stream's own" if run["slack"] is None else f"{run['slack']} ms"
            raise QueryError(
                f"slack={slack} has no effect here: the slack of this bridge's queries is {theirs}",
                f"leave it out; for one stream: CREATE STREAM … WITH (max_out_of_orderness = '{slack} ms')",
            )
        if self._how.strict and not run["strict"]:
            raise QueryError(
                "strict=True has no effect here: this bridge's queries were begun without it",
                "leave it out; for one query: REGISTER QUERY … WITH (strict)",
            )

    def _install(self, c: Compilation, text: str, asked: Compilation) -> list[str]:
        if not self._has_session and not c.program.streams:
            return self._answers(asked)
        if not self._has_session:
            self._client.load(c, self._how)
            self._has_session = self._is_owner = True
            self._mine = {*c.program.names}
            self._read = dict.fromkeys(c.program.names, _UNREAD)
            return self._answers(asked)
        return self._send(text)

    def _send(self, text: str) -> list[str]:
        """Has the bridge execute statements; returns their answers."""
        self._is_owner |= self._standing is None  # the bridge's first streams are this program's
        # The first queries of a program that feeds them wait for readers.
        kept = self._is_owner and not self._queries()
        # No retry if the answer is lost: this very statement would have taken a name.
        found = self._client.act("statement", p.Statement(text, NAME, kept), patience=0)
        registered = {one["name"] for one in found["registered"]}
        for name in found["dropped"]:
            self._read.pop(name, None)
            self._failed.pop(name, None)
        self._read |= dict.fromkeys(registered, _UNREAD)
        self._mine -= {*found["dropped"], *registered}
        self._mine |= registered if kept else set()
        return list(found["shown"])

    def _subscribe(self, query: str) -> None:
        if query in self._read:
            return
        try:
            found = self._client.latest(query)
        except BridgeError as error:
            if error.kind != "unknown":
                raise
            self._read[query] = _UNREAD  # not processed yet
            return
        # A reader goes on where it was, also if another one is slower.
        start = found.get("readers", {}).get(self._reader, 0) if self._reader else 0
        self._read[query] = found["run"], max(start, found["first"])

    def _queries(self) -> list[dict[str, Any]]:
        return list(self._client.act("query-list")["queries"])

    def _push(self, stream: str, rows: pa.Table) -> None:
        if not rows.num_rows or not self._reads(stream):
            return
        self._be_sure(stream, rows)
        stage = p.Stage(self._writer, stream, self._epoch, 0, secrets.token_hex(8))
        with self._client.stage(stage) as part:
            part.write(rows)
        assert part.staged is not None
        seen = {} if part.highest is None else {stream: part.highest}
        self._pushed[stream] = None
        commit = p.Commit(self._writer, self._epoch, (part.staged,), seen)
        try:
            self._client.commit(commit)
        except BridgeError as error:
            if error.kind not in RETRIABLE:
                raise
            self._unsure = stream, rows
            hint = "the rows may be in: push them again, and they are taken once"
            raise BridgeError(error.kind, str(error), hint) from None
        self._epoch, self._unsure = self._epoch + 1, None

    def _be_sure(self, stream: str, rows: pa.Table) -> None:
        """Finds out whether the rows are in whose commit had no answer, unless they come again."""
        if self._unsure is None or (self._unsure[0] == stream and self._unsure[1].equals(rows)):
            return
        self._epoch = self._client.status().get("writer_epoch", {}).get(self._writer, -1) + 1
        self._unsure = None

    def _reads(self, stream: str) -> bool:
        """Returns whether the bridge has the stream, through this connection or another client's
        queries."""
        if self._has_session:
            return True
        there = self._client.act("query-list")["streams"]
        return any(one["name"].lower() == stream.lower() for one in there)

    def _end(self, stream: str) -> None:
        if self._reads(stream):
            self._client.end(stream)

    def _watermark(self, stream: str, timestamp: int) -> None:
        if self._reads(stream):
            self._client.promise(stream, timestamp)

    def _end_all(self) -> None:
        if self._has_session:
            self._client.end()

    def _more(self) -> bool:
        self._free()
        is_all = self._settle()
        lost = self._unread()
        if not (self._found or is_all):
            self._free()  # another thread may have handed them out
            self._client.flush()  # fails if another reader holds up everything
            lost += self._unread()
            is_all = True
        for said in lost:
            warnings.warn(said, DataWarning, stacklevel=3)
        return is_all

    def _unread(self) -> list[str]:
        """Keeps the results that are there and were not read before; returns warnings."""
        results, read, lost = [], {}, []
        with self._lock:
            for name, (run, start) in list(self._read.items()):
                if (there := self._there(name, run, start)) is None:
                    continue
                found, rows, missed = there
                if run and found["run"] != run:  # another client has replaced it
                    self._catch_up()
                if missed:
                    lost.append(f"{name}: {missed:,} results are not kept any more")
                if rows is not None:
                    results.append((name, rows))
                end = found["end"]
                read[name] = found["run"], end
                if self._reader and not found.get("bounded", True):
                    self._mine.add(name)
                self._failed.pop(name, None)
                if found["over"] and (why := self._why(name, end)):
                    self._failed[name] = why
            self._read |= read  # not before all are here: an error in between loses none
            self._found += self._timed(results)
        return lost

    def _there(
        self, name: str, run: int, start: int
    ) -> tuple[dict[str, Any], pa.Table | None, int] | None:
        """Returns how far a query's results reach, those from an offset on, and how many of them are
        not kept any more; None if it is dropped."""
        while (found := self._latest(name)) is not None:
            begin = start if run in (0, found["run"]) else 0
            first, end = max(begin, found["first"]), found["end"]
            if end <= first:
                return found, None, first - begin
            try:
                rows = self._client.read(name, first, end, found["run"])
            except BridgeError as error:
                if error.kind not in ("trimmed", "unknown"):
                    raise
                continue  # they have just given way to later ones, or another client has replaced it
            return found, rows, first - begin
        return None

    def _latest(self, name: str) -> dict[str, Any] | None:
        """Returns how far a query's results reach; None if another client has dropped it."""
        try:
            return self._client.latest(name)
        except BridgeError as error:
            if error.kind != "unknown":
                raise
            self._read.pop(name)
            self._failed.pop(name, None)
            return None

    def _free(self) -> None:
        """Makes room for more results by those that were handed out before."""
        with self._lock:
            for name in () if self._found else self._mine & self._read.keys():
                (run, start), found = self._read[name], self._latest(name)
                if found is None or found.get("bounded") or (run and found["run"] != run):
                    self._mine.discard(name)  # it is another client's now
                    continue
                try:
                    self._client.trim(name, start, self._reader)
                except BridgeError as error:
                    if error.kind != "storage":  # reads go on while the disk is full
                        raise

    def _settle(self) -> bool:
        """Waits, without the lock, until all rows are processed. Returns False if that waits for
        readers: what there is comes first."""
        if not self._read:
            return True
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                self._client.act("flush", p.Flush(_LOOK), patience=0)
            except BridgeError as error:
                if not error.retriable or time.monotonic() > until:
                    raise
                if error.kind != "busy":
                    self._client.health()  # returns once the bridge is back
                    continue
                with self._lock:
                    known = [self._latest(name) for name in list(self._read)]
                if any(one is not None and one.get("full") for one in known):
                    return False
            else:
                return True

    def _why(self, query: str, end: int) -> str | None:
        """Returns why a query gives no results beyond these, if it has failed."""
        try:
            self._client.latest(query, end)
        except BridgeError as error:
            if error.kind == "failed":
                return str(error)
            raise
        return None

    def _failures(self) -> dict[str, str]:
        return self._failed

    def _account(self) -> Report:
        """Returns the account since the program connected, of the streams that it pushed rows of and
        the queries whose results it read."""
        now, before, report = _report_of(self._client.status()), self._before, Report()
        named: dict[str, Collection[str]] = dict.fromkeys(_BY_STREAM, self._pushed)
        for counted, names in {**named, "bad_keys": self._read}.items():
            known, found = getattr(before, counted), getattr(now, counted)
            for name in names:
                if more := _more_than(known.get(name, 0), found.get(name, 0)):
                    getattr(report, counted)[name] = more
        for query in self._read.keys() & now.faults.keys():
            known = {place: count for place, (count, _) in before.faults.get(query, {}).items()}
            for place, (count, row) in now.faults[query].items():
                if more := _more_than(known.get(place, 0), count):
                    report.faults.setdefault(query, {})[place] = more, row
        return report


_BY_STREAM = ("late", "timeless", "untimed", "refused")


def _report_of(status: dict[str, Any]) -> Report:
    """Returns what a bridge has counted of left out rows and of faults."""
    found = {name: status.get(f"{name}_total", {}) for name in ("late", "timeless", "untimed")}
    of_queries = {name: status.get(name, {}) for name in ("refused", "bad_keys", "faults")}
    return Report(**found, **of_queries)


def _more_than(before: int, count: int) -> int:
    """Returns how much has come since; all of it if what is counted was made anew."""
    return count - before if count >= before else count
