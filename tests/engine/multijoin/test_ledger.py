"""What messages weigh, by preset, and whom they are charged to."""

from __future__ import annotations

import math

import pytest

from engine.multijoin.costs import UnitCosts
from engine.multijoin.ledger import Ledger
from engine.multijoin.messages import Ack, Deliver, Delta, Expire, Message, Plan, Probe, Standing
from engine.multijoin.model import Join, Partial, Result, Stored, start

ROW = Stored((0, 0, 0), (1,), 0, 0, (math.inf,))
PART: Partial = start(Join.on_one_key([math.inf] * 9), ROW)
COUNTS = {(1,): 5, (2,): 1, (3,): 1}
N = 9
MESSAGES: dict[str, tuple[Message, float, float]] = {
    "probe": (Probe((0, 0), 0, (1, 2), 0, (), 0, (PART, PART)), 2, 2),
    "deliver": (Deliver((0, 0), 0, 0, (Result((0,), (ROW,)),) * 3), 3, 3),
    "delta": (Delta((1, 0), 0, 0, 0, COUNTS, 0, 0), 0.75, 0.75),
    "heartbeat": (Delta((1, 0), 0, 0, 0, {}, 0, 0), 0, 0.25),
    # 8 sites in an order are a byte each, 9 visible numbers half an entry each.
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


def test_wider_rows_and_no_delivery() -> None:
    wide = Ledger(N, width=lambda streams: streams)
    onward = Probe((0, 0), 0, (1, 2), 1, (), 0, (PART, PART))
    assert wide.units(onward) == 4
    assert wide.units(MESSAGES["deliver"][0]) == 27
    assert Ledger(N, deliver=False).units(MESSAGES["deliver"][0]) == 0
