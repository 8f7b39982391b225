"""Runs that choose between planned joins and a hub: except for the charged moves they are never
dearer than shipping everything to one node, the best in hindsight; neither at the end nor at any
time before."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from seustream.engine.sites.account import Account
from seustream.engine.sites.costs import UnitCosts
from seustream.engine.sites.planner import auto, smjh
from tests.engine.sites.lockstep import (
    LockstepSetting,
    Terms,
    run_auto,
    run_hub,
    run_smj,
    setting,
)


def test_statement_44_hub_without_window_planned_joins_with() -> None:
    taken = run_auto(setting(8000, 8), Terms())[1]
    assert taken.hub is not None
    assert taken.moved > 0
    stays = run_auto(setting(8000, 8), Terms(3))[1]
    assert (stays.hub, stays.moves, stays.moved) == (None, 0, 0)


def workload(seed: int) -> LockstepSetting:
    """Draws any costs, also free ones and costs of one direction only; sites that are silent,
    flood, or change their keys from one unit to the next."""
    chance = random.Random(seed)
    n = chance.choice([2, 2, 3, 3, 4, 5])
    dearest = chance.choice([1, 10, 1000])
    w = [
        [0 if a == b else chance.choice([0, 1, chance.randint(0, dearest)]) for b in range(n + 1)]
        for a in range(n + 1)
    ]
    units = []
    for _ in range(chance.randint(1, 14)):
        domain = chance.choice([1, 2, 5, 50])
        first = chance.choice([0, 0, 100])
        units.append(
            tuple(
                tuple(
                    first + chance.randrange(domain)
                    for _ in range(chance.choice([0, 0, 1, 3, chance.randrange(40)]))
                )
                for _ in range(n)
            )
        )
    return LockstepSetting(n, UnitCosts.of(w), tuple(units))


def check(of: LockstepSetting, terms: Terms, seed: int) -> Account:
    outcome, account = run_auto(of, terms)
    best = run_hub(of, terms)
    assert account.spent <= best.total + 1e-6, seed
    assert outcome.total == pytest.approx(account.spent + account.moved), seed
    assert outcome.total <= best.total + account.moved + 1e-6, seed
    return account


@pytest.mark.parametrize("first", range(0, 600, 150))
def test_never_above_shipping_everything_but_for_the_moves(first: int) -> None:
    hubs = stayed = 0
    for seed in range(first, first + 150):
        of = workload(seed)
        chance = random.Random(seed)
        terms = Terms(chance.choice([math.inf, 0, 1, 3]), chance.random() < 0.7)
        account = check(of, terms, seed)
        hubs += account.hub is not None
        stayed += account.hub is None and account.spent > 0
        want = run_smj(of, auto, terms)
        assert run_auto(of, terms)[0].results == want.results, seed
    assert hubs > 10
    assert stayed > 10


@pytest.mark.parametrize("first", range(0, 60, 30))
def test_nor_at_any_time_before_the_end(first: int) -> None:
    for seed in range(first, first + 30):
        of = workload(seed)
        for units in range(1, len(of.keys)):
            check(replace(of, keys=of.keys[:units]), Terms(3), seed)


@pytest.mark.parametrize("window", [math.inf, 3])
@pytest.mark.parametrize("n", [3, 4, 5])
def test_in_the_setting_of_the_paper(n: int, window: float) -> None:
    """Joins are not given up if they are cheaper."""
    mine = joins = 0.0
    for s in range(20):
        of, terms = setting(1000 * n + s, n), Terms(window)
        mine += check(of, terms, s).total
        joins += run_smj(of, auto, terms).total
    assert mine < joins


def test_a_poor_planner_costs_money_within_the_bound() -> None:
    for seed in range(40):
        of = workload(seed)
        outcome, account = run_auto(of, Terms(3), smjh)
        assert outcome.total <= run_hub(of, Terms(3)).total + account.moved + 1e-6, seed


def test_a_block_that_meets_nobody_costs_nothing() -> None:
    """No rule could meet this case while the first block's synopsis was paid for."""
    costs = UnitCosts.of([[0, 5, 5, 5], [5, 0, 1, 5], [5, 1, 0, 5], [5, 5, 5, 0]])
    assert costs.centre(range(3)) == 1
    outcome, account = run_auto(LockstepSetting(3, costs, (((1, 2, 3), (), ()),)))
    assert outcome.total == account.best == 0
    assert run_hub(LockstepSetting(3, costs, (((1, 2, 3), (), ()),))).total == 0


@pytest.mark.campaign
@pytest.mark.parametrize("first", range(1000, 21000, 1000))
def test_the_bound_at_length(first: int) -> None:
    for seed in range(first, first + 1000):
        chance = random.Random(seed)
        check(
            workload(seed), Terms(chance.choice([math.inf, 0, 1, 3]), chance.random() < 0.7), seed
        )
