"""Unit costs: refused ones, cheapest ways compared with brute force, the place of the centre."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from seustream.engine.sites.costs import UnitCosts, times
from seustream.engine.sites.errors import BadCosts
from tests.engine.sites import animals


@pytest.mark.parametrize(
    "rows",
    [
        [[0, 1], [1]],
        [[0, 1, 2], [1, 0, 2]],
        [[0, math.nan], [1, 0]],
        [[0, -1], [1, 0]],
        [[0, 1e308], [1, 0]],
        [[0, 1], [1, 3]],
    ],
)
def test_statement_37_bad_costs(rows: list[list[float]]) -> None:
    with pytest.raises(BadCosts) as raised:
        UnitCosts.of(rows)
    assert raised.value.hint


def test_statement_04_centre() -> None:
    assert [animals.COSTS.distance(k, range(3)) for k in range(3)] == [2 * 43, 2 * 38, 2 * 45]
    assert animals.COSTS.centre(range(3)) == 1
    assert UnitCosts.of([[0, 5, 5], [5, 0, 5], [5, 5, 0]]).centre(range(3)) == 0


def test_centre_moves_for_more_than_a_fifth_only() -> None:
    def costs(far: float) -> UnitCosts:
        return UnitCosts.of([[0, far, far], [10, 0, 0], [10, 0, 0]])

    # With the centre at 1: 10 + far. At 0: 2·10 + 2·far.
    assert costs(5).move(0, range(3), range(3)) == 1
    close = UnitCosts.of([[0, 10, 10], [10, 0, 12], [10, 12, 0]])
    assert close.distance(0, range(3)) == 40
    assert close.distance(1, range(3)) == 44
    assert close.move(1, range(3), range(3)) == 1
    assert close.centre(range(3)) == 0


def test_metric_closure_is_the_cheapest_way() -> None:
    chance = random.Random(4)
    for _ in range(30):
        nodes = chance.randint(1, 5)
        w = [
            [0 if a == b else chance.choice([1, 2, 9, 30, math.inf]) for b in range(nodes)]
            for a in range(nodes)
        ]
        closed = UnitCosts.of(w, version=3).metric_closure()
        assert closed.version == 3
        for a, b in itertools.product(range(nodes), repeat=2):
            ways = [
                sum(w[x][y] for x, y in itertools.pairwise((a, *via, b)))
                for length in range(nodes)
                for via in itertools.permutations(set(range(nodes)) - {a, b}, length)
                if length <= max(0, nodes - 2)
            ]
            assert closed.w[a][b] == (min(ways) if a != b else 0)


def test_nothing_to_the_unreachable_costs_as_much_as_something() -> None:
    assert times(0, math.inf) == math.inf
    assert times(3, 4) == 12
