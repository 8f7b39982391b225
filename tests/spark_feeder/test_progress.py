"""The counts of one bridge and of several."""

from __future__ import annotations

from pathlib import Path

from seustream.cosim.bridge.client import BridgeClient
from seustream.spark_feeder.progress import FeedCounts
from tests.cosim.bridge.serving import bridge, compiled, feed_epoch, streams, wanted


def test_counts_of_bridges_add_up(tmp_path: Path) -> None:
    rows, want = streams(50, 1), wanted(compiled(), streams(50, 1))
    counts = FeedCounts()
    for number in range(2):
        with bridge(tmp_path / str(number)) as (_, url), BridgeClient(url) as client:
            client.load(compiled())
            counts.add(client.status())
            feed_epoch(client, 0, rows)
            client.end()
            client.flush()
            counts.add(client.status())
    assert counts.rows == {"R": 100, "S": 100}
    assert counts.results == {query: 2 * found.total() for query, found in want.items()}
    assert counts.epochs == 1
    assert counts.device["taken"] > 0
    line = counts.line(1.25)
    assert line.startswith("  1.2 s  200 rows → ")
    assert "late" not in line
    counts.late["R"] = 3
    assert "200 rows, 3 late" in counts.line(0)


def test_cycles_are_those_of_the_slowest() -> None:
    counts = FeedCounts()
    for cycles in (500, 700, 600):
        counts.add({"device_cycles_total": cycles, "device_pairs_total": 10})
    assert counts.device == {"cycles": 700, "pairs": 30}
