"""The results of a session, read by ranges of offsets, repeatedly until they are trimmed."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import pyarrow as pa

from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.bridge.results import ResultLog

if TYPE_CHECKING:
    from seustream.cosim.bridge.session import Session

_DROP = "drop it, or register it anew; the other queries go on"


class Reading:
    """Answers the readers of a session. `ahead` counts those waiting for results that a replay
    gives again."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.ahead = 0

    def log(self, query: str) -> ResultLog:
        """Returns the results of a query, by its name in any case. During a replay they are those of its
        latest run: readers know no other."""
        session = self._session
        with session.changed:
            query = self._spelled(query)
            if session.applied < session.replayed and not self._is_latest(query):
                self._replay()  # it is among the records that are being replayed
        if query in session.logs:
            return session.logs[query]
        hint = f"queries: {', '.join(session.logs)}"
        raise BridgeError("unknown", f"there is no query {query:.60}", hint)

    def _spelled(self, name: str) -> str:
        """Returns the name of a query as it was registered."""
        known = [*self._session.logs, *self._session.book.queries]
        alike = (one for one in known if one.lower() == name.lower())
        return name if name in known else next(alike, name)

    def _replay(self) -> None:
        """Waits for the whole replay, which for this goes on although results wait for readers."""
        self.ahead += 1
        self._session.changed.notify_all()
        try:
            self._session.flush()
        finally:
            self.ahead -= 1

    def _is_latest(self, query: str) -> bool:
        """Returns whether the results of a query are of its latest run, as far as is known."""
        log, book = self._session.logs.get(query), self._session.book.queries
        return log is not None and log.run >= (book[query].run if query in book else 0)

    def latest(self, latest: p.Latest) -> dict[str, object]:
        """Returns how far a query's results reach; waits a while for something new."""
        session = self._session
        until = session.world.now() + min(latest.wait_ms / 1000, session.limits.patience)
        with session.changed:
            log = self.log(latest.query)
            self._wait_for_replay(log, latest.beyond)
            while not (self._is_enough(log, latest) or session.over or self._is_over(log)):
                session.check_running()
                left = until - session.world.now()
                if left <= 0:
                    break
                session.changed.wait(left)
            failed = session.book.why(log.name) if log.name in session.broken else None
            failed = failed or session.run.failed.get(log.name)
            if failed is not None and log.end <= latest.beyond:
                raise BridgeError("failed", f"query {log.name} has failed: {failed}", _DROP)
            over = session.over or self._is_over(log)
            return {
                "first": log.first,
                "end": log.end,
                "over": over,
                "run": log.run,
                "shed": session.book.shed.get(log.name, ""),
                "bounded": log.most is not None,
                "readers": dict(log.readers),
                "full": session.delivery.full,
            }

    def _is_enough(self, log: ResultLog, latest: p.Latest) -> bool:
        new = log.end - latest.beyond
        return new >= latest.least or (new > 0 and self._session.delivery.full)

    def _is_over(self, log: ResultLog) -> bool:
        """Returns whether results no longer grow, including those of a name that is gone."""
        session = self._session
        gone = session.logs.get(log.name) is not log or log.name not in session.runner.schemas
        return gone or log.name in session.run.failed or log.name in session.broken

    def read(self, read: p.Read) -> pa.Table:
        session = self._session
        with session.changed:
            log = self.log(read.query)
            self._wait_for_replay(log, read.end)
            if read.run not in (None, log.run):
                what = f"{read.query}: results of run {read.run} are gone, this is run {log.run}"
                raise BridgeError("trimmed", what, "it was registered anew")
            return log.read(read.start, read.end)

    def trim(self, trim: p.Trim) -> dict[str, object]:
        session = self._session
        if trim.reader:
            p.check_name("reader", trim.reader)
        with session.changed:
            log = self.log(trim.query)
            self._wait_for_replay(log, trim.offset)
            session.check_open()
            if log.moves(trim.reader, trim.offset):
                record = {"kind": "trim", **asdict(trim), "query": log.name, "run": log.run}
                session.journal.append(record, sync=False)
            # If a power failure loses it, rows that were read are only kept once more. But a reader
            # that has read to the end may not return.
            if session.ended >= {stream.name for stream in session.run.streams}:
                session.journal.settle()
            log.trim(trim.reader, trim.offset)
            session.changed.notify_all()
            return {"first": log.first}

    def _wait_for_replay(self, log: ResultLog, offset: int) -> None:
        """Waits for results that come again after a restart, since a reader that has seen them may
        ask first. If a power failure lost its trim, read rows may fill the room for results; the
        results come nevertheless."""
        session = self._session
        if log.end >= offset or session.applied >= session.replayed:
            return
        until = session.world.now() + session.limits.patience
        self.ahead += 1
        session.changed.notify_all()
        try:
            while log.end < offset and session.applied < session.replayed:
                session.check_running()
                left = until - session.world.now()
                if left <= 0:
                    raise session.busy("the journal is being replayed")
                session.changed.wait(left)
        finally:
            self.ahead -= 1
