"""The relay before each node does lose, repeat and delay, and nothing else."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest

from engine.sites.cluster import Cluster
from engine.sites.model import Join
from engine.sites.node import Layout
from tests.engine.sites.oracle import answer, random_blocks
from tests.engine.sites.running import costs
from tests.system import places
from tests.system.places import Relay, apart


def test_results_are_exact_behind_relays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there are no namespaces."""
    monkeypatch.setattr(places.os, "geteuid", lambda: 1)
    made: list[Relay] = []
    enter = Relay.__enter__
    monkeypatch.setattr(Relay, "__enter__", lambda self: made.append(self) or enter(self))  # type: ignore[func-returns-value]
    windows = [math.inf, 3]
    blocks = random_blocks(random.Random(4), 2)
    layout = Layout(Join.on_one_key(windows), costs(random.Random(4), 3), 2, retry=40.0)
    with apart(3, loss=0.2, repeat=0.2, delay=0.01) as where:
        assert where.what.startswith("processes with ports of their own; delay, loss and repet")
        assert where.before(0) == ()
        with Cluster(layout, tmp_path, places=where.of) as cluster:
            for block in blocks:
                cluster.submit(block)
            cluster.settle()
            found = sorted(result.tids for _, result in cluster.results())
            told = cluster.blocks()
    assert found == answer(windows, blocks)
    (relay,) = made
    assert relay.lost > 0
    assert relay.passed > 20
    # What the nodes on a block's way added up is what was foretold, where nothing was deleted.
    assert len(told) == len(blocks)
    assert all(block.actual <= block.predicted for block in told)
    assert any(block.actual for block in told)
