"""The record of a session's queries: their names, when they began, how they ended, and their
events.

Its entries follow from the records of the journal and from the run's reports while it takes them,
so a reopened session has the same entries. A query is RUNNING until it is stopped, its time is over
(both STOPPED) or it fails (FAILED). It then stays listed, with its results, until it is dropped or
its name is registered again. Each registration of a name is another run of it, also behind a DROP.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from seustream.compiler.errors import Problems
from seustream.compiler.xsql.statements import durations
from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.bridge.log import Record
from seustream.engine.completeness import BEGINNING, since

COMING = "from when it begins"
"""Stands for the time of a query whose registration waits to be processed."""
RUNNING, STOPPED, FAILED, SHED = "RUNNING", "STOPPED", "FAILED", "SHED"
MOST_EVENTS = 1000
"""Events kept for one query; the oldest are discarded."""


@dataclass(slots=True)
class Living:
    """One query. Times are milliseconds since the epoch; `until` is when it ends by itself. A query
    that is `stated` was registered by a statement; others were loaded as parts of a set. One that is
    loaded or `kept` keeps its results for readers. A `bounded` query keeps only its last results,
    and its readers hold up nothing: one that is not kept, or has failed. `shed` is the reason why it
    currently gives way to others, `complete` the time from which its results are complete."""

    name: str
    language: str
    run: int = 1
    phase: str = RUNNING
    since: int = 0
    until: int | None = None
    bounded: bool = True
    shed: str = ""
    complete: str = BEGINNING
    stated: bool = True
    kept: bool = False
    events: list[tuple[int, int, str, str, str]] = field(default_factory=list)

    def note(self, time: int, level: str, event: str, detail: str, run: int = 0) -> None:
        """Adds an event, once: after a restart some records are taken again."""
        entry = (time, run or self.run, level, event, detail)
        if entry not in self.events:
            self.events.append(entry)
        del self.events[:-MOST_EVENTS]


class Book:
    """All queries, in the order of their first registration. Not thread-safe: callers hold the
    session's lock."""

    def __init__(self) -> None:
        self.queries: dict[str, Living] = {}
        self.begun: dict[str, str] = {}
        """By query, the time from which its results are complete, up to the records applied so far.
        Its entry in `queries` may already be that of a later registration."""

        self.streams: dict[str, str] = {}
        """By derived stream, the time from which it is complete."""

        self.dropped = 0
        """The highest run of any query that was dropped. A name that returns begins a later one, so
        that no reader takes its results for those it has read."""

        self.first_run = 1
        """The run of the queries with which the session began."""

    def begin_behind(self, past: int) -> None:
        """Begins behind sessions whose queries had runs up to this one."""
        self.dropped, self.first_run = past, past + 1

    def __getitem__(self, name: str) -> Living:
        found = self.queries.get(name)
        if found is None:
            known = ", ".join(list(self.queries)[:20])
            hint = f"there are {known}" if known else "none is registered"
            raise BridgeError("unknown", f"there is no query {name:.60}", hint)
        return found

    def find(self, name: str) -> Living:
        """Returns the query of a name; if none is written like this, one that differs in case, rather a
        running one."""
        if name in self.queries:
            return self.queries[name]
        alike = [one for one in self.queries.values() if one.name.lower() == name.lower()]
        alike.sort(key=lambda one: one.phase == RUNNING)
        return alike[-1] if alike else self[name]

    @property
    def running(self) -> int:
        return sum(one.phase == RUNNING for one in self.queries.values())

    def give_way(self, why: dict[str, str], time: int) -> None:
        """Sheds these queries from now on, for these reasons; all others come back."""
        for one in self.queries.values():
            if one.name in why and not one.shed:
                one.note(time, "warning", SHED, why[one.name])
            one.shed = why.get(one.name, "")

    def begin(self, name: str, complete: str, time: int, is_back: bool) -> None:
        """Begins a query, or resumes one that gave way."""
        self.begun[name] = complete
        one = self.queries.get(name)
        if one is not None:
            one.complete = complete
            if is_back:
                one.note(time, "info", RUNNING, f"complete {complete}")

    def is_complete(self, name: str, at: int) -> bool:
        """Returns whether a query has seen everything in its windows at a time, as far as is known."""
        begins = since(self.begun.get(name, ""))
        return begins is not None and begins <= at

    @property
    def shed(self) -> dict[str, str]:
        return {one.name: one.shed for one in self.queries.values() if one.shed}

    @property
    def last_run(self) -> int:
        """The highest run of any query, also of those that were dropped."""
        return max([self.dropped, *(one.run for one in self.queries.values())])

    def again(self, names: Collection[str]) -> dict[str, Any]:
        """Returns the registrations of the statements among these queries, for a session that begins
        them anew."""
        return {
            one.name: {
                "run": self.last_run + 1,
                "language": one.language,
                "until": one.until,
                "kept": one.kept,
                "text": "from the beginning",
            }
            for one in self.queries.values()
            if one.stated and one.name in names
        }

    def loaded(
        self, names: Iterable[str], time: int, text: str = "", runs: Mapping[str, int] | None = None
    ) -> None:
        """Enters the queries of a set that was loaded or swapped in as a whole; others are swapped
        out. Its `text` gives those with a limited duration, `runs` those that are not the first."""
        wanted, lasting = list(names), durations(text, Problems())[1]
        for name in wanted:
            self.begun.setdefault(name, BEGINNING)
            run = (runs or {}).get(name, self.first_run)
            fresh = Living(name, "", run, phase="", since=time, bounded=False, stated=False)
            one = self.queries.setdefault(name, fresh)
            if one.phase in ("", STOPPED):
                one.phase = RUNNING
                one.until = time + lasting[name] if name in lasting else None
                one.note(time, "info", RUNNING, "loaded")
        for name, one in self.queries.items():
            if name not in wanted and one.phase == RUNNING:
                one.phase = STOPPED
                one.note(time, "info", STOPPED, "swapped out")

    def take(self, record: Record) -> None:
        """Applies a record that changes the catalogue. Applying it again changes nothing."""
        said, time = record["living"], record["time"]
        for name in said.get("dropped", ()):
            one = self.queries.pop(name, None)
            self.dropped = max(self.dropped, 0 if one is None else one.run)
        for name, (run, why) in said.get("stopped", {}).items():
            one = self.queries.get(name)
            if one is not None and one.run == run and one.phase != STOPPED:
                one.phase, one.shed = STOPPED, ""
                one.note(time, "info", STOPPED, why)
        for name, how in said.get("registered", {}).items():
            before = self.queries.get(name)
            if before is not None and before.run == how["run"]:
                continue
            one = Living(name, how["language"], how["run"], since=time, until=how["until"])
            one.kept = how.get("kept", False)
            one.bounded, one.complete = not one.kept, COMING
            if before is not None:
                one.events = before.events
            self.queries[name] = one
            one.note(time, "info", RUNNING, how["text"])

    def fail(self, name: str, run: int, time: int, why: str) -> None:
        """Records that the run cannot continue a query."""
        one = self.queries.get(name)
        if one is None or any(event[1] == run and event[3] == FAILED for event in one.events):
            return
        if one.run == run and one.phase == RUNNING:
            one.phase, one.bounded = FAILED, True
        one.note(time, "error", FAILED, why, run)

    def why(self, name: str) -> str:
        """Returns why a query failed."""
        events = [event for event in self[name].events if event[3] == FAILED]
        return events[-1][4] if events else ""

    def state(self) -> list[dict[str, Any]]:
        return [dataclasses.asdict(one) for one in self.queries.values()]

    def restore(self, state: list[dict[str, Any]], begun: dict[str, str] | None) -> None:
        self.begun = {one["name"]: one["complete"] for one in state} if begun is None else begun
        for one in state:
            events = [tuple(event) for event in one["events"]]
            # An earlier release wrote neither `stated` nor `kept`.
            how = {"stated": bool(one["language"]), "kept": not one["bounded"]}
            self.queries[one["name"]] = Living(**{**how, **one, "events": events})
