"""The results of all queries of a session on their way to readers.

A query of a loaded set keeps its results until every reader has trimmed them, and processing waits
when there are too many. A query registered by a statement that does not ask for that keeps only its
last results: readers come and go, and a query without readers holds up no other. The same holds for
results of a query that has ended or failed, and for late rows that a stream WITH (late = 'side')
keeps, not the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.limits import Limits
from seustream.cosim.bridge.living import RUNNING, Book
from seustream.cosim.bridge.quality import Quality
from seustream.cosim.bridge.results import ResultLog


class Delivery:
    """Logs of results by query, and of late rows. `runs` has the run of each that is not the first of
    the session, up to the records applied so far. Of the queries that are `stated`, those that are
    `kept` wait for their readers. `positions` has the readers of each run: during a replay also of
    those that are not there yet. Not thread-safe."""

    def __init__(self, limits: Limits, book: Book) -> None:
        self.limits, self.book = limits, book
        self.logs: dict[str, ResultLog] = {}
        self.positions: dict[tuple[str, int], dict[str, int]] = {}
        self.runs: dict[str, int] = {}
        self.stated: set[str] = set()
        self.kept: set[str] = set()
        self.quality = Quality()

    @property
    def waited_for(self) -> list[ResultLog]:
        """Returns the logs whose readers processing may wait for."""
        return [
            log
            for name, log in self.logs.items()
            if (name.startswith(p.LATE) and log.most is None) or self._is_kept(name)
        ]

    def _is_kept(self, name: str) -> bool:
        one = self.book.queries.get(name)
        return one is not None and one.phase == RUNNING and not one.bounded

    @property
    def retained(self) -> int:
        return sum(map(len, self.waited_for))

    @property
    def full(self) -> bool:
        """Returns whether more results wait for readers than is allowed."""
        size = sum(log.bytes for log in self.waited_for)
        return self.retained >= self.limits.result_rows or size >= self.limits.result_bytes

    @property
    def waits_for(self) -> str:
        """Names the query with the most kept results, and its slowest reader."""
        most = max(self.waited_for, key=len)
        what = f"{len(most):,} results of {most.name} wait for a reader"
        if not most.readers:
            return f"{what}, and nobody has read any"
        last = min(most.readers, key=lambda name: most.readers[name])
        return f"{what}; {last or 'one'} has read {most.readers[last]:,} of {most.end:,}"

    def make(self, schemas: Mapping[str, pa.Schema], run: p.Run) -> None:
        """Creates a log for everything that can be read; existing logs stay."""
        for name, schema in schemas.items():
            late = name.startswith(p.LATE)
            free = late or run.keep is None or name in self.stated
            self.make_one(name, schema, free or name in (run.keep or ()), late and not run.late)

    def make_one(
        self, name: str, schema: pa.Schema, kept: bool = True, bounded: bool = False
    ) -> None:
        if name not in self.logs:
            run = self.run_of(name)
            readers = self.positions.setdefault((name, run), {})
            bounded |= name in self.stated and name not in self.kept
            most = (self.limits.live_rows, self.limits.live_bytes) if bounded else None
            self.logs[name] = ResultLog(name, schema, kept, readers, most, run)

    def run_of(self, name: str) -> int:
        return self.runs.get(name, self.book.first_run)

    def renew(self, living: Mapping[str, Any]) -> None:
        """Restarts the log of a query's new run at offset 0, and removes everything of a dropped
        query."""
        registered = living.get("registered", {})
        for name in dict.fromkeys((*living.get("dropped", ()), *registered)):
            now = registered[name]["run"] if name in registered else self.run_of(name) + 1
            self._forget(name, now)
            self.runs.pop(name, None)
            self.stated.discard(name)
            self.kept.discard(name)
            self.quality.forget(name)
        for name, how in registered.items():
            self.runs[name] = how["run"]
            self.stated.add(name)
            if how.get("kept", False):
                self.kept.add(name)

    def leave(self, streams: Iterable[str]) -> None:
        """Removes the late rows of base streams that are gone. Those of a stream that is made under
        the same name are of a later run."""
        for name in (p.LATE + stream for stream in streams):
            if name in self.logs:
                now = self.run_of(name) + 1
                self._forget(name, now)
                self.runs[name] = now

    def _forget(self, name: str, now: int) -> None:
        """Removes the results of the runs of a name before this one, and their readers."""
        self.logs.pop(name, None)
        for one in [key for key in self.positions if key[0] == name and key[1] < now]:
            del self.positions[one]

    def trimmed(self, query: str, run: int | None, reader: str, offset: int) -> None:
        """Takes a reader's position from the journal. Records of earlier releases have no run."""
        key = query, self.run_of(query) if run is None else run
        self.positions.setdefault(key, {})[reader] = offset

    @property
    def last_run(self) -> int:
        """The highest run of any query or late rows, also of those that are gone."""
        return max([self.book.last_run, *self.runs.values()])

    def state(self) -> dict[str, Any]:
        return {
            "runs": self.runs,
            "stated": sorted(self.stated),
            "kept": sorted(self.kept),
            "readers": [[*key, readers] for key, readers in self.positions.items()],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self.runs = dict(state.get("runs", {}))
        self.kept = set(state.get("kept", ()))
        # An earlier release had runs of statements only, and readers of one run.
        self.stated = set(state.get("stated", self.runs))
        before = [[name, self.run_of(name), of] for name, of in state.get("positions", {}).items()]
        for name, run, readers in state.get("readers", before):
            self.positions.setdefault((name, run), {}).update(readers)

    def ended(self, schemas: Mapping[str, pa.Schema]) -> dict[str, ResultLog]:
        """Returns the results of queries that have ended. They are kept as long as there is room."""
        return {name: log for name, log in self.logs.items() if name not in schemas}

    def give_up_ended(self, schemas: Mapping[str, pa.Schema]) -> None:
        """Bounds the results of queries that have ended: those that ended first go first. Queries
        in `schemas` are not affected."""
        kept = self.ended(schemas)
        while kept and (
            sum(map(len, kept.values())) > self.limits.result_rows
            or sum(log.bytes for log in kept.values()) > self.limits.result_bytes
        ):
            kept.pop(next(iter(kept))).give_up()

    def append(self, query: str, rows: pa.Table) -> None:
        """Appends results; those of a query that is being dropped are discarded."""
        if query in self.logs:
            self.logs[query].append(rows)
