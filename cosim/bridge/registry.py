"""Statements to a session: streams and queries are created, registered, stopped and dropped while it runs.

    registry = Catalogue(session)
    registry.statement(p.Statement("CREATE STREAM R (a int); REGISTER QUERY …"))
    registry.stop("fast")

Each change of the catalogue is one record of the journal: a swap of the query set, with its effect on each
query. It therefore survives a restart. It takes effect between two epochs. Queries that stay keep
their windows, groups and offsets.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

from seustream.compiler.errors import CompileError, Problem, Problems, SourceText, Span
from seustream.compiler.xsql.descriptions import quoted
from seustream.compiler.xsql.intervals import tree_of
from seustream.compiler.xsql.parse import parse
from seustream.compiler.xsql.statements import split
from seustream.compiler.xsql.tree import DropQuery
from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.client import message_of
from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.bridge.living import FAILED, RUNNING, SHED, STOPPED, Living
from seustream.cosim.bridge.loading import remember
from seustream.cosim.bridge.session import Session
from seustream.cosim.bridge.shedding import Shedding
from seustream.cosim.bridge.statements import (
    CatalogueChange,
    Entry,
    carried_out,
    entries_of,
    text_of,
)
from seustream.engine.analyze import analyzed

MOST_EVENTS = 200
"""The most events of a log in one answer."""
_LONGEST = 3000
"""The most bytes of an error in JSON: it travels in gRPC's trailers, which are short."""
_LOOK = 0.5
"""Seconds after which a wait for a change looks whether processing waits for readers."""
_CLOCK = 0.1
"""Seconds between checks whether a query's time is over."""


class Catalogue:
    """The catalogue of one session. Thread-safe."""

    def __init__(self, session: Session, note: Callable[[str, str], None] | None = None) -> None:
        self.session, self._note = session, note or (lambda event, detail: None)
        self._shedding = Shedding()
        self._lock, self._closing = session.world.lock(), session.world.event()
        self._standing: tuple[str, tuple[Entry, ...]] = ("", ())
        self._task = session.world.start("durations", self._watch)

    def close(self) -> None:
        self._closing.set()
        self._task.join()

    # --- changes --------------------------------------------------------------

    def statement(self, message: p.Statement) -> dict[str, Any]:
        """Executes statements of all three languages, all or none."""
        self._check_text(message.text)
        with self._lock:
            text, ended = self._without_ended(message.text)
            change = self._carried_out(text, message.file or "<statement>")
            gone = tuple(dict.fromkeys((*ended, *change.dropped)))
            if change.carried or gone:
                self._change(replace(change, dropped=gone), kept=message.kept)
        self._settle()
        if change.analyzed:
            self.session.read_units()
        with self.session.changed:
            figures = analyzed(self.session.run, change.analyzed)
        figures += map(_figures, self.listed() if change.lists else ())
        return {
            "created": list(change.created),
            "registered": [self._told(name) for name in change.registered],
            "dropped": list(gone),
            "shown": [*change.shown, *figures],
        }

    def register(self, message: p.Register) -> dict[str, Any]:
        """Registers one query under a name: APAS, or a SELECT or PATTERN without a header of its
        own. If the query of that name has ended, another run begins."""
        p.check_name("name", message.name)
        self._check_text(message.text)
        if message.language == "sql":
            _check_single(SourceText(message.text, message.file or message.name))
        around = (f"REGISTER QUERY {quoted(message.name)} AS ", "")
        if message.language == "apas":
            if "$$" in message.text:
                raise BridgeError("malformed", "text: $$ has no meaning in APAS")
            around = (around[0] + "APAS $$", "$$")
        elif message.language != "sql":
            raise BridgeError("malformed", f"language {message.language!r:.20}: want apas or sql")
        with self._lock:
            before = self.session.book.queries.get(message.name)
            if before is not None and before.phase == RUNNING:
                hint = f"stop it first, or take another name than {message.name}"
                raise BridgeError("in-use", f"query {message.name} is live already", hint)
            if any((e.kind, e.name) == ("query", message.name) for e in self._entries()):
                around = (f"DROP QUERY {quoted(message.name)};{around[0]}", around[1])
            text = message.text.rstrip().removesuffix(";") if around[1] == "" else message.text
            change = self._carried_out(text, message.file or message.name, around)
            change = replace(change, dropped=())
            if before is not None and before.phase == FAILED and message.name in self.texts():
                self._stop(before, "registered anew")
            self._change(change)
        self._settle()
        return self._told(message.name)

    def stop(self, name: str) -> dict[str, Any]:
        """Ends a query; its results stay. A query that has ended is unchanged."""
        with self._lock:
            one = self.session.book.find(name)
            if one.phase == RUNNING:
                self._stop(one, "on request")
        self._settle()
        return {"name": one.name, "phase": one.phase, "run": one.run}

    def swap(self, load: p.Load) -> dict[str, Any]:
        """Puts another query set in place of all statements in effect."""
        session = self.session
        with self._lock:
            is_other = session.swap(load)
        if is_other:
            session.flush()
            with session.changed:
                session.check_running()
        return {"already": not is_other}

    def stands(self, load: p.Load) -> bool:
        """Returns whether all statements of a query set are in effect, and run in the same way; there
        may be others."""
        session = self.session
        with self._lock:
            latest = session.latest_load
            here, there = session.compiled(latest), session.compiled(load)
            same = load.run == latest.run and there.options == here.options
            return same and {*entries_of(there)} <= {*self._entries()}

    def _stop(self, one: Living, why: str) -> None:
        change = self._carried_out(f"DROP QUERY {quoted(one.name)}", "<stop>")
        self._change(replace(change, dropped=()), {one.name: [one.run, why]})

    def _settle(self) -> None:
        """Waits until a change has taken effect, unless processing waits for readers: it is
        journalled, so it takes effect behind them."""
        session = self.session
        until = session.world.now() + session.limits.patience
        while True:
            try:
                session.flush(_LOOK)
            except BridgeError as error:
                if error.kind != "busy":
                    raise
            else:
                return
            with session.changed:
                if session.delivery.full or session.world.now() >= until:
                    return

    def _change(
        self,
        change: CatalogueChange,
        stopped: dict[str, list[Any]] | None = None,
        kept: bool = False,
    ) -> None:
        """Journals another query set, and its effect on queries."""
        session = self.session
        load = replace(message_of(change.compilation), run=session.load.run)
        remember(load, len(session.devices), session.libraries, change.compilation)
        self._standing = (change.compilation.source.text, change.entries)
        now = session.world.today()
        with session.changed:
            session.check_running()
            known = session.book.queries
            gone = set(change.dropped)
            stay = {name: one.run for name, one in known.items() if name not in gone}
            last = max([session.book.dropped, *(known[name].run for name in gone & known.keys())])
            if len(stay.keys() | set(change.registered)) > session.limits.queries:
                hint = "drop some that have ended"
                raise BridgeError("refused", f"there are {len(known):,} queries already", hint)
            session.check_swap(load, {*change.registered, *gone})
            texts = {entry.name: entry for entry in change.entries if entry.kind == "query"}
            registered = {
                name: {
                    "run": stay.get(name, last) + 1,
                    "language": texts[name].language,
                    "until": now + change.until[name] if name in change.until else None,
                    "kept": kept,
                    "text": " ".join(texts[name].text.split())[:200],
                }
                for name in change.registered
            }
            session.append(
                {
                    "kind": "swap",
                    "load": asdict(load),
                    "living": {
                        "dropped": list(change.dropped),
                        "stopped": stopped or {},
                        "registered": registered,
                    },
                }
            )

    def _watch(self) -> None:
        """Ends queries whose time is over and calls that do not return, and manages queries with a
        max_latency."""
        while not self._closing.wait(_CLOCK):
            if stuck := self.session.end_stuck():
                self._note("stuck", stuck)
            with contextlib.suppress(BridgeError), self._lock:
                self._balance()
            now = self.session.world.today()
            with self._lock:
                for one in list(self.session.book.queries.values()):
                    if one.phase == RUNNING and one.until is not None and one.until <= now:
                        try:
                            self._stop(one, "its time is over")
                        except BridgeError:
                            break  # the journal cannot be written now; retried later

    def _balance(self) -> None:
        """Lets queries give way to others, and come back."""
        session = self.session
        options = {e.name: e.options for e in self._entries() if e.kind == "query"}
        if all(of.max_latency is None for of in options.values()) and not session.book.shed:
            return
        live = [one.name for one in list(session.book.queries.values()) if one.phase == RUNNING]
        queries = {name: options[name] for name in live if name in options}
        behind, before = session.behind, session.book.shed
        missed = self._shedding.missed
        now = round(1000 * session.world.now())
        after = self._shedding.look(now, behind, queries, before)
        if after != before:
            session.give_way(after)
            for what, names in (
                ("shed", after.keys() - before.keys()),
                ("back", before.keys() - after.keys()),
            ):
                if names:
                    why = after.get(min(names), "rows are processed in time again")
                    self._note(what, f"{', '.join(sorted(names))}: {why}")
        if fresh := self._shedding.missed - missed:
            why = f"rows wait for {behind:,} ms, and no query of lower priority is left"
            self._note("late", f"{', '.join(sorted(fresh))}: {why}")

    # --- what there is --------------------------------------------------------

    def listed(self) -> list[dict[str, Any]]:
        """Lists the queries, in the order of their first registration."""
        session = self.session
        options = {e.name: e.options for e in self._entries() if e.kind == "query"}
        with session.changed:
            session.delivery.quality.worked(session.run)
            return [
                {
                    "name": one.name,
                    "language": one.language,
                    "phase": SHED if one.shed else one.phase,
                    "run": one.run,
                    "complete": one.complete,
                    "priority": options[one.name].priority if one.name in options else None,
                    "max_latency_ms": options[one.name].max_latency
                    if one.name in options
                    else None,
                    "since": one.since,
                    "until": one.until,
                    **self._results(one.name),
                    "lag_ms": session.run.lag_of(one.name),
                    **session.delivery.quality.of(one.name, session.run.taken_of(one.name)),
                }
                for one in session.book.queries.values()
            ]

    def streams(self, entered: Mapping[str, dict[str, Any]]) -> list[dict[str, Any]]:
        """Lists the base streams; `entered` describes the state of those that sources bring."""
        session, found = self.session, []
        base = session.compiled(session.latest_load).program.base
        with session.changed:
            report = session.run.report
            for stream in base:
                name = stream.name
                one = entered.get(name, {"state": "UNCONNECTED", "rejected": {}})
                rejected = Counter(one["rejected"])
                if report.late.get(name):
                    rejected["late"] += report.late[name]
                if report.timeless.get(name):
                    rejected["without_time"] += report.timeless[name]
                found.append(
                    {
                        "name": name,
                        "state": "STOPPED" if name in session.ended else one["state"],
                        "schema": str(tree_of(stream)),
                        "accepted": one.get("accepted", report.taken.get(name, 0)),
                        "rejected": dict(rejected),
                    }
                )
        return found

    def _results(self, name: str) -> dict[str, int]:
        log = self.session.logs.get(name)
        return {"results": 0, "kept": 0} if log is None else {"results": log.end, "kept": len(log)}

    def log(self, message: p.QueryLog) -> dict[str, Any]:
        """Returns the events of a name over all its runs, from the event `start` on."""
        with self.session.changed:
            found = self.session.book.find(message.name).events
            events = sorted(found, key=lambda event: event[:2])
            if not 0 <= message.start <= len(events):
                raise BridgeError("gap", f"there are {len(events):,} events")
            shown = events[message.start : message.start + MOST_EVENTS]
            return {"events": [list(event) for event in shown], "end": len(events)}

    def text(self) -> str:
        """Returns the statements in effect."""
        return text_of(entry.text for entry in self._entries())

    def texts(self) -> dict[str, str]:
        """Returns the statements of the catalogue, by the name that each defined."""
        return {entry.name: entry.text for entry in self._entries()}

    # --- inside ---------------------------------------------------------------

    def _told(self, name: str) -> dict[str, Any]:
        one = self.session.book[name]
        complete = {"complete": one.complete}
        return {"name": name, "run": one.run, "phase": one.phase, "until": one.until, **complete}

    def _entries(self) -> tuple[Entry, ...]:
        c = self.session.compiled(self.session.latest_load)
        if self._standing[0] != c.source.text:
            self._standing = (c.source.text, entries_of(c))
        return self._standing[1]

    def _carried_out(
        self, text: str, file: str, around: tuple[str, str] = ("", "")
    ) -> CatalogueChange:
        p.check_name("file", file)
        standing = self.session.compiled(self.session.latest_load)
        try:
            return carried_out(standing, self._entries(), text, file, around)
        except CompileError as error:
            raise BridgeError("compile", shown(error)) from None

    def _without_ended(self, text: str) -> tuple[str, list[str]]:
        """Removes from a text the DROPs of queries that have ended by themselves or no longer
        compile; also returns their names, of which only results and logs remain."""
        ended = []
        for span in split(text, Problems()) if "drop" in text.lower() else ():
            written = text[span.start : span.end]
            for statement in parse(SourceText(written), Problems()):
                if not isinstance(statement, DropQuery):
                    continue
                with contextlib.suppress(BridgeError):  # there is none
                    one = self.session.book.find(statement.name.text)
                    if one.phase == STOPPED or one.name not in self.texts():
                        ended.append(one.name)
                        text = text[: span.start] + " " * len(written) + text[span.end :]
        return text, ended

    def _check_text(self, text: str) -> None:
        try:
            text.encode()
        except UnicodeEncodeError:
            # JSON can spell what UTF-8 cannot.
            raise BridgeError(
                "malformed", "text: half of a character, which no file holds"
            ) from None
        if len(text) > self.session.limits.query_text:
            what = f"a text of {len(text):,} characters"
            raise BridgeError("too-large", f"{what}, at most {self.session.limits.query_text:,}")


def _check_single(source: SourceText) -> None:
    """Raises `BridgeError` for a text of several statements."""
    spans = list(split(source.text, Problems()))
    if len(spans) > 1:
        second = source.text[spans[1].start : spans[1].end]
        begin = spans[1].end - len(second.lstrip())
        what = f"there are {len(spans)} statements, want one SELECT or PATTERN"
        hint = "several go into REGISTER QUERY statements of a text"
        problem = Problem("several-statements", what, Span(begin, spans[1].end), hint)
        raise BridgeError("compile", shown(CompileError(source, [problem])))


def shown(error: CompileError) -> str:
    """Shows as many problems as an error has room for, each with its place and hint."""
    found: list[str] = []
    for number, problem in enumerate(error.problems):
        one = error.source.render(problem)
        if not _fits(one):
            one = _brief(error.source, problem)
        if not _fits("\n".join([*found, one])):
            return "\n".join([*found, f"and {len(error.problems) - number} more"])
        found.append(one)
    return "\n".join(found)


def _fits(text: str) -> bool:
    return len(json.dumps(text)) <= _LONGEST


def _brief(source: SourceText, problem: Problem) -> str:
    """Shows a problem without its line, which is too long."""
    line, column = source.position(problem.span.start)
    hint = f"\n  hint: {problem.hint:.200}" if problem.hint else ""
    return f"{source.name}:{line}:{column}: {problem.message:.200}{hint}"


_FIGURES = {
    "p50_ms": "p50 {:,.3g} ms",
    "p99_ms": "p99 {:,.3g} ms",
    "selectivity": "{:.3g} results a row",
    "time_share": "{:.1%} of the time",
    "cycle_share": "{:.1%} of the cycles",
    "state_bytes": "{:,} bytes of state",
    "lag_ms": "{:,} ms behind",
}


def _figures(one: Mapping[str, Any]) -> str:
    """Shows a line of a query's input and output figures, as far as they are known."""
    known = [form.format(one[what]) for what, form in _FIGURES.items() if one[what] is not None]
    return f"{one['name']} is {one['phase']}: " + ", ".join([f"{one['results']:,} results", *known])
