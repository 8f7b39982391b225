"""Lives of queries: phases, logs, special messages, and that nothing is left after an end."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import pytest

from seustream.compiler.errors import CompileError
from seustream.engine.supervisor.supervisor import (
    CompileStale,
    Handler,
    Message,
    Phase,
    Query,
    Supervisor,
    SupervisorError,
)
from seustream.engine.temporal.elements import REMOVE, STOP, Element, ElementKind, header, insertion
from seustream.engine.temporal.feed import Feed
from seustream.engine.temporal.operators import Profile

FIRST = [["v", "INTEGER"], ["w", "INTEGER"]]
TEXT = "where $I.v > 5 select [x = 100 / $I.v]"
DIVIDES = "select [x = 100 / $I.v]"


def supervised(scheduler: str = "inline") -> tuple[Feed, Supervisor]:
    feed = Feed()
    feed.register("I")
    feed.register("J")
    feed.offer("I", header(FIRST))
    feed.offer("J", header(FIRST))
    ticks = itertools.count(1)
    return feed, Supervisor(
        feed, profile=Profile(strict=True), scheduler=scheduler, clock=lambda: next(ticks)
    )


def events(supervisor: Supervisor, name: str) -> list[str]:
    return [event.event for event in supervisor.log(name)]


def settle(query: Query) -> None:
    if query.network is not None:
        query.network.drain()


@pytest.fixture(params=["inline", "threads"])
def scheduler(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


def test_a_query_lives_and_ends(scheduler: str) -> None:
    feed, supervisor = supervised(scheduler)
    query = supervisor.register("q", TEXT)
    out: list[Element] = []
    supervisor.subscribe("q", out.append)
    assert supervisor.list() == [("q", "RUNNING", 1)]
    feed.offer("I", insertion(1, 2, 50, 0))
    feed.offer("I", insertion(2, 3, 4, 0))
    settle(query)
    supervisor.stop("q")
    supervisor.stop("q")
    assert [x.values for x in out if x.kind is ElementKind.INSERTION] == [(2,)]
    assert supervisor.list() == [("q", "STOPPED", 1)]
    assert events(supervisor, "q") == ["COMPILING", "RUNNING", "STOPPING", "counters", "STOPPED"]


def test_names_are_unique_among_live_queries() -> None:
    _, supervisor = supervised()
    supervisor.register("q", TEXT)
    with pytest.raises(SupervisorError, match="q is live already"):
        supervisor.register("q", TEXT)
    supervisor.stop("q")
    assert supervisor.register("q", TEXT).run == 2
    with pytest.raises(SupervisorError, match="there is no query r"):
        supervisor.stop("r")
    with pytest.raises(SupervisorError, match="no message is called OTHER"):
        supervisor.register("r", TEXT, {"OTHER": lambda query, message: "stop"})


@pytest.mark.acceptance(9)
def test_logs_are_separate_and_survive() -> None:
    _feed, supervisor = supervised()
    supervisor.register("a", TEXT)
    failed = supervisor.register("b", "select [x = $I.nope]")
    supervisor.stop("a")
    supervisor.register("a", TEXT)
    assert {event.run for event in supervisor.log("a")} == {1, 2}
    assert events(supervisor, "b") == ["COMPILING", "FAILED"]
    assert "UnknownAttribute" not in supervisor.log("b")[-1].detail
    assert "there is no attribute $I.nope" in supervisor.log("b")[-1].detail
    assert isinstance(failed.error, CompileError)
    assert [event.time for event in supervisor.log("b")] == sorted(
        e.time for e in supervisor.log("b")
    )


@pytest.mark.acceptance(8)
def test_a_schema_that_changes_between_compile_and_start() -> None:
    feed, supervisor = supervised()
    supervisor.compile("q", TEXT)
    feed.offer("I", header([["v", "INTEGER"]]))
    supervisor.start("q")
    assert supervisor.list() == [("q", "FAILED", 1)]
    assert isinstance(supervisor.queries["q"].error, CompileStale)
    assert feed.subscriptions == 0
    with pytest.raises(SupervisorError, match="q is FAILED"):
        supervisor.start("q")


# --- special messages ---------------------------------------------------------

CAUSES: dict[str, Element] = {
    "SCHEMA_CHANGED": header([*FIRST, ["z", "STRING"]]),
    "SOURCE_REMOVED": REMOVE,
    "EXCEPTION": insertion(1, 2, 0, 0),
}


@pytest.mark.acceptance(5)
@pytest.mark.parametrize("kind", CAUSES)
def test_without_a_handler_the_network_stops(kind: str, scheduler: str) -> None:
    feed, supervisor = supervised(scheduler)
    query = supervisor.register("q", DIVIDES)
    feed.offer("I", CAUSES[kind])
    query.done.wait(10)
    assert query.phase is Phase.STOPPED
    assert feed.subscriptions == 0
    found = events(supervisor, "q")
    assert kind in found
    stopping = next(event for event in supervisor.log("q") if event.event == "STOPPING")
    assert stopping.detail.startswith(kind)


@pytest.mark.acceptance(2, 6)
@pytest.mark.parametrize("kind", CAUSES)
def test_continue(kind: str, scheduler: str) -> None:
    feed, supervisor = supervised(scheduler)
    asked: list[Message] = []

    def handler(query: Query, message: Message) -> str:
        asked.append(message)
        return "continue"

    query = supervisor.register(
        "q", "where util.union($I, $J) select [x = 100 / $new.v]", {kind: handler}
    )
    if kind == "SCHEMA_CHANGED":
        query = supervisor.register("r", DIVIDES, {kind: handler})
    out: list[Element] = []
    supervisor.subscribe(query.name, out.append)
    feed.offer("I", CAUSES[kind])
    if kind == "SCHEMA_CHANGED":
        feed.offer("I", CAUSES[kind])  # an equal one sends nothing
        feed.offer("I", insertion(4, 5, 10, 0, "z"))
    else:
        feed.offer("J", insertion(4, 5, 10, 0))
        if kind == "EXCEPTION":
            feed.offer("I", insertion(5, 6, 10, 0))
    for each in supervisor.queries.values():  # the first query is asked too
        settle(each)
    assert [x.values for x in out if x.kind is ElementKind.INSERTION] == [(10,)]
    assert {message.kind for message in asked} == {kind}
    assert len(asked) == (2 if kind == "SCHEMA_CHANGED" else 1)
    if kind == "EXCEPTION":
        assert asked[0].detail["tuple"].values[0] == 0
        assert "FaultError" in asked[0].detail["traceback"]
        assert query.network is not None
        assert query.network.skipped == 1
    supervisor.close()


def stop(query: Query, message: Message) -> str:
    return "stop"


def raises(query: Query, message: Message) -> str:
    raise RuntimeError("the handler itself")


@pytest.mark.acceptance(6)
@pytest.mark.parametrize("handler", [stop, raises])
@pytest.mark.parametrize("kind", CAUSES)
def test_a_handler_that_stops_or_raises(kind: str, handler: Handler, scheduler: str) -> None:
    feed, supervisor = supervised(scheduler)
    query = supervisor.register("q", DIVIDES, {kind: handler})
    feed.offer("I", CAUSES[kind])
    query.done.wait(10)
    assert query.phase is Phase.STOPPED


@pytest.mark.acceptance(6)
@pytest.mark.parametrize("schema", [[["w", "INTEGER"]], [["v", "DOUBLE"], ["w", "INTEGER"]]])
def test_continue_needs_a_compatible_schema(schema: list[Any], scheduler: str) -> None:
    feed, supervisor = supervised(scheduler)
    query = supervisor.register("q", DIVIDES, {"SCHEMA_CHANGED": lambda q, m: "continue"})
    feed.offer("I", header(schema))
    query.done.wait(10)
    assert query.phase is Phase.STOPPED
    detail = [event.detail for event in supervisor.log("q") if event.event == "STOPPING"]
    assert detail[0].startswith("stream I: v is")


# --- nothing is left ----------------------------------------------------------


@pytest.mark.acceptance(7)
def test_nothing_is_left_after_a_stop(scheduler: str) -> None:
    before = threading.active_count()
    feed, supervisor = supervised(scheduler)
    for name in ("a", "b"):
        supervisor.register(name, "where $I.v == $J.v select [n = agg.count($I.v)]")
    for t in range(50):
        feed.offer("I", insertion(t, t + 30, 1, 0))
        feed.offer("J", insertion(t, t + 30, 1, 0))
    for name in ("a", "b", "a"):
        supervisor.stop(name)
    assert threading.active_count() == before
    assert feed.subscriptions == 0
    for query in supervisor.queries.values():
        assert query.network is not None
        assert not any(queue for op in query.network.operators for queue in op.sync.queues)


@pytest.mark.acceptance(7)
def test_nothing_is_left_after_a_failed_start(
    scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = threading.active_count()
    feed, supervisor = supervised(scheduler)

    def fails(name: str, network: object) -> None:
        raise MemoryError("no room")

    monkeypatch.setattr(feed, "subscribe", fails)
    query = supervisor.register("q", TEXT)
    assert query.phase is Phase.FAILED
    supervisor.stop("q")
    assert threading.active_count() == before
    assert feed.subscriptions == 0


@pytest.mark.acceptance(7)
def test_stop_under_load(scheduler: str) -> None:
    before = threading.active_count()
    feed, supervisor = supervised(scheduler)
    supervisor.register("q", "select [n = agg.count($I.v)]")
    going = threading.Event()

    def load() -> None:
        for t in range(100_000):
            feed.offer("I", insertion(t, t + 3, 1, 0))
            if t == 100:
                going.set()
            if not feed.subscriptions:
                return

    thread = threading.Thread(target=load)
    thread.start()
    going.wait(10)
    supervisor.stop("q")
    thread.join()
    assert threading.active_count() == before
    assert supervisor.queries["q"].phase is Phase.STOPPED


@pytest.mark.acceptance(10)
def test_when_all_inputs_have_stopped_the_query_has(scheduler: str) -> None:
    before = threading.active_count()
    feed, supervisor = supervised(scheduler)
    query = supervisor.register("q", "select [n = agg.count($I.v)]")
    out: list[Element] = []
    supervisor.subscribe("q", out.append)
    feed.offer("I", insertion(1, 9, 1, 0))
    feed.offer("I", STOP)
    query.done.wait(10)
    supervisor.stop("q")
    assert [repr(x) for x in out[-2:]] == ["[1,9) 1", "STOP"]
    for thread in threading.enumerate():
        if thread.name.startswith("node"):
            thread.join()
    assert threading.active_count() == before
