"""The budget of a job for transient errors: growing pauses, then one message."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from seustream.cosim.bridge.world import World
from seustream.spark_feeder.connection import Connection
from seustream.spark_feeder.errors import FeedError
from seustream.spark_feeder.job import Flow, Job


class Clock(World):
    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds


class Query:
    """A Spark query that has failed, or runs; `batch` is its last finished batch."""

    def __init__(self, why: str | None, batch: int | None = None) -> None:
        self.why, self.stopped = why, False
        self.lastProgress = None if batch is None else {"batchId": batch}

    def exception(self) -> Exception | None:
        return None if self.why is None else Exception(self.why)

    def stop(self) -> None:
        self.stopped = True


def job(starts: list[Query], restarts: int = 10) -> tuple[Job, Clock, list[float]]:
    clock, times = Clock(), list[float]()

    def start() -> Any:
        times.append(clock.time)
        return starts.pop(0)

    flow = Flow("stream R", start, starts.pop(0))  # type: ignore[arg-type]
    made = Job(Connection(()), [flow], [], True, restarts, world=clock)
    return made, clock, times


def looked_at(made: Job, clock: Clock, until: float = 600.0) -> None:
    while clock.time < until:
        made.look()
        clock.sleep(0.1)


@pytest.mark.parametrize(
    "why", ["Python worker failed to connect back", "FeedError: unavailable: gone"]
)
def test_a_job_that_cannot_go_on_ends_with_one_message(why: str) -> None:
    made, clock, times = job([Query(why) for _ in range(30)])
    with pytest.raises(FeedError, match=r"^stream R: .* \(started again 10 times\)$") as found:
        looked_at(made, clock)
    assert str(found.value).count("\n") == 0
    pauses = [after - before for before, after in itertools.pairwise(times)]
    assert pauses == sorted(pauses)
    assert pauses[-1] == pytest.approx(15.0, abs=0.3)
    assert 30 < clock.time < 90
    assert made.writers[0].query.stopped  # type: ignore[attr-defined]


def test_a_batch_in_between_gives_a_new_budget() -> None:
    failing = [Query("FeedError: busy: no room", batch) for batch in range(40)]
    made, clock, times = job([*failing, Query(None)], restarts=2)
    looked_at(made, clock)
    assert len(times) == 40


@pytest.mark.parametrize("kind", ["conflict", "gap", "schema", "failed"])
def test_what_does_not_pass_ends_it_at_once(kind: str) -> None:
    made, clock, times = job([Query(f"FeedError: {kind}: that is so")])
    with pytest.raises(FeedError, match=f"stream R: {kind}: that is so"):
        looked_at(made, clock)
    assert times == []
