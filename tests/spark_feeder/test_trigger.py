"""The row of each run, as Spark asks for it; the tests of `keyed` read it with Spark."""

from __future__ import annotations

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from seustream.spark_feeder.trigger import TriggerReader


@pytest.mark.parametrize("bounded", [False, True])
def test_a_run_has_one_row_and_a_repeated_one_the_same(bounded: bool) -> None:
    reader = TriggerReader()
    start = {"run": 4, "bounded": not bounded}
    if bounded:
        reader.prepareForTriggerAvailableNow()
    latest = reader.latestOffset(start, ReadAllAvailable())
    assert latest == {"run": 5, "bounded": bounded}
    assert reader.latestOffset(latest, ReadAllAvailable()) == latest  # no more in this run
    again = TriggerReader()
    (only,) = again.partitions(start, latest)
    assert list(again.read(only)) == [(bounded,)]


def test_the_first_run_follows_nothing() -> None:
    reader = TriggerReader()
    first = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    assert first == {"run": 1, "bounded": False}
