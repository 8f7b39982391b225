"""A store on a device compared with one in memory, step by step; and sites with devices compared
with the answer by definition."""

from __future__ import annotations

import math
import random

import pytest

from seustream.cosim.golden import GoldenDevice
from seustream.cosim.iss import IssDevice
from seustream.engine.sites import device_store
from seustream.engine.sites.device_store import DeviceStore
from seustream.engine.sites.errors import BadQuery
from seustream.engine.sites.layout import SiteLayout
from seustream.engine.sites.model import EquiJoin, SiteStream, Stored, start
from seustream.engine.sites.store import BlockStore
from seustream.hdl.config import CONFIGURATIONS
from tests.engine.sites.network import LineFaults, SiteNetwork
from tests.engine.sites.oracle import answer, random_blocks
from tests.engine.sites.running import costs, feed, found

JOIN = EquiJoin(
    (SiteStream("a", ("x",)), SiteStream("b", ("y",)), SiteStream("c", ("x", "y"))),
    (((0, "x"), (2, "x")), ((1, "y"), (2, "y"))),
)
KEYS = (1, 2, "one", b"two", 2.5, -(10**30))


@pytest.mark.parametrize("config", ["default", "tiny"])
@pytest.mark.parametrize("device", [GoldenDevice, IssDevice])
def test_as_in_memory(
    device: type[GoldenDevice] | type[IssDevice], config: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small buffers overflow; only few rows may be deleted before the device is emptied."""
    monkeypatch.setattr(device_store, "FEWEST_DELETED", 3)
    chance = random.Random(3)
    stores = BlockStore(JOIN, 2), DeviceStore(JOIN, 2, device(CONFIGURATIONS[config]))
    restarts = 0
    for no in range(25):
        rows = [
            Stored((2, no, i), (chance.choice(KEYS), chance.choice(KEYS)), no, no, (no + 4,))
            for i in range(chance.randint(0, 5))
        ]
        probes = [
            start(JOIN, Stored((k, no, 0), (chance.choice(KEYS),), no, no, (math.inf,)))
            for k in (0, 1)
        ]
        visible, watermark = chance.randint(0, no), no - chance.randint(2, 5)
        gone, answers = [], []
        before = stores[1].driver
        for store in stores:
            store.store(rows)
            answers.append(sorted(part.tids for part in store.probe(probes, visible)))
            gone.append(sorted(row.tid for row in store.expire(watermark)))
        restarts += stores[1].driver is not before
        assert answers[0] == answers[1], no
        assert gone[0] == gone[1], no
        assert set(stores[0].rows()) == set(stores[1].rows())
    assert restarts
    stores[1].clear()
    assert list(stores[1].rows()) == []
    assert stores[1].probe(probes, 99) == []


@pytest.mark.parametrize("seed", range(3))
def test_sites_that_are_devices(seed: int) -> None:
    windows = [2, math.inf, 3]
    blocks = random_blocks(random.Random(seed), 3)
    join = EquiJoin.on_one_key(windows)
    layout = SiteLayout(join, costs(random.Random(seed), 4), 3)
    net = SiteNetwork(
        layout,
        LineFaults(20, 0.1, 0.1),
        seed,
        stores=lambda k: DeviceStore(join, k, GoldenDevice(CONFIGURATIONS["default"])),
    )
    feed(net, blocks[:8])
    net.crash_centre(max(n.site.epoch for n in net.nodes.values() if n.site)[1], net.now + 50)
    feed(net, blocks[8:])
    assert found(net) == answer(windows, blocks)
    assert found(net)


def test_more_columns_than_a_device_compares() -> None:
    columns = tuple("abcde")
    wide = EquiJoin(
        (SiteStream("r", columns), SiteStream("s", columns)),
        tuple(((0, c), (1, c)) for c in columns),
    )
    with pytest.raises(BadQuery, match="joined by 5 columns"):
        DeviceStore(wide, 0, GoldenDevice(CONFIGURATIONS["default"]))
