"""Queries on live sources behind a bridge: a feed, a supervisor, and the last results of each query.

    supervised = Supervised()
    at = supervised.listen(source_address("tcp://127.0.0.1:0"))
    bridge = Bridge(device, folder, supervised=supervised)      # which answers the query-… actions

No device takes part. Sources announce streams over TCP, a JSON object a line
(`seustream.engine.temporal.channels`). There is nothing on that channel that says who speaks, so it is
loopback alone. Queries, logs and results end with the process; the journal has no part of them.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from seustream.compiler.apas.libraries import Libraries
from seustream.compiler.apas.tree import Node, to_lists
from seustream.compiler.errors import CompileError, Problem, Source
from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.bridge.limits import USUAL, Limits
from seustream.cosim.bridge.security import Address, AddressRefused
from seustream.cosim.bridge.tail import Tail
from seustream.engine.supervisor.supervisor import (
    CompileStale,
    Phase,
    Query,
    Supervisor,
    SupervisorError,
)
from seustream.engine.temporal.catalogue import StreamState
from seustream.engine.temporal.elements import Element, ElementKind
from seustream.engine.temporal.feed import Feed, Note
from seustream.engine.temporal.operators import Profile
from seustream.engine.temporal.values import told

MOST_ROWS, MOST_BYTES = 1000, 1 << 20
"""Of results in one answer."""

MOST_EVENTS = 200
"""Of a log in one answer."""

_LONGEST = 3000
"""Bytes of an error, as JSON spells it: it travels in gRPC's trailers, which are short."""


def source_address(text: str) -> Address:
    """Of `tcp://127.0.0.1:PORT`; raises `AddressRefused`."""
    parts = urlsplit(text)
    try:
        port = parts.port
    except ValueError:
        port = None
    if parts.scheme != "tcp" or not parts.hostname or port is None or parts.path.strip("/"):
        raise AddressRefused(f"{text}: no address for sources", "want tcp://127.0.0.1:PORT")
    address = Address(parts.hostname, port)
    if not address.loopback:
        raise AddressRefused(
            f"{text}: others can reach this address, and sources have no token to give",
            "listen on 127.0.0.1; sources elsewhere can come through a tunnel",
        )
    return address


class Supervised:
    """`note` is called with what sources do, for a log; `libraries` are those queries may call; `strict` makes the first
    fault of a query an exception. Safe
    to use from several threads."""

    def __init__(
        self,
        limits: Limits = USUAL,
        note: Note | None = None,
        libraries: Libraries | None = None,
        strict: bool = False,
    ) -> None:
        self.limits = limits
        self.feed = Feed(note=self._noted, newcomers=limits.sources)
        self.supervisor = Supervisor(self.feed, libraries, Profile(strict=strict))
        self.tails: dict[str, Tail] = {}
        self.events: Counter[str] = Counter()
        self._note: Note = note or (lambda event, detail: None)
        self._registering = threading.Lock()
        self._changed = threading.Condition()
        self._closed = False

    def listen(self, address: Address) -> Address:
        """Takes sources there; gives where, with the port."""
        return Address(address.host, self.feed.listen(address.host, address.port))

    def close(self) -> None:
        """Ends sources, then queries, and calls that wait for results. Idempotent."""
        with self._registering:
            self._closed = True
        self.feed.close()
        self.supervisor.close()
        with self._changed:
            self._changed.notify_all()

    # --- actions --------------------------------------------------------------

    def act(self, name: str, request: Any) -> dict[str, Any]:
        """A query-… action's answer."""
        handlers: dict[str, Callable[[Any], dict[str, Any]]] = {
            "query-register": self.register,
            "query-list": self.listed,
            "query-stop": self.stop,
            "query-log": self.log,
            "query-results": self.results,
        }
        return handlers[name](request)

    def register(self, request: p.Register) -> dict[str, Any]:
        """Compiles and starts a query; its results are kept from the first on."""
        name = request.name
        p.check_name("name", name)
        p.check_name("file", request.file or name)
        if not _is_text(request.text):
            raise BridgeError("malformed", "text: half of a character, which no file holds")
        if len(request.text) > self.limits.query_text:
            what = f"a query of {len(request.text):,} characters"
            raise BridgeError("too-large", f"{what}, at most {self.limits.query_text:,}")
        with self._registering:
            self._check_room(name)
            try:
                query = self.supervisor.compile(name, request.text, file=request.file or name)
                tree = query.compiled.tree if query.compiled is not None else Node(name)
                tail = Tail(query.run, tree, self.limits.live_rows, self.limits.live_bytes)
                with self._changed:
                    self.tails[name] = tail
                # No element passes between the start and whoever keeps the results.
                with self.feed.lock:
                    if query.phase is Phase.COMPILING:
                        self.supervisor.start(name)
                    if query.phase is Phase.RUNNING:
                        self.supervisor.subscribe(name, partial(self._keep, tail))
            except SupervisorError as error:
                hint = f"stop it first, or take another name than {name}"
                raise BridgeError("in-use", str(error), hint) from None
        if query.error is not None:
            raise _refusal(query.error)
        return {"name": name, "run": query.run, "warnings": self._warnings(query)}

    def listed(self, request: p.Nothing) -> dict[str, Any]:
        """Queries in order of registration, and the streams there are."""
        queries = []
        for name, phase, run in self.supervisor.list():
            tail = self.tails.get(name)
            kept = (tail.end, len(tail)) if tail is not None else (0, 0)
            queries.append(
                {"name": name, "phase": phase, "run": run, "results": kept[0], "kept": kept[1]}
            )
        return {"queries": queries, "streams": self._streams()}

    def stop(self, request: p.Named) -> dict[str, Any]:
        """Ends a query; one that has ended stays so."""
        query = self._query(request.name)
        self.supervisor.stop(query.name)
        with self._changed:
            self._changed.notify_all()
        return {"name": query.name, "phase": query.phase.value, "run": query.run}

    def log(self, request: p.QueryLog) -> dict[str, Any]:
        """Returns what happened to a name over all its runs, from the event `start` on."""
        self._query(request.name)
        events = self.supervisor.log(request.name)
        if not 0 <= request.start <= len(events):
            raise BridgeError("gap", f"there are {len(events):,} events")
        shown = events[request.start : request.start + MOST_EVENTS]
        return {
            "events": [[e.time, e.run, e.level, e.event, e.detail] for e in shown],
            "end": len(events),
        }

    def results(self, request: p.Results) -> dict[str, Any]:
        """Results from an offset on, as many as fit in an answer; waits a while for the first."""
        until = time.monotonic() + min(request.wait_ms / 1000, self.limits.patience)
        query = self._query(request.name)
        with self._changed:
            tail = self.tails[request.name]
            if request.run not in (0, tail.run):
                what = f"{request.name}: the results of run {request.run} are gone"
                raise BridgeError("trimmed", what, f"run {tail.run} is the latest")
            while True:
                # First the phase: after the end of a query nothing is kept any more.
                ended = query.run != tail.run or not query.phase.live
                left = until - time.monotonic()
                if tail.end > request.start or ended or self._closed or left <= 0:
                    break
                self._changed.wait(left)
            start, found = tail.read(request.start, MOST_ROWS, MOST_BYTES)
            return {
                "run": tail.run,
                "schema": to_lists(tail.tree),
                "start": start,
                "rows": [[x.ts, x.te, *map(told, x.values)] for x in found],
                "end": tail.end,
                "over": ended and start + len(found) == tail.end,
            }

    # --- what it tells --------------------------------------------------------

    @property
    def live(self) -> int:
        """Queries that have not ended."""
        return sum(Phase[phase].live for _, phase, _ in self.supervisor.list())

    def samples(self) -> list[tuple[str, tuple[str, ...], float]]:
        """For `seustream.cosim.bridge.metrics`."""
        found: list[tuple[str, tuple[str, ...], float]] = [("live_queries", (), self.live)]
        with self._changed:
            for name, tail in self.tails.items():
                found.append(("live_results_total", (name,), tail.end))
                found.append(("live_results_dropped_total", (name,), tail.first))
            found += [("source_events_total", (e,), n) for e, n in sorted(self.events.items())]
        for stream in self._streams():
            name = stream["name"]
            found.append(("source_accepted_total", (name,), stream["accepted"]))
            for reason, number in sorted(stream["rejected"].items()):
                found.append(("source_rejected_total", (name, reason), number))
        return found

    def _streams(self) -> list[dict[str, Any]]:
        """As of now, while no element passes."""
        with self.feed.lock:
            return [
                {
                    "name": entry.name,
                    "state": entry.state.value,
                    "schema": str(entry.tree),
                    "accepted": entry.accepted,
                    "rejected": dict(entry.rejected),
                }
                for entry in self.feed.catalogue
            ]

    # --- inside ---------------------------------------------------------------

    def _check_room(self, name: str) -> None:
        if self._closed:
            raise BridgeError("stopping", "the bridge is going down")
        names = self.supervisor.queries
        if name not in names and len(names) >= self.limits.queries:
            hint = "register it under the name of a query that has ended"
            raise BridgeError("refused", f"there are {len(names):,} queries already", hint)

    def _query(self, name: str) -> Query:
        found = self.supervisor.queries.get(name)
        if found is None or name not in self.tails:
            known = ", ".join(sorted(self.tails)[:20])
            hint = f"there are {known}" if known else "none is registered"
            raise BridgeError("unknown", f"there is no supervised query {name!r:.60}", hint)
        return found

    def _warnings(self, query: Query) -> list[str]:
        assert query.compiled is not None
        found = [*query.compiled.warnings]
        known = {entry.name: entry for entry in self.feed.catalogue}
        for stream in query.compiled.network.sources:
            if stream in known and known[stream].state is StreamState.STOPPED:
                found.append(f"stream {stream} has stopped: nothing more comes of it")
        return found

    def _keep(self, tail: Tail, x: Element) -> None:
        if x.kind is ElementKind.INSERTION:
            with self._changed:
                tail.append(x)
                self._changed.notify_all()

    def _noted(self, event: str, detail: str) -> None:
        with self._changed:
            self.events[event] += 1
        self._note(event, detail)


def _is_text(text: str) -> bool:
    """JSON can spell what UTF-8 cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _refusal(error: Exception) -> BridgeError:
    """Why a query did not start."""
    match error:
        case CompileError():
            return BridgeError("compile", _shown(error))
        case CompileStale():
            return BridgeError("refused", str(error), "register it again")
    return BridgeError("internal", f"{type(error).__name__}: {error!s:.300}")


def _shown(error: CompileError) -> str:
    """As many problems as an error has room for, each with its place and hint."""
    shown: list[str] = []
    for number, problem in enumerate(error.problems):
        one = error.source.render(problem)
        if not _fits(one):
            one = _brief(error.source, problem)
        if not _fits("\n".join([*shown, one])):
            return "\n".join([*shown, f"and {len(error.problems) - number} more"])
        shown.append(one)
    return "\n".join(shown)


def _fits(text: str) -> bool:
    return len(json.dumps(text)) <= _LONGEST


def _brief(source: Source, problem: Problem) -> str:
    """Without the line, which is too long to show."""
    line, column = source.position(problem.span.start)
    hint = f"\n  hint: {problem.hint:.200}" if problem.hint else ""
    return f"{source.name}:{line}:{column}: {problem.message:.200}{hint}"
