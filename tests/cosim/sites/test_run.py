"""Tests runs over services: an error is reported in one line, with what was tried and what to
do."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from typing import Any

import pyarrow.flight as flight
import pytest

from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.sites import run as runs
from seustream.cosim.sites.client import Client
from seustream.cosim.sites.process import Process
from seustream.cosim.sites.run import RunFailed, SitesRun
from seustream.cosim.sites.service import SiteService
from seustream.engine.host.errors import EvaluationError
from seustream.engine.sites.query import Where
from seustream.engine.times import UNKNOWN
from tests.cosim.sites.services import (
    NAMES,
    ROWS,
    TIMES,
    across,
    results,
    service,
    setup,
    start,
)


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
        assert run.times == TIMES
        whole = run.fetch(across().of[0], 1)
        assert whole.rows.equals(ROWS["R"], check_metadata=True)
        assert whole.time == TIMES["R"]
    assert all(one.process is None for one in services)


def test_frames_are_kept_while_a_site_is_silent(
    services: list[SiteService], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A frame that was dropped would come again only after a minute."""
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


def test_a_site_of_an_earlier_release_does_not_know_the_types_of_times(
    services: list[SiteService], monkeypatch: pytest.MonkeyPatch
) -> None:
    def plainly(self: SiteService, *arguments: Any) -> None:
        opened(self, *arguments)

    def rows(self: SiteService, *call: object) -> flight.RecordBatchStream:
        return flight.RecordBatchStream(ROWS["R"])

    opened = SiteService._open
    monkeypatch.setattr(SiteService, "_open", plainly)
    monkeypatch.setattr(SiteService, "do_get", rows)
    with start(setup(services)) as run:
        run.wait()
        assert run.times == {}
        assert run.fetch(across().of[0], 1).time == UNKNOWN
        assert len(results(run)[0]) == 3


def test_slack_accepts_what_is_late(services: list[SiteService]) -> None:
    with start(setup(services, slack=4)) as run:
        run.wait()
        assert (run.late, run.taken["T"]) == ({}, 3)
        assert len(results(run, 4)[1]) == 4


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
        # As if the second service were at an address that only this machine knows.
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


def test_a_site_under_two_addresses(services: list[SiteService]) -> None:
    """A second number would replace the first, and its rows; the same one is only said again."""
    with start(setup(services)) as run:
        run._ask(1, "open", run.setup.plain(), 1, 0)
    with pytest.raises(RunFailed, match="site S at grpc://s: this run has it under another"):
        start(setup([services[0], services[0]])).__enter__()


def test_a_stream_that_is_not_there() -> None:
    with (
        service("S") as one,
        service("S") as other,
        pytest.raises(RunFailed, match="site R at grpc://r: it has no stream R; its streams: s"),
    ):
        start(setup([one, other])).__enter__()


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
