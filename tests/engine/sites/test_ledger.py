"""The weight of messages by preset, and the block they are charged to."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from seustream.engine.sites.costs import UnitCosts
from seustream.engine.sites.layout import SiteLayout
from seustream.engine.sites.messages import (
    Ack,
    Announce,
    Changes,
    Deliver,
    Delta,
    Expire,
    Fetched,
    Plan,
    Probe,
    Ship,
    SiteMessage,
    Standing,
)
from seustream.engine.sites.model import EquiJoin, Partial, Result, Stored, start
from tests.engine.sites.ledger import Ledger
from tests.engine.sites.network import SiteNetwork
from tests.engine.sites.running import block

ROW = Stored((0, 0, 0), (1,), 0, 0, (math.inf,))
PART: Partial = start(EquiJoin.on_one_key([math.inf] * 9), ROW)
COUNTS = {(1,): 5, (2,): 1, (3,): 1}
N = 9
MESSAGES: dict[str, tuple[SiteMessage, float, float]] = {
    "probe": (Probe((0, 0), 0, (1, 2), 0, (), 0, (PART, PART)), 2, 2),
    "deliver": (Deliver((0, 0), 0, 0, (Result((0,), (ROW,)),) * 3), 3, 3),
    "delta": (Delta((1, 0), 0, 0, 0, COUNTS, 0, 0), 0.75, 0.75),
    "heartbeat": (Delta((1, 0), 0, 0, 0, {}, 0, 0), 0, 0.25),
    # An order of 8 sites takes a byte each, 9 visible numbers half an entry each.
    "plan": (Plan((1, 0), 0, 0, 0, COUNTS, (), (), 0, (True,), 0), 0.75, 0.75 + 0.25 + 1.25),
    "expire": (Expire((1, 0), 0, 0, 0, COUNTS), 0.75, 0.75),
    "ack": (Ack(("done", 0, 0)), 0, 0.25),
    "standing": (Standing((1, 0), 0, 0, COUNTS, (), 0, 0, 0, 0, 0), 0, 1),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_units(name: str) -> None:
    message, paper, real = MESSAGES[name]
    assert Ledger(N).units(message) == paper
    assert Ledger(N, "real").units(message) == real


def test_repetitions_count_in_reality_only() -> None:
    costs = UnitCosts.of([[0, 4], [4, 0]])
    probe = MESSAGES["probe"][0]
    for preset, total in (("paper", 8), ("real", 16)):
        ledger = Ledger(N, preset)  # type: ignore[arg-type]
        ledger.charge(0, 1, probe, costs)
        ledger.charge(0, 1, probe, costs)
        assert ledger.total == ledger.of_block(0, 0) == total
        assert ledger.by_unit() == {0: total}


def test_what_is_counted_of_a_hub() -> None:
    told = Changes((1, 0), 0, 0, 0, {(1,): -2, (2,): 1}, {(2,): 1, (3,): 1})
    assert Ledger(N).units(told) == 0.75
    announce = Announce((1, 0), 0, 0, 0, 5, 3, 0, 0, 0.0, 0)
    assert (Ledger(N).units(announce), Ledger(N, "real").units(announce)) == (0, 0.25)
    costs, ledger = UnitCosts.of([[0, 4], [4, 0]]), Ledger(N)
    for moving in (False, True):
        ship = Ship((1, 0), (0, 0), 0, (), 0, (True,), 0, moving, (ROW, ROW))
        for epoch in ((1, 0), (2, 0)):
            ledger.charge(0, 1, replace(ship, epoch=epoch), costs)
    ledger.charge(0, 1, Fetched(0, -1, 3, 0, (ROW,)), costs)
    assert [(charge.kind, charge.cost) for charge in ledger.charges] == [
        ("ship", 8),
        ("move", 8),
        ("move", 4),
    ]
    assert (ledger.total, ledger.moved) == (20, 12)


def test_rows_from_a_feeder_elsewhere_are_counted_apart() -> None:
    """The specification requires it: reported separately."""
    costs = UnitCosts.of([[0, 4, 2], [4, 0, 3], [2, 3, 0]])
    net = SiteNetwork(SiteLayout(EquiJoin.on_one_key([math.inf] * 2), costs, 2))
    net.submit(block(0, 0, 1, 2, None), feeder=2)
    net.submit(block(1, 0, 9), feeder=1)
    net.submit(block(1, 1, 8), feeder=2)
    net.submit(block(1, 2, 8))
    net.run()
    assert net.ledger is not None
    assert net.ledger.ingest_cost == 3 * 2 + 0 + 3
    assert net.ledger.total == sum(charge.cost for charge in net.ledger.charges)


def test_wider_rows_and_no_delivery() -> None:
    wide = Ledger(N, width=lambda streams: streams)
    onward = Probe((0, 0), 0, (1, 2), 1, (), 0, (PART, PART))
    assert wide.units(onward) == 4
    assert wide.units(MESSAGES["deliver"][0]) == 27
    assert Ledger(N, deliver=False).units(MESSAGES["deliver"][0]) == 0
