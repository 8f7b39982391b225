"""Tests sites as processes over sockets: three sites, the centre on a node of its own, the query
node. Results are exact while messages are lost and repeated and the centre is killed and started
again."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from pathlib import Path

import pyarrow.flight as flight
import pytest

from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.bridge.security import Bearer
from seustream.cosim.sites.client import Client
from seustream.engine.sites.model import BlockRows, SiteRow
from tests.cosim.sites.cluster import Cluster, ClusterError
from tests.cosim.sites.layouts import CENTRE, QUERY_NODE, layout
from tests.engine.sites.oracle import answer, random_blocks


def numbered(blocks: list[BlockRows]) -> list[BlockRows]:
    numbers: dict[int, int] = {}
    found = []
    for block in blocks:
        no = numbers.get(block.stream, 0)
        numbers[block.stream] = no + 1
        found.append(BlockRows(block.stream, block.tau, block.rows, no))
    return found


@pytest.mark.parametrize("strategy", ["planned", "auto"])
def test_centre_killed_and_started_again_in_bad_weather(strategy: str, tmp_path: Path) -> None:
    windows: list[float] = [3, math.inf, 2]
    blocks = numbered(random_blocks(random.Random(12), 3, units=12))
    whole = layout(windows, strategy=strategy)
    with Cluster(whole, tmp_path, loss=0.1, repeat=0.1, delay=0.02) as cluster:
        assert cluster.layout.first_epoch == (1, CENTRE)
        third = len(blocks) // 3
        for block in blocks[:third]:
            cluster.submit(block)
        cluster.kill(CENTRE)
        for block in blocks[third : 2 * third]:
            cluster.submit(block)
        cluster.start(CENTRE)
        for block in blocks[2 * third :]:
            cluster.submit(block)
        cluster.settle()
        found = sorted(result.tids for _, result in cluster.results())
        assert cluster.results() == []
        epoch = cluster.agreed()
        assert not cluster.state(QUERY_NODE)["incomplete"]
    assert found == answer(windows, blocks)
    assert found
    assert epoch[0] > 1
    assert not cluster.processes


def test_centre_that_stays_dead_is_replaced(tmp_path: Path) -> None:
    windows: list[float] = [math.inf] * 3
    blocks = numbered(random_blocks(random.Random(3), 3))
    with Cluster(layout(windows, retry_limit=2), tmp_path) as cluster:
        cluster.submit(blocks[0])
        cluster.kill(CENTRE)
        for block in blocks[1:]:
            cluster.submit(block)
        cluster.settle()
        assert cluster.state(0)["leads"]
        assert sorted(r.tids for _, r in cluster.results()) == answer(windows, blocks)


def test_a_site_that_lost_its_rows_says_so(tmp_path: Path) -> None:
    def block(stream: int, tau: int, no: int) -> BlockRows:
        return BlockRows(stream, tau, (SiteRow((1,), tau),), no)

    with Cluster(layout([math.inf] * 3), tmp_path) as cluster:
        for stream in range(3):
            cluster.submit(block(stream, 0, 0))
        cluster.settle()
        cluster.kill(2)
        cluster.start(2)
        cluster.submit(block(2, 1, 1))
        cluster.settle()
        cluster.submit(block(0, 2, 1))
        cluster.settle()
        assert cluster.state(QUERY_NODE)["incomplete"]
        found = {tuple(no for _, no, _ in r.tids) for _, r in cluster.results()}
    # The result of the lost row and the last block, (1, 0, 0), is missing, and reported as such.
    assert found == {(0, 0, 0), (0, 0, 1), (1, 0, 1)}


def test_strangers_and_nonsense(tmp_path: Path) -> None:
    with Cluster(layout([1, 1, 1]), tmp_path) as cluster:
        for token, kind in (("0" * 32, "not the bridge"), (None, "wants a token")):
            stranger = Client(cluster.addresses[0], replace(cluster.setup, token=token))
            with pytest.raises(BridgeError, match=kind):
                stranger.act("state")
        other = Client(cluster.addresses[0], replace(cluster.setup, session="another"))
        with pytest.raises(BridgeError, match="knows nothing of this run"):
            other.act("state")
        connection = flight.connect(cluster.addresses[0], middleware=[Bearer(cluster.token)])
        with pytest.raises(flight.FlightServerError, match="malformed"):
            list(connection.do_action(flight.Action("state", b"no message")))
        with pytest.raises(ClusterError, match="no action dance"):
            cluster.ask(0, "dance")
        with pytest.raises(ClusterError, match="refused: block 5 of stream 0"):
            cluster.submit(BlockRows(0, 1, (), no=5))
        assert cluster.state(0)["idle"]
    with pytest.raises(ClusterError, match="does not answer"):
        cluster.state(0)
