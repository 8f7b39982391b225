"""Tests the limits of a bridge: whatever exceeds one is refused, or waits."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.bridge import Bridge
from seustream.cosim.bridge.client import BridgeClient, message_of
from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.bridge.limits import USUAL
from seustream.cosim.bridge.world import World
from seustream.cosim.golden import GoldenDevice
from tests.cosim.bridge.serving import (
    QUERIES,
    TINY,
    Process,
    bridge,
    compiled,
    cut,
    feed_epoch,
    kind_of,
    stage_epoch,
    streams,
)
from tests.cosim.bridge.soak import resident


def test_large_epochs_are_refused(tmp_path: Path) -> None:
    rows = streams(100, 1)
    limits = replace(USUAL, epoch_rows=150)
    with bridge(tmp_path, limits=limits) as (_, url), BridgeClient(url) as client:
        client.load(compiled())
        with pytest.raises(BridgeError, match="an epoch of 200 rows, at most 150") as caught:
            feed_epoch(client, 0, rows)
        assert kind_of(caught) == "too-large"
        with pytest.raises(BridgeError, match="more than 150 rows"):
            feed_epoch(client, 0, {"R": pa.concat_tables([rows["R"]] * 2)}, attempt="2")
        feed_epoch(client, 0, {"R": rows["R"]}, attempt="3")
    limits = replace(USUAL, epoch_bytes=3500)
    with bridge(tmp_path, limits=limits) as (_, url), BridgeClient(url) as client:
        with pytest.raises(BridgeError, match="more than 3,500 bytes in an epoch") as caught:
            feed_epoch(client, 1, {"R": pa.concat_tables([rows["R"]] * 3)})
        assert kind_of(caught) == "too-large"
        with pytest.raises(BridgeError, match=r"an epoch of [4-9],\d+ bytes, at most 3,500"):
            feed_epoch(client, 1, rows, attempt="2")
        feed_epoch(client, 1, {"R": rows["R"]}, attempt="3")


def test_above_its_memory_a_bridge_takes_no_rows_and_goes_on_below(tmp_path: Path) -> None:
    have = [0]

    class Small(World):
        def resident(self) -> int:
            return have[0]

    limits = replace(USUAL.within(1 << 30), patience=0.1)
    assert limits.result_bytes == 1 << 28
    rows = cut(streams(60, 3), 2)
    said = "has 2,048 MB of memory, and may have 1,024"
    with contextlib.closing(
        Bridge(GoldenDevice(TINY), tmp_path, "golden", limits, Small())
    ) as made:
        made.act("load", p.write(message_of(compiled())))
        stage_epoch(made, 0, rows[0])
        commit = stage_epoch(made, 1, rows[1], commit=False)
        have[0] = 2 << 30
        for call in (
            lambda: made.act("commit", p.write(commit)),
            lambda: stage_epoch(made, 1, rows[1], "-again", commit=False),
        ):
            with pytest.raises(BridgeError, match=said) as found:
                call()
            assert found.value.kind == "busy"
            assert found.value.retriable
        have[0] = 0
        made.act("commit", p.write(commit))
        made.session.limits = replace(limits, patience=30.0)  # a busy machine must not refuse
        made.session.flush()
        assert made.session.epochs.last("w") == 1


def test_an_explosion_of_results_stays_in_its_bounds(tmp_path: Path) -> None:
    """Joins 6,000 rows with 6,000 of one key: 36 million results, which are made as they are read.
    All at once they took 1.95 GB."""
    text = QUERIES.partition("REGISTER")[0] + (
        "REGISTER QUERY pairs AS SELECT R.b FROM R, S WHERE R.a = S.d WINDOW UNBOUNDED;"
    )
    rows, one = streams(6000, 1), pa.array([1] * 6000, pa.int32())
    rows["R"], rows["S"] = (
        rows[name].set_column(1, key, one) for name, key in (("R", "a"), ("S", "d"))
    )
    made = Process(tmp_path, "--backend", "engine", "--most-result-rows", "100000")
    read = most = 0
    with BridgeClient(made.url) as client:
        client.load(compiled(text))
        before = resident(made.process.pid)
        feed_epoch(client, 0, rows)
        client.end()
        before_readers = _at_rest(client, made.process.pid)
        assert 100_000 <= before_readers < 1 << 21
        while not (latest := client.latest("pairs", read, 1000))["over"] or read < latest["end"]:
            most = max(most, resident(made.process.pid))
            end = min(latest["end"], read + (1 << 18))
            assert client.read("pairs", read, end).num_rows == end - read
            client.trim("pairs", end, "r")
            read = end
    made.terminate()
    assert read == 6000**2
    assert most - before < 600 << 20


def _at_rest(client: BridgeClient, pid: int) -> int:
    """Waits until a bridge has results and its process is idle; returns the number of results."""
    before = 0.0
    while True:
        said = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        spent = (int(said[11]) + int(said[12])) / os.sysconf("SC_CLK_TCK")
        if spent - before < 0.1 and (end := client.latest("pairs")["end"]):
            return int(end)
        before = spent
        time.sleep(1.5)
