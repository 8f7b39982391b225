"""Tests sites that are devices behind bridges, one bridge each: the results are those of the
definition."""

from __future__ import annotations

import contextlib
import math
import random
from pathlib import Path

from seustream.cosim.bridge.client import BridgeClient
from seustream.engine.sites.device_store import DeviceStore
from seustream.engine.sites.layout import SiteLayout
from seustream.engine.sites.model import EquiJoin
from tests.cosim.bridge.serving import bridge
from tests.engine.sites.network import LineFaults, SiteNetwork
from tests.engine.sites.oracle import answer, random_blocks
from tests.engine.sites.running import costs, feed, found


def test_three_sites_behind_three_bridges(tmp_path: Path) -> None:
    windows = [2, math.inf, 3]
    blocks = random_blocks(random.Random(1), 3)
    join = EquiJoin.on_one_key(windows)
    with contextlib.ExitStack() as stack:
        devices = []
        for site in range(3):
            (tmp_path / str(site)).mkdir()
            _, url = stack.enter_context(bridge(tmp_path / str(site)))
            client = stack.enter_context(BridgeClient(url, patience=0))
            devices.append(stack.enter_context(client.device()))
        net = SiteNetwork(
            SiteLayout(join, costs(random.Random(1), 4), 3),
            LineFaults(20, 0.1, 0.1),
            stores=lambda site: DeviceStore(join, site, devices[site]),
        )
        feed(net, blocks)
    assert found(net) == answer(windows, blocks)
    assert found(net)
