"""Lottery routing on the animal-tracking data, block by block."""

from __future__ import annotations

from fractions import Fraction

from tests.engine.sites import animals
from tests.engine.sites.lockstep import Memory


def test_statement_06_costs_and_shares() -> None:
    known, lottery = animals.synopses(), Memory(3)
    costs, shares, first_stops = [], [], []
    for keys in (animals.FIRST, animals.SECOND, (4, 4)):
        trip = lottery.route(1, animals.block(keys), known)
        costs.append(trip.cost(animals.COSTS, None))
        shares.append(lottery.share(1, 0))
        first_stops.append(trip.nodes[1])
    assert costs == [129, 104, 136]
    assert shares == [Fraction(4, 4), Fraction(7, 6), Fraction(9, 10)]
    assert first_stops == [0, 0, 0]
    assert lottery.next(1, {0, 2}) == 2


def test_what_is_used_up_goes_no_further() -> None:
    trip = Memory(3).route(1, animals.block((8,)), animals.synopses())
    assert not trip.through
    assert trip.results == 0
    assert trip.cost(animals.COSTS, 0) == 18
