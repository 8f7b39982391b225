"""Planned joins or a hub: what is taken when, and how far from the best hub that ends."""

from __future__ import annotations

import math

import pytest

from engine.multijoin.baselines import run_auto, run_hub
from engine.multijoin.costs import UnitCosts
from engine.multijoin.lockstep import Terms
from engine.multijoin.setting import setting
from engine.multijoin.strategy import Strategy, Unit


def test_statement_44_hub_without_window_planned_joins_with() -> None:
    taken = run_auto(setting(8000, 8), Terms())[1]
    assert taken.hub is not None
    assert taken.migration > 0
    stays = run_auto(setting(8000, 8), Terms(3))[1]
    assert (stays.hub, stays.moves, stays.migration) == (None, [], 0)


@pytest.mark.parametrize("window", [math.inf, 3])
@pytest.mark.parametrize("n", [3, 4, 5])
def test_never_far_above_shipping_everything(n: int, window: float) -> None:
    """Above the best hub, known afterwards, by no more than twice the moves charged and what the
    worst single unit was above it: the unit that taught the lesson (docs/decisions/0051)."""
    for s in range(25):
        of, terms = setting(1000 * n + s, n), Terms(window)
        outcome, strategy = run_auto(of, terms)
        hub = run_hub(of, terms)
        assert outcome.total == pytest.approx(strategy.total)
        lesson = max(
            own - best for own, best in zip(strategy.own_costs, strategy.best_costs, strict=True)
        )
        assert outcome.total <= hub.total + 2 * strategy.migration + max(0, lesson), s


def costs() -> UnitCosts:
    return UnitCosts.of([[0, 2, 3], [2, 0, 4], [3, 4, 0]])


def test_cheap_joins_stay() -> None:
    strategy = Strategy(costs(), 2, range(3))
    for _ in range(30):
        assert strategy.after(Unit(1, [5, 5], 2, [10, 10])) is None
    assert strategy.total == 30


def test_steady_loss_of_a_fifth_moves_at_a_check() -> None:
    """The joins save at first, so that nothing is lost yet when they become the dearer."""
    strategy = Strategy(costs(), None, range(2))
    for _ in range(10):
        strategy.after(Unit(0, [10, 10], 0, [1, 1]))
    moved = [strategy.after(Unit(27, [10, 10], 0, [1, 1])) for _ in range(10)]
    assert moved[:9] == [None] * 9
    assert moved[9] == 0
    assert strategy.migration == 2
    assert strategy.moves == [(20, 0)]


def test_growth_is_stopped_before_it_costs_more_than_a_hub() -> None:
    strategy = Strategy(costs(), None, range(2))
    for cost in (1, 10, 20, 40, 80, 160):
        if strategy.after(Unit(cost, [10, 10], 0, [10, 10])) is not None:
            break
    assert strategy.spent < 20 * 6
    assert strategy.hub == 0
    spent = strategy.spent
    strategy.after(Unit(None, [10, 10], 0, [10, 10]))
    assert strategy.spent == spent + 20


def test_nothing_moves_after_the_end() -> None:
    strategy = Strategy(costs(), None, range(2))
    assert strategy.after(Unit(1000, [1, 1], 0, [1, 1], last=True)) is None
    assert strategy.migration == 0
