"""Keeps the state of a session on disk: snapshots that replace records, and recovery from one."""

from __future__ import annotations

import contextlib
from dataclasses import asdict
from typing import TYPE_CHECKING

from seustream.cosim.bridge import snapshot
from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.bridge.journal import storage
from seustream.cosim.bridge.journal_errors import JournalRefused
from seustream.engine.stream.errors import EngineError

if TYPE_CHECKING:
    from seustream.cosim.bridge.session import Session

_SNAPSHOTS = 2.0
"""Work between two snapshots takes at least this many times as long as the last one took."""
_AGAIN = 5.0
"""Seconds until a failed snapshot is tried again."""
_LONGEST_LAST = 5.0
"""Seconds that a snapshot may have taken for another to be taken when the bridge stops."""
_OTHER_RELEASE = "another release has written it: go on with that one, or take out what `seustream journal export` gives"


class Saving:
    """Takes snapshots of a session after this many `seconds` of work, or bytes; restores the last
    one."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.seconds = self._took = 0.0
        self._not_before = float("-inf")

    def take_if_due(self) -> None:
        """Takes a snapshot if it is due. A restart repeats the work since the last one, so that
        work is bounded by time, not only by bytes. But most of the time must go into the work
        itself."""
        session = self._session
        begun = session.world.now()
        longest = max(session.limits.replay_seconds, _SNAPSHOTS * self._took)
        large = session.journal.size + session.input_bytes > session.limits.journal_bytes
        if (self.seconds <= longest and not large) or begun < self._not_before:
            return
        try:
            self.take()
        except BridgeError:
            # A full disk may have room again later; until then the log has everything.
            self._not_before = begun + _AGAIN
            return
        self.seconds, self._took = 0.0, session.world.now() - begun

    def take(self) -> None:
        """Replaces the applied records by the state."""
        session = self._session
        rest = {
            "ended": sorted(session.ended),
            "writers": session.epochs.state(),
            "committed": session.committed - sum(r["kind"] == "epoch" for r in session.records),
            "book": session.book.state(),
            "begun": session.book.begun,
            "streams": session.book.streams,
            "dropped": session.book.dropped,
            **session.delivery.state(),
            "shed": sorted(session.shed),
            "broken": sorted(session.broken),
        }
        later = list(session.records)
        writer = session.journal.begin_snapshot()
        try:
            with storage():
                meta = snapshot.save(writer, session.runner.state(), session.logs, rest)
            session.journal.end_snapshot(writer, meta, asdict(session.load), later)
        finally:
            session.journal.drop_snapshot(writer)
        session.input_bytes = sum(record.get("bytes", 0) for record in session.records)
        session.epochs.sweep({name for r in session.records for _, name, *_ in r.get("parts", ())})

    def take_last(self) -> None:
        """Takes a snapshot of a session that stops, so that the next start repeats nothing, also
        where another release would give other results in place of those that were read."""
        if self._session.journal.size and self._took <= _LONGEST_LAST:
            with contextlib.suppress(BridgeError):  # the log has everything
                self.take()

    def recover(self, saved: snapshot.SavedState | None) -> None:
        """Restores the state of the session in the journal; the thread does the rest."""
        session = self._session
        session.book.begin_behind(session.journal.past)
        if saved is not None:
            session.delivery.restore(saved.rest)
            session.ended = set(saved.rest["ended"])
            session.committed = saved.rest["committed"]
            session.epochs.restore(saved.rest["writers"])
            session.book.restore(saved.rest.get("book", []), saved.rest.get("begun"))
            session.book.streams = dict(saved.rest.get("streams", {}))
            session.book.dropped = saved.rest.get("dropped", 0)
            session.make_logs()
            for name, (first, end, rows) in saved.results.items():
                session.delivery.make_one(name, rows.schema)  # including a query that has ended
                session.logs[name].restore(first, end, rows)
            try:
                session.runner.run.resume(saved.state)
            except EngineError as error:
                raise JournalRefused(f"{session.journal.folder}: {error}", _OTHER_RELEASE) from None
        if not session.book.queries:
            c, load = session.compilation, session.journal.load or {}
            again, since = load.get("again", {}), load.get("since") or session.world.today()
            names = [n for n in (*c.program.names, *session.broken) if n not in again]
            session.book.loaded(names, since, c.source.text)
            session.begin_again(again, since)
        session.fail_lost(session.world.today())
        session.make_logs()
        for record in session.journal.records():
            session.take(record)
        for log in session.logs.values():
            log.drop()  # readers that trimmed these rows since the snapshot do not ask again
        session.replayed = session.taken
        session.measure()
        # Last: parts staged again for a committed epoch wait to be compared.
        session.epochs.recover()
