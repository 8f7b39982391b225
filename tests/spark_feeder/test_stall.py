"""Bridges that wait for a reader that does not come: the job reports it, and ends with one
message."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql.types import LongType, StructType

from seustream.cosim.bridge.client import BridgeClient
from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.bridge.limits import USUAL
from seustream.spark_feeder import stall as module
from seustream.spark_feeder.connection import Connection
from seustream.spark_feeder.errors import FeedError
from seustream.spark_feeder.job import Job
from seustream.spark_feeder.source import BatchReader, BridgeResults, SourceReader
from seustream.spark_feeder.stall import Stall, StallWarning, budget, pause
from tests.cosim.bridge.serving import bridge, compiled, cut, feed_epoch, streams
from tests.spark_feeder.test_budget import Clock

FEW = replace(USUAL, result_rows=40, patience=0.2)


@contextlib.contextmanager
def full(folder: Path, patience: float = 0.0) -> Iterator[tuple[BridgeClient, Connection]]:
    """Makes a bridge whose results wait for readers: most are of `pairs`, and `spark` has read
    some."""
    with bridge(folder, limits=FEW) as (made, url), BridgeClient(url, patience=5) as client:
        client.load(compiled())
        for epoch, part in enumerate(cut(streams(400, 5), 40)):
            feed_epoch(client, epoch, part)
        client.end()
        with pytest.raises(BridgeError, match="wait for a reader, and nobody has read any"):
            client.act("flush", patience=0)
        client.trim("pairs", 10, "spark")
        while not made.session.delivery.full:
            client.latest("pairs", 10_000, wait_ms=10)
        yield client, Connection((url,), patience=patience)


class Quick(Clock):
    """A clock that advances whenever it is read."""

    def now(self) -> float:
        self.time += 2.0
        return self.time


def test_the_budget_is_that_of_a_query_that_fails() -> None:
    assert [pause(number) for number in range(3)] == [0.2, 0.4, 0.8]
    assert budget(10, 60.0) == pytest.approx(10 * 60 + 25.4 + 3 * 15)


def test_a_job_says_who_is_waited_for_and_ends(tmp_path: Path) -> None:
    said: list[str] = []
    with full(tmp_path) as (_, connection):
        clock = Quick()
        job = Job(connection, [], [], bounded=True, world=clock, say=said.append)
        with pytest.raises(
            FeedError, match=r"^busy: .* results of pairs wait for a reader"
        ) as found:
            job.finish()
    assert "; spark has read 10 of" in str(found.value)
    assert str(found.value).endswith("seconds)")
    assert "\n" not in str(found.value)
    assert found.value.hint == module.HINT
    assert 70 < clock.time < 120
    assert 1 <= len(said) <= 2
    assert said[0].startswith("busy: ")
    assert module.HINT in said[0]


def test_a_job_goes_on_once_somebody_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On each message the test reads a little."""
    monkeypatch.setattr(module, "_AGAIN", 0.0)
    told = 0
    with full(tmp_path) as (client, connection):

        def read(what: str) -> None:
            nonlocal told
            told += 1
            for name in ("pairs", "large"):
                client.trim(name, client.latest(name)["end"], "spark")

        job = Job(connection, [], [], bounded=True, world=Quick(), say=read)
        counts = job.finish()
        assert client.latest("pairs")["over"]
    assert told > 2
    assert counts.waiting == 0


def test_work_that_takes_long_and_a_bridge_that_is_away_for_a_moment_are_no_stall() -> None:
    """Only a bridge that is full, or away all the time, is given up."""

    class Client:
        def __init__(self) -> None:
            self.answers: list[dict[str, object] | BridgeError] = []

        def status(self, patience: float) -> dict[str, object]:
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            if isinstance(answer, BridgeError):
                raise answer
            return answer

    working = {"full": None, "rows_waiting": 7}
    waiting = {"full": "9 results of q wait for a reader", "rows_waiting": 7}
    gone = BridgeError("unavailable", "nobody answers", "is it running?")
    client, clock, said = Client(), Clock(), list[str]()
    stall = Stall(clock, 20.0, said.append)

    def look(seconds: float) -> None:
        for _ in range(int(seconds)):
            stall.check([client])  # type: ignore[list-item]
            clock.sleep(1.0)

    client.answers = [working]
    look(100)
    client.answers = [gone]
    look(15)
    client.answers = [working]
    look(100)
    assert said == []
    client.answers = [waiting]
    look(10)
    assert said == [f"busy: 9 results of q wait for a reader ({module.HINT})"]
    client.answers = [gone]
    with pytest.raises(
        FeedError, match=r"unavailable: nobody answers \(for 2\d seconds\)"
    ) as found:
        look(30)
    assert found.value.hint == "is it running?"


def test_looks_of_a_job_that_still_feeds_only_say_it() -> None:
    class Client:
        def status(self, patience: float) -> dict[str, object]:
            return {"full": "9 results of q wait for a reader", "rows_waiting": 7}

    client, clock, said = Client(), Clock(), list[str]()
    stall = Stall(clock, 5.0, said.append)
    for _ in range(1300):
        stall.look([client])  # type: ignore[list-item]
        clock.sleep(0.1)
    assert len(said) == 3


@pytest.mark.parametrize("bounded", [True, False])
def test_a_reader_beside_spark_does_not_wait_for_another_for_ever(
    tmp_path: Path, bounded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reads `large` while `pairs` has no reader: as a stream to the end of what is there, and at
    once."""
    monkeypatch.setattr(module, "MACHINE", Quick())
    with full(tmp_path) as (client, connection):
        end = client.latest("large")["end"]
        results = BridgeResults(connection, "large", StructType().add("a", LongType()), False)
        reader = SourceReader(results, "spark", 50, None)
        reader.prepareForTriggerAvailableNow()

        def wait() -> None:
            if bounded:
                reader.latestOffset({"0": end, "query": "large"}, reader.getDefaultReadLimit())
            else:
                BatchReader(results).partitions()

        what = "results of pairs wait for a reader"
        with pytest.warns(StallWarning, match=what), pytest.raises(FeedError, match=what) as found:
            wait()
    assert str(found.value).startswith("busy: ")
