"""Tests sites apart from each other: where there are no namespaces, the nodes themselves send
late."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest

from seustream.engine.sites.layout import SiteLayout
from seustream.engine.sites.model import EquiJoin
from tests.cosim.sites.cluster import Cluster
from tests.engine.sites.oracle import answer, random_blocks
from tests.engine.sites.running import costs
from tests.system import places
from tests.system.places import apart


def test_results_are_exact_without_namespaces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places.os, "geteuid", lambda: 1)
    windows = [math.inf, 3]
    blocks = random_blocks(random.Random(4), 2)
    layout = SiteLayout(EquiJoin.on_one_key(windows), costs(random.Random(4), 3), 2, retry=40.0)
    with apart(3, loss=0.2, delay=0.01) as where:
        assert where.what == "processes with ports of their own, which send late"
        assert (where.before(0), where.delay) == ((), 0.01)
        bad = {"loss": 0.2, "repeat": 0.2, "delay": where.delay}
        with Cluster(layout, tmp_path, **bad, places=where.of) as cluster:
            for block in blocks:
                cluster.submit(block)
            cluster.settle()
            found = sorted(result.tids for _, result in cluster.results())
            blocks_seen = cluster.blocks()
    assert found == answer(windows, blocks)
    # The sum that the nodes on a block's way added up is the predicted one, where nothing was
    # deleted.
    assert len(blocks_seen) == len(blocks)
    assert all(block.actual <= block.predicted for block in blocks_seen)
    assert any(block.actual for block in blocks_seen)
