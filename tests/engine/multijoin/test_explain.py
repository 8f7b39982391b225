"""What is told of a run: the specification's blocks, their orders and costs; all of a stormy one."""

from __future__ import annotations

import random

from engine.multijoin.explain import watch
from engine.multijoin.model import Join
from engine.multijoin.node import Layout
from engine.multijoin.transport import Network, Weather
from tests.engine.multijoin import animals
from tests.engine.multijoin.oracle import random_blocks
from tests.engine.multijoin.running import feed, network


def test_the_two_blocks_of_the_specification() -> None:
    net = Network(Layout(animals.join(), animals.COSTS, 1, deliver=False))
    record = watch(net)
    *before, first, second = animals.blocks()
    feed(net, before, lockstep=True)
    feed(net, [first, second], lockstep=True)
    *_, third, fourth = record.text().splitlines()
    assert third.split() == ["R1", "2", "2", "2", "of", "3", "R1", "→", "R2", "→", "R0", "90", "90"]
    assert fourth.split()[:8] == ["R1", "3", "3", "2", "of", "3", "R1", "→"]
    assert all(record.actual(d) == d.predicted for d in record.decisions.values())
    assert record.to_json()[-2] == {
        "stream": "R1",
        "block": 2,
        "tau": 2,
        "epoch": [1, 1],
        "rows": 3,
        "sent": 2,
        "order": ["R2", "R0"],
        "predicted": 90,
        "actual": 90,
    }


def test_every_block_of_a_stormy_run_is_told_of() -> None:
    blocks = random_blocks(random.Random(8), 3)
    net = network(Join.on_one_key([3, 3, 3]), 8, Weather(20, 0.1, 0.1))
    record = watch(net)
    feed(net, blocks[:6])
    net.crash_centre(net.layout.first_epoch[1], net.now)
    feed(net, blocks[6:])
    assert len(record.decisions) == len(blocks)
    assert {d.epoch[0] for d in record.decisions.values()} > {1}
    assert len(record.text().splitlines()) == 1 + len(blocks)
