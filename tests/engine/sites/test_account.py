"""The account of the cost spent and of the cost of every hub, in figures worked out by hand."""

from __future__ import annotations

import math

from seustream.engine.sites.account import Account, Recent
from seustream.engine.sites.costs import UnitCosts


def account(query_node: int | None = 2) -> Account:
    return Account(UnitCosts.of([[0, 2, 3], [2, 0, 4], [3, 4, 0]]), query_node, range(3))


def test_what_every_hub_would_have_cost() -> None:
    of = account()
    of.arrived(0, 10)
    assert of.hubs == {0: 0, 1: 20, 2: 30}
    assert (of.best, of.leader) == (0, 0)
    of.joined(100)
    assert of.hubs == {0: 300, 1: 420, 2: 30}
    assert of.leader == 2
    without = account(None)
    without.joined(100)
    assert without.best == 0


def test_what_can_be_afforded() -> None:
    of = account()
    assert not of.affords(1)
    of.arrived(1, 5)
    of.arrived(0, 5)
    assert of.hubs == {0: 10, 1: 10, 2: 35}
    assert of.affords(10)
    of.pay(4)
    assert not of.affords(7)
    # At 0 a result costs 3, at 2 nothing: (35 - 4)/3 may go before 2 would have been cheaper.
    assert of.most_results(0) == 31 / 3
    assert of.most_results(2) == math.inf
    of.go(2, 50)
    assert (of.hub, of.total, of.spent) == (2, 54, 4)


def test_an_unreachable_query_node_takes_no_results() -> None:
    inf = math.inf
    of = Account(UnitCosts.of([[0, 1, inf], [1, 0, 1], [1, 1, 0]]), 2, range(3))
    assert of.most_results(0) == 0
    assert of.most_results(1) == 0
    of.arrived(0, 8)
    assert of.most_results(0) == 0
    assert of.most_results(1) == math.inf


def test_every_ten_units_a_fifth_is_worth_a_move() -> None:
    for own, move, worth in ((26, 2, True), (26, 10, False), (25, 2, False)):
        of = account(None)
        recent = Recent(of)
        for _ in range(10):
            of.arrived(0, 10)
            of.arrived(1, 10)
        for unit in range(1, 21):
            of.arrived(0, 10)
            of.arrived(1, 10)
            of.pay(own)
            assert recent.unit_over() == (unit % 10 == 0)
        assert recent.best() == 0
        assert recent.gains(0, move) == worth
