"""Named queries: register, list, stop, and the special messages their nodes wait on.

supervisor = Supervisor(feed)
query = supervisor.register("fast", "where $I.v > 5 select [$I[T]]")
supervisor.subscribe("fast", sink)
supervisor.stop("fast")
for event in supervisor.log("fast"): print(event)
"""

from __future__ import annotations

import enum
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from seustream.compiler.apas.compile import Compiled, compile_query
from seustream.compiler.apas.libraries import Libraries
from seustream.compiler.apas.tree import Node
from seustream.compiler.errors import CompileError
from seustream.engine.supervisor.history import Event, History
from seustream.engine.temporal.feed import Feed
from seustream.engine.temporal.network import ElementNetwork, Sink
from seustream.engine.temporal.operators import Profile


class Phase(enum.Enum):
    COMPILING = "COMPILING"
    RUNNING = "RUNNING"
    STOPPING = "STOPPING"
    STOPPED = "STOPPED"
    FAILED = "FAILED"

    @property
    def live(self) -> bool:
        return self in (Phase.COMPILING, Phase.RUNNING, Phase.STOPPING)


class SupervisorError(ValueError):
    """A name that is taken or unknown, or a query that is not running."""


class CompileStale(Exception):
    """A stream's schema changed between compile and start."""


@dataclass(frozen=True, slots=True)
class Message:
    """A special message: SCHEMA_CHANGED, SOURCE_REMOVED or EXCEPTION, the node it is of, and its
    detail: the stream and its schema, or tuple, error and traceback."""

    kind: str
    node: str
    detail: Mapping[str, Any]


Handler = Callable[["Query", Message], str]
"""Answers "continue" or "stop". The node waits for it."""

KINDS = ("SCHEMA_CHANGED", "SOURCE_REMOVED", "EXCEPTION")


@dataclass(slots=True)
class Query:
    """One registration. `error` says why it failed."""

    name: str
    text: str
    run: int
    handlers: Mapping[str, Handler]
    phase: Phase = Phase.COMPILING
    compiled: Compiled | None = None
    network: ElementNetwork | None = None
    error: Exception | None = None
    done: threading.Event = field(default_factory=threading.Event)


class Supervisor:
    """`clock` gives the times of log entries."""

    def __init__(
        self,
        feed: Feed,
        libraries: Libraries | None = None,
        profile: Profile | None = None,
        scheduler: str = "inline",
        clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self.feed, self.libraries = feed, libraries or Libraries()
        self.profile, self.scheduler, self.clock = profile, scheduler, clock
        self.queries: dict[str, Query] = {}
        self.histories: dict[str, History] = {}
        self.lock = threading.RLock()

    # --- the API --------------------------------------------------------------

    def register(
        self, name: str, text: str, handlers: Mapping[str, Handler] | None = None
    ) -> Query:
        """Compiles and starts a query. One that does not compile or start is FAILED, its `error`
        says why; a name of a live query raises `SupervisorError`."""
        query = self.compile(name, text, handlers)
        if query.phase is Phase.COMPILING:
            self.start(name)
        return query

    def compile(
        self,
        name: str,
        text: str,
        handlers: Mapping[str, Handler] | None = None,
        file: str | None = None,
    ) -> Query:
        """The first half of `register`. `file` is what errors call the text, else its name."""
        unknown = sorted(set(handlers or {}) - set(KINDS))
        if unknown:
            raise SupervisorError(
                f"no message is called {unknown[0]}; there are {', '.join(KINDS)}"
            )
        with self.lock:
            if name in self.queries and self.queries[name].phase.live:
                raise SupervisorError(f"query {name} is live already")
            history = self.histories.setdefault(name, History())
            run = 1 + max((event.run for event in history.events), default=0)
            query = self.queries[name] = Query(name, text, run, dict(handlers or {}))
        self._log(query, "info", "COMPILING", text.strip().splitlines()[0] if text.strip() else "")
        try:
            query.compiled = compile_query(
                text, self.feed.catalogue.schemas(), name, self.libraries, file or name
            )
        except CompileError as error:
            self._fail(query, error)
            return query
        for warning in query.compiled.warnings:
            self._log(query, "warning", "compile", warning)
        return query

    def start(self, name: str) -> None:
        """The second half. Streams that changed since give `CompileStale` and FAILED."""
        query = self._query(name)
        compiled = query.compiled
        if query.phase is not Phase.COMPILING or compiled is None:
            raise SupervisorError(f"query {name} is {query.phase.value}")
        try:
            # Nothing changes a schema or feeds a tuple between the comparison and the subscription.
            with self.feed.lock, self.feed.catalogue.lock:
                schemas = self.feed.catalogue.schemas()
                for stream, version in compiled.versions.items():
                    if stream not in schemas or schemas[stream].version != version:
                        raise CompileStale(f"stream {stream} changed since the query was compiled")
                trees: dict[str, Node] = {s: schemas[s].tree for s in compiled.network.sources}
                network = query.network = ElementNetwork(
                    compiled.network,
                    compiled.tree,
                    trees,
                    self.profile,
                    self.scheduler,
                    lambda kind, node, detail: self._answer(query, Message(kind, node, detail)),
                    lambda why: self._ended(query, why),
                )
                network.start()
                query.phase = Phase.RUNNING
                for stream in compiled.network.sources:
                    self.feed.subscribe(stream, network)
            self._log(query, "info", "RUNNING", ", ".join(compiled.network.sources))
        except Exception as error:
            self._shut(query)
            self._fail(query, error)

    def subscribe(self, name: str, sink: Sink) -> None:
        """Results go to the sink, after a HEADER; without sinks they are discarded."""
        network = self._query(name).network
        if network is None:
            raise SupervisorError(f"query {name} is not running")
        network.subscribe(sink)

    def stop(self, name: str) -> None:
        """Ends a query, whatever it is doing. Idempotent."""
        query = self._query(name)
        self._end(query, "on request")
        query.done.wait()

    def list(self) -> list[tuple[str, str, int]]:
        """Name, phase and run of every query, in order of registration."""
        with self.lock:
            return [(q.name, q.phase.value, q.run) for q in self.queries.values()]

    def log(self, name: str) -> tuple[Event, ...]:
        """The history of a name, over all its runs."""
        if name not in self.histories:
            raise SupervisorError(f"there is no query {name}")
        return self.histories[name].events

    def close(self) -> None:
        """Stops every query."""
        for name in list(self.queries):
            self.stop(name)

    # --- special messages -----------------------------------------------------

    def _answer(self, query: Query, message: Message) -> bool:
        shown = {k: v for k, v in message.detail.items() if k != "traceback"}
        detail = f"{message.node}: " + ", ".join(f"{k} {v}" for k, v in shown.items())
        self._log(query, "warning", message.kind, detail)
        handler = query.handlers.get(message.kind)
        if handler is None:
            self._log(query, "error", "stop", f"no handler for {message.kind}")
            return False
        try:
            answer = handler(query, message)
        except Exception as error:
            self._log(query, "error", "stop", f"the handler of {message.kind} raised: {error!r}")
            return False
        self._log(query, "info", "answer", f"{message.kind}: {answer}")
        return answer == "continue"

    # --- ends -----------------------------------------------------------------

    def _ended(self, query: Query, why: str | None) -> None:
        """Called from a node: all inputs have stopped (None), or the network halts."""
        self._end(query, why or "all inputs have stopped")

    def _end(self, query: Query, why: str) -> None:
        with self.lock:
            if query.phase is Phase.COMPILING or query.phase is Phase.RUNNING:
                query.phase = Phase.STOPPING
            else:
                return
        self._log(query, "info", "STOPPING", why)
        self._shut(query)
        network = query.network
        if network is not None:
            counts = f"skipped {network.skipped}, bad keys {network.bad_keys}, unknown deletes"
            counts += f" {network.unknown_deletes}, at most {network.most_waiting} waiting"
            self._log(query, "info", "counters", counts)
        query.phase = Phase.STOPPED
        self._log(query, "info", "STOPPED", "")
        query.done.set()

    def _shut(self, query: Query) -> None:
        """Unsubscribe, signal the nodes, join their threads, drop what they hold; valid half-way
        through a start."""
        if query.network is not None:
            self.feed.unsubscribe(query.network)
            query.network.stop()

    def _fail(self, query: Query, error: Exception) -> None:
        query.error = error
        query.phase = Phase.FAILED
        self._log(query, "error", "FAILED", f"{type(error).__name__}: {error!s:.5000}")
        query.done.set()

    def _query(self, name: str) -> Query:
        with self.lock:
            if name not in self.queries:
                raise SupervisorError(f"there is no query {name}")
            return self.queries[name]

    def _log(self, query: Query, level: str, event: str, detail: str) -> None:
        self.histories[query.name].append(Event(self.clock(), query.run, level, event, detail))
