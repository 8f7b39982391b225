"""Runs over services: what goes wrong is said in one line, with what was tried and what to do."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pyarrow.flight as flight
import pytest

from seustream.compiler.catalogue import Stream
from seustream.compiler.pipeline import compile_text
from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.sites import run as runs
from seustream.cosim.sites.client import Client
from seustream.cosim.sites.process import Process, Setup
from seustream.cosim.sites.run import RunFailed, SitesRun
from seustream.cosim.sites.service import SiteService
from seustream.engine.host.errors import EvaluationError
from seustream.engine.sites.costs import UnitCosts
from seustream.engine.sites.query import Where
from seustream.engine.sites.results import Across, finished, plan_across
from seustream.engine.sites.shared import SharedLayout
from seustream.engine.stream.faults import QueryFaults

TEXT = """
CREATE STREAM R (a int, b int);
CREATE STREAM S (d int, e int);
CREATE STREAM T (f int);
SELECT R.b, S.e FROM R, S WHERE R.a = S.d AND R.b + 1 > S.e WINDOW RANGE 10;
SELECT R.b, T.f FROM R, S, T WHERE R.a = S.d AND S.e = T.f WINDOW RANGE 10;
"""
ROWS = {
    "R": pa.table({"ts": [1, 2, 9], "a": pa.array([1, 2, 1], pa.int32()), "b": [5, 6, 7]}),
    "S": pa.table({"ts": [3, 4], "d": pa.array([1, 2], pa.int32()), "e": [5, 6]}),
    "T": pa.table({"ts": [5, 1, 6], "f": pa.array([6, 6, 5], pa.int32())}),
}


def service(stream: str, token: str | None = None) -> SiteService:
    return SiteService("grpc://127.0.0.1:0", {stream: lambda definition: ROWS[stream]}, token)


@pytest.fixture
def services() -> Iterator[list[SiteService]]:
    made = [service("R"), service("S")]
    yield made
    for one in made:
        one.close()


def across() -> Across:
    return plan_across(compile_text(TEXT).program, {"r", "s"})


def setup(services: list[SiteService], **options: object) -> Setup:
    """R and S at services, T here; then the query node."""
    plan = across()
    where = {0: 1, 1: 2, 2: 0, 3: 0}
    costs = UnitCosts.of([[0 if where[a] == where[b] else 1 for b in where] for a in where])
    layout = SharedLayout(plan.sites, plan.joins, costs, 3, retry=200.0)
    addresses = (None, *(f"grpc://127.0.0.1:{one.port}" for one in services))
    return replace(Setup(layout, where, addresses, plan.of), **options)  # type: ignore[arg-type]


NAMES = {1: "site R at grpc://r", 2: "site S at grpc://s"}


def start(of: Setup) -> SitesRun:
    return SitesRun(of, NAMES, {"T": ROWS["T"]}, patience=0.5)


def results(run: SitesRun) -> list[list[tuple[object, ...]]]:
    plan = across()
    found = []
    for q, (query, join) in enumerate(zip(plan.queries, plan.joins, strict=True)):
        rows = [result.rows for number, result in run.results if number == q]
        table = finished(query, join, ["R", "S", "T"], rows, QueryFaults())
        found.append(list(zip(*(c.to_pylist() for c in table.columns), strict=True)))
    return found


@pytest.mark.parametrize("faults", [{}, {"loss": 0.2, "repeat": 0.2, "delay": 0.02}])
def test_rows_of_select(services: list[SiteService], faults: dict[str, float]) -> None:
    with start(setup(services, **faults)) as run:
        run.wait()
        assert results(run) == [
            [(5, 5, 1, 3), (6, 6, 2, 4), (7, 5, 3, 9)],
            [(6, 6, 2, 5), (5, 5, 1, 6), (7, 5, 3, 9)],
        ]
        assert run.taken == {"R": 3, "S": 2, "T": 2}
        assert run.late == {"T": 1}
        assert run.fetch(across().of[0], 1).equals(ROWS["R"])
    assert all(one.process is None for one in services)


def test_frames_are_kept_while_a_site_is_silent(
    services: list[SiteService], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A frame that was dropped would come again after a minute only."""
    act, chance = Client.act, random.Random(1)

    def sometimes(self: Client, name: str, *arguments: object) -> object:
        if name == "exchange" and chance.random() < 0.5:
            raise BridgeError("unavailable", "a short silence")
        return act(self, name, *arguments)

    monkeypatch.setattr(Client, "act", sometimes)
    of = setup(services)
    of = replace(of, layout=replace(of.layout, retry=60_000.0))
    with SitesRun(of, NAMES, {"T": ROWS["T"]}) as run:
        begun = time.monotonic()
        run.wait()
        assert [len(rows) for rows in results(run)] == [3, 3]
        assert time.monotonic() - begun < 40


def test_slack_accepts_what_is_late(services: list[SiteService]) -> None:
    with start(setup(services, slack=4)) as run:
        run.wait()
        assert (run.late, run.taken["T"]) == ({}, 3)
        assert len(results(run)[1]) == 4


def test_nobody_there(services: list[SiteService]) -> None:
    of = setup(services)
    services[1].close()
    with pytest.raises(RunFailed, match="site S at grpc://s does not answer, called") as raised:
        start(of).__enter__()
    assert "seustream serve --site S=FILE" in str(raised.value.hint)


def test_a_site_that_dies(services: list[SiteService], monkeypatch: pytest.MonkeyPatch) -> None:
    with start(setup(services)) as run:
        monkeypatch.setattr(Process, "feed", lambda self, rows: setattr(self, "feeding", 1))
        monkeypatch.setattr(runs, "TICK", 0.1)
        ask = run._ask
        monkeypatch.setattr(
            run, "_ask", lambda n, act, *a: (act == "state" and services[0].close(), ask(n, act))[1]
        )
        with pytest.raises(RunFailed, match="site R at grpc://r does not answer, called"):
            run.wait()


def test_a_site_that_started_again(services: list[SiteService]) -> None:
    with start(setup(services)) as run:
        services[0].process = None
        with pytest.raises(RunFailed, match="site R at grpc://r: the site knows nothing") as raised:
            run.wait()
        assert raised.value.hint == "run the queries again"


def test_sites_that_do_not_reach_each_other(services: list[SiteService]) -> None:
    of = setup(services)
    with start(of) as run:
        # As if the second were at an address that only this machine knows.
        process = services[0].process
        assert process is not None
        process.unreachable[2] = time.monotonic() - 9, "unavailable: no route"
        process._threads.clear()
        process.unreachable = _Fixed(process.unreachable)
        with pytest.raises(RunFailed, match=r"site R at grpc://r cannot reach site S .* 9 s: unav"):
            run.wait()


class _Fixed(dict[int, tuple[float, str]]):
    def pop(self, *arguments: object) -> object:  # type: ignore[override]
        return None


def test_a_stream_that_is_not_there() -> None:
    with (
        service("S") as one,
        service("S") as other,
        pytest.raises(RunFailed, match="site R at grpc://r: it has no stream R; its streams: s"),
    ):
        start(setup([one, other])).__enter__()


def test_tokens() -> None:
    with service("R", "t" * 20) as one, service("S", "t" * 20) as other:
        with start(setup([one, other], token="t" * 20)) as run:
            run.wait()
            assert len(results(run)[0]) == 3
        with pytest.raises(RunFailed, match="wants a token") as raised:
            start(setup([one, other])).__enter__()
        assert "--token-file" in str(raised.value.hint)


def test_a_condition_without_a_value_ends_the_run(
    services: list[SiteService], monkeypatch: pytest.MonkeyPatch
) -> None:
    def among(self: Where, payloads: object) -> list[bool]:
        raise EvaluationError("R.b + 1: overflow")

    monkeypatch.setattr(Where, "among", among)
    with (
        start(setup(services)) as run,
        pytest.raises(RunFailed, match=r"site . at grpc://.: R.b \+ 1: overflow"),
    ):
        run.wait()


def test_what_is_no_call(services: list[SiteService]) -> None:
    of = setup(services)
    client = Client(str(of.addresses[1]), of)
    with pytest.raises(BridgeError, match="knows nothing of this run"):
        client.act("state")
    with pytest.raises(BridgeError, match="no action dance"):
        client.act("dance")
    connection = flight.connect(str(of.addresses[1]))
    with pytest.raises(flight.FlightServerError, match="malformed"):
        list(connection.do_action(flight.Action("open", b"{")))
    with pytest.raises(BridgeError, match="no stream Q"):
        client.rows(Stream("Q", ()))
