"""EXPLAIN of a run: the specification's blocks with their orders and costs, and all blocks of a
stormy run."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from seustream.compiler.explain.text import write
from seustream.engine.sites.explain import BadRecord, Block, load, save
from seustream.engine.sites.layout import SiteLayout
from seustream.engine.sites.model import EquiJoin
from tests.engine.sites import animals
from tests.engine.sites.network import LineFaults, SiteNetwork, watch
from tests.engine.sites.oracle import random_blocks
from tests.engine.sites.running import INF, block, feed, network


def test_the_two_blocks_of_the_specification() -> None:
    net = SiteNetwork(SiteLayout(animals.join(), animals.COSTS, 1, deliver=False))
    record = watch(net)
    *before, first, second = animals.blocks()
    feed(net, before, lockstep=True)
    feed(net, [first, second], lockstep=True)
    *_, third, fourth = write(tuple(record.blocks()))
    assert third.split() == ["R1", "2", "2", "2", "of", "3", "R1", "→", "R2", "→", "R0", "90", "90"]
    assert fourth.split()[:6] == ["R1", "3", "3", "2", "of", "3"]
    assert all(block.actual == block.predicted for block in record.blocks())
    assert record.blocks()[-2] == Block("R1", 2, 2, (1, 1), 3, 2, ("R2", "R0"), None, 90, 90)


def test_every_block_of_a_stormy_run_is_told_of() -> None:
    blocks = random_blocks(random.Random(8), 3)
    net = network(EquiJoin.on_one_key([3, 3, 3]), 8, LineFaults(20, 0.1, 0.1))
    record = watch(net)
    feed(net, blocks[:6])
    net.crash_centre(net.layout.first_epoch[1], net.now)
    feed(net, blocks[6:])
    assert len(record.decisions) == len(blocks)
    assert {block.epoch[0] for block in record.blocks()} > {1}
    assert len(write(tuple(record.blocks()))) == 2 + len(blocks)


def test_blocks_at_a_hub_say_so(tmp_path: Path) -> None:
    net = network(EquiJoin.on_one_key([INF] * 3), 2, strategy="auto")
    record = watch(net)
    feed(net, [block(k, t, 1, 2) for t in range(4) for k in range(3)], lockstep=True)
    found = record.blocks()
    assert {b.hub is None for b in found} == {True, False}
    last = next(b for b in reversed(found) if b.hub is not None)
    assert last.way == f"{last.stream} → hub at node {last.hub}"
    assert (last.sent, last.rows) == (2, 2)
    save({"q": found}, tmp_path / "run.json")
    assert load(tmp_path / "run.json") == {"q": found}


@pytest.mark.parametrize(
    "text", ["", "[1]", '{"q": [{}]}', '{"q": 3}', '[{"stream": 1}]', "nonsense"]
)
def test_what_is_no_record(text: str, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(text)
    with pytest.raises(BadRecord, match="no record of a run"):
        load(path)
